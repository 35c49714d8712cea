"""Making tables: the points of every problem's small space are visited several times, in random orders.

The machine is calibrated anew for each problem, so that the tables of a machine also tell how calibrations differ. Some
points are compiled together and then visited in turn, round after round, since other load comes in bursts. Drift over
hours shows as a difference between rounds, and in the reference point, which is timed in turn with every other one. A
table is written after every round, so a kill loses one round, and the same call continues where it was stopped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from itertools import islice
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
FAVOURITES = 8
"""The model's first points, one of which is the reference."""
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
    """How much to measure: `passes` visits to each point, `together` of them before the next problem's turn.

    `batch` points are visited in turn while they are compiled; after `seconds` of one problem's turn it is the next
    one's. `points` limits those of a problem, which are drawn at random and include the model's choice (None: all).
    """

    passes: int
    together: int
    batch: int
    seconds: float
    points: int | None = None


WHOLE = MeasuringPlan(passes=4, together=2, batch=8, seconds=600.0)
QUICK = MeasuringPlan(passes=12, together=12, batch=36, seconds=100.0, points=36)
"""Less than half an hour for the problems of which points are sampled, however slow the machine is."""


@dataclass(frozen=True)
class Maker:
    """Makes the tables of problems on one machine. `tell` receives lines of progress.

    `calibrated` gives the origin of a new table from `origin`, the machine as it is, and `space` a problem's space on
    the machine of a table.
    """

    folder: Path
    origin: Origin
    threads: int
    calibrated: Callable[[Origin], Origin]
    space: Callable[[Origin, Case], Space]
    open: Open
    tell: Callable[[str], None]

    def make(self, cases: Mapping[str, Case], plan: MeasuringPlan) -> None:
        """Visit the points of all problems, the lightest problem first, until each point has had its visits.

        A problem that cannot be measured at all is reported and left out. Raises RecordError if the folder has a table
        of another machine, compiler, engine or space.
        """
        order = sorted(cases, key=lambda name: cases[name].problem.flop)
        for first in range(0, plan.passes, plan.together):
            for name in order:
                try:
                    self._visits(name, cases[name], min(first + plan.together, plan.passes), plan)
                except (SearchError, ToolchainError) as error:
                    self.tell(f"{name}: {error}")

    def _visits(self, name: str, case: Case, visits: int, plan: MeasuringPlan) -> None:
        """Visit the points of a problem that had fewer visits, as far as time allows."""
        table, space = self._begun(name, case)
        points = wanted(space, table, visits, plan)
        if not points:
            return
        start = monotonic()
        with self.open(space, 2 if case.problem.flop >= SLOW else SAMPLES) as measurer:
            if not table.entries:
                table = replace(table, reference=_reference(space, measurer))
            for first in range(0, len(points), plan.batch):
                batch = points[first : first + plan.batch]
                for number, done in enumerate(_rounds(measurer, space, table, batch, visits, case), 1):
                    table = replace(table, entries={**table.entries, **dict(_entries(space, table, done))})
                    store.write(table, self.folder)
                    spent = monotonic() - start
                    stopped = spent > plan.seconds
                    said = f"{name}: {first + len(batch)} of {len(points)} points, round {number}, {spent:.0f} s"
                    self.tell(said + ", out of time" * stopped)
                    if stopped:
                        return

    def _begun(self, name: str, case: Case) -> tuple[Table, Space]:
        """The table so far, without the points that the space no longer has, and the space."""
        known = store.read(self.folder, name)
        origin = known.origin if known else self.calibrated(self.origin)
        space = self.space(origin, case)
        if known is None:
            return Table(name, case.dtype.name, self.threads, origin, key(space, space.choice)), space
        keys = {key(space, point) for point in space}
        if known.reference not in keys:
            raise RecordError(
                f"the table of {name} in {self.folder} is of another space: the point that all were timed in turn with "
                "is no more. Remove the table, or measure into another folder (--data)."
            )
        if not alike(known, self.origin, self.threads):
            cpu = f"{origin.machine.get('cpu')}, {known.threads} threads"
            raise RecordError(
                f"the table of {name} in {self.folder} is from {cpu}, {origin.compiler}, {origin.arrays} arrays, "
                f"poly {origin.engine}: measure into another folder (--data)."
            )
        kept = {point: entry for point, entry in known.entries.items() if point in keys}
        return replace(known, entries=kept), space


def alike(table: Table, origin: Origin, threads: int) -> bool:
    """Whether measurements made now are comparable with those in the table."""
    there, here = table.origin, origin
    same_tools = (there.compiler, there.engine, there.arrays) == (here.compiler, here.engine, here.arrays)
    return same_tools and there.machine.get("cpu") == here.machine.get("cpu") and table.threads == threads


def wanted(space: Space, table: Table, visits: int, plan: MeasuringPlan) -> list[Point]:
    """The points with fewer visits so far that have not failed.

    Their order, which begins with the model's choice and is random otherwise, is the same on every call, so that a
    limit on points selects the same ones each time.
    """
    points = [point for point in space if point != space.choice]
    Random(table.problem).shuffle(points)
    points = [space.choice, *points][: plan.points]
    return [point for point in points if 0 <= _visits(table, key(space, point)) < visits]


def _visits(table: Table, point: PointKey) -> int:
    """The number of visits to a point; -1 for one that failed, which is not tried again."""
    entry = table.entries.get(point)
    if entry is None:
        return 0
    return -1 if entry.failure else len(entry.passes)


def _reference(space: Space, measurer: Measurer) -> PointKey:
    """The first point in the model's order that can be measured."""
    for point in space.ranked()[:FAVOURITES]:
        if any(trial.samples for trial in measurer.measure(Ask((point,)))):
            return key(space, point)
    raise SearchError(f"none of the model's first {FAVOURITES} schedules of {space.nest.name} can be measured.")


@dataclass(frozen=True)
class Round:
    """A visit to each of some points, and the seconds that it took for each."""

    trials: tuple[Trial, ...]
    seconds: float


def _rounds(
    measurer: Measurer, space: Space, table: Table, batch: Sequence[Point], visits: int, case: Case
) -> Iterator[Round]:
    """Rounds of visits to the points that lack them, in random orders; each is measured when it is asked for.

    Each trial has the reference's samples as its rival's.
    """
    known = {point: _visits(table, key(space, point)) for point in batch}
    orders = [[point for point in batch if known[point] <= number] for number in range(visits)]
    for number, order in enumerate(orders):
        Random(f"{table.problem} {number}").shuffle(order)
    orders = [order for order in orders if order]
    reference = next(point for point in space if key(space, point) == table.reference)
    heavy = case.problem.flop >= HEAVY
    asked = [point for order in orders for point in ((reference, *order) if heavy else order)]
    trials = iter(measurer.measure(Ask(tuple(asked), None if heavy else reference)))
    levels: list[float] = []
    for order in orders:
        start = monotonic()
        found = _beside(trials, len(order), levels) if heavy else tuple(islice(trials, len(order)))
        yield Round(found, (monotonic() - start) / len(order))


def _beside(trials: Iterator[Trial], count: int, levels: list[float]) -> tuple[Trial, ...]:
    """The next trials, after one of the reference, which is appended to `levels`; the latest levels are their rival."""
    beside, *found = islice(trials, count + 1)
    if beside.samples:
        levels.append(median(beside.samples))
    rival = (median(levels[-RECENT:]),) if levels else ()
    return tuple(replace(trial, rival=rival) for trial in found)


def _entries(space: Space, table: Table, done: Round) -> Iterator[tuple[PointKey, Entry]]:
    for trial in done.trials:
        point = key(space, trial.point)
        known = table.entries.get(point, Entry(seconds=done.seconds))
        if trial.samples:
            visit = Pass(thinned(trial.samples), median(trial.rival or trial.samples))
            yield point, Entry((*known.passes, visit), known.seconds)
        elif not known.passes:
            yield point, replace(known, failure=trial.failure.splitlines()[0][:80] if trial.failure else "no samples")


def thinned(samples: tuple[float, ...]) -> tuple[float, ...]:
    """At most SAMPLES samples, from both ends: neighbours, since the point and its rival take turns to begin."""
    if len(samples) <= SAMPLES:
        return samples
    return samples[: SAMPLES // 2] + samples[-(SAMPLES // 2) :]


@dataclass(frozen=True)
class OneByOne:
    """Measures on this machine, each point when its trial is asked for."""

    measurer: LiveMeasurer

    def measure(self, ask: Ask) -> Iterator[Trial]:
        return self.measurer.trials(ask)


@contextmanager
def live(space: Space, samples: int) -> Iterator[Measurer]:
    """Measurement on this machine."""
    with LiveMeasurer(space, samples=samples) as measurer:
        yield OneByOne(measurer)
