"""The default schedule of loops that are no contraction: its steps, that they are legal, that the results are right."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from loop_nests import (
    NESTS,
    SOLVES,
    backwards,
    chain,
    column_peaks,
    column_sums,
    elimination,
    forward,
    heat_3d,
    jacobi_2d,
    mirrored,
    normalised,
    seidel_1d,
    seidel_2d,
    shortest_paths,
    softmax,
    solve_block,
    solve_rows,
    transpose,
)
from machines import LARGE, TINY

import poly
from microkernels.isa import AVX2, AVX512, ISA, PORTABLE, host
from poly.analysis.legality import illegal_mark, violations
from poly.autoschedule.default import usual_loops
from poly.autoschedule.rules.distances import slope
from poly.ir.paths import paths
from poly.ir.strides import extent, moved_iterator, strided_cost
from poly.ir.tree import Micro, bands, walk
from poly.model import Caches
from poly.model.core import Target
from poly.schedules.schedule import Schedule

T, N, M = poly.sizes("T N M")

HOST = host()


def arguments(nest: poly.Nest, sizes: dict[str, int]) -> list[np.ndarray]:
    """Random arrays; what divides is away from 0, and matrices to be solved are diagonally dominant."""
    random = np.random.default_rng(0)
    shapes = [tuple(e.evaluate(sizes) for e in a.shape) for a in nest.arguments]
    dtypes = [a.dtype.numpy_name for a in nest.arguments]
    made = [(random.random(shape) + 0.5).astype(dtype) for shape, dtype in zip(shapes, dtypes, strict=True)]
    for array in made[: len(made) if nest.name in SOLVES else 0]:
        if array.ndim == 2 and array.shape[0] == array.shape[1]:
            array += 2 * len(array) * np.eye(len(array), dtype=array.dtype)
    return made


def dependence_schedule(nest: poly.Nest, isa: ISA, caches: Caches, threads: int) -> Schedule:
    """The default of loops without microkernels but for those of solves."""
    return usual_loops(nest, Target.nominal(isa, caches, threads)).tried


def used(nest: poly.Nest, **sizes: int) -> dict[str, int]:
    """Those of the sizes that the nest has."""
    return {name: value for name, value in sizes.items() if name in nest.sizes}


def check(nest: poly.Function, schedule: Schedule, sizes: dict[str, int], threads: int = 1) -> None:
    """A kernel of the schedule does what the loops as written do."""
    kernel = poly.compile(schedule.nest, schedule=schedule, threads=threads)
    expected, got = arguments(nest, sizes), arguments(nest, sizes)
    nest.reference(*expected, **used(nest, T=sizes["T"]))
    kernel(*got, **used(schedule.nest, T=sizes["T"]))
    for want, have in zip(expected, got, strict=True):
        tolerance = 1e-5 if want.dtype == np.float32 else 1e-12
        np.testing.assert_allclose(have, want, rtol=tolerance)


def is_legal(schedule: Schedule) -> bool:
    return violations(schedule.nest, schedule.tree) is None and illegal_mark(schedule.nest, schedule.tree) is None


@pytest.mark.parametrize("nest", NESTS, ids=lambda nest: nest.name)
@pytest.mark.parametrize(("caches", "threads"), [(LARGE, 1), (TINY, 2)], ids=["fits", "exceeds"])
def test_one_kernel_is_right_for_all_sizes(nest: poly.Function, caches: Caches, threads: int) -> None:
    schedule = dependence_schedule(nest, HOST, caches, threads)
    assert is_legal(schedule)
    for n, m, t in ((1, 1, 1), (2, 3, 2), (3, 1, 0), (9, 17, 3), (17, 9, 9), (13, 33, 5)):
        check(nest, schedule, {"N": n if nest is not heat_3d else min(n, 11), "M": m, "T": t}, threads)


@pytest.mark.parametrize("nest", NESTS, ids=lambda nest: nest.name)
@pytest.mark.parametrize(("n", "m", "t"), [(1, 1, 1), (10, 7, 4), (17, 33, 9)])
def test_kernels_for_known_sizes_are_right(nest: poly.Function, n: int, m: int, t: int) -> None:
    sizes = {"N": n if nest is not heat_3d else min(n, 12), "M": m, "T": t}
    schedule = dependence_schedule(nest.with_sizes(used(nest, **sizes)), HOST, TINY, 1)
    assert is_legal(schedule)
    check(nest, schedule, sizes)


@pytest.mark.parametrize("nest", NESTS, ids=lambda nest: nest.name)
def test_each_step_is_legal_by_itself(nest: poly.Function) -> None:
    schedule = dependence_schedule(nest, HOST, LARGE, 1)
    again = Schedule.from_json(nest, schedule.to_json())
    assert repr(again) == repr(schedule)


@pytest.mark.parametrize("nest", [forward, softmax, normalised, column_sums], ids=lambda nest: nest.name)
def test_the_order_of_a_sum_is_kept_where_that_is_asked(nest: poly.Function) -> None:
    strict = replace(nest, reassociate=False)
    schedule = dependence_schedule(strict, HOST, LARGE, 1)
    assert is_legal(schedule)
    check(strict, schedule, {"N": 11, "M": 19, "T": 1})


@pytest.mark.parametrize(
    ("nest", "steps"),
    [
        (seidel_2d, ".skew('j', by='i', factor=2).split(i=8).order('i_tile j i').unroll(i=8)"),
        (
            shortest_paths,
            ".part('S0', where='j >= k', into='S0_at').part('S0_at', where='j > k', into='S0_behind')"
            ".distribute('j').vectorize('j').vectorize('j_2').vectorize('j_3')",
        ),
        (seidel_1d, ".skew('i', by='_t', factor=2).split(_t=8).order('_t_tile i _t').unroll(_t=8)"),
        (forward, ".vectorize('j')"),
        (softmax, ".vectorize('j').vectorize('j_2').vectorize('j_3')"),
        (transpose, ".tile(i=8, j=8).interchange('i', 'j').vectorize('i')"),
        (
            mirrored,
            ".distribute('i', last='S1').tile(i_2=8, j_2=8).interchange('i_2', 'j_2').vectorize('i_2').vectorize('j')",
        ),
        (column_sums, ".distribute('j').interchange('j_2', 'i').vectorize('j').vectorize('j_2')"),
        (column_peaks, ".vectorize('j')"),
        (chain, ".fuse('S0', 'S1', at='j').vectorize('j')"),
        (backwards, ".reverse('j').vectorize('j')"),
        (normalised, ".fuse('S0', 'S1', at='i').vectorize('j').vectorize('j_2')"),
    ],
    ids=lambda value: value.name if isinstance(value, poly.Nest) else "",
)
def test_steps(nest: poly.Function, steps: str) -> None:
    assert repr(dependence_schedule(nest, HOST, LARGE, 1)) == f"schedule({nest.name}){steps}"


@pytest.mark.parametrize("nest", [solve_rows, solve_block], ids=lambda nest: nest.name)
@pytest.mark.parametrize("isa", [AVX512, AVX2, PORTABLE], ids=lambda isa: isa.name)
def test_far_updates_of_a_solve_go_to_a_microkernel(nest: poly.Function, isa: ISA) -> None:
    schedule = dependence_schedule(nest, isa, LARGE, 1)
    micros = [node for node in walk(schedule.tree) if isinstance(node, Micro)]
    assert [micro.statement for micro in micros] == ["S0_far"]
    far, near = (schedule.nest.statement(name).domain.set_tuple_name("S0") for name in ("S0_far", "S0"))
    assert far.is_disjoint(near)
    assert far.union(near).is_equal(nest.statement("S0").domain)


@pytest.mark.parametrize("nest", [solve_rows, solve_block], ids=lambda nest: nest.name)
@pytest.mark.parametrize("threads", [1, 2])
def test_solves_over_several_blocks_are_right(nest: poly.Function, threads: int) -> None:
    for n, m in ((47, 33), (61, 16)):
        sizes = {"N": n, "M": m, "T": 1}
        check(nest, dependence_schedule(nest.with_sizes({"N": n, "M": m}), HOST, LARGE, threads), sizes, threads)
        check(nest, dependence_schedule(nest, HOST, LARGE, threads), sizes, threads)


def test_sums_of_a_few_rows_stay_in_registers() -> None:
    """A filter's second pass was distributed so that its columns were innermost, with the sums of a row in memory."""

    @poly.nest
    def filtered(k: poly.f32[5], x: poly.f32[N, M], t: poly.f32[N, M], y: poly.f32[N, M]) -> None:
        for i in range(N):
            for j in range(2, M - 2):
                s = 0.0
                for p in range(5):
                    s += k[p] * x[i, j + p - 2]
                t[i, j] = s
        for i in range(2, N - 2):
            for j in range(2, M - 2):
                s = 0.0
                for p in range(5):
                    s += k[p] * t[i + p - 2, j]
                y[i, j] = s

    schedule = dependence_schedule(filtered, AVX2, LARGE, 1)
    inner = [band for band in bands(schedule.tree) if not bands(band.body)]
    assert [band.unroll for band in inner] == [5, 5]
    check(filtered, dependence_schedule(filtered, HOST, LARGE, 1), {"N": 9, "M": 30, "T": 1})


def test_a_small_solve_is_not_blocked() -> None:
    small = solve_rows.with_sizes({"N": 20, "M": 20})
    assert small.with_sizes({}).statements == dependence_schedule(small, HOST, LARGE, 1).nest.statements


def test_an_elimination_is_blocked_so_that_no_tile_reads_what_it_writes() -> None:
    schedule = dependence_schedule(elimination, HOST, LARGE, 1)
    assert any(isinstance(node, Micro) for node in walk(schedule.tree))
    for n in (1, 21, 61):
        check(elimination, schedule, {"N": n, "M": 1, "T": 1})


def test_arrays_that_exceed_caches_are_tiled_in_time() -> None:
    names = [step.name for step in dependence_schedule(jacobi_2d, HOST, LARGE, 1).steps]
    assert names.index("skew") < names.index("tile") and names[-2:] == ["vectorize", "vectorize"]


def test_arrays_that_fit_are_not_tiled_in_time() -> None:
    small = jacobi_2d.with_sizes({"N": 40, "T": 10})
    assert repr(dependence_schedule(small, HOST, LARGE, 1)) == "schedule(jacobi_2d).vectorize('j').vectorize('j_2')"


@pytest.mark.parametrize(
    ("nest", "threads", "parallel"),
    [
        (jacobi_2d, 2, ["i", "i_2"]),
        (jacobi_2d, 1, []),
        (seidel_2d, 2, []),
        (forward, 2, []),
        (solve_block, 2, ["r_3_tile"]),
        (softmax, 2, ["i"]),
        (transpose, 2, ["i_tile"]),
        (chain, 2, ["i"]),
    ],
    ids=lambda value: value.name if isinstance(value, poly.Nest) else "",
)
def test_the_outermost_legal_loop_is_parallel(nest: poly.Function, threads: int, parallel: list[str]) -> None:
    tree = dependence_schedule(nest, HOST, LARGE, threads).tree
    assert [band.name for band in bands(tree) if band.parallel] == parallel


def test_small_loops_are_not_parallel() -> None:
    small = chain.with_sizes({"N": 20, "M": 20})
    assert not any(band.parallel for band in bands(dependence_schedule(small, HOST, LARGE, 2).tree))


def functions(nest: poly.Nest, *names: str) -> dict:
    return {s: f for band in bands(poly.schedule(nest).tree) if band.name in names for s, f in band.functions}


def test_slope_of_a_stencil_in_two_arrays() -> None:
    found = slope(jacobi_2d, functions(jacobi_2d, "_t"), functions(jacobi_2d, "i", "i_2"))
    assert found is not None
    assert found.factor == 2
    assert found.shifts == {"S0": 0, "S1": 1}


def test_slope_of_a_stencil_in_place() -> None:
    found = slope(seidel_2d, functions(seidel_2d, "i"), functions(seidel_2d, "j"))
    assert found is None, "the time loop carries dependences that no skew of j by i turns forward"
    found = slope(seidel_2d, functions(seidel_2d, "_t"), functions(seidel_2d, "i"))
    assert found is not None
    assert found.factor == 1


def test_moved_iterator_and_cost() -> None:
    statement = transpose.statements[0]
    path = paths(transpose.tree)[statement.name]
    assert moved_iterator(statement, path, "i") == "i"
    assert strided_cost(transpose, statement, "i") == strided_cost(transpose, statement, "j") == 17
    skewed = poly.schedule(seidel_2d).skew("j", by="i", factor=2)
    assert moved_iterator(seidel_2d.statements[0], paths(skewed.tree)["S0"], "j") == "j"
    tiled = poly.schedule(transpose).tile(i=4, j=4)
    assert moved_iterator(statement, paths(tiled.tree)["S0"], "i_tile") is None


def test_extent() -> None:
    fixed = jacobi_2d.with_sizes({"N": 12, "T": 3})
    assert [extent(fixed, band) for band in bands(fixed.tree)[:3]] == [3, 10, 10]
    assert extent(jacobi_2d, bands(jacobi_2d.tree)[0]) is None
