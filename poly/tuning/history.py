"""What the records know of a problem and of others like it, and how trials and the best point get there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from statistics import median, quantiles

from poly.records import Key, Record, Store, StoredTrial, find_point, point_text, read_point
from poly.search.trial import Trial
from poly.spaces.space import Point, Space
from poly.tuning.transfer import transferred
from poly.tuning.work import Work

NEIGHBOURS = 4
"""Other sizes whose best schedules are looked at, and the most points that are measured for their sake."""


@dataclass(frozen=True)
class History:
    """The records of one problem. Without a store nothing is known, and nothing is kept."""

    store: Store | None
    key: Key
    space: Space
    strategy: str
    work: Work | None

    def known(self) -> list[Trial]:
        """The trials from before, in their order, of the points that the space still has.

        Those of an open nest that was measured at other sizes are forgotten: they say nothing of these.
        """
        if self.store is None:
            return []
        if self.record is not None and self.record.at != self.space.sizes:
            self.store.drop_trials(self.key)
        return list(self._sound(self.store.trials(self.key)))

    def _sound(self, stored: list[StoredTrial]) -> Iterator[Trial]:
        for trial in stored:
            point = find_point(self.space, trial.point)
            against = find_point(self.space, trial.champion) if trial.champion else None
            if point is not None:
                rival = trial.rival if against is not None else ()
                yield Trial(point, trial.samples, rival, trial.failure, against)

    @cached_property
    def record(self) -> Record | None:
        """The record as it was at first."""
        return self.store.best(self.key) if self.store is not None else None

    @property
    def best(self) -> Point | None:
        """The record's point, if the space has it."""
        return find_point(self.space, self.record.point) if self.record is not None else None

    def seeds(self) -> tuple[Point, ...]:
        """Points to measure first: the best one known, and those that were best for the nearest other sizes."""
        if self.store is None:
            return ()
        own = () if self.best is None else (self.best,)
        near = self.store.neighbours(self.key, NEIGHBOURS, self.space.sizes)
        return (*own, *transferred(self.space, (read_point(record.point) for record in near), NEIGHBOURS))

    def keep(self, trial: Trial, champion: Point | None) -> None:
        """Store a trial; it is safe when this returns."""
        if self.store is None:
            return
        against = point_text(self.space, champion) if champion is not None and trial.rival else ""
        stored = StoredTrial(
            point_text(self.space, trial.point),
            schedule="",
            samples=trial.samples,
            champion=against,
            rival=trial.rival,
            failure=trial.failure,
            strategy=self.strategy,
        )
        self.store.add_trials(self.key, [stored])

    def keep_best(
        self, point: Point, samples: Mapping[Point, tuple[float, ...]], trials: int, elapsed: float, finished: bool
    ) -> None:
        """Store the best of the points that have samples, for poly.compile and for other sizes.

        It replaces a record whose point was judged too; else the faster one stays.
        """
        if self.store is None:
            return
        rival = self.store.best(self.key)
        judged = rival is not None and find_point(self.space, rival.point) in samples
        seconds = median(samples[point])
        record = Record(
            key=self.key,
            schedule=self.space.schedule(point).to_json(),
            point=point_text(self.space, point),
            seconds=seconds,
            spread=_spread(samples[point]),
            trials=trials,
            strategy=self.strategy,
            finished=finished,
            tuning_seconds=elapsed + (self.record.tuning_seconds if self.record else 0.0),
            gflops=self.work.flop / seconds / 1e9 if self.work and self.work.flop else None,
            at=self.space.sizes,
        )
        self.store.save(record, replace=judged)


def _spread(samples: tuple[float, ...]) -> float:
    """Half the width of the middle half."""
    if len(samples) < 2:
        return 0.0
    low, _, high = quantiles(samples, n=4, method="inclusive")
    return (high - low) / 2
