"""Handmade spaces of a tiny nest, for tests of the layers above the spaces."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from math import sin
from typing import ClassVar

import poly
from microkernels.isa import parse_target
from poly import f32
from poly.autoschedule.spaces.space import Knob, Point, Space, Structure, Values
from poly.model.cost import Cost, CostPart
from poly.schedules.schedule import Schedule
from poly.search.events import Ask, Trial

M, N = poly.sizes("M N")


@poly.nest
def double(A: f32[M, N], B: f32[M, N]):
    for i in range(M):
        for j in range(N):
            B[i, j] = 2 * A[i, j]


NEST = double.with_sizes({"M": 64, "N": 64})


def tiled(values: Values) -> Schedule:
    cut = {loop: size for loop, size in zip("ij", values.values(), strict=True) if size is not None}
    return poly.schedule(NEST).tile(**cut) if cut else poly.schedule(NEST)


def bowl(values: Values) -> Cost:
    """A bowl with its minimum at 4 and 4."""
    seconds = 1e-6 * (10 + sum(abs((size or 64) - 4) for size in values.values()))
    return Cost(seconds, (CostPart("memory", seconds),))


def structure(traits: tuple[tuple[str, str], ...], *knobs: Knob) -> Structure:
    return Structure(traits, knobs, lambda values: True, tiled, bowl)


@cache
def grid_space() -> Space:
    """One structure and 8 by 8 points; the model's choice is the bowl's lowest."""
    sizes = tuple(range(1, 9))
    return space((structure((), Knob("x", sizes), Knob("y", sizes)),), Point(0, (3, 3)))


@cache
def two_structures() -> Space:
    knobs = Knob("rows", (16, 32, 64)), Knob("depth", (16, 32, 64, None))
    structures = tuple(structure((("left", how),), *knobs) for how in ("in place", "panels"))
    return space(structures, Point(0, (0, 0)))


def space(structures: tuple[Structure, ...], choice: Point) -> Space:
    return Space(NEST, parse_target("c:portable"), 1, structures, choice)


class Table:
    """Measures by the bowl's formula. `measured` has the points measured by all of them since the test began."""

    measured: ClassVar[list[Point]] = []
    before: ClassVar[Callable[[Point], None]] = staticmethod(lambda point: None)
    failing: ClassVar[frozenset[Point]] = frozenset()

    def __init__(self, space: Space, *, cold: bool, seed: int) -> None:
        self.space = space

    def pause(self) -> None:
        pass

    def close(self) -> None:
        pass

    def trials(self, ask: Ask) -> Iterator[Trial]:
        for point in ask.points:
            Table.before(point)
            Table.measured.append(point)
            if point in Table.failing:
                yield Trial(point, (), failure="crashed: Segmentation fault (SIGSEGV)")
            else:
                yield Trial(point, self.samples(point), self.samples(ask.incumbent) if ask.incumbent else ())

    def samples(self, point: Point) -> tuple[float, ...]:
        seconds = bowl(self.space.values(point)).seconds
        return tuple(seconds * (1 + 0.002 * sin(7 * i + 3 * point.at[0] + point.at[1])) for i in range(8))
