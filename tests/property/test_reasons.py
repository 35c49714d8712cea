"""Why not: each loop and statement has its reasons, and each is true: steps are refused and accepted as it says."""

from __future__ import annotations

from functools import cache

import classic_nests as classic
import pytest
from machines import LARGE

import poly
from microkernels.isa import ISAS
from poly import bf16, f16, f32, f64, i64
from poly.autoschedule.default import default_schedule, expectation
from poly.autoschedule.rules.microkernels import contracted
from poly.explanation import reasons as why
from poly.explanation.reasons import Reason, reason_lines, reasons
from poly.ir.nest import Nest
from poly.ir.tree import Micro, bands, statements, walk
from poly.model.core import Target
from poly.schedules.schedule import Schedule
from poly.schedules.steps import Tensorize

K, M, N = poly.sizes("K M N")

NESTS = (
    classic.gemm,
    classic.cholesky,
    classic.floyd,
    classic.seidel,
    classic.softmax,
    classic.trisolve,
    classic.covariance,
    classic.strided,
    classic.ints,
    classic.gemv_like,
    classic.dot,
    classic.transpose,
    classic.inplace_mm,
    classic.tri_product,
)
THREADS = (1, 2)


def target(threads: int) -> Target:
    """Any machine will do; nothing is compiled."""
    return Target.nominal(ISAS["avx2"], LARGE, threads)


@cache
def scheduled(nest: Nest, threads: int) -> tuple[Schedule, tuple[Reason, ...]]:
    made = default_schedule(nest, target(threads))
    return made, reasons(made, target(threads))


@pytest.mark.parametrize("threads", THREADS)
@pytest.mark.parametrize("nest", NESTS, ids=lambda nest: nest.name)
def test_nothing_is_without_a_reason(nest: Nest, threads: int) -> None:
    made, found = scheduled(nest, threads)
    given = {(reason.subject, reason.what) for reason in found}
    wanted = {(band.name, "parallel") for band in bands(made.tree) if not band.parallel}
    wanted |= {(band.name, "vectorised") for band in bands(made.tree) if not band.vectorize}
    kernels = [node for node in walk(made.tree) if isinstance(node, Micro)]
    inside = {name for node in kernels for name in (node.statement, node.initial)}
    wanted |= {(name, "in a microkernel") for name in statements(made.tree) if name not in inside}
    assert given == wanted and len(found) == len(given)
    assert "\n".join(reason_lines(found)).count("\n") == max(0, len(found) - 1)


@pytest.mark.parametrize("threads", THREADS)
@pytest.mark.parametrize("nest", NESTS, ids=lambda nest: nest.name)
def test_each_reason_is_true(nest: Nest, threads: int) -> None:
    made, found = scheduled(nest, threads)
    for reason in found:
        if reason.what == "in a microkernel":
            tiled = contracted(made.nest, target(threads))
            served = {step.statement for step in tiled.steps if isinstance(step, Tensorize)}
            assert (reason.subject in served) is (reason.cause in ("model", "rule")), reason
        elif reason.cause == "dependence":
            assert reason.witness is not None
            refused(made, reason, str(reason.witness))
        elif reason.cause == "another loop" and reason.what == "vectorised":
            refused(made, reason, "is inside it")
        elif reason.cause == "another loop":
            assert any(band.parallel and band.name in reason.text for band in bands(made.tree))
        elif reason.cause in ("work", "one thread", "one iteration", "strides", "model", "rule"):
            other = step(made, reason)
            if reason.seconds is not None:
                assert reason.seconds[1] == expectation(other, target(threads)).seconds
                assert (reason.seconds[1] < reason.seconds[0]) is (reason.cause == "rule")
        else:
            assert reason.cause == "kernel"
            band = next(band for band in bands(made.tree) if band.name == reason.subject)
            assert any(isinstance(node, Micro) for node in walk(band))


def step(made: Schedule, reason: Reason) -> Schedule:
    """The schedule in which the loop is what it is not. Raises ScheduleError where that is illegal."""
    return made.parallel(reason.subject) if reason.what == "parallel" else made.vectorize(reason.subject)


def refused(made: Schedule, reason: Reason, why: str) -> None:
    with pytest.raises(poly.ScheduleError) as raised:
        step(made, reason)
    assert why in str(raised.value), reason


def test_all_causes_occur() -> None:
    causes = {reason.cause for nest in NESTS for threads in THREADS for reason in scheduled(nest, threads)[1]}
    assert causes >= {"dependence", "one thread", "another loop", "work", "kernel", "strides", "form", "model"}


# --- conditions of a contraction ------------------------------------------------------------------------------------


@poly.nest
def three(a: f32[M, K], b: f32[K, N], c: f32[M, N], d: f32[M, N]):
    for i in range(M):
        for j in range(N):
            for k in range(K):
                d[i, j] += a[i, k] * b[k, j] * c[i, j]


@poly.nest
def mixed(a: bf16[M + K], b: f64[K, N], c: f64[M, N]):
    for i in range(M):
        for j in range(N):
            for k in range(K):
                c[i, j] += f64(a[i + k]) * b[k, j]


@poly.nest
def whole(a: i64[M, K], b: i64[K, N], c: i64[M, N]):
    for i in range(M):
        for j in range(N):
            for k in range(K):
                c[i, j] += a[i, k] * b[k, j]


@poly.nest
def half(a: f16[M, K], b: f16[K, N], c: f16[M, N]):
    for i in range(M):
        for j in range(N):
            for k in range(K):
                c[i, j] += a[i, k] * b[k, j]


@poly.nest(reassociate=False)
def ordered(a: f32[M, K], b: f32[K, N], c: f32[M, N]):
    for i in range(M):
        for j in range(N):
            for k in range(K):
                c[i, j] += a[i, k] * b[k, j]


@poly.nest
def factor(a: f32[M + K], b: f32[K, N], s: f32[M], c: f32[M, N]):
    for i in range(M):
        for j in range(N):
            for k in range(K):
                c[i, j] += max(s[i], 2) * a[i + k] * b[k, j]


@poly.nest
def tied(a: f32[M, K], b: f32[K, N], c: f32[M, N], d: f32[M, N]):
    for i in range(M):
        for j in range(N):
            for k in range(K):
                c[i, j] += a[i, k] * b[k, j]
                d[i, j] = c[i, j] * d[i, j]


@pytest.mark.parametrize(
    ("nest", "why"),
    [
        (three, "it adds a product with 3 elements of arrays, and must add one with 2"),
        (mixed, "it converts bf16 to f64, not to f32"),
        (whole, "there is none for i64"),
        (half, "no microkernel of one core computes in half precision"),
        (ordered, "its sums must keep their order: the nest says reassociate=False"),
        (factor, "a factor beside the two elements is neither a constant nor a number that the caller passes"),
        (tied, "dependences keep it in one loop with other statements"),
        (classic.inplace_mm, "an iteration of it reads what another one has written to C"),
        (classic.dot, "it has no loop over columns of the output"),
    ],
    ids=lambda value: value.name if isinstance(value, Nest) else "",
)
def test_why_a_statement_is_in_no_microkernel(nest: Nest, why: str) -> None:
    found = [reason for reason in scheduled(nest, 1)[1] if reason.what == "in a microkernel"]
    assert (found[0].subject, found[0].cause, found[0].text) == ("S0", "form", why)


def test_a_schedule_of_the_users_has_reasons_too() -> None:
    """A legal loop that the steps leave serial has the two times that the model expects."""
    made = poly.schedule(classic.gemm.with_sizes({"M": 512, "N": 512, "K": 512}))
    found = {(reason.subject, reason.what): reason for reason in reasons(made, target(2))}
    assert found["i", "parallel"].cause == "rule" and "no rule did so" in found["i", "parallel"].text
    assert found["S1", "in a microkernel"].seconds is not None


def test_what_takes_too_much_work_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    made, usual = scheduled(classic.cholesky, 1)
    monkeypatch.setattr(why, "QUESTION", 1)
    found = reasons(made, target(1))
    assert [(one.subject, one.what) for one in found] == [(one.subject, one.what) for one in usual]
    assert "cost" in {one.cause for one in found}
