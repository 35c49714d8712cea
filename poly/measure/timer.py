"""Check and time libraries in the child process, alone or in turn with a rival; a new child replaces a dead one."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import cast

from poly.errors import SearchError
from poly.measure.child import Child, Died
from poly.measure.orders import Check, Drop, Order, OrderFailed, Setup, Time
from poly.search.significance import first_rounds, next_rounds
from poly.timing.benchmark import SAMPLE

PREPARING = 120.0
"""The time limit for creating the arrays, in seconds."""
TOLERANCE = 50
"""The multiple of the expected time after which a call counts as hanging."""
BUILDING = 60.0
"""The time limit of a device's compiler for one candidate, in seconds."""
RIVAL = "the incumbent, to be timed in turn with it, failed: {}"
"""The failure of a challenger if its rival fails."""


class Refused(Exception):
    """A candidate cannot be timed; the message says why."""


@dataclass(frozen=True)
class Timing:
    """Seconds per call, paired with those of a rival if there is one, or the reason why there are none."""

    samples: tuple[float, ...] = ()
    rival: tuple[float, ...] = ()
    failure: str = ""


@dataclass(frozen=True)
class Seat:
    """A library loaded in the child: its name there, and the seconds of a call."""

    library: Path
    name: int
    seconds: float


class Timer:
    """Times the libraries of one nest. `patience` is the seconds by which a call may exceed the expected time."""

    def __init__(self, child: Child, setup: Setup, patience: float) -> None:
        self._child = child
        self._setup = setup
        self._patience = patience
        self._names = count()
        self._incumbent: Seat | None = None
        self._ready = False

    def alone(self, library: Path, expected: float, samples: int) -> Timing:
        """`samples` samples of a library, whose calls are expected to take `expected` seconds."""
        try:
            seat = self._seat(library, expected)
            (ours,) = self._samples((seat,), samples)
        except (Died, Refused) as error:
            return Timing(failure=str(error))
        self._leave(seat)
        return Timing(ours)

    def against(self, rival: Path, library: Path, expected: float) -> Timing:
        """Samples of a library and its rival in turn, until it is clear which is faster or the budget is used up."""
        try:
            incumbent = self._seated(rival, expected)
        except (Died, Refused) as error:
            return Timing(failure=RIVAL.format(error))
        try:
            seat = self._seat(library, max(expected, incumbent.seconds))
            ours, theirs = self._samples((seat, incumbent), first_rounds(seat.seconds, incumbent.seconds))
            while rounds := next_rounds(ours, theirs):
                more = self._samples((seat, incumbent), rounds)
                ours, theirs = ours + more[0], theirs + more[1]
        except (Died, Refused) as error:
            return Timing(failure=str(error))
        self._leave(seat)
        return Timing(ours, theirs)

    def _seated(self, rival: Path, expected: float) -> Seat:
        """The rival, which is loaded once for many comparisons."""
        if self._child.alive and self._incumbent is not None and self._incumbent.library == rival:
            return self._incumbent
        if self._child.alive and self._incumbent is not None:
            self._leave(self._incumbent)
        self._incumbent = None
        self._incumbent = self._seat(rival, expected)
        return self._incumbent

    def _seat(self, library: Path, expected: float) -> Seat:
        name = next(self._names)
        limit = self._patience + TOLERANCE * expected + (BUILDING if self._setup.device else 0.0)
        return Seat(library, name, cast(float, self._ask(Check(name, str(library)), limit)))

    def _leave(self, seat: Seat) -> None:
        with suppress(Died):
            self._ask(Drop(seat.name), self._patience)

    def _samples(self, seats: tuple[Seat, ...], rounds: int) -> tuple[tuple[float, ...], ...]:
        once = sum(max(2 * SAMPLE, seat.seconds) for seat in seats)
        flushing = len(seats) * (self._setup.flush / 1e9)
        limit = self._patience + TOLERANCE * rounds * (once + flushing)
        order = Time(tuple(seat.name for seat in seats), rounds)
        return cast("tuple[tuple[float, ...], ...]", self._ask(order, limit))

    def _ask(self, order: Order, seconds: float) -> object:
        """The answer to an order from a child whose arrays are set up."""
        if not (self._ready and self._child.alive):
            self._incumbent = None
            self._set_up()
            self._ready = True
        answer = self._child.ask(order, seconds)
        if isinstance(answer, OrderFailed):
            self._child.close(kill=True)  # a wrong candidate may have written anywhere
            raise Refused(answer.reason)
        return answer

    def _set_up(self) -> None:
        try:
            answer = self._child.ask(self._setup, PREPARING)
        except Died as error:
            raise SearchError(f"the arrays to measure on cannot be made: the process {error}") from error
        if isinstance(answer, OrderFailed):
            raise SearchError(f"the arrays to measure on cannot be made: {answer.reason}")
