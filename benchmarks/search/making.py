"""Making tables: every point of every problem's small space is visited several times, in random orders.

The first visit to a point compiles it, later ones only time it again. Drift over hours shows as a difference between
rounds, and in the reference point, which is timed in turn with every other one. A table is written after every batch,
so a kill loses one batch, and the same call continues where it was stopped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from statistics import median
from time import monotonic

from benchmarks.case import Case
from benchmarks.search import store
from benchmarks.search.table import Entry, Origin, Pass, PointKey, Table, key
from codegen.errors import ToolchainError
from poly.autoschedule.spaces.space import Point, Space
from poly.errors import RecordError, SearchError
from poly.measure.live import LiveMeasurer
from poly.search.events import Ask, Measurer, Trial

SAMPLES = 4
"""The samples of a visit that a table keeps."""
BATCH = 8
"""The points measured between two writes."""
TOGETHER = 2
"""The visits made while the points of a problem remain compiled."""
HEAVY = 2e7
"""From this many flop per call, the points of a batch are timed alone, with one visit to the reference."""
RECENT = 9
"""The visits to the reference whose median is the machine's speed at a time, so that one burst does not matter."""
SLOW = 3e10
"""From this many flop per call, a visit has two samples: each takes a good part of a second."""

Open = Callable[[Space, int], AbstractContextManager[Measurer]]
"""Prepares to measure the points of a space, with the given number of samples for those timed alone."""


@dataclass(frozen=True)
class MeasuringPlan:
    """How much to measure: the visits to each point, and the seconds of one round of visits to a problem's points.

    `points` limits the points of a problem, which are drawn at random and include the model's choice (None: all).
    """

    passes: int = 3
    seconds: float = 300.0
    points: int | None = None


@dataclass(frozen=True)
class Maker:
    """Makes the tables of problems on one machine. `tell` receives lines of progress."""

    folder: Path
    origin: Origin
    threads: int
    spaces: Mapping[str, Space]
    open: Open
    tell: Callable[[str], None]

    def make(self, cases: Mapping[str, Case], plan: MeasuringPlan) -> None:
        """Visit the points of all problems, the lightest problem first, until each point has had its visits.

        A problem that cannot be measured at all is reported and left out. Raises RecordError if the folder has a table
        of another machine, compiler, engine or space.
        """
        order = sorted(cases, key=lambda name: cases[name].problem.flop)
        for first in range(0, plan.passes, TOGETHER):
            for name in order:
                try:
                    self._visits(name, cases[name], range(first, min(first + TOGETHER, plan.passes)), plan)
                except (SearchError, ToolchainError) as error:
                    self.tell(f"{name}: {error}")

    def _visits(self, name: str, case: Case, visits: range, plan: MeasuringPlan) -> None:
        table = self._table(name, case)
        space = self.spaces[name]
        if not any(wanted(space, table, visit, plan) for visit in visits):
            return
        with self.open(space, 2 if case.problem.flop >= SLOW else SAMPLES) as measurer:
            if not table.entries:
                table = replace(table, reference=_reference(space, measurer))
            for visit in visits:
                table = self._visit(table, case, measurer, visit, plan)

    def _visit(self, table: Table, case: Case, measurer: Measurer, visit: int, plan: MeasuringPlan) -> Table:
        """The table with one more visit to each point that lacks it, as far as time allows."""
        space = self.spaces[table.problem]
        points = wanted(space, table, visit, plan)
        start = monotonic()
        for done, trials, seconds in _batches(measurer, space, table, points, case.problem.flop >= HEAVY):
            table = replace(table, entries={**table.entries, **dict(_entries(space, table, trials, seconds))})
            store.write(table, self.folder)
            spent = monotonic() - start
            stopped = spent > plan.seconds and done < len(points)
            said = f"{table.problem}: visit {visit + 1}, {done} of {len(points)}, {spent:.0f} s"
            self.tell(said + ", out of time" * stopped)
            if stopped:
                break
        return table

    def _table(self, name: str, case: Case) -> Table:
        """The table so far, without the points that the space no longer has."""
        known = store.read(self.folder, name)
        space = self.spaces[name]
        keys = {key(space, point) for point in space}
        if known is None:
            return Table(name, case.dtype.name, self.threads, self.origin, key(space, space.choice))
        if known.reference not in keys:
            raise RecordError(
                f"the table of {name} in {self.folder} is of another space: the point that all were timed in turn with "
                "is no more. Remove the table, or measure into another folder (--data)."
            )
        if not alike(known, self.origin, self.threads):
            origin = f"{known.origin.machine.get('cpu')}, {known.threads} threads, {known.origin.compiler}"
            raise RecordError(
                f"the table of {name} in {self.folder} is from {origin}, poly {known.origin.engine}: "
                "measure into another folder (--data)."
            )
        return replace(known, entries={point: entry for point, entry in known.entries.items() if point in keys})


def alike(table: Table, origin: Origin, threads: int) -> bool:
    """Whether measurements made now are comparable with those in the table."""
    there, here = table.origin, origin
    same_tools = (there.compiler, there.engine) == (here.compiler, here.engine)
    return same_tools and there.machine.get("cpu") == here.machine.get("cpu") and table.threads == threads


def wanted(space: Space, table: Table, visit: int, plan: MeasuringPlan) -> list[Point]:
    """The points to visit now, in random order: those with exactly `visit` visits so far that have not failed.

    The order of the first round, which begins with the model's choice, is the same on every call, so that a limit on
    points selects the same ones each time.
    """
    points = [point for point in space if point != space.choice]
    Random(table.problem).shuffle(points)
    points = [space.choice, *points][: plan.points]
    if visit:
        Random(f"{table.problem} {visit}").shuffle(points)
    return [point for point in points if _visits(table, key(space, point)) == visit]


def _visits(table: Table, point: PointKey) -> int:
    """The number of visits to a point; -1 for one that failed, which is not tried again."""
    entry = table.entries.get(point)
    if entry is None:
        return 0
    return -1 if entry.failure else len(entry.passes)


def _reference(space: Space, measurer: Measurer) -> PointKey:
    """The first point in the model's order that can be measured."""
    for point in space.ranked()[:BATCH]:
        if any(trial.samples for trial in measurer.measure(Ask((point,)))):
            return key(space, point)
    raise SearchError(f"none of the model's first {BATCH} schedules of {space.nest.name} can be measured.")


def _batches(
    measurer: Measurer, space: Space, table: Table, points: list[Point], heavy: bool
) -> Iterator[tuple[int, list[Trial], float]]:
    """Trials batch by batch, with the number of points done, and the seconds per point.

    Each trial has the reference's samples as its rival's.
    """
    reference = next(point for point in space if key(space, point) == table.reference)
    levels: list[float] = []
    for first in range(0, len(points), BATCH):
        batch = tuple(points[first : first + BATCH])
        start = monotonic()
        trials = _alone(measurer, batch, reference, levels) if heavy else list(measurer.measure(Ask(batch, reference)))
        yield first + len(batch), trials, (monotonic() - start) / len(batch)


def _alone(measurer: Measurer, batch: tuple[Point, ...], reference: Point, levels: list[float]) -> list[Trial]:
    """Trials of the batch's points, each timed alone, with one visit to the reference, which is appended to `levels`.

    Their rival is the median of the latest levels.
    """
    beside, *trials = measurer.measure(Ask((reference, *(point for point in batch if point != reference))))
    if beside.samples:
        levels.append(median(beside.samples))
    rival = (median(levels[-RECENT:]),) if levels else ()
    found = {trial.point: replace(trial, rival=rival) for trial in (beside, *trials)}
    return [found[point] for point in batch]


def _entries(space: Space, table: Table, trials: list[Trial], seconds: float) -> Iterator[tuple[PointKey, Entry]]:
    for trial in trials:
        point = key(space, trial.point)
        known = table.entries.get(point, Entry(seconds=seconds))
        if trial.samples:
            visit = Pass(thinned(trial.samples), median(trial.rival or trial.samples))
            yield point, replace(known, passes=(*known.passes, visit))
        elif not known.passes:
            yield point, replace(known, failure=trial.failure.splitlines()[0][:80] if trial.failure else "no samples")


def thinned(samples: tuple[float, ...]) -> tuple[float, ...]:
    """At most SAMPLES samples, from both ends: neighbours, since the point and its rival take turns to begin."""
    if len(samples) <= SAMPLES:
        return samples
    return samples[: SAMPLES // 2] + samples[-(SAMPLES // 2) :]


@contextmanager
def live(space: Space, samples: int) -> Iterator[Measurer]:
    """Measurement on this machine."""
    with LiveMeasurer(space, samples=samples) as measurer:
        yield measurer
