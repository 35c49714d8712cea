"""The events of a search (asks, trials, decisions, the end), and the interfaces of strategies and measurers."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from dataclasses import dataclass
from random import Random
from typing import Protocol

from poly.autoschedule.spaces.space import Point, Space


@dataclass(frozen=True)
class Ask:
    """A batch of points to be measured, each in turn with the incumbent if there is one.

    If a strategy names none, its points are timed in turn with the search's own incumbent as soon as it has one. With
    `again`, the points are finalists, which were measured before and are measured once more at the end.
    """

    points: tuple[Point, ...]
    incumbent: Point | None = None
    again: bool = False


@dataclass(frozen=True)
class Trial:
    """The measurement of one point.

    `samples` are seconds per call. `rival` has the incumbent's, taken in turn with them (equally many, in pairs). If
    there are no samples, `failure` says why: the compiler's message, a crash, a hang, a wrong result. `against` is the
    incumbent whose samples `rival` has; the search fills it in, a measurer need not.
    """

    point: Point
    samples: tuple[float, ...]
    rival: tuple[float, ...] = ()
    failure: str = ""
    against: Point | None = None


@dataclass(frozen=True)
class Decided:
    """The incumbent after a batch: the point that no challenger has beaten in a test; None if all have failed."""

    incumbent: Point | None


@dataclass(frozen=True)
class Stopped:
    """The end of the search: the reason, and whether the user interrupted it."""

    reason: str
    interrupted: bool = False


Event = Ask | Trial | Decided | Stopped


class Measurer(Protocol):
    """Measures points. A table of earlier measurements is a measurer, too."""

    def measure(self, ask: Ask) -> Iterable[Trial]:
        """A trial for each point asked for, in order; an iterator may measure each as it is requested.

        It never raises because of a faulty candidate. It may stop early, and gives no trials if nothing more can be
        measured. KeyboardInterrupt ends the search; trials taken before it count.
        """


Search = Generator[Ask, list[Trial], None]
"""A running strategy: it yields asks, is sent their trials, and returns when it has no more to ask."""


class Strategy(Protocol):
    """How to search. `start` is where to begin: the model's choice, or the origin for comparison."""

    def __call__(self, space: Space, start: Point, random: Random) -> Search: ...
