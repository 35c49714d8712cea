"""Candidates in the process that times them: loaded, checked against the trusted result, and timed in turn."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from math import ceil
from random import Random

import numpy as np

from codegen.clock import Timed
from poly.measure.compare import difference
from poly.measure.data import Arena
from poly.measure.orders import Check, Failed, Setup, Time, result

SAMPLE = 0.002
"""Seconds that a sample fills, where that is not too many calls."""

INSTANT = 1e-9
"""Seconds that a call takes at least, whatever the clock says."""

Candidate = Callable[[], Timed]
"""Gets a candidate ready to be timed."""


@dataclass(frozen=True)
class Loaded:
    """A candidate, and the least seconds of a call so far."""

    ready: Candidate
    seconds: float


class Bench(ABC):
    """The arrays of a nest, and the candidates that are loaded. What a candidate is, a subclass knows.

    Who of a pair goes first is drawn by lot. So, whatever the noise and however it hangs together in time, of two
    equally fast candidates either is the faster in a pair with the same chance, independent of all other pairs
    (Fisher, The Design of Experiments, 1935), which is what a test on the pairs supposes.
    """

    def __init__(self, setup: Setup, arena: Arena) -> None:
        self._setup = setup
        self._arena = arena
        self._expected = {
            name: np.load(result(setup.results, name), mmap_mode="r").astype(arena.values[name].dtype)
            for name in arena.written
        }
        self._loaded: dict[int, Loaded] = {}
        self._coin = Random(setup.data.seed)

    @abstractmethod
    def load(self, path: str) -> Candidate:
        """The candidate in a file."""

    @abstractmethod
    def flush(self) -> None:
        """Empty the caches, where that is asked for."""

    @abstractmethod
    def settle(self) -> None:
        """What is to be done after the first call of a candidate."""

    def check(self, order: Check) -> float | Failed:
        """Follow the order."""
        ready = self.load(order.library)
        timed = ready()
        self._arena.reset()
        first = timed(1)
        self.settle()
        wrong = self._wrong()
        if wrong:
            return Failed(wrong)
        self._loaded[order.name] = Loaded(ready, self._seconds(timed, first))
        return self._loaded[order.name].seconds

    def time(self, order: Time) -> tuple[tuple[float, ...], ...]:
        """Follow the order. All have the same number of calls in a sample: the slowest of them fills it."""
        timed = {name: self._loaded[name].ready() for name in order.names}
        slowest = max(self._loaded[name].seconds for name in order.names)
        calls = max(1, min(self._setup.calls, ceil(SAMPLE / slowest)))
        samples: dict[int, list[float]] = {name: [] for name in order.names}
        for _ in range(order.rounds):
            for name in self._coin.sample(order.names, len(order.names)):
                samples[name].append(self._sample(timed[name], calls))
        for name, found in samples.items():
            self._loaded[name] = replace(self._loaded[name], seconds=min(self._loaded[name].seconds, *found))
        return tuple(tuple(samples[name]) for name in order.names)

    def drop(self, name: int) -> None:
        self._loaded.pop(name, None)

    def _wrong(self) -> str:
        beside = self._arena.overrun()
        if beside:
            return f"wrote beside the array {beside}"
        length = self._setup.length
        found = (difference(n, self._arena.values[n], self._expected[n], length) for n in self._arena.written)
        return next(filter(None, found), "")

    def _seconds(self, timed: Timed, first: float) -> float:
        """About the seconds of a call."""
        if first >= SAMPLE or self._setup.calls == 1:
            return first
        calls, seconds = 1, self._timed(timed, 1)
        while seconds < SAMPLE / 4 and calls < self._setup.calls:
            calls = min(self._setup.calls, 4 * calls)
            seconds = self._timed(timed, calls)
        return max(seconds / calls, INSTANT)

    def _timed(self, timed: Timed, calls: int) -> float:
        self._arena.restart()
        return timed(calls)

    def _sample(self, timed: Timed, calls: int) -> float:
        self._arena.restart()
        self.flush()
        return max(timed(calls) / calls, INSTANT)
