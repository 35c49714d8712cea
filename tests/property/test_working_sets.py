"""Working sets equal those of an enumeration, for perfect and imperfect nests, boxes and triangles, any schedule."""

from __future__ import annotations

import islpy as isl
import pytest
import working_set_oracle as oracle
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from random_nests import VALUE_OF_N, fixed, nests, steps
from shared_nests import matmul, product
from working_set_nests import heat, solve, strided, triangle

from poly.errors import ScheduleError
from poly.ir.counting import count
from poly.model import Caches
from poly.schedules.schedule import Schedule, schedule
from poly.working_sets import Instance, Placement, Reuse, WorkingSet, optimistic, pairs, pessimistic, working_sets
from poly.working_sets.reuses import between


def found(made: Schedule, sizes: dict[str, int]) -> dict[oracle.Key, tuple[oracle.Sizes, oracle.Sizes]]:
    reuses = working_sets(made, sizes)
    result = {key(reuse): (size(reuse.least), size(reuse.most)) for reuse in reuses}
    assert len(result) == len(reuses)
    assert all(reuse.least.exact and reuse.most.exact for reuse in reuses)
    return result


def key(reuse: Reuse) -> oracle.Key:
    uses = (reuse.source.statement, reuse.first, reuse.nearest.statement, reuse.then)
    return (reuse.kind, reuse.array, reuse.loop, *uses)


def size(found: WorkingSet) -> oracle.Sizes:
    return found.elements, found.bytes


def check(made: Schedule, **sizes: int) -> None:
    known = made.on(made.nest.with_sizes(sizes))
    assert found(made, sizes) == oracle.working_sets(known.nest, known.tree)


def test_a_product_tiled_once():
    check(schedule(matmul).tile(i=4, j=4, k=4), M=16, N=16, K=16)


def test_tiles_that_do_not_divide():
    check(schedule(matmul).tile(i=3, j=4).order("j_tile i_tile k i j"), M=7, N=10, K=5)


@pytest.mark.parametrize("nest", [product, solve, heat, triangle, strided], ids=lambda nest: nest.name)
def test_nests_as_written(nest):
    check(schedule(nest), **dict.fromkeys(nest.sizes, 9))


def test_triangles_tiled():
    check(schedule(triangle).tile(i=3, j=2), N=10)


def test_parts_of_a_sequence_count_what_lies_between():
    check(schedule(product).distribute("i").tile(i_2=4, j_2=3), M=8, N=6, K=5)


def test_a_flattened_loop():
    nest = matmul.with_sizes({"N": 5})
    check(schedule(nest).flatten("i", "j").split(i_j=4), M=4, K=3)


def test_the_loops_that_a_kernel_takes_count_as_they_stand():
    tiled = schedule(matmul).tile(i=6, j=16)
    expected = tiled.on(matmul.with_sizes({"M": 13, "N": 33, "K": 4}))
    assert found(tiled.microkernel("gemm_avx512_6x16"), {"M": 13, "N": 33, "K": 4}) == oracle.working_sets(
        expected.nest, expected.tree
    )


def test_what_a_kernel_sets_to_zero_is_not_touched_before():
    made = schedule(product).distribute("i").tile(i_2=6, j_2=16).microkernel("gemm_avx512_6x16", initial="S0")
    sizes = {"M": 12, "N": 16, "K": 4}
    alone = schedule(matmul).tile(i=6, j=16).on(matmul.with_sizes(sizes))
    expected = oracle.working_sets(alone.nest, alone.tree)
    assert sorted(found(made, sizes).values()) == sorted(expected.values())


def test_a_copy_is_written_once_and_read_instead():
    sizes = {"M": 12, "N": 32, "K": 4}
    made = schedule(matmul).tile(i=6, j=16).order("j_tile i_tile").microkernel("gemm_avx512_6x16")
    reuses = working_sets(made.pack("B", at="j_tile"), sizes)
    flow = next(r for r in reuses if r.kind == "flow" and r.array == "B_copy" and r.loop is None)
    assert flow.source.statement == "pack B" and flow.nearest.point == (0, 0, 0)
    assert dict(flow.least.arrays) == {"B": 64, "B_copy": 64, "A": 1, "C": 1}
    assert dict(flow.most.arrays) == {"B": 64, "B_copy": 64, "A": 24 + 5 * 4 + 1, "C": 6 * 16 + 5 * 16 + 1}
    assert not any(r.array == "B" and r.kind == "read-after-read" for r in reuses)
    again = next(r for r in reuses if r.kind == "output" and r.array == "B_copy" and r.loop == "j_tile")
    assert dict(again.least.arrays) == {"B": 65, "B_copy": 64, "A": 48, "C": 192}


def test_a_copy_for_plain_statements():
    made = schedule(heat).tile(i=4).pack("u", at="i_tile")
    reuses = working_sets(made, {"N": 14})
    inside = next(r for r in reuses if r.array == "u_copy" and r.loop is None and "u_copy of u[i - 1]" in r.then)
    assert inside.source == Instance("pack u", (0,))
    assert dict(inside.least.arrays) == {"u": 5, "u_copy": 5, "v": 1}


@settings(max_examples=15, suppress_health_check=[HealthCheck.too_slow])
@given(nests(), st.data())
def test_any_nest_in_any_schedule(nest, data):
    made = schedule(nest)
    for _ in range(3):
        try:
            made = made.apply([data.draw(steps(made.tree))])
        except ScheduleError:
            continue
    known, tree = fixed(made.nest, made.tree, VALUE_OF_N)
    assert found(made, {"N": VALUE_OF_N} if nest.sizes else {}) == oracle.working_sets(known, tree)


def test_open_sizes_are_asked_for():
    with pytest.raises(ScheduleError, match=r"the working sets of matmul depend on its sizes: give K=…, N=…\."):
        working_sets(schedule(matmul), {"M": 3})


CACHES = Caches(100, 1000, 10000)


def test_each_working_set_takes_its_room():
    assert pessimistic([(10, 60), (20, 50), (30, 600), (40, 5000), (50, 50000)], CACHES) == Placement(
        80, 740, 5000, 50000
    )


def test_a_working_set_alone_has_a_cache_to_itself():
    assert optimistic([(10, 60), (20, 50), (30, 600), (400, 50000)], CACHES) == Placement(140, 1000, 0, 50000)


def test_pairs_are_told_apart_by_size_alone():
    sizes = {"M": 4, "N": 4, "K": 4}
    every = working_sets(schedule(matmul), sizes)
    assert pairs(every) == sorted({reuse.sizes for reuse in every})
    assert len(pairs(every)) < len(every)


def test_pieces_that_overlap_after_a_projection_count_once():
    pieces = between((0, 0), (1, 2)).project_out(isl.dim_type.set, 0, 1).intersect(isl.Set("{ [x] : 0 <= x < 9 }"))
    assert count(pieces).elements == 9
