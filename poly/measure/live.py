"""Compile, check and time the candidates of a search on this machine."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from types import TracebackType

from codegen.system.cache import DAY, private_directory, unusable
from poly.autoschedule.spaces.space import Point, Space
from poly.measure.builder import Builder, Built, DeviceBuilder
from poly.measure.station import Station
from poly.measure.timer import RIVAL, Timing
from poly.measure.trusted import recipe
from poly.search.events import Ask, Trial

BATCH = 32
"""The number of candidates compiled before the first of them is timed."""


@dataclass(frozen=True)
class Effort:
    """The cost of measuring so far: seconds of preparing, compiling and timing, and the number of trials."""

    preparing: float = 0.0
    compiling: float = 0.0
    timing: float = 0.0
    trials: int = 0


class LiveMeasurer:
    """Measures points of a space: compiled in parallel, then timed one at a time in a child process or on its device.

        with LiveMeasurer(space) as measurer:
            trials = measurer.measure(Ask(points, incumbent))

    Each candidate runs once on known data and is compared with a trusted result before it is timed. A fault of a
    candidate (it does not compile, crashes, hangs, runs out of memory or computes a wrong result) becomes its trial's
    `failure`. With `cold`, a buffer larger than the caches is streamed before each call. `samples` is the number of
    samples per point without an incumbent; with one, it depends on how clear the comparison is. `patience` is the
    number of seconds by which a call may exceed the expected time.

    For an OpenCL device, its compiler runs in the child process too, and counts as timing.
    """

    def __init__(
        self, space: Space, *, cold: bool = False, seed: int = 0, samples: int = 5, patience: float = 5.0
    ) -> None:
        self.space = space
        self.cold = cold
        self.effort = Effort()
        self._seed = seed
        self._samples = samples
        self._temporary = own_workplace()
        self._folder = Path(self._temporary.name)
        self._builder = (Builder if space.device is None else DeviceBuilder)(space, self._folder)
        self._station = Station(self._folder, patience)
        self._built: dict[Point, Built] = {}

    def __enter__(self) -> LiveMeasurer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the child process, and remove compiled files."""
        self._station.close()
        self._builder.close()
        self._temporary.cleanup()

    def pause(self) -> None:
        """End the child process, whose arrays take memory; the next measurement starts another."""
        self._station.pause()

    def measure(self, ask: Ask) -> list[Trial]:
        """A trial for each point, in order.

        Raises SearchError if the nest itself cannot be measured.
        """
        return list(self.trials(ask))

    def trials(self, ask: Ask) -> Iterator[Trial]:
        """The trials one by one, each as soon as it is timed; the caller may stop at any point."""
        self.prepare()
        self._forget(ask.incumbent)
        for start in range(0, len(ask.points), BATCH):
            yield from self._batch(ask.points[start : start + BATCH], ask.incumbent)

    def prepare(self) -> None:
        """Compute the trusted result unless it exists; the first `measure` also does so.

        Raises SearchError if the nest itself cannot be measured.
        """
        if not self._station.prepared:
            began = perf_counter()
            self._station.start()
            self._station.prepare(recipe(self.space, self._seed, self.cold))
            self._spend(preparing=perf_counter() - began)

    def _batch(self, points: Sequence[Point], incumbent: Point | None) -> Iterator[Trial]:
        """The trials of a few points: all are compiled, then each is timed."""
        began = perf_counter()
        rivals = () if incumbent is None else (incumbent,)
        libraries = self._libraries((*points, *rivals))
        rival = libraries.pop() if rivals else None
        self._spend(compiling=perf_counter() - began)
        for point, library in zip(points, libraries, strict=True):
            began = perf_counter()
            timing = self._timing(point, library, rival)
            self._spend(timing=perf_counter() - began, trials=1)
            yield Trial(point, timing.samples, timing.rival, timing.failure)

    def _timing(self, point: Point, library: Built, rival: Built | None) -> Timing:
        if library.path is None:
            return Timing(failure=library.failure)
        if rival is not None and rival.path is None:
            return Timing(failure=RIVAL.format(rival.failure))
        against = rival.path if rival is not None else None
        return self._station.timing(library.path, against, self.space.predict(point).seconds, self._samples)

    def _libraries(self, points: Sequence[Point]) -> list[Built]:
        """The points' libraries; existing ones are not compiled again."""
        missing = [point for point in dict.fromkeys(points) if point not in self._built]
        self._built |= zip(missing, self._builder.build(missing), strict=True)
        return [self._built[point] for point in points]

    def _forget(self, incumbent: Point | None) -> None:
        """Remove the libraries of earlier points, to which a search rarely returns."""
        kept = {incumbent: self._built[incumbent]} if incumbent in self._built else {}
        paths = {built.path for built in kept.values()}
        for built in self._built.values():
            if built.path is not None and built.path not in paths:
                built.path.unlink(missing_ok=True)
                built.path.with_suffix(".c").unlink(missing_ok=True)
        self._built = kept

    def _spend(self, preparing: float = 0.0, compiling: float = 0.0, timing: float = 0.0, trials: int = 0) -> None:
        spent = self.effort
        self.effort = Effort(
            spent.preparing + preparing, spent.compiling + compiling, spent.timing + timing, spent.trials + trials
        )


def workplace() -> Path:
    """The parent of the folders of searches; what a killed search left there more than a day ago is removed.

    It is next to the cached kernels, since some systems do not allow execution from /tmp.

    Raises ToolchainError if it cannot be created.
    """
    place = private_directory("trials")
    with suppress(OSError):
        for left in place.iterdir():
            if time.time() - left.stat().st_mtime > DAY:
                shutil.rmtree(left, ignore_errors=True)
    return place


def own_workplace() -> TemporaryDirectory[str]:
    """A new folder for one search in the `workplace`. Raises ToolchainError if it cannot be created."""
    try:
        return TemporaryDirectory(dir=workplace(), ignore_cleanup_errors=True)
    except OSError as error:
        raise unusable(error) from error
