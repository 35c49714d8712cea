"""A measurer that tells of every trial at once, and stops in the midst of a batch: when time is up, or at Ctrl-C."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol

from poly.search.trial import Ask, Trial


class Source(Protocol):
    """Measures points one after the other."""

    def trials(self, ask: Ask) -> Iterator[Trial]:
        """A trial for each point asked for, in order, each as soon as it is there."""


class Watched:
    """Measures with `source`: calls `asked` before a batch, and `told` with each trial as soon as it is there.

    Where `over` says that time is up, no further point is measured: `measure` gives the trials so far, at least one.
    Ctrl-C does the same, and what is asked for after it raises KeyboardInterrupt: nothing that was measured is lost.
    `came` tells of a Ctrl-C whose exception went astray.
    """

    def __init__(
        self,
        source: Source,
        asked: Callable[[Ask], None],
        told: Callable[[Trial, Ask], None],
        over: Callable[[], bool],
        came: Callable[[], bool] = lambda: False,
    ) -> None:
        self._source = source
        self._asked = asked
        self._told = told
        self._over = over
        self._came = came
        self._stopped = False

    @property
    def interrupted(self) -> bool:
        return self._stopped or self._came()

    def measure(self, ask: Ask) -> list[Trial]:
        if self.interrupted:
            raise KeyboardInterrupt
        found: list[Trial] = []
        try:
            self._asked(ask)
            for trial in self._source.trials(ask):
                found.append(trial)
                self._told(trial, ask)
                if self._over() or self._came():
                    break
        except KeyboardInterrupt:
            self._stopped = True
            if not found:
                raise
        return found
