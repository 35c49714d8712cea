"""Tuning records, each with the best schedule of a search and how it was found, and the stored trials of a search."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any

from poly.display import Displayed
from poly.records.key import Key, Sizes, checked_integer, checked_sizes, checked_text
from poly.records.place import read_point

SHORTEST = 1e-12
"""The shortest credible time of a call, in seconds."""
MOST = 1e12
"""An upper bound for seconds and GFLOP/s."""
MOST_STEPS, LONGEST = 100, 1 << 16
"""The most steps of a schedule, and characters of its text: several times those of the longest from a search."""


def now() -> datetime:
    """The current UTC time in whole seconds."""
    return datetime.now(UTC).replace(microsecond=0)


@dataclass(frozen=True, repr=False)
class Record(Displayed):
    """The best known schedule for a key.

    `schedule` is the text of `Schedule.to_json`, `point` that of `poly.records.place.point_text`. `seconds` is the
    median time of a call, and `spread` half the interquartile range, in seconds. `at` gives the sizes used for the
    measurement if the nest leaves them open. `trials` is the number of measured points, `tuning_seconds` the time they
    took, `finished` whether the search completed. `id` is the number in the store.
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
        """One line for people: the nest, when it was tuned, and at what cost."""
        sizes = " ".join(f"{name}={value}" for name, value in self.key.sizes) or "any sizes"
        number = "the record" if self.id is None else f"record {self.id}"
        count = f"{self.trials} trial{'s' if self.trials != 1 else ''}"
        took = f"{count} in {self.tuning_seconds:.1f} s{'' if self.finished else ', unfinished'}"
        return f"{number} of {self.key.name}, {sizes} ({self.when:%Y-%m-%d %H:%M} UTC, {took})"

    def _title(self) -> str:
        return str(self)

    def beats(self, other: Record) -> bool:
        """Whether this record should replace another one with the same key.

        It does if it has the same schedule and is newer, or a faster schedule. Times at different sizes are not
        comparable; then the newer record wins.
        """
        if self.schedule == other.schedule or self.at != other.at:
            return self.when >= other.when
        return self.seconds < other.seconds

    def facts(self) -> dict[str, Any]:
        """The record as values for JSON."""
        facts = {**asdict(self), "key": self.key.facts(), "at": dict(self.at), "when": self.when.isoformat()}
        del facts["id"]
        return facts

    @staticmethod
    def of(facts: Mapping[str, Any]) -> Record:
        """The record described by `facts`. Raises one of MALFORMED if they do not describe one."""
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
    """One measured point of a search, as text that does not depend on the space.

    `point` and `incumbent` (empty if there was none) are texts of `point_text`; `samples` and `rival` are seconds per
    call.
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
        """The trial described by `facts`, with times as lists. Raises one of MALFORMED if they do not describe one."""
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
    """The time of a call in seconds. Raises one of MALFORMED if it is not credible."""
    seconds = _checked_amount(value)
    if seconds < SHORTEST:
        raise ValueError(f"{value!r} seconds is not a possible time")
    return seconds


def checked_time(text: str) -> datetime:
    """A UTC time. Raises one of MALFORMED."""
    when = datetime.fromisoformat(text)
    return when.astimezone(UTC) if when.tzinfo is not None else when.replace(tzinfo=UTC)


def _checked_amount(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < MOST:
        raise ValueError(f"{value!r} is not an amount")
    return float(value)


def _checked_steps(text: str) -> str:
    """A schedule's text. One much longer than any from a search is refused, to save the time of reading it."""
    if len(text) > LONGEST:
        raise ValueError(f"the schedule has {len(text)} characters")
    steps = json.loads(checked_text(text))
    if not isinstance(steps, list) or len(steps) > MOST_STEPS:
        raise ValueError(f"the schedule is not a list of at most {MOST_STEPS} steps")
    return text
