"""The contenders: their names and configurations, the work to time, and the result to check."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from benchmarks.arrays import Array, Arrays
from benchmarks.case import Case, Problem
from codegen.calls.clock import Timed
from microkernels.errors import PolyError


@dataclass(frozen=True)
class Tuned:
    """The search behind a kernel: its trials, and the seconds that they took."""

    trials: int
    seconds: float

    def facts(self) -> dict[str, float]:
        """The fields of a row."""
        return {"trials": self.trials, "tune_seconds": self.seconds}


@dataclass(frozen=True)
class Contender:
    """A library that is ready to run: nothing is left to allocate, pack or compile.

    `run` does the work on arrays of its own; `result` is the result of the first run. `in_c` says whether the timing
    loop is in C; `pinned`, whether its process keeps the main thread on the first CPU and all others off it. `building`
    are the seconds from the loops to a function, `workspace` the bytes beyond the arrays, and `first` the seconds of
    the first run, where they are known. `tuned` is the search behind our kernel, if it was tuned.
    """

    name: str
    version: str
    config: str
    run: Timed
    result: Callable[[], Arrays]
    in_c: bool = True
    pinned: bool = True
    building: float | None = None
    workspace: int | None = None
    first: float | None = None
    tuned: Tuned | None = None


class Peer(Protocol):
    """A library to compare with. `prepare` raises NotInstalled if it is missing."""

    @property
    def name(self) -> str: ...

    def prepare(self, problem: Problem, arrays: tuple[Array, ...], threads: int) -> Contender | None:
        """A contender for the problem on these arrays, which it owns; None if the peer does not support the problem."""
        ...


class Solver(Protocol):
    """How a worker solves a case, as poly or as a peer. It can be sent to another process."""

    def __call__(self, case: Case, arrays: tuple[Array, ...], threads: int) -> Contender | None:
        """A contender for the case on these arrays, which it owns. Raises NotInstalled or Failed."""
        ...


class Entrant(Protocol):
    """Poly or a peer for the runner, behind a process boundary."""

    @property
    def name(self) -> str: ...

    def enter(self, case: Case, threads: int) -> Contender | None:
        """A contender for the case; None if the entrant does not support it. Raises NotInstalled or Failed."""
        ...


class NotInstalled(PolyError):
    """The peer is not installed; the message says what is missing."""


class Failed(PolyError):
    """The entrant has no result for this case, though it should; the message says what went wrong."""
