"""A tuning record: the best schedule that a search found, and how it was found. And the trials of a search."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any

from poly.records.key import Key, Sizes, checked_integer, checked_sizes, checked_text
from poly.records.place import read_point

SHORTEST = 1e-12
"""Seconds: what is less is no time of a call."""
MOST = 1e12
"""More seconds, or GFLOP/s, than there can be."""
MOST_STEPS, LONGEST = 100, 1 << 16
"""Steps of a schedule, and characters of their text: several times what the longest of a search has."""


def now() -> datetime:
    """The time, UTC, in whole seconds."""
    return datetime.now(UTC).replace(microsecond=0)


@dataclass(frozen=True)
class Record:
    """The best schedule known for a key.

    `schedule` is `Schedule.to_json`'s text, `point` that of `poly.records.place.point_text`. `seconds` is the median of
    a call's times, and `spread` half the width of the middle half of them, in seconds. `at` are the sizes of the
    measurement where the nest leaves them open. `trials` counts the points that were measured, `tuning_seconds` is the
    time that took, `finished` says whether the search came to its end. `id` is the number in the store.
    """

    key: Key
    schedule: str
    point: str
    seconds: float
    spread: float
    trials: int
    strategy: str
    finished: bool
    tuning_seconds: float
    gflops: float | None = None
    at: Sizes = ()
    when: datetime = field(default_factory=now)
    id: int | None = field(default=None, compare=False)

    def __str__(self) -> str:
        """One line for people: which nest, when it was tuned, and what that took."""
        sizes = " ".join(f"{name}={value}" for name, value in self.key.sizes) or "any sizes"
        number = "the record" if self.id is None else f"record {self.id}"
        count = f"{self.trials} trial{'s' if self.trials != 1 else ''}"
        took = f"{count} in {self.tuning_seconds:.1f} s{'' if self.finished else ', unfinished'}"
        return f"{number} of {self.key.name}, {sizes} ({self.when:%Y-%m-%d %H:%M} UTC, {took})"

    def beats(self, other: Record) -> bool:
        """Whether this record should take the other's place under the same key.

        The same schedule measured later does, and another one that is faster. Times at other sizes don't compare: there
        the later one does.
        """
        if self.schedule == other.schedule or self.at != other.at:
            return self.when >= other.when
        return self.seconds < other.seconds

    def facts(self) -> dict[str, Any]:
        """The record as JSON's values."""
        facts = {**asdict(self), "key": self.key.facts(), "at": dict(self.at), "when": self.when.isoformat()}
        del facts["id"]
        return facts

    @staticmethod
    def of(facts: Mapping[str, Any]) -> Record:
        """The record that `facts` tells of. Raises one of MALFORMED where they are no record's."""
        gflops = facts["gflops"]
        read_point(facts["point"])
        return Record(
            key=Key.of(facts["key"]),
            schedule=_checked_steps(facts["schedule"]),
            point=checked_text(facts["point"]),
            seconds=checked_seconds(facts["seconds"]),
            spread=_checked_amount(facts["spread"]),
            trials=checked_integer(facts["trials"]),
            strategy=checked_text(facts["strategy"]),
            finished=bool(facts["finished"]),
            tuning_seconds=_checked_amount(facts["tuning_seconds"]),
            gflops=None if gflops is None else _checked_amount(gflops),
            at=checked_sizes(facts["at"]),
            when=checked_time(facts["when"]),
        )


@dataclass(frozen=True)
class StoredTrial:
    """One measured point of a search, as texts that outlive the space.

    `point` and `incumbent` (empty where it had none) are `point_text`'s; `samples` and `rival` are seconds a call.
    """

    point: str
    schedule: str
    samples: tuple[float, ...]
    incumbent: str = ""
    rival: tuple[float, ...] = ()
    failure: str = ""
    strategy: str = ""
    when: datetime = field(default_factory=now)

    @staticmethod
    def of(facts: Mapping[str, Any]) -> StoredTrial:
        """The trial that `facts` tells of, times as lists. Raises one of MALFORMED where they are no trial's."""
        samples, rival = (tuple(map(checked_seconds, facts[name])) for name in ("samples", "rival"))
        if rival and len(rival) != len(samples):
            raise ValueError(f"{len(samples)} samples do not pair with {len(rival)} of the rival")
        for point in filter(None, (facts["point"], facts["incumbent"])):
            read_point(point)
        return StoredTrial(
            point=checked_text(facts["point"]),
            schedule=checked_text(facts["schedule"]),
            samples=samples,
            incumbent=checked_text(facts["incumbent"]),
            rival=rival,
            failure=checked_text(facts["failure"]),
            strategy=checked_text(facts["strategy"]),
            when=checked_time(facts["when"]),
        )


def checked_seconds(value: object) -> float:
    """A call's time. Raises one of MALFORMED where no call takes that long."""
    seconds = _checked_amount(value)
    if seconds < SHORTEST:
        raise ValueError(f"{value!r} seconds is no time")
    return seconds


def checked_time(text: str) -> datetime:
    """A moment, UTC. Raises one of MALFORMED."""
    when = datetime.fromisoformat(text)
    return when.astimezone(UTC) if when.tzinfo is not None else when.replace(tzinfo=UTC)


def _checked_amount(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < MOST:
        raise ValueError(f"{value!r} is no amount")
    return float(value)


def _checked_steps(text: str) -> str:
    """A schedule's text. What is longer than any that a search has made is not worth the time it would take."""
    if len(text) > LONGEST:
        raise ValueError(f"the schedule has {len(text)} characters")
    steps = json.loads(checked_text(text))
    if not isinstance(steps, list) or len(steps) > MOST_STEPS:
        raise ValueError(f"the schedule is no list of at most {MOST_STEPS} steps")
    return text
