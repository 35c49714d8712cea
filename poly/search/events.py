"""The events of a search: what is asked, measured, decided, and why it stops; and who asks and who measures."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from dataclasses import dataclass
from random import Random
from typing import Protocol

from poly.autoschedule.spaces.space import Point, Space


@dataclass(frozen=True)
class Ask:
    """Points to be measured, as a batch; each in turn with the incumbent, where there is one.

    A strategy that names none has its points timed in turn with the search's own incumbent, as soon as it has one.
    With `again`, the points are finalists: they were measured before, and are measured once more at the end.
    """

    points: tuple[Point, ...]
    incumbent: Point | None = None
    again: bool = False


@dataclass(frozen=True)
class Trial:
    """One point measured.

    `samples` are seconds a call. `rival` holds the incumbent's, taken in turn with them (as many, pair by pair). Where
    there are none, `failure` says why: the compiler's words, a crash, a hang, a wrong result. `against` is the
    incumbent whose samples `rival` holds; the search fills it in, a measurer need not.
    """

    point: Point
    samples: tuple[float, ...]
    rival: tuple[float, ...] = ()
    failure: str = ""
    against: Point | None = None


@dataclass(frozen=True)
class Decided:
    """The incumbent after a batch: the point that no challenger has beaten in a test; None while all have failed."""

    incumbent: Point | None


@dataclass(frozen=True)
class Stopped:
    """The search has ended: why, and whether the user interrupted it."""

    reason: str
    interrupted: bool = False


Event = Ask | Trial | Decided | Stopped


class Measurer(Protocol):
    """Measures points. A table of measurements from before is one too."""

    def measure(self, ask: Ask) -> Iterable[Trial]:
        """A trial for each point asked for, in order; an iterator may measure each as it is taken.

        Never raises for what is the candidate's fault. There may be fewer trials than points, the first ones, and none
        where nothing more can be measured. KeyboardInterrupt ends the search; trials taken before it count.
        """


Search = Generator[Ask, list[Trial], None]
"""A strategy at work: yields what it wants measured, is sent the trials, returns when it has no more to ask."""


class Strategy(Protocol):
    """How to search. `start` is where to begin: the model's choice, or the origin to compare."""

    def __call__(self, space: Space, start: Point, random: Random) -> Search: ...
