"""A table: the measurements of every point of a small space, and the machine that they are from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from microkernels.cached import cached_property
from poly.autoschedule.spaces.space import Point, Space, Structure, Value

Traits = tuple[tuple[str, str], ...]
Values = tuple[tuple[str, Value], ...]
Visit = tuple[float, ...]
"""The samples of one visit to a point, in seconds."""


@dataclass(frozen=True)
class PointKey:
    """A point by its meaning: its structure's traits and the value of each knob, independent of their indices."""

    traits: Traits
    values: Values


def key(space: Space, point: Point) -> PointKey:
    """The key of a space's point."""
    return key_of(space.structures[point.structure], space.values(point))


def key_of(structure: Structure, values: Mapping[str, Value]) -> PointKey:
    """The key of some values, with names in alphabetical order, so that a space's order does not matter."""
    return PointKey(tuple(sorted(structure.traits)), tuple(sorted(values.items())))


@dataclass(frozen=True)
class Pass:
    """One visit to a point: samples in seconds per call, and the median of the reference's, taken in turn with them."""

    samples: tuple[float, ...]
    reference: float


@dataclass(frozen=True)
class Entry:
    """The results of one point: its visits, or why there are none.

    `seconds` is the time of the first visit, compilation and timing together.
    """

    passes: tuple[Pass, ...] = ()
    seconds: float = 0.0
    failure: str = ""


ALIGNED, BY_NUMPY = "aligned", "NumPy's own"
"""Arrays that start on pages, and arrays that start where NumPy's own do."""


@dataclass(frozen=True)
class Origin:
    """The origin of a table. `machine` holds its facts: CPU, caches, and the calibration made for this table."""

    machine: Mapping[str, Any]
    compiler: str
    engine: str
    date: str
    arrays: str = BY_NUMPY


@dataclass(frozen=True)
class Table:
    """The measured points of one problem. `reference` is the point timed in turn with each visit."""

    problem: str
    dtype: str
    threads: int
    origin: Origin
    reference: PointKey
    entries: Mapping[PointKey, Entry] = field(default_factory=dict)

    @cached_property
    def levels(self) -> tuple[float, ...]:
        """The median of the reference's seconds in each round of visits: the machine's speed at that time."""
        rounds = max((len(entry.passes) for entry in self.entries.values()), default=0)
        return tuple(
            median(entry.passes[n].reference for entry in self.entries.values() if len(entry.passes) > n)
            for n in range(rounds)
        )

    def visits(self, point: PointKey) -> list[Visit]:
        """The samples of each visit to a point, scaled to the level of the first round.

        The machine's speed drifts over hours. Within a round it is not corrected: the order is random, and a single
        visit to the reference has its own noise.
        """
        rounds = zip(self.entries[point].passes, self.levels, strict=False)
        return [tuple(s * self.levels[0] / level for s in visit.samples) for visit, level in rounds]

    def measured(self, point: PointKey) -> bool:
        return point in self.entries and bool(self.entries[point].passes)
