"""The model of register tiles: what is measured of operands in place, of lines and of copies decides what is packed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import product as product_of
from random import Random

import pytest
from contractions import Contraction

import poly
from microkernels.dtypes import f32, f64
from microkernels.isa import AVX2, AVX512, ISA
from poly.autoschedule.default import default_schedule
from poly.autoschedule.rules.contraction import Tilings
from poly.autoschedule.rules.microkernels import heaviest_box
from poly.autoschedule.rules.non_rectangular import best_box
from poly.ir.nest import Nest
from poly.machine.calibration import described
from poly.machine.measured import LineCost, PlaceCost, ThreadStarts, TileCosts, between
from poly.model import Caches, Choice
from poly.model.core import Target
from poly.model.rates import LONGEST, from_machine
from poly.model.tiles import Pitches, TileCalls, line_classes
from poly.model.traffic import crowding
from poly.schedules.steps import Pack

CACHES = Caches(32 << 10, 1 << 20, 16 << 20)


def product(m: int, n: int, k: int) -> Nest:
    contraction = Contraction("ik,kj->ij")
    return contraction.nest().with_sizes(contraction.sizes({"i": m, "j": n, "k": k}))


def target(isa: ISA, change: Callable[[TileCosts], TileCosts] = lambda costs: costs) -> Target:
    known = Target.nominal(isa, CACHES, 1)
    return replace(known, rates=replace(known.rates, tiles=change(known.rates.tiles)))


def tilings(nest: Nest, where: Target) -> Tilings:
    found = heaviest_box(nest, where)
    assert found is not None
    return Tilings(found[1], where)


def choice(nest: Nest, where: Target) -> Choice:
    return tilings(nest, where).usual


def places(cost: float) -> Callable[[TileCosts], TileCosts]:
    return lambda costs: replace(costs, places=tuple(replace(one, cost=cost) for one in costs.places))


def lines(operand: str, cost: float, *levels: str) -> Callable[[TileCosts], TileCosts]:
    def changes(one: LineCost) -> bool:
        return one.operand == operand and (not levels or one.level in levels)

    def change(costs: TileCosts) -> TileCosts:
        changed = (replace(one, cost=cost if changes(one) else one.cost) for one in costs.lines)
        return replace(costs, lines=tuple(changed))

    return change


def test_between_known_values_the_logarithm_counts() -> None:
    known = {1: 8.0, 4: 4.0, 64: 0.0}
    assert [between(at, known) for at in (0.5, 1, 2, 4, 16, 64, 100)] == [8, 8, 6, 4, 2, 0, 0]


def test_a_line_is_priced_by_the_rows_of_the_tile_that_reads_it() -> None:
    measured = (LineCost("right", "L3", 8.0, 7), LineCost("right", "L3", 2.0, 28), LineCost("left", "L3", 5.0))
    known = target(AVX512, lambda costs: replace(costs, lines=measured))
    assert [known.line("right", "L3", rows) for rows in (3, 7, 14, 28, 30)] == [8, 8, 5, 2, 2]
    assert known.line("left", "L3", 14) == 5


@pytest.mark.parametrize(
    ("pitch", "classes"), [(4096, 1), (8192, 1), (2048, 2), (6144, 2), (5760, 32), (2880, 64), (64, 64), (100, 64)]
)
def test_rows_begin_in_classes_of_a_pages_lines(pitch: int, classes: int) -> None:
    assert line_classes(pitch) == classes == len({n * pitch % 4096 // 64 for n in range(4096)}) or pitch % 64


def calls(right: int, left: int = 0, left_steps: int = 0) -> TileCalls:
    return TileCalls(f32, 96, 96, 256, 1, (6,), (16,), 256, Pitches(left, right, 0, left_steps=left_steps))


def test_a_line_in_place_takes_what_was_measured_for_its_pitch() -> None:
    """The two vectors of a tile's row share a line, unless rows begin anywhere in one, as do a column's six rows."""

    def change(costs: TileCosts) -> TileCosts:
        return replace(costs, places=(PlaceCost(256, 1, 3.0), PlaceCost(256, 64, 1.0)))

    where = target(AVX2, change)
    packed, conflicts, apart, anywhere = (calls(pitch).time(where) for pitch in (0, 4096, 4160, 4100))
    lines = 96 / 6 * 256 * 96 / 16
    assert conflicts - packed == pytest.approx(3 * lines)
    assert apart - packed == pytest.approx(lines) and anywhere - packed == pytest.approx(2 * lines)
    turned, turned_apart = (calls(0, 4, steps).time(where) for steps in (4096, 4160))
    assert turned - packed == pytest.approx((3 - 1) * lines) and turned_apart == packed


def test_rows_of_the_left_operand_crowd_a_set_by_its_ways() -> None:
    twelve = replace(CACHES, l1=48 << 10, ways=(12, 16))
    assert crowding(4096, 16, CACHES) == 1 and crowding(4096, 8, CACHES) == 0
    assert crowding(4096, 16, twelve) == pytest.approx(4 / 12) and crowding(4160, 64, CACHES) == 0


@pytest.mark.parametrize("isa", [AVX512, AVX2], ids=lambda isa: isa.name)
def test_what_costs_much_in_place_is_packed(isa: ISA) -> None:
    nest = product(512, 512, 512)
    assert choice(nest, target(isa, places(10.0))).pack_right
    dear = target(isa, lambda costs: lines("copy", 1e4)(places(0.0)(costs)))
    assert not choice(nest, dear).pack_right


@pytest.mark.parametrize("isa", [AVX512, AVX2], ids=lambda isa: isa.name)
def test_weights_of_a_group_of_channels_are_copied_where_they_cost_much_in_place(isa: ISA) -> None:
    grouped = poly.parse("""def grouped(X: 'f32[7, 7, 1024]', W: 'f32[3, 3, 32, 1024]', Y: 'f32[7, 7, 1024]'):
    for p in range(7):
        for q in range(7):
            for g in range(32):
                for k in range(32):
                    for r in range(3):
                        for s in range(3):
                            for c in range(32):
                                if 0 <= p + r - 1 < 7 and 0 <= q + s - 1 < 7:
                                    Y[p, q, 32*g + k] += X[p + r - 1, q + s - 1, 32*g + c] * W[r, s, c, 32*g + k]
    """)
    for change, is_copied in ((places(10.0), True), (lines("copy", 1e4), False)):
        steps = default_schedule(grouped, target(isa, change)).steps
        assert any(isinstance(step, Pack) and step.array == "W" for step in steps) == is_copied


LINE = """def line(X: 'f32[64, 4096]', W: 'f32[64, 64, 9]', Y: 'f32[64, 4096]'):
    for k in range(64):
        for q in range(4096):
            for c in range(64):
                for s in range(9):
                    if 0 <= q + s - 4 < 4096:
                        Y[k, q] += X[c, q + s - 4] * W[k, c, s]
"""


@pytest.mark.parametrize(("copy", "column"), [(0.0, "q"), (1e4, "k")])
def test_a_box_is_priced_with_a_copy_of_its_right_operand(copy: float, column: str) -> None:
    """Rows of the image lie 16 KB apart: pixels are columns unless copies of these rows are dear, too."""
    line = poly.parse(LINE)
    found = best_box(line, line.statements[0], target(AVX2, lambda costs: places(10.0)(lines("copy", copy)(costs))))
    assert found is not None and found.column == column


def test_threads_pay_off_where_waking_them_for_nothing_and_not_using_them_lose_alike() -> None:
    known = Target.nominal(AVX2, CACHES, 1)
    assert known.worthwhile(f32) == float("inf")
    for threads, dtype in product_of((2, 3, 16), (f32, f64)):
        several = replace(known, threads=threads)
        alone = several.worthwhile(dtype) * 2 / several.rates.peak(dtype)
        assert alone / threads + several.rates.wake == pytest.approx(threads * alone)


@pytest.mark.parametrize(("asleep", "taken"), [(3e-4, 3e-4), (0.02, LONGEST)])
def test_a_wake_beside_other_work_does_not_keep_threads_away(asleep: float, taken: float) -> None:
    measured = replace(described(AVX2.name, (32 << 10, 1 << 20)), starts=ThreadStarts(1e-6, asleep))
    assert from_machine(measured, AVX2, 2).wake == taken


def test_what_is_slow_from_far_is_read_seldom() -> None:
    """The more a line of B from the last level takes, the fewer of them a schedule reads."""
    nest = product(2048, 2048, 2048)

    def read(cost: float) -> float:
        changed = target(AVX2, lambda costs: lines("right panels", cost, "L3")(lines("right apart", cost, "L3")(costs)))
        part = tilings(nest, changed).model.predict(choice(nest, changed)).part("L3")
        assert part is not None
        return part.bytes

    assert read(200.0) < read(0.0)


SHAPES = [(512, 512, 512), (1024, 1024, 1024), (49, 512, 2048), (7, 333, 1001), (3136, 64, 64), (720, 720, 720)]


@pytest.mark.parametrize("isa", [AVX512, AVX2], ids=lambda isa: isa.name)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_two_calibrations_that_differ_by_little_choose_alike(isa: ISA, shape: tuple[int, int, int]) -> None:
    """Costs that differ by 5 % change the choice at most for one that is predicted to be 2 % slower."""
    random, nest = Random(str((isa, shape))), product(*shape)

    def disturbed(costs: TileCosts) -> TileCosts:
        moved = tuple(replace(one, cost=one.cost * random.uniform(0.95, 1.05)) for one in costs.lines)
        placed = tuple(replace(one, cost=one.cost * random.uniform(0.95, 1.05)) for one in costs.places)
        return replace(costs, lines=moved, places=placed)

    known = tilings(nest, target(isa))
    least = known.model.predict(known.usual).seconds
    other = choice(nest, target(isa, disturbed))
    assert known.model.predict(other).seconds <= 1.02 * least
