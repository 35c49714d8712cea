"""The model of any loop tree, against loops that are run: lines that a cache misses, values that loops take."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import replace

import islpy as isl
import pytest
from classic_nests import prefix, seidel, transpose
from loop_nests import chain, jacobi_2d
from machines import LARGE, TINY

import poly
from microkernels.dtypes import DTYPES
from microkernels.isa import AVX512, host
from poly import f32
from poly.autoschedule.rules.lanes import vectorized
from poly.autoschedule.rules.wavefront import overlapped
from poly.ir.layout import strides
from poly.ir.paths import paths, times
from poly.ir.tree import Band
from poly.model import Caches
from poly.model.core import LATENCY, MISPREDICTED, PER_CYCLE, Target
from poly.model.leaf import Loops
from poly.model.rates import nominal
from poly.model.schedules import ScheduleModel, predicted
from poly.model.tiles import Pitches, TileCalls
from poly.model.traffic import Traffic
from poly.model.view import View, extents, references, view
from poly.model.work import WEIGHTS, work
from poly.schedules.schedule import Schedule

HOST = host()
LINE = 64


def views(made: Schedule, knobs: dict[str, str] | None = None) -> dict[str, View]:
    found = paths(made.tree).items()
    return {
        name: view(made.nest.statement(name), [b for b in path if isinstance(b, Band)], knobs or {})
        for name, path in found
    }


def moved(made: Schedule, capacity: int) -> float:
    """The bytes that the model expects to come into a cache; those that go back are not counted."""
    form = model(made).form({})
    fetched = Traffic(form).fetched(capacity, 8)
    return sum(bytes / (2 if form.whole.touched[operand].written else 1) for operand, bytes in fetched.items())


def target(caches: Caches = LARGE, threads: int = 1) -> Target:
    return Target.nominal(HOST, caches, threads)


def model(made: Schedule, caches: Caches = LARGE, threads: int = 1) -> ScheduleModel:
    return ScheduleModel(made, {}, target(caches, threads))


def instances(made: Schedule) -> Iterator[tuple[str, dict[str, int]]]:
    """The statements' instances in the order in which the schedule runs them."""
    found: list[tuple[tuple[int, ...], str, dict[str, int]]] = []
    for name, time in times(made.nest, made.tree).items():
        statement = made.nest.statement(name)
        count = len(statement.iterators)

        def note(point: isl.Point, name: str = name, count: int = count) -> None:
            values = [
                point.get_coordinate_val(isl.dim_type.set, d).to_python()
                for d in range(point.get_space().dim(isl.dim_type.set))
            ]
            iterators = dict(zip(made.nest.statement(name).iterators, values[:count], strict=True))
            found.append((tuple(values[count:]), name, iterators))

        time.wrap().flatten().foreach_point(note)
    return ((name, iterators) for _, name, iterators in sorted(found, key=lambda entry: entry[0]))


def missed(made: Schedule, capacity: int) -> int:
    """The bytes of the lines that a cache with the oldest line leaving first misses, once it is warm."""
    bases, end = {}, 0
    for array in made.nest.arrays:
        bases[array.name], size = end, array.dtype.size
        for extent in array.shape:
            size *= extent.constant
        end += -(-size // LINE) * LINE
    touched = []
    for name, iterators in instances(made):
        statement = made.nest.statement(name)
        for access in (*statement.reads, statement.target):
            array = made.nest.array(access.array)
            apart = [stride.number for stride in strides(array)]
            at = sum(i.evaluate(iterators) * s for i, s in zip(access.indices, apart, strict=True))
            touched.append((bases[access.array] + at * array.dtype.size) // LINE)
    cache: OrderedDict[int, None] = OrderedDict()
    misses = 0
    for again in range(2):
        for line in touched:
            misses += again and line not in cache
            cache[line] = None
            cache.move_to_end(line)
            if len(cache) > capacity // LINE:
                cache.popitem(last=False)
    return misses * LINE


def cut_transpose(rows: int, columns: int) -> Schedule:
    return poly.schedule(transpose.with_sizes({"N": 72, "M": 75})).tile(i=rows, j=columns)


def rows_in_time(steps: int) -> Schedule:
    """Time steps run row by row, as the default rules do."""
    made = poly.schedule(jacobi_2d.with_sizes({"N": 40, "T": 8}))
    made = made.shift("i_2", 1, "S1").fuse("S0", "S1", at="i").skew("i", by="_t", factor=2)
    return made.split(_t=steps).order("_t_tile i _t") if steps else made


@poly.nest
def rows_and_columns(A: f32[6, 20, 20], r: f32[20], s: f32[20]) -> None:
    for t in range(6):
        for i in range(20):
            for j in range(20):
                r[i] += A[t, i, j]
        for i in range(20):
            for j in range(20):
                s[i] += A[t, j, i]


@poly.nest
def ends_and_wholes(A: f32[6, 400], r: f32[6], s: f32[6]) -> None:
    for t in range(6):
        for i in range(16):
            r[t] += A[t, i]
        for i in range(400):
            s[t] += A[t, i]
        for i in range(400):
            r[t] -= A[t, i]


@poly.nest
def once_and_nine_times(A: f32[16, 60], B: f32[16, 60], r: f32[10]) -> None:
    for t in range(1):
        for i in range(16):
            for j in range(60):
                r[t] += A[i, j]
    for t in range(1, 10):
        for i in range(16):
            for j in range(60):
                r[t] += B[i, j]


CASES = [
    pytest.param(poly.schedule(rows_and_columns), 3072, id="one matrix by rows and by columns"),
    pytest.param(poly.schedule(ends_and_wholes), 1024, id="a few elements of a row, then all of it"),
    pytest.param(poly.schedule(once_and_nine_times).fuse("S0", "S1", at="t"), 7552, id="no iteration has both"),
    pytest.param(poly.schedule(transpose.with_sizes({"N": 72, "M": 75})), 2048, id="columns that don't fit"),
    pytest.param(cut_transpose(8, 8), 4096, id="blocks that fit"),
    pytest.param(cut_transpose(72, 8), 2048, id="blocks too tall"),
    pytest.param(rows_in_time(0), 4096, id="a few rows"),
    pytest.param(rows_in_time(2), 8192, id="two time steps"),
    pytest.param(rows_in_time(8), 65536, id="all fits"),
    pytest.param(poly.schedule(chain.with_sizes({"N": 40, "M": 40})), 2048, id="two loops"),
    pytest.param(poly.schedule(chain.with_sizes({"N": 40, "M": 40})).fuse("S0", "S1", at="i"), 2048, id="fused"),
]


@pytest.mark.parametrize(("made", "capacity"), CASES)
def test_traffic_is_what_a_cache_misses(made: Schedule, capacity: int) -> None:
    expected, actual = missed(made, capacity), moved(made, capacity)
    assert actual == pytest.approx(expected, rel=0.35, abs=LINE)


def test_more_time_steps_move_less() -> None:
    traffic = [moved(rows_in_time(steps), 16384) for steps in (1, 2, 4)]
    assert traffic == sorted(traffic, reverse=True)
    assert traffic[2] < traffic[0] / 2


def test_loops_in_values_of_loops() -> None:
    """Skewed rows: `i` counts the row and twice the time step, so the row is `i - 2*t`."""
    first, second = views(rows_in_time(2)).values()
    assert [loop.name for loop in first.enclosing] == ["_t_tile", "i", "_t", "j"]
    assert [loop.block for loop in first.enclosing] == [2, None, None, None]
    nest = rows_in_time(2).nest
    written = next(one for one in references(nest, first, {}).values() if one.written)
    assert written.indices[0][0] == (("1", 1), ("2", -2))
    assert first.widths(1, {}) == [1.0, 38 + 2 * 1, 2.0, 38.0]
    assert first.widths(2, {})[2] == 2.0
    read = [one for one in references(nest, second, {}).values() if one.array == "B"]
    assert {low for one in read for _, low, _ in one.indices[:1]} == {-2, -1, 0}, "shifted by one"


def test_blocks_are_named_by_knobs() -> None:
    (seen,) = views(cut_transpose(4, 8), {"i_tile": "i", "j_tile": "j"}).values()
    assert seen.widths(0, {"i": 10, "j": 20})[:2] == [72 / 10, 75 / 20], "the last block is a part of one"
    assert seen.widths(2, {"i": 10, "j": 20})[2:] == [10, 20]


@poly.nest
def rows_twice(A: f32[60, 16], r: f32[60]) -> None:
    for i in range(60):
        for j in range(16):
            A[i, j] = 0
    for k in range(60):
        r[k] = A[k, 3]


def test_blocks_of_rows_are_blocks_of_a_flattened_loop_inside_them() -> None:
    made = poly.schedule(rows_twice).fuse("S0", "S1", at="i").split(i=12).distribute("i").flatten("i", "j")
    filled, read = views(made).values()
    assert filled.widths(0, {}) == [5, 60 * 16]
    assert filled.widths(1, {})[1] == 12 * 16
    assert read.widths(0, {})[0] == 5
    assert {part.trips for part in model(made).form({}).whole.below} == {5}


def test_a_triangle_is_half() -> None:
    @poly.nest
    def lower(A: poly.f64[100, 100], x: poly.f64[100]):
        for i in range(100):
            for j in range(i):
                x[i] += A[i, j]

    assert extents(lower.statements[0]) == {"i": 99, "j": 50}


def test_rows_a_power_of_two_apart_share_places() -> None:
    def held(columns: int) -> bool:
        made = poly.schedule(transpose.with_sizes({"N": 64, "M": columns})).order("j i")
        return moved(made, 32 << 10) < 2 * 2 * 64 * columns * made.nest.arrays[0].dtype.size

    assert held(1000)
    assert not held(1024)


def test_recurrences_side_by_side_wait_less() -> None:
    nest = seidel.with_sizes({"N": 200, "T": 4})
    seconds = [predicted(made, target()).seconds for made in chains(nest)]
    assert seconds == sorted(seconds, reverse=True)
    assert seconds[0] > 2 * seconds[-1]


def chains(nest: poly.Nest) -> list[Schedule]:
    return [poly.schedule(nest), *(overlapped(poly.schedule(nest), count) for count in (2, 4))]


def test_a_prefix_sum_waits_for_itself() -> None:
    nest = prefix.with_sizes({"N": 1000})
    (one,) = model(poly.schedule(nest)).form({}).computed
    assert isinstance(one, Loops)
    assert one.work.chain == one.waiting == 4
    assert one.time(target()) >= 4 * 999


def test_integers_wait_less_for_one_another() -> None:
    @poly.nest
    def clipped(x: poly.i32[64], y: poly.i32[64]):
        for i in range(1, 64):
            y[i] = max(x[i], y[i - 1] - 2)

    assert work(clipped, clipped.statements[0], "i").chain == 3  # a difference, a comparison, a choice


def test_a_loop_that_is_skewed_inside_its_blocks_has_as_many_blocks() -> None:
    @poly.nest
    def paths(A: poly.f64[100, 5000]):
        for i in range(1, 100):
            for j in range(1, 5000):
                A[i, j] += A[i - 1, j] + A[i, j - 1]

    blocks = poly.schedule(paths).tile(i=4, j=512).skew("i_tile", by="j_tile").parallel("j_tile")
    beside = overlapped(blocks, 4)
    assert "skew('j', by='i')" in repr(beside)
    forms = [ScheduleModel(made, {}, target(TINY, 2)).form({}) for made in (blocks, beside)]
    ((plain,), (skewed,)) = (form.computed for form in forms)
    assert (skewed.shared, skewed.starts) == (plain.shared, plain.starts)
    (between,) = forms[0].exchanged.values()
    assert between == pytest.approx(plain.starts * 4 * 512 * 8, rel=0.3)  # two threads meet in a block of each diagonal
    expected = [predicted(made, target(TINY, 2)) for made in (blocks, beside)]
    assert expected[1].seconds < expected[0].seconds


def test_choices_conversions_and_functions_take_time() -> None:
    @poly.nest
    def selected(x: poly.f32[64], y: poly.f32[64]):
        for i in range(1, 64):
            y[i] = math.log(poly.f32(poly.f64(x[i]))) if 2.0 * y[i - 1] < x[i] else y[i - 1]

    done = work(selected, selected.statements[0], "i")
    assert done.arithmetic == WEIGHTS["log"] + 5  # two conversions, a product, a comparison, a choice
    assert done.chain == 3 * LATENCY  # product, comparison, choice


def test_a_tile_of_fewer_rows_takes_branches() -> None:
    """Twenty rows by sixes take longer than by fives by more than their steps; a tile that is alone takes none."""

    rates = nominal(HOST)

    def time(m: int, rows: int, steps: int) -> float:
        known = replace(target(), rates=replace(rates, tiles=replace(rates.tiles, mispredicted=branch)))
        return TileCalls(DTYPES["f32"], m, 16, steps, 1, (rows,), (16,), steps, Pitches(0, 0, 0)).time(known)

    for branch, steps in ((None, 16), (None, 1024), (23.0, 16)):
        uneven = time(20, 6, steps) - time(18, 6, steps) - time(2, 2, steps)
        assert uneven == pytest.approx(2 * (branch or MISPREDICTED * PER_CYCLE))
        assert time(20, 5, steps) == pytest.approx(4 * time(5, 5, steps))
        assert time(4, 6, steps) == pytest.approx(time(4, 4, steps))


def test_what_occurs_twice_is_computed_once() -> None:
    @poly.nest
    def squares(x: poly.f32[64], y: poly.f32[64]):
        for i in range(64):
            y[i] = (x[i] + 1.0) * (x[i] + 1.0)

    assert work(squares, squares.statements[0], "i").arithmetic == 2


def test_a_local_in_lanes_is_a_register_and_coordinates_are_shuffled() -> None:
    @poly.nest
    def pairs(X: poly.f32[64, 3], Y: poly.f32[512, 3], out: poly.f32[64]):
        for i in range(64):
            for j in range(512):
                s = 0.0
                for k in range(3):
                    s += (X[i, k] - Y[j, k]) * (X[i, k] - Y[j, k])
                out[i] += s

    made = poly.schedule(pairs).unroll(k=3).vectorize("j")
    done = {one.view.statement.name: one.work for one in model(made)._leaves}
    assert done["S1"].scattered == 0, "three vectors of coordinates, in turn"
    assert done["S1"].arithmetic == 2 + 2  # a difference, a product that is added; two shuffles
    assert not done["S1"].summed
    assert done["S2"].moves == 0
    assert done["S2"].summed
    assert moved(made, 4096) == pytest.approx(64 * 512 * 3 * 4, rel=0.1), "X and out stay, and nothing is kept for s"


def test_vectors_are_faster() -> None:
    nest = chain.with_sizes({"N": 100, "M": 100})
    made = poly.schedule(nest)
    plain, lanes = (predicted(m, target()) for m in (made, vectorized(made)))
    assert lanes.seconds < plain.seconds
    assert lanes.part("memory") == plain.part("memory")


def test_threads_share_the_work() -> None:
    nest = chain.with_sizes({"N": 3, "M": 4_000_000})
    made = vectorized(poly.schedule(nest))
    shared = made.parallel("i").parallel("i_2")
    alone, two, three = (
        predicted(m, target(TINY, threads)).seconds for m, threads in ((made, 1), (shared, 2), (shared, 3))
    )
    assert two == pytest.approx(alone * 2 / 3, rel=0.01), "three rows on two threads: one has two of them"
    assert three == pytest.approx(alone / 3, rel=0.01)
    rates = target().rates
    half = replace(target(TINY, 2), rates=replace(rates, memory=rates.memory / 2, alone=(rates.l3, rates.memory)))
    assert predicted(made, half).seconds == pytest.approx(alone), "one thread that works alone has all of the bandwidth"
    five = vectorized(poly.schedule(chain.with_sizes({"N": 5, "M": 4_000_000})))
    blocks = five.split(i=3).parallel("i_tile").split(i_2=3).parallel("i_2_tile")
    alone, two = (predicted(m, target(TINY, threads)).seconds for m, threads in ((five, 1), (blocks, 2)))
    assert two == pytest.approx(alone * 3 / 5, rel=0.01), "the last block is a partial one"


def test_nothing_moves_where_all_stays() -> None:
    cost = predicted(rows_in_time(2), target())
    assert cost.part("memory").bytes == 0 and cost.part("L3").bytes == 0
    small = predicted(rows_in_time(2), target(Caches(512, 1024, 2048)))
    assert small.part("memory").bytes > 0
    assert small.seconds > cost.seconds


def test_a_register_tile_takes_longer_over_more_steps() -> None:
    def time(steps: int) -> float:
        return TileCalls(DTYPES["f32"], 6, 32, steps, 1, (6,), (32,), steps, Pitches(0, 0, 0)).time(target())

    assert time(200) > 1.5 * time(100)


def test_many_rows_that_are_not_all_as_far_apart_need_a_pointer_each() -> None:
    def time(rows: int, uneven: bool) -> float:
        pitches = Pitches(120, 0, 0, uneven)
        return TileCalls(DTYPES["f32"], 28, 16, 500, 1, (rows,), (16,), 500, pitches).time(
            Target.nominal(AVX512, LARGE, 1)
        )

    assert time(28, True) > 1.1 * time(28, False)
    assert time(6, True) == time(6, False)


def test_panels_hold_the_elements_of_overlapping_windows_once_for_each() -> None:
    @poly.nest
    def windows(x: f32[67], w: f32[6, 4], y: f32[6, 64]) -> None:
        for k in range(6):
            for q in range(64):
                for s in range(4):
                    y[k, q] += x[q + s] * w[k, s]

    packed = poly.schedule(windows).pack("x").microkernel("gemm_avx512_6x64")
    form = ScheduleModel(packed, {}, Target.nominal(AVX512, LARGE, 1)).form({})
    (copy,) = form.copied
    assert form.whole.touched[copy].elements == 4 * 64
