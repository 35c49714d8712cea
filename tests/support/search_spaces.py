"""Spaces whose landscape is a formula, and a measurer that draws samples from it: searches without a machine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import exp
from random import Random

import poly
from microkernels.isa import PORTABLE
from poly.autoschedule.spaces.space import Knob, Point, Space, Structure, Value
from poly.model.cost import Cost
from poly.schedules.schedule import Schedule
from poly.search.events import Ask, Trial

Seconds = Callable[[Mapping[str, Value]], float]


def no_schedule(values: Mapping[str, Value]) -> Schedule:
    raise AssertionError("a search never makes a schedule; measuring does")


def structure(
    predict: Seconds,
    sizes: tuple[int, ...] = (5, 6, 4),
    allows: Callable[[Mapping[str, Value]], bool] = lambda values: True,
    **traits: str,
) -> Structure:
    """A structure with the knobs a, b, c, …, whose values are 1, 2, 3, …"""
    knobs = tuple(Knob(chr(ord("a") + i), tuple(range(1, n + 1))) for i, n in enumerate(sizes))
    return Structure(tuple(traits.items()), knobs, allows, no_schedule, lambda values: Cost(predict(values)))


def space(*structures: Structure) -> Space:
    nest = poly.einsum("ik,kj->ij")
    everything = Space(nest, PORTABLE, 1, structures, Point(0, ()))
    return Space(nest, PORTABLE, 1, structures, everything.ranked()[0])


@dataclass
class Landscape:
    """A measurer: the true seconds of a point are a formula; samples have noise; some points fail.

    `noise(random)` is the log of a sample's error; `drift(n)` is common to both samples of the n-th pair.
    """

    space: Space
    seconds: Callable[[Point], float]
    noise: Callable[[Random], float] = lambda random: 0.0
    drift: Callable[[int], float] = lambda n: 0.0
    fails: Callable[[Point], str] = lambda point: ""
    pairs: int = 8
    seed: int = 0
    asked: list[Ask] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.random = Random(self.seed)
        self.taken = 0

    def measure(self, ask: Ask) -> list[Trial]:
        self.asked.append(ask)
        return [self._trial(point, ask.incumbent) for point in ask.points]

    def _trial(self, point: Point, incumbent: Point | None) -> Trial:
        if failure := self.fails(point):
            return Trial(point, (), failure=failure)
        pairs = [self._pair(point, incumbent) for _ in range(self.pairs)]
        return Trial(point, tuple(ours for ours, _ in pairs), tuple(theirs for _, theirs in pairs if incumbent))

    def _pair(self, point: Point, incumbent: Point | None) -> tuple[float, float]:
        self.taken += 1
        common = self.drift(self.taken)
        ours, theirs = (exp(common + self.noise(self.random)) for _ in range(2))
        return ours * self.seconds(point), theirs * self.seconds(incumbent or point)

    @property
    def measured(self) -> list[Point]:
        return [point for ask in self.asked for point in ask.points]

    def best(self) -> float:
        """The least seconds there are in the space."""
        return min(self.seconds(point) for point in self.space if not self.fails(point))


def bowl(values: Mapping[str, Value]) -> float:
    """Milliseconds, with the minimum where every knob is 3."""
    return 1e-3 * (1 + 0.05 * sum((value - 3) ** 2 for value in values.values() if value is not None))


def two_bowls() -> Space:
    """Two structures; the second is a little better everywhere."""
    return space(structure(bowl, order="rows"), structure(lambda values: 0.95 * bowl(values), order="columns"))


def as_predicted(made: Space, noise: float = 0.002, seed: int = 0) -> Landscape:
    """A landscape that agrees with the model."""
    return Landscape(made, lambda point: made.predict(point).seconds, lambda random: random.gauss(0, noise), seed=seed)
