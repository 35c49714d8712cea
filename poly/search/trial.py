"""What a search asks to be measured, and what it is told: the interface between strategies and measuring."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from random import Random
from typing import Protocol

from poly.spaces.space import Point, Space


@dataclass(frozen=True)
class Ask:
    """Points to be measured, as a batch; each in turn with the champion, where there is one.

    A strategy that names none has its points timed in turn with the search's own champion, as soon as it has one.
    """

    points: tuple[Point, ...]
    champion: Point | None = None


@dataclass(frozen=True)
class Trial:
    """One point measured.

    `samples` are seconds a call. `rival` holds the champion's, taken in turn with them (as many, pair by pair). Where
    there are none, `failure` says why: the compiler's words, a crash, a hang, a wrong result. `against` is the champion
    whose samples `rival` holds; the search fills it in, a measurer need not.
    """

    point: Point
    samples: tuple[float, ...]
    rival: tuple[float, ...] = ()
    failure: str = ""
    against: Point | None = None


class Measurer(Protocol):
    """Measures points. A table of measurements from before is one too."""

    def measure(self, ask: Ask) -> list[Trial]:
        """A trial for each point asked for, in order. Never raises for what is the candidate's fault.

        There may be fewer, the first ones, and none where nothing more can be measured.
        """


Search = Generator[Ask, list[Trial], None]
"""A strategy at work: yields what it wants measured, is sent the trials, returns when it has no more to ask."""


class Strategy(Protocol):
    """How to search. `start` is where to begin: the model's choice, or the origin to compare."""

    def __call__(self, space: Space, start: Point, random: Random) -> Search: ...
