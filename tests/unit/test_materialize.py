"""Parts of expressions that are computed before: refusals, types, contractions by it, and values at odd sizes."""

from __future__ import annotations

import numpy as np
import pytest
from doc_nests import centred, solve
from shared_nests import matmul

import poly
from poly import f64, i32, u8
from poly.analysis.contraction import recognise
from poly.autoschedule.rules.operands import materialized
from poly.errors import ScheduleError
from poly.ir.tree import Micro, walk

M, N, K = poly.sizes("M N K")
FACTORS = {
    "sum": "(A[i, k] + A2[i, k])*B[k, j]",
    "both": "(A[i, k] - d[k])*(B[k, j] - d[k])*2.0",
    "one array": "-((A[i, k] - d[k])*((A[j, k] - d[k])*0.5))",
    "function and indices": "exp(A[i, k]*d[k])*(B[k, j] + j - 2*k)",
}


def product(expression: str) -> poly.Function:
    text = f"""def product(A: "f64[M, K]", A2: "f64[M, K]", B: "f64[K, M]", d: "f64[K + M]", C: "f64[M, M]"):
        for i in range(M):
            for j in range(M):
                for k in range(K):
                    C[i, j] += {expression}"""
    return poly.parse(text, {"M": M, "K": K, "exp": np.exp})


@pytest.mark.parametrize("expression", FACTORS.values(), ids=list(FACTORS))
def test_factors_become_operands(expression: str) -> None:
    nest = product(expression)
    made = materialized(nest)
    assert made is not None
    assert recognise(made.nest, made.nest.statement("S0")) is not None
    kernel = poly.compile(nest, threads=1, records=False)
    assert any(isinstance(node, Micro) for node in walk(kernel.schedule.tree))
    rng = np.random.default_rng(0)
    for m, k in [(40, 33), (1, 1), (7, 0), (0, 5)]:
        arrays = [rng.random(shape) for shape in ((m, k), (m, k), (k, m), (k + m,), (m, m))]
        wanted = arrays[-1].copy()
        names = dict(zip(("A", "A2", "B", "d"), arrays, strict=False)) | {"exp": np.exp}
        i, j, at = np.ogrid[:m, :m, :k]
        wanted += eval(expression, names | {"i": i, "j": j, "k": at}).sum(-1)
        kernel(*arrays)
        np.testing.assert_allclose(arrays[-1], wanted, rtol=1e-12, atol=1e-12 * max(1, k))


@poly.nest
def quantised(A: u8[M, K], B: u8[K, N], C: i32[M, N]) -> None:
    for i in range(M):
        for j in range(N):
            for k in range(K):
                C[i, j] += (i32(A[i, k]) - 7) * (i32(B[k, j]) - 200)


@poly.nest
def window(x: f64[M + K], w: f64[K], y: f64[M, N], b: f64[N, K]) -> None:
    for i in range(M):
        for j in range(N):
            for k in range(K):
                y[i, j] += (x[i + k] - w[k]) * b[j, k]


@poly.nest
def changed(A: f64[M, K], B: f64[K, N], C: f64[M, N]) -> None:
    for i in range(M):
        for k in range(K):
            A[i, k] = 2.0 * A[i, k]
        for j in range(N):
            for k in range(K):
                C[i, j] += (A[i, k] + 1.0) * B[k, j]


def test_a_value_has_its_own_type_and_order() -> None:
    made = poly.schedule(quantised).materialize("S0", "i32(B[k, j]) - 200", into="t")
    local = made.nest.array("t")
    assert (local.dtype, [str(extent) for extent in local.shape]) == (i32, ["K", "N"])
    again = type(made).from_json(quantised, made.to_json())
    assert str(again) == str(made)


def test_windows_are_not_written_out() -> None:
    assert materialized(window) is None


@pytest.mark.parametrize(
    ("nest", "arguments", "message"),
    [
        (centred, ("S9", "m[k]"), "there is no statement S9. Statements: S0"),
        (centred, ("S0", "m[k]"), r"computes no such value. Remedy: a part of its expression"),
        (centred, ("S0", "A[i, k] - m[k]", "B"), "there is B already. Remedy: another name"),
        (centred, ("S0", 3), "the value is a text"),
        (solve, ("S0", "L[i, j] * x[j]"), r"x\[j\] has another value before the loops"),
        (changed, ("S1", "A[i, k] + 1.0"), r"A\[i, k\] has another value before the loops"),
    ],
)
def test_refusals(nest: poly.Function, arguments: tuple[str, ...], message: str) -> None:
    with pytest.raises(ScheduleError, match=message):
        poly.schedule(nest).materialize(*arguments)


def test_a_microkernel_comes_after_it() -> None:
    made = poly.schedule(matmul).tile(i=6, j=16).microkernel("gemm_avx2_6x16")
    with pytest.raises(ScheduleError, match=r"a microkernel runs S0. Remedy: materialize first, then microkernel"):
        made.materialize("S0", "A[i, k] * B[k, j]")
