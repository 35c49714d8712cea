"""A tuning record: the best schedule that a search found, and how it was found. And the trials of a search."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any

from poly.records.key import Key, Sizes, ordered


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
        """The record that `facts` tells of. Raises KeyError, TypeError or ValueError where they are no record's."""
        gflops, point = facts["gflops"], json.loads(facts["point"])
        if not isinstance(json.loads(facts["schedule"]), list):
            raise ValueError("the schedule is no list of steps")
        if not (isinstance(point["traits"], dict) and isinstance(point["values"], dict)):
            raise ValueError("the point has no traits and values")
        if not 0 < float(facts["seconds"]) < math.inf:
            raise ValueError(f"{facts['seconds']} seconds is no time")
        return Record(
            key=Key.of(facts["key"]),
            schedule=facts["schedule"],
            point=facts["point"],
            seconds=float(facts["seconds"]),
            spread=float(facts["spread"]),
            trials=int(facts["trials"]),
            strategy=str(facts["strategy"]),
            finished=bool(facts["finished"]),
            tuning_seconds=float(facts["tuning_seconds"]),
            gflops=None if gflops is None else float(gflops),
            at=ordered(facts["at"]),
            when=datetime.fromisoformat(facts["when"]),
        )


@dataclass(frozen=True)
class StoredTrial:
    """One measured point of a search, as texts that outlive the space.

    `point` and `champion` (empty where it had none) are `point_text`'s; `samples` and `rival` are seconds a call.
    """

    point: str
    schedule: str
    samples: tuple[float, ...]
    champion: str = ""
    rival: tuple[float, ...] = ()
    failure: str = ""
    strategy: str = ""
    when: datetime = field(default_factory=now)
