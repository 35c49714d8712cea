"""Bytes from each level against a simulated cache, and footprints and lines against enumeration."""

from __future__ import annotations

from collections import OrderedDict

import islpy as isl
import pytest
import working_set_oracle as oracle
from hypothesis import given, settings
from hypothesis import strategies as st
from interpreter import points
from shared_nests import matmul, product
from working_set_nests import heat, solve, triangle

from poly.ir.nest import Nest
from poly.ir.tree import Node
from poly.model import Caches
from poly.schedules.schedule import Schedule, schedule
from poly.working_sets import LevelTraffic, footprints, traffic
from poly.working_sets.lines import LINE, lines
from poly.working_sets.memory import Memory


def simulated(nest: Nest, tree: Node, capacity: int) -> tuple[int, int]:
    """Bytes that a fully associative cache of so many lines loads and writes back."""
    arrays = {a.name: Memory(a.name, a.dtype.size, tuple(e.constant for e in a.shape)) for a in nest.arrays}
    cache: OrderedDict[tuple[str, int], bool] = OrderedDict()
    loaded = stored = 0
    for use in oracle.uses(nest, tree):
        place = line(arrays[use.element[0]], use.element[1])
        if place not in cache:
            loaded += 1
            if len(cache) >= capacity:
                stored += cache.popitem(last=False)[1]
            cache[place] = False
        cache.move_to_end(place)
        cache[place] |= use.writes
    return loaded * LINE, (stored + sum(cache.values())) * LINE


def line(memory: Memory, indices: tuple[int, ...]) -> tuple[str, int]:
    offset = 0
    for index, extent in zip(indices, memory.shape, strict=True):
        offset = offset * extent + index
    return memory.name, offset * memory.size // LINE


def from_memory(made: Schedule, capacity: int, sizes: dict[str, int]) -> LevelTraffic:
    return traffic(made, Caches(capacity * LINE, 0, 0), sizes)[-1]


@pytest.mark.parametrize(
    ("made", "capacity", "sizes", "fits"),
    [
        (schedule(matmul), 20, {"M": 16, "N": 16, "K": 8}, "an iteration of i"),
        (schedule(matmul), 60, {"M": 16, "N": 16, "K": 8}, "everything"),
        (schedule(matmul).tile(i=4, j=16, k=4), 8, {"M": 16, "N": 32, "K": 8}, "an iteration of i"),
        (schedule(matmul).tile(i=4, j=16, k=4), 20, {"M": 16, "N": 32, "K": 8}, "an iteration of j_tile"),
        (schedule(matmul).order("i k j"), 20, {"M": 8, "N": 64, "K": 16}, "an iteration of k"),
        (schedule(matmul).order("i k j"), 100, {"M": 16, "N": 64, "K": 8}, "an iteration of i"),
        (schedule(solve), 20, {"N": 40}, "an iteration of i"),
        (schedule(triangle), 40, {"N": 32}, "an iteration of i"),
        (schedule(heat), 8, {"N": 200}, "an iteration of i"),
        (schedule(product).distribute("i"), 80, {"M": 16, "N": 16, "K": 8}, "everything"),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_a_cache_that_holds_a_loop_loads_what_the_model_says(made, capacity, sizes, fits):
    known = made.on(made.nest.with_sizes(sizes))
    found = from_memory(made, capacity, sizes)
    assert (found.loaded, found.stored) == simulated(known.nest, known.tree, capacity)
    assert fits in found.fits


@pytest.mark.parametrize(
    ("made", "capacity", "sizes"),
    [
        (schedule(matmul), 8, {"M": 16, "N": 16, "K": 16}),
        (schedule(matmul).tile(i=5, j=16, k=4), 20, {"M": 16, "N": 32, "K": 16}),
        (schedule(triangle), 8, {"N": 40}),
    ],
)
def test_what_is_loaded_again_and_again_is_nearly_right(made, capacity, sizes):
    known = made.on(made.nest.with_sizes(sizes))
    expected, _ = simulated(known.nest, known.tree, capacity)
    assert from_memory(made, capacity, sizes).loaded == pytest.approx(expected, rel=0.2)


def test_sums_over_triangles_are_quadratic():
    sizes = {"N": 300}
    every = sum(-(-(i + 1) * 4 // LINE) + (i + 1) * 4 // 4 for i in range(300))
    found = traffic(schedule(triangle), Caches(100 * LINE, 0, 0), sizes)[-1]
    assert found.fits == ("an iteration of i", "an iteration of j")
    assert found.loaded / LINE == pytest.approx(every, rel=0.15)


def test_loads_and_stores_of_a_kernel_are_once_a_call():
    made = schedule(matmul).tile(i=6, j=16).microkernel("gemm_avx512_6x16")
    asked = traffic(made, Caches(1 << 15, 0, 0), {"M": 12, "N": 32, "K": 10})[0]
    calls = 4
    assert asked == LevelTraffic("L1", calls * 4 * (6 * 10 + 10 * 16 + 6 * 16), calls * 4 * 6 * 16, ())


def test_an_innermost_loop_keeps_its_sum_in_a_register():
    asked = traffic(schedule(matmul), Caches(1 << 15, 0, 0), {"M": 4, "N": 5, "K": 10})[0]
    assert (asked.loaded, asked.stored) == (4 * 4 * 5 * (1 + 10 + 10), 4 * 4 * 5)


def test_copies_read_the_array_and_write_the_panel():
    sizes = {"M": 64, "N": 64, "K": 64}
    made = schedule(matmul).tile(i=6, j=16).order("j_tile i_tile").microkernel("gemm_avx512_6x16")
    plain, packed = (traffic(s, Caches(1 << 20, 0, 0), sizes)[-1] for s in (made, made.pack("B")))
    matrix = 64 * 64 * 4
    assert (plain.loaded, plain.stored) == (3 * matrix, matrix)
    assert (packed.loaded, packed.stored) == (4 * matrix, 2 * matrix)


def test_warm_caches_that_hold_everything_fetch_nothing():
    sizes = {"M": 16, "N": 16, "K": 16}
    caches = Caches(20 * LINE, 100 * LINE, 1000 * LINE)
    _, *cold = traffic(schedule(matmul), caches, sizes)
    _, *warm = traffic(schedule(matmul), caches, sizes, warm=True)
    assert [level.bytes for level in cold] == [4 * 1024] * 3
    assert [level.bytes for level in warm] == [4 * 1024, 0, 0]
    assert warm[1].fits == ("everything",)


def test_one_call_that_fits_is_everything():
    sizes = {"M": 6, "N": 16, "K": 16}
    made = schedule(matmul.with_sizes(sizes)).microkernel("gemm_avx512_6x16")
    _, near, far = traffic(made, Caches(4 * LINE, 100 * LINE, 0), warm=True)
    assert near.fits == ("one call of S0",) and near.bytes > 0
    assert far.fits == ("everything",) and far.bytes == 0


def test_levels_are_those_of_the_machine():
    sizes = {"M": 4, "N": 4, "K": 4}
    assert [t.level for t in traffic(schedule(matmul), Caches(1, 2, 3), sizes)] == ["L1", "L2", "L3", "memory"]
    assert [t.level for t in traffic(schedule(matmul), Caches(1, 2, 0), sizes)] == ["L1", "L2", "memory"]


def test_footprints_of_loops_that_are_cut():
    made = schedule(matmul).tile(i=4, j=8)
    found = footprints(made, {"M": 16, "N": 64, "K": 32})
    assert [(f.loop, f.depth, f.iterations) for f in found] == [
        ("i_tile", 0, 4),
        ("j_tile", 1, 8),
        ("i", 2, 4),
        ("j", 3, 8),
        ("k", 4, 32),
    ]
    tile = found[1].footprint
    assert {name: elements for name, elements, _, _ in tile.arrays} == {"C": 32, "A": 128, "B": 256}
    assert tile.bytes == 4 * (32 + 128 + 256)
    assert tile.loaded == LINE * (4 + 8 + 32)


def test_nothing_to_do_is_nothing_moved():
    assert traffic(schedule(matmul), Caches(1, 2, 3), {"M": 0, "N": 4, "K": 4}) == ()
    assert footprints(schedule(matmul), {"M": 0, "N": 4, "K": 4}) == ()


@settings(max_examples=60, deadline=None)
@given(
    shape=st.lists(st.integers(1, 9), min_size=1, max_size=3),
    size=st.sampled_from([4, 8, 64]),
    data=st.data(),
)
def test_lines_of_boxes_are_exact(shape, size, data):
    low = [data.draw(st.integers(0, extent - 1)) for extent in shape]
    high = [data.draw(st.integers(first, extent - 1)) for first, extent in zip(low, shape, strict=True)]
    x = [f"x{d}" for d in range(len(shape))]
    bounds = " and ".join(f"{a} <= {name} <= {b}" for a, name, b in zip(low, x, high, strict=True))
    box = isl.Set(f"{{ A[{', '.join(x)}] : {bounds} }}")
    memory = Memory("A", size, tuple(shape))
    counted = lines(box, memory)
    assert counted.exact and counted.elements == len({line(memory, point) for point in points(box)})


def test_lines_of_other_sets():
    cross = isl.Set("{ A[x, y] : 1 <= x <= 8 and 16 <= y < 48 or 0 <= x <= 9 and y = 20 }")
    assert lines(cross, Memory("A", 4, (10, 64))).elements == 8 * 2 + 2
    odd = Memory("A", 4, (10, 63))
    assert lines(cross, odd).exact and lines(cross, odd).elements == len({line(odd, p) for p in points(cross)})
    assert lines(isl.Set("{ A[x] : 0 <= x < 64 and x mod 4 = 1 }"), Memory("A", 8, (64,))).elements == 8
