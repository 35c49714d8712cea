"""Products whose output subscripts add loops: tiles never hold two iterations that add to one element."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scatters import POLYNOMIALS, TRANSPOSED, Scatter, check_scatter, scatters

import poly
from poly import f32, f64
from poly.errors import ScheduleError
from poly.ir.tree import Micro, bands, walk
from poly.schedules.schedule import Schedule, schedule

SMALL = Scatter(
    ("i", "j", "k", "l"),
    (1, 2, 3, 2),
    ((("k", 1), ("l", 1)),),
    ((("j", 1),), (("l", 1),)),
    ((("i", 1),),),
    zeroed=True,
    clipped=True,
)
"""gcc 12 unrolls k and l, and adds to an element in j's loop twice, first from the right."""


BROADCAST = Scatter(("i", "j", "k", "l"), (67, 2, 2, 1), ((("i", 1),),), ((("j", 1),),), ((("k", 1),),))
"""Neither operand depends on the only loop of the output, which is longer than a tile."""


@settings(max_examples=36)
@example(BROADCAST, True, 1)
@example(POLYNOMIALS, True, 1)
@example(SMALL, True, 1)
@example(TRANSPOSED, True, 2)
@example(TRANSPOSED, False, 1)
@given(scatters(), st.booleans(), st.sampled_from([1, 2]))
def test_any_scatter(scatter: Scatter, known: bool, threads: int) -> None:
    sizes = scatter.sizes if known else {}
    check_scatter(poly.compile(scatter.nest, sizes=sizes, threads=threads), scatter)


@settings(max_examples=36)
@example(POLYNOMIALS, 0)
@example(SMALL, 4)
@example(TRANSPOSED, 1)
@given(scatters(), st.integers(0, 1 << 30))
def test_any_microkernel_step_by_hand(scatter: Scatter, seed: int) -> None:
    made = by_hand(scatter.nest.with_sizes(scatter.sizes), random.Random(seed))
    try:
        kernel = poly.compile(made.nest, schedule=made, target="c:avx2", threads=2)
    except ScheduleError:
        return
    check_scatter(kernel, scatter)


def test_taps_stay_outside_and_channels_reach_the_microkernel() -> None:
    made = poly.compile(TRANSPOSED.nest, sizes=TRANSPOSED.sizes).schedule
    (kernel,) = (node for node in walk(made.tree) if isinstance(node, Micro))
    assert kernel.rows is not None and kernel.rows.name == "p_q"
    assert kernel.columns is not None and kernel.columns.name == "k"


def test_a_tile_of_two_loops_that_add_is_refused() -> None:
    made = schedule(POLYNOMIALS.nest)
    with pytest.raises(ScheduleError, match=r"iterations of . and . add to one element of Y.*Remedy: keep one of"):
        made.split(i=6).split(j=16).order("i_tile j_tile i j k").microkernel("gemm_avx2_6x16")
    outside = made.split(j=16).order("i j_tile j k").microkernel("gemm_avx2_6x16")
    check_scatter(poly.compile(outside.nest, schedule=outside, target="c:avx2"), POLYNOMIALS)


def test_a_tile_starts_at_zero_only_where_each_element_is_first_visited_there() -> None:
    """Row i is first reached at k = i: no tile could tell."""
    K, M, N = poly.sizes("K M N")

    @poly.nest
    def upper(A: f32[M, K], B: f32[K, N], C: f32[M, N]):
        for i in range(M):
            for j in range(N):
                C[i, j] = 0
                for k in range(i, K):
                    C[i, j] += A[i, k] * B[k, j]

    tiles = schedule(upper).distribute("j").distribute("i").split(i_2=6, j_2=16, k=1)
    made = tiles.order("k_tile i_2_tile j_2_tile i_2 j_2 k").pack("B", at="k_tile")
    with pytest.raises(ScheduleError, match="first visited"):
        made.microkernel("gemm_avx2_6x16", initial="S0")
    kernel = poly.compile(upper, schedule=made.microkernel("gemm_avx2_6x16"), target="c:avx2")
    A, B, C = np.ones((8, 9), np.float32), np.ones((9, 20), np.float32), np.full((8, 20), np.nan, np.float32)
    kernel(A, B, C)
    np.testing.assert_array_equal(C, (9 - np.arange(8))[:, None] + np.zeros((8, 20)))


@pytest.mark.parametrize("scatter", [POLYNOMIALS, TRANSPOSED], ids=["polynomials", "transposed"])
def test_every_point_of_the_space_is_right(scatter: Scatter) -> None:
    nest = scatter.nest.with_sizes(scatter.sizes)
    space = poly.space(nest, threads=2)
    for point in list(space)[:: max(1, len(space) // 12)]:
        check_scatter(poly.compile(nest, schedule=space.schedule(point), threads=2), scatter)


def by_hand(nest: poly.Nest, choose: random.Random) -> Schedule:
    """Random splits, orders, copies and a microkernel, as far as they are accepted."""
    made = schedule(nest)
    for _ in range(choose.randint(0, 3)):
        made = _tried(made, choose, lambda s: s.split(**{choose.choice(_loops(s)): choose.choice((1, 2, 4, 6, 16))}))
    for _ in range(2):
        made = _tried(made, choose, lambda s: s.order(" ".join(choose.sample(_loops(s), len(_loops(s))))))
        made = _tried(made, choose, lambda s: s.pack(choose.choice("AB"), at=choose.choice([None, *_loops(s)])))
        tile = choose.choice(("gemm_avx2_1x16", "gemm_avx2_4x16", "gemm_avx2_6x16", "gemvn_avx2", "gemvt_avx2"))
        tile = tile.replace("x16", "x8") if nest.arrays[0].dtype == f64 else tile
        initial = choose.choice([None, "S1"])
        made = _tried(made, choose, lambda s, t=tile, z=initial: s.microkernel(t, initial=z))
        made = _tried(made, choose, lambda s: s.parallel(choose.choice(_loops(s) or ["none"])))
    return made


def _loops(made: Schedule) -> list[str]:
    return [band.name for band in bands(made.tree)]


def _tried(made: Schedule, choose: random.Random, step) -> Schedule:
    try:
        return step(made)
    except (ScheduleError, poly.TargetError):
        return made
