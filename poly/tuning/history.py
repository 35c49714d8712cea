"""The records of a problem and of similar ones: what they tell a new search, and how its trials and result are stored.

Schedules found for other sizes become points of a new size's space. Transfer-Tuning (Gibson and Cano, PACT 2022) reuses
whole schedules between kernels of one class; here the class is the nest itself, so structures are matched by their
traits, and tile sizes are moved to the nearest values of the new grid.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from random import Random
from statistics import median, quantiles

from microkernels.cached import cached_property
from poly.analysis.work import Work
from poly.autoschedule.spaces.space import Point, Space, Value
from poly.records import Key, Record, Store, StoredTrial, find_point, point_text, read_point
from poly.search.events import Ask, Search, Strategy, Trial
from poly.search.journal import Journal

NEIGHBOURS = 4
"""The number of other sizes whose best schedules are considered, and the most points measured because of them."""

Traits = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class History:
    """The records of one problem. Without a store, nothing is known and nothing is stored."""

    store: Store | None
    key: Key
    space: Space
    strategy: str
    work: Work | None

    def known(self) -> list[Trial]:
        """The earlier trials, in order, of points that the space still has.

        If a nest with open sizes was measured at other sizes, its trials are dropped, as they do not apply to these.
        """
        if self.store is None:
            return []
        if self.record is not None and self.record.at != self.space.sizes:
            self.store.drop_trials(self.key)
        return list(self._sound(self.store.trials(self.key)))

    def _sound(self, stored: list[StoredTrial]) -> Iterator[Trial]:
        for trial in stored:
            point = find_point(self.space, trial.point)
            against = find_point(self.space, trial.incumbent) if trial.incumbent else None
            if point is not None:
                rival = trial.rival if against is not None else ()
                yield Trial(point, trial.samples, rival, trial.failure, against)

    @cached_property
    def record(self) -> Record | None:
        """The record as it was on the first access."""
        return self.store.best(self.key) if self.store is not None else None

    @property
    def best(self) -> Point | None:
        """The record's point, if the space has it."""
        return find_point(self.space, self.record.point) if self.record is not None else None

    def remembered(self, known: Journal) -> Point | None:
        """The best of the known trials: the record's point if it is among them, else the one of least median."""
        return self.best if self.best in known.samples else min(known.samples, key=known.seconds, default=None)

    def seeds(self) -> tuple[Point, ...]:
        """The points to measure first: the best known one, and those that were best for the nearest other sizes."""
        if self.store is None:
            return ()
        own = () if self.best is None else (self.best,)
        near = self.store.neighbours(self.key, NEIGHBOURS, self.space.sizes)
        return (*own, *transferred(self.space, (read_point(record.point) for record in near), NEIGHBOURS))

    def keep(self, trial: Trial) -> None:
        """Store a trial, which is safe once this returns."""
        if self.store is None:
            return
        against = point_text(self.space, trial.against) if trial.against is not None else ""
        stored = StoredTrial(
            point_text(self.space, trial.point),
            schedule="",
            samples=trial.samples,
            incumbent=against,
            rival=trial.rival,
            failure=trial.failure,
            strategy=self.strategy,
        )
        self.store.add_trials(self.key, [stored])

    def keep_best(self, point: Point, journal: Journal, elapsed: float, finished: bool) -> None:
        """Store the best of the measured points as the record, for poly.compile and for other sizes.

        It replaces a record whose point was measured as well; otherwise the faster of the two stays.
        """
        if self.store is None:
            return
        rival = self.store.best(self.key)
        judged = rival is not None and find_point(self.space, rival.point) in journal.samples
        seconds = journal.seconds(point)
        record = Record(
            key=self.key,
            schedule=self.space.schedule(point).to_json(),
            point=point_text(self.space, point),
            seconds=seconds,
            spread=_spread(journal.samples[point]),
            trials=len(journal.trials),
            strategy=self.strategy,
            finished=finished,
            tuning_seconds=elapsed + (self.record.tuning_seconds if self.record else 0.0),
            gflops=self.work.flop / seconds / 1e9 if self.work and self.work.flop else None,
            at=self.space.sizes,
        )
        self.store.save(record, replace=judged)


def _spread(samples: tuple[float, ...]) -> float:
    """Half the interquartile range."""
    if len(samples) < 2:
        return 0.0
    low, _, high = quantiles(samples, n=4, method="inclusive")
    return (high - low) / 2


def placed(space: Space, traits: Traits, values: Mapping[str, Value]) -> Point | None:
    """The point of a space that is most similar to a schedule found elsewhere.

    Its structure is the first one that shares the most traits, its knobs are the nearest. None if that structure has no
    allowed point.
    """
    known = set(traits)
    numbers = range(len(space.structures))
    alike = max(numbers, key=lambda n: len(known.intersection(space.structures[n].traits)))
    return space.nearest(alike, values)


def transferred(space: Space, found: Iterable[tuple[Traits, Mapping[str, Value]]], most: int) -> tuple[Point, ...]:
    """Up to `most` distinct points for schedules found elsewhere, in their order, without the model's choice."""
    points: dict[Point, None] = {}
    for traits, values in found:
        point = placed(space, traits, values)
        if point is not None and point != space.choice:
            points[point] = None
    return tuple(points)[:most]


def seeded(strategy: Strategy, seeds: tuple[Point, ...]) -> Strategy:
    """The strategy that first measures the start and `seeds`, and then begins at the best of them."""

    def search(space: Space, start: Point, random: Random) -> Search:
        trials = yield Ask((start, *(seed for seed in seeds if seed != start)))
        yield from strategy(space, _best(trials, start), random)

    return search


def _best(trials: list[Trial], otherwise: Point) -> Point:
    """The point with the least median; `otherwise` if all failed."""
    sound = [trial for trial in trials if trial.samples]
    return min(sound, key=lambda trial: median(trial.samples)).point if sound else otherwise
