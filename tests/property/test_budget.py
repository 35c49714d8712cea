"""isl's work is bounded: what takes too long is answered with less, never with something wrong."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import classic_nests
import doc_nests
import islpy as isl
import numpy as np
import pytest
from conditional_nests import conditional, twelve
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from random_nests import steps

import poly
from microkernels.isa import PORTABLE
from poly import f32, f64
from poly.analysis.legality import is_parallel, violations
from poly.autoschedule import default
from poly.autoschedule.default import default_schedule, has_outer_product
from poly.compiled import translate
from poly.ir import budget
from poly.ir.budget import CALL, GAUGE, TooCostly, limited
from poly.ir.guards import guarded, unconditional
from poly.ir.reference import reference
from poly.ir.sets import first_point
from poly.ir.tree import Leaf, bands, statements
from poly.lowering.scan import scan
from poly.model.host import here
from poly.schedules.schedule import Schedule
from poly.schedules.steps import Pack, Part, Step

M, N, K, T = poly.sizes("M N K T")

MOST = 2 * CALL
"""Operations of one public call: its own budget, those of the nests that it makes on the way, and some for rounding."""


def matmul(A: f32[M, K], B: f32[K, N], C: f32[M, N]) -> None:
    for i in range(M):
        for j in range(N):
            C[i, j] = 0
            for k in range(K):
                C[i, j] += A[i, k] * B[k, j]


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """No operations for exact dataflow."""
    monkeypatch.setattr(sys.modules["poly.analysis.dependences"], "EXACT", 1)


def pairs(nest: poly.Nest) -> dict[tuple[str, str], isl.UnionMap]:
    """All ordered pairs, by their statements."""
    found: dict[tuple[str, str], isl.UnionMap] = {}
    for d in poly.dependences(nest):
        relation = isl.UnionMap.from_map(d.relation)
        found[d.source, d.sink] = found[d.source, d.sink].union(relation) if (d.source, d.sink) in found else relation
    return found


def test_hasty_dependences_imply_the_same_order(hasty: None, monkeypatch: pytest.MonkeyPatch) -> None:
    rough = pairs(poly.nest(matmul))
    monkeypatch.undo()
    exact = pairs(poly.nest(matmul))
    assert rough.keys() == exact.keys()
    assert all(exact[key].is_subset(rough[key]) for key in exact)
    closed = exact["S1", "S1"].transitive_closure()[0]
    assert rough["S1", "S1"].is_subset(closed)


def test_hasty_dependences_decide_alike(hasty: None) -> None:
    nest = poly.nest(matmul)
    tree = poly.schedule(nest).tree
    assert violations(nest, tree) is None
    assert is_parallel(nest, tree, "i") and is_parallel(nest, tree, "j")
    assert not is_parallel(nest, tree, "k")


def test_what_is_too_costly_says_so() -> None:
    with pytest.raises(TooCostly), limited(1):
        isl.Set("[n] -> { [i, j] : 0 <= i, j < n }").intersect(isl.Set("[n] -> { [i, j] : i + j < n }")).lexmin()
    assert isl.DEFAULT_CONTEXT.get_max_operations() == 0


def test_loops_stay_as_written_where_a_schedule_is_too_costly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("poly.autoschedule.default.AFFORDABLE", 1)
    kernel = poly.compile(poly.nest(matmul), threads=1)
    assert kernel.schedule.steps == ()


def test_loops_stay_as_written_where_skewed_tiles_are_not_found(monkeypatch: pytest.MonkeyPatch) -> None:
    target = here(PORTABLE, 1)
    assert "skew" in repr(default_schedule(classic_nests.jacobi1d, target))
    monkeypatch.setattr(default, "lowers", lambda *_: False)
    with pytest.warns(poly.CostWarning, match="run as they are written") as caught:
        assert default_schedule(classic_nests.jacobi1d, target).steps == ()
    assert [one.filename for one in caught] == [__file__]


def test_plain_loops_are_next_where_those_of_microkernels_are_not_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(default, "lowers", lambda made, _: not has_outer_product(made))
    kernel = poly.compile(poly.nest(matmul), threads=1)
    assert kernel.schedule.steps and "microkernel" not in repr(kernel.schedule)


def test_what_is_asked_beyond_a_limit_is_not_believed() -> None:
    with pytest.raises(TooCostly), limited(1), pytest.raises(isl.Error):
        GAUGE.sample_point()


def test_an_interruption_leaves_no_limit_behind() -> None:
    with pytest.raises(KeyboardInterrupt), limited(1000), limited(50):
        raise KeyboardInterrupt
    assert isl.DEFAULT_CONTEXT.get_max_operations() == 0


def test_a_reserve_is_left_for_cheaper_answers() -> None:
    spending = isl.Set("[n] -> { [i, j] : 0 <= i, j < n }")
    with limited(10_000):
        with pytest.raises(TooCostly), limited(10_000, reserve=60):
            while True:
                spending.lexmin()
        spending.lexmin()


def test_what_is_left_does_not_depend_on_calls_before() -> None:
    def spent() -> int:
        nest = classic_nests.syrk.with_sizes({"K": 70})
        with limited(CALL):
            default_schedule(nest, here(PORTABLE, 1))
            current = budget._current
            return budget._used() + (current.spent if current else 0)

    assert spent() == spent()


def test_a_first_point_that_takes_too_long_gives_way_to_any(monkeypatch: pytest.MonkeyPatch) -> None:
    corner = isl.Set("{ [i, j] : 3 <= i < 9 and i <= j < 9 }")
    assert first_point(corner) == (3, 3)
    monkeypatch.setattr("poly.ir.sets.LEAST", 1)
    i, j = first_point(corner)
    assert 3 <= i <= j < 9


@pytest.fixture
def work(monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """The operations since the last call, those that no budget counts among them."""
    return counter(monkeypatch)


def counter(monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    plain, total = budget._count, 0

    def counting() -> None:
        nonlocal total
        total += budget._used()
        plain()

    def since() -> int:
        nonlocal total
        counting()
        found, total = total, 0
        return found

    monkeypatch.setattr(budget, "_count", counting)
    since()
    return since


ORDINARY = [n for module in (classic_nests, doc_nests) for n in vars(module).values() if isinstance(n, poly.Nest)]


def test_ordinary_nests_are_far_from_every_limit(work: Callable[[], int]) -> None:
    """None gets rough dependences or loops as written for its cost, and each is done with a sixth of a call's work."""
    assert len(ORDINARY) > 30
    with warnings.catch_warnings():
        warnings.simplefilter("error", poly.CostWarning)
        for nest in ORDINARY:
            made = default_schedule(nest, here(PORTABLE, 2))
            assert translate(made, PORTABLE).source and str(made)
            assert not poly.dependences(nest).rough
            assert work() < CALL // 6, nest.name


def arrays(seed: int = 0, n: int = 7) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [rng.standard_normal(3 * n + 30) / 10, rng.standard_normal((n + 30, n + 30)) / 10]


def check(kernel: poly.Kernel, nest: poly.Nest) -> None:
    """The kernel's result beside that of the loops as written."""
    found, expected = arrays(), arrays()
    kernel(*found)
    reference(nest, tuple(expected))
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-7, atol=1e-12)


def answered(work: Callable[[], int], call: Callable[[], Any]) -> Any:
    """What a public call gives, or its refusal, found with the work of one call."""
    work()
    try:
        found = call()
    except poly.PolyError as error:
        found = error
    assert work() < MOST
    return found


def test_twelve_statements_under_conditions(work: Callable[[], int]) -> None:
    nest = twelve()
    with pytest.warns(poly.CostWarning, match="rough"):
        found = answered(work, lambda: poly.dependences(nest))
    assert found.rough and "rough" in str(found)
    made = answered(work, lambda: poly.schedule(nest).split(j=4).unroll(j=2))
    refused = answered(work, lambda: made.parallel("i"))
    assert isinstance(refused, poly.ScheduleError) and "rough" in str(refused)
    assert "for j_tile" in answered(work, lambda: str(made)) and " % " in str(made)
    for schedule in (None, made):
        with warnings.catch_warnings():  # isl's answers are kept, so that there may be enough for better loops
            warnings.simplefilter("ignore", poly.CostWarning)
            kernel = answered(work, lambda s=schedule: poly.compile(nest, schedule=s, threads=1, records=False))
        check(kernel, nest)


@pytest.mark.parametrize("limit", ["ALL", "EXACT"])
def test_dependences_beyond_their_budget(limit: str, monkeypatch: pytest.MonkeyPatch, work: Callable[[], int]) -> None:
    """The fallbacks have budgets, too; what failed is not tried again."""
    monkeypatch.setattr(sys.modules["poly.analysis.dependences"], limit, 1)
    nest = poly.nest(matmul) if limit == "ALL" else twelve()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", poly.CostWarning)
        found = answered(work, lambda: poly.dependences(nest))
        assert isinstance(found, TooCostly) is (limit == "ALL")
        answered(work, lambda: poly.dependences(nest))
        assert work() < 1000
        kernel = poly.compile(nest, threads=1, records=False)
    assert kernel.schedule.nest is nest


def test_rough_dependences_order_all_that_exact_ones_do() -> None:
    nest = conditional(
        "(i + j) % 3 == 0 or i >= 2 * j", "Y[i, j] = Y[i + 1, j] + X[i + j]", "j % 2 == 1", "X[j] += Y[j, i]"
    )
    module = sys.modules["poly.analysis.dependences"]
    exact = pairs(nest)
    rough = module._found(nest, rough=True)
    assert rough.rough
    for d in rough:
        if (d.source, d.sink) in exact:
            exact[d.source, d.sink] = exact[d.source, d.sink].subtract(isl.UnionMap.from_map(d.relation))
    assert all(left.is_empty() for left in exact.values())


def test_parts_by_rough_dependences_are_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    module = sys.modules["poly.analysis.dependences"]
    monkeypatch.setattr(module, "_analyse", lambda nest: module._found(nest, rough=True))
    nest = conditional("(i + j) % 3 == 0 or i >= 2 * j", "Y[i, j] = Y[i, j + 1] + X[i + j]")
    made = poly.schedule(nest).part("S0", j=4)
    far, near = (made.nest.statement(name).domain for name in ("S0", "S0_near"))
    near = near.set_tuple_name("S0")
    assert far.is_disjoint(near)
    assert far.union(near).is_equal(nest.statement("S0").domain)


def test_hulls_are_bounded() -> None:
    """No piece alone bounds `j` from above."""
    nest = conditional("(j < 4 and (i + j) % 3 == 0) or (j < i and j % 5 != 2)", "Y[i, j] = X[i + j]")
    simple, conditions = guarded(nest)
    assert list(conditions) == ["S0"]
    assert simple.statements[0].domain.is_bounded()
    assert nest.statements[0].domain.is_subset(simple.statements[0].domain)


@poly.nest
def sieved(A: f64[N, N], B: f64[N, N]):
    for i in range(2, N - 2):
        for j in range(2, N - 2):
            if (3 * i + 2 * j) % 7 == 0 or (i + 5 * j) % 11 == 3:
                B[i, j] = A[i, j] + A[i - 1, j] + A[i + 2, j] + A[i, j - 1] + A[i, j + 2]


@pytest.mark.parametrize("at", ["j_tile", "i_tile", "i", None])
def test_a_box_of_what_a_stencil_reads_under_conditions(at: str | None, work: Callable[[], int]) -> None:
    made = answered(work, lambda: poly.schedule(sieved).tile(i=16, j=16).pack("A", at=at))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        kernel = answered(work, lambda: poly.compile(sieved, schedule=made, threads=2, records=False))
    assert [w.category for w in caught] == ([] if at in ("i_tile", None) else [poly.CostWarning])
    A, found, expected = (np.random.default_rng(n).standard_normal((53, 53)) for n in (0, 1, 1))
    kernel(A, found)
    sieved.reference(A, expected)
    np.testing.assert_array_equal(found, expected)


@poly.nest
def smoothed(D: f64[2 * M + N + K + T], x: f64[K, T], z: f64[M, N, T]):
    for p in range(K):
        for h in range(N):
            for j in range(T):
                for i in range(M):
                    z[i, h, j] += x[p, j] * D[2 * i + h + p + j]


@pytest.mark.parametrize("at", [("h", "p"), ("j", "h"), ("j", "p"), ("j", "h", "p"), ("j", "h", "p", None)])
def test_copies_inside_each_other(at: tuple[str | None, ...], work: Callable[[], int]) -> None:
    """The sets of copies of copies stay as small as those of one: local variables used to multiply."""
    made = poly.schedule(smoothed)
    for loop in at:
        made = answered(work, lambda m=made, loop=loop: m.pack("D", at=loop))
    kernel = answered(work, lambda: poly.compile(smoothed, schedule=made, threads=1, records=False))
    rng = np.random.default_rng(0)
    M, N, K, T = 5, 4, 3, 6
    D, x, z = rng.standard_normal(2 * M + N + K + T), rng.standard_normal((K, T)), rng.standard_normal((M, N, T))
    expected = z.copy()
    kernel(D, x, z)
    smoothed.reference(D, x, expected)
    np.testing.assert_allclose(z, expected)


def test_local_variables_that_bound_each_other_are_not_eliminated() -> None:
    """isl counts no operation in this: with some more of them it takes minutes, and no limit ends it."""
    names = [f"e{number}" for number in range(budget.LOCALS + 1)]
    each = [f"0 <= {e} < N and i - N <= 2 {e} <= i" for e in names]
    pairs = [f"-M + 2 {a} < 2 {b} < M + 2 {a}" for n, b in enumerate(names) for a in names[max(0, n - 2) : n]]
    points = isl.Set(f"[M, N] -> {{ S[i] : exists ({', '.join(names)} : {' and '.join(each + pairs)}) }}")
    nothing = isl.Set("[M, N] -> { : }")
    with pytest.raises(TooCostly):
        scan({"S": points}, Leaf("S"), nothing)
    with pytest.raises(TooCostly):
        unconditional(replace(smoothed.statements[0], domain=points))


@poly.nest
def jacobi(A: f64[T, N, N]):
    for t in range(1, T):
        for i in range(1, N - 1):
            for j in range(1, N - 1):
                A[t, i, j] = 0.2 * (A[t - 1, i, j] + A[t - 1, i - 1, j] + A[t - 1, i, j + 1])


@pytest.mark.parametrize("blocks", [((8, 8, 8), (4, 4, 4), (2, 2, 2)), ((8, 9, 11), (4, 4, 4), (2, 2, 2))])
def test_a_stencil_skewed_and_tiled_three_times(blocks: tuple[tuple[int, ...], ...], work: Callable[[], int]) -> None:
    made = poly.schedule(jacobi).skew("i", by="t").skew("j", by="t")
    for t, i, j in blocks:
        made = answered(work, lambda m=made, t=t, i=i, j=j: m.tile(t=t, i=i, j=j))
    refused = answered(work, lambda: made.parallel("j_tile"))
    assert isinstance(refused, poly.ScheduleError) and "illegal" in str(refused)
    assert answered(work, lambda: str(made)).count("for ") >= 12
    kernel = answered(work, lambda: poly.compile(jacobi, schedule=made, threads=1, records=False))
    found, expected = (np.random.default_rng(0).standard_normal((9, 12, 12)) for _ in range(2))
    kernel(found)
    jacobi.reference(expected)
    np.testing.assert_allclose(found, expected)


def test_what_has_no_bounds_is_printed_without(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("poly.lowering.scan.SCANNED", 1)
    text = str(poly.schedule(poly.nest(matmul)).split(k=4).pack("A", at="i"))
    assert "bounds of these loops are left out" in text
    assert "for k_tile in …:" in text and "# pack A" in text and "C[i, j] += A[i, k] * B[k, j]" in text


def test_a_condition_of_many_parts_is_kept_whole() -> None:
    """Thirty parts, more than isl makes short."""
    parts = [f"({a % 7 + 1} * i + {a % 5 + 1} * j) % {(7, 11, 13, 5)[a % 4]} == {a % 5}" for a in range(30)]
    nest = conditional(" or ".join(parts), "Y[i, j] += X[j]")
    with pytest.warns(poly.CostWarning, match="conditions inside"):
        kernel = poly.compile(nest, schedule=poly.schedule(nest), threads=1, records=False)
    check(kernel, nest)


def test_conditions_that_make_too_many_pieces_are_refused(work: Callable[[], int]) -> None:
    parts = [f"(({a % 7 + 1} * i + {a % 5 + 1} * j) % {(7, 11, 13, 5)[a % 4]} != 2 or i > {a})" for a in range(8)]
    refused = answered(work, lambda: conditional(" and ".join(parts), "Y[i, j] += X[j]"))
    assert isinstance(refused, TooCostly) and "Remedy" in str(refused)


def sums(draw: st.DrawFn) -> str:
    names = draw(st.lists(st.sampled_from("ij"), min_size=1, max_size=2, unique=True))
    return " + ".join(f"{draw(st.integers(1, 5))} * {name}" for name in names)


def atom(draw: st.DrawFn) -> str:
    divisor = draw(st.sampled_from([2, 3, 5, 7, 11]))
    match draw(st.sampled_from(["residue", "quotient", "bound", "alike"])):
        case "residue":
            relation = draw(st.sampled_from(["==", "!=", "<", ">="]))
            return f"({sums(draw)}) % {divisor} {relation} {draw(st.integers(0, divisor - 1))}"
        case "quotient":
            return (
                f"({sums(draw)}) // {divisor} {draw(st.sampled_from(['==', '<=', '>=']))} {draw(st.sampled_from('ij'))}"
            )
        case "bound":
            return f"{sums(draw)} {draw(st.sampled_from(['<', '>=']))} N - {draw(st.integers(0, 4))}"
        case _:
            return f"({sums(draw)}) % {divisor} == ({sums(draw)}) % 3"


def access(draw: st.DrawFn) -> str:
    rank = draw(st.integers(1, 2))
    indices = [f"{draw(st.sampled_from('ij'))} + {draw(st.integers(0, 4))}" for _ in range(rank)]
    return f"{'XY'[rank - 1]}[{', '.join(indices)}]"


@st.composite
def conditional_nests(draw: st.DrawFn) -> poly.Nest:
    lines: list[str] = []
    for _ in range(draw(st.sampled_from([1, 2, 3, 6, 12]))):
        condition = f"({atom(draw)})"
        for _ in range(draw(st.integers(0, 2))):
            condition = f"({condition} {draw(st.sampled_from(['or', 'or', 'and']))} ({atom(draw)}))"
        op = draw(st.sampled_from(["=", "=", "+="]))
        lines += [condition, f"{access(draw)} {op} 0.5 * {access(draw)} + {access(draw)}"]
    return conditional(*lines)


def any_step(draw: st.DrawFn, made: Schedule) -> Step:
    loops = [band.name for band in bands(made.tree)]
    match draw(st.integers(0, 5)):
        case 0:
            return Pack(draw(st.sampled_from("XY")), draw(st.sampled_from([*loops, None])))
        case 1:
            return Part(draw(st.sampled_from(statements(made.tree))), draw(st.sampled_from(loops)), 3)
        case _:
            return draw(steps(made.tree))


@settings(max_examples=2, suppress_health_check=[HealthCheck.too_slow])
@given(conditional_nests(), st.data())
def test_each_call_is_bounded_and_right(nest: poly.Nest, data: st.DataObject) -> None:
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore", poly.CostWarning)
        work = counter(patch)
        answered(work, lambda: str(poly.dependences(nest)))
        made = poly.schedule(nest)
        for _ in range(5):
            step = any_step(data.draw, made)
            after = answered(work, lambda s=step, m=made: m.apply([s]))
            made = made if isinstance(after, poly.PolyError) else after
        assert isinstance(answered(work, lambda: str(made)), str)
        for schedule in (made, None):
            kernel = answered(work, lambda s=schedule: poly.compile(nest, schedule=s, threads=2, records=False))
            if schedule is None or not isinstance(kernel, poly.ScheduleError | TooCostly):
                check(kernel, nest)
        answered(work, lambda: poly.space(nest, N=20))
        answered(work, lambda: str(poly.explain(made, N=20)))


BUSY = """
import warnings
import poly
from conditional_nests import twelve

warnings.simplefilter("ignore")
print("ready", flush=True)
while True:
    nest = twelve()
    try:
        {call}
    except poly.PolyError:
        pass
"""

CALLS = {
    "dependences": "poly.dependences(nest)",
    "step": "poly.schedule(nest).split(j=4).parallel('i')",
    "compile": "poly.compile(nest, schedule=poly.schedule(nest), records=False)",
    "explain": "str(poly.explain(poly.schedule(nest), N=40))",
}


@pytest.fixture
def environment(project: Path, tmp_path: Path) -> Iterator[dict[str, str]]:
    path = os.pathsep.join([str(project), str(project / "tests" / "support")])
    yield {**os.environ, "PYTHONPATH": path, "POLY_CACHE_DIR": str(tmp_path)}


@pytest.mark.parametrize("call", CALLS)
def test_ctrl_c_ends_it(call: str, environment: dict[str, str]) -> None:
    """Soon; the seconds are generous, for machines that are busy."""
    process = subprocess.Popen(
        [sys.executable, "-c", BUSY.format(call=CALLS[call])],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # the tests may run where it is ignored
    )
    try:
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
        time.sleep(0.7)
        process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=15)
    finally:
        process.kill()
    assert process.returncode == -signal.SIGINT
    assert told.rstrip().endswith("KeyboardInterrupt")


def test_sets_are_printed_without_a_limit() -> None:
    """isl crashes if its operations are spent while it prints; and a nest's identity must not fail."""
    context, nest = isl.DEFAULT_CONTEXT, poly.nest(matmul)
    text, identity = str(nest), nest.structure
    context.reset_operations()
    context.set_max_operations(1)
    try:
        with pytest.raises(isl.Error, match="maximal number of operations"):
            str(nest.statements[0].domain)
        assert replace(nest, file="elsewhere").structure == identity
        assert str(nest) == text
        assert context.get_max_operations() == 1
    finally:
        context.set_max_operations(0)
