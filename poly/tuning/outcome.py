"""The result of a tuning: the best schedule, how it was found, and the kernel compiled from it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from poly.autoschedule.spaces.space import Point, Space
from poly.display import Block, Cells, Displayed, time_text
from poly.kernel import Kernel
from poly.opencl_kernel import OpenCLKernel
from poly.schedules.schedule import Schedule
from poly.timing.yardstick import Yardstick, speed_text


@dataclass(frozen=True)
class Failure:
    """A kind of failure: the number of trials that ended this way, and the message of the first."""

    kind: str
    count: int
    example: str

    def __str__(self) -> str:
        return f"{self.kind} ({self.count})"


def counted(reasons: Iterable[str]) -> tuple[Failure, ...]:
    """The failures by kind, most frequent first."""
    sorts: dict[str, list[str]] = {}
    for reason in reasons:
        sorts.setdefault(kind(reason), []).append(reason)
    found = [Failure(name, len(alike), alike[0]) for name, alike in sorts.items()]
    return tuple(sorted(found, key=lambda failure: -failure.count))


def kind(reason: str) -> str:
    """The first line without details: `wrong result: C[0] is 1, not 2` is a `wrong result`."""
    return reason.strip().partition("\n")[0].partition(":")[0] or "no reason given"


def in_words(failures: tuple[Failure, ...]) -> str:
    """`crashed (2), wrong result (1)`."""
    return ", ".join(map(str, failures))


def point_words(space: Space, point: Point) -> str:
    """A readable description: `order rows inside, left in place; rows 6, depth 256, columns uncut`."""
    sizes = ", ".join(f"{knob} {'uncut' if size is None else size}" for knob, size in space.values(point).items())
    return "; ".join(filter(None, (str(space.structures[point.structure]), sizes)))


@dataclass(frozen=True, repr=False)
class Tuning(Displayed):
    """A completed tuning.

    `best` is the best point of `space`, `schedule` its schedule and `seconds` its time per call; `choice_seconds` is
    the time of the model's choice on the same scale, None if it was not measured. Of the `trials`, `reused` came from
    the records. `failures` counts failed trials by kind. `stopped` says why the search ended, `interrupted` whether the
    user stopped it, and `elapsed` how many seconds it took. `store` is the file with the result, None if it was not
    stored.
    """

    title: str
    space: Space
    best: Point
    schedule: Schedule
    seconds: float
    choice_seconds: float | None
    trials: int
    reused: int
    failures: tuple[Failure, ...]
    stopped: str
    interrupted: bool
    elapsed: float
    yardstick: Yardstick | None
    store: Path | None

    @property
    def ratio(self) -> float | None:
        """The speedup of the best point over the model's choice."""
        return None if self.choice_seconds is None else self.choice_seconds / self.seconds

    def __str__(self) -> str:
        """The title and the rows, a line each."""
        return "\n".join((self.title, *(f"  {label:15} {text}" for label, text in self.rows())))

    def _title(self) -> str:
        return f"tuning of {self.title}: {self.trials} trials"

    def _parts(self) -> Iterable[Block]:
        yield Cells(self.rows())

    def rows(self) -> list[tuple[str, str]]:
        """What `poly tune` prints below the title: labels and texts."""
        reused = f", {self.reused} of them from the records" if self.reused else ""
        return [
            ("model's choice", self._line(self.space.choice, self.choice_seconds)),
            ("best found", self._line(self.best, self.seconds)),
            ("ratio", "-" if self.ratio is None else f"{self.ratio:.3f}"),
            ("trials", f"{self.trials}{reused}"),
            ("failed", in_words(self.failures) or "none"),
            *(("", failure.example.strip()) for failure in self.failures),
            ("time", f"{self.elapsed:.1f} s"),
            ("stopped", self.stopped),
            ("kept in", str(self.store or "nothing: the records were left alone")),
            ("schedule", repr(self.schedule)),
        ]

    def interruption(self) -> str:
        """The warning after an interrupted search."""
        kept = f" It is kept in {self.store}; the same call again goes on." if self.store else ""
        return f"tuning was interrupted: this is the best of {self.trials} trials.{kept}"

    def facts(self) -> dict[str, Any]:
        """The tuning as values for JSON; rates are in the unit that `unit` names."""
        unit, device = self.yardstick.unit if self.yardstick else None, self.space.device

        def point(at: Point, seconds: float | None) -> dict[str, Any]:
            structure = self.space.structures[at.structure]
            rate = self.yardstick.rate(seconds) if self.yardstick and seconds else None
            return {
                "seconds": seconds,
                "rate": rate,
                "traits": dict(structure.traits),
                "values": self.space.values(at),
            }

        return {
            "nest": self.space.nest.name,
            "sizes": dict(self.space.nest.fixed),
            "at": dict(self.space.sizes),
            "target": self.space.isa.name,
            "device": device and {name: getattr(device, name) for name in ("name", "platform", "version", "driver")},
            "threads": self.space.threads,
            "unit": unit,
            "peak": self.yardstick.peak if self.yardstick else None,
            "choice": point(self.space.choice, self.choice_seconds),
            "best": point(self.best, self.seconds),
            "ratio": self.ratio,
            "trials": self.trials,
            "reused": self.reused,
            "failures": [asdict(failure) for failure in self.failures],
            "elapsed": self.elapsed,
            "stopped": self.stopped,
            "interrupted": self.interrupted,
            "store": str(self.store) if self.store else None,
            "schedule": repr(self.schedule),
            "steps": json.loads(self.schedule.to_json()),
        }

    def _line(self, point: Point, seconds: float | None) -> str:
        speed = "not measured" if seconds is None else f"{speed_text(seconds, self.yardstick)}, {time_text(seconds)}"
        return f"{speed}   ({point_words(self.space, point)})"


@dataclass(frozen=True, repr=False)
class TunedKernel(Kernel):
    """A tuned kernel; `tuning` has the details: trials, failures, why the search ended, seconds."""

    tuning: Tuning = field(kw_only=True)


@dataclass(frozen=True, repr=False)
class TunedOpenCLKernel(OpenCLKernel):
    """A tuned kernel for an OpenCL device."""

    tuning: Tuning = field(kw_only=True)


def with_tuning(kernel: Kernel | OpenCLKernel, tuning: Tuning) -> TunedKernel | TunedOpenCLKernel:
    """The kernel with the details of its tuning."""
    kind = TunedKernel if isinstance(kernel, Kernel) else TunedOpenCLKernel
    return kind(**{f.name: getattr(kernel, f.name) for f in fields(kernel)}, tuning=tuning)
