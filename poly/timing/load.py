"""What else the machine did while something was measured: CPU time of other processes, and of other virtual machines.

The kernel counts the time of each CPU by what it was spent on, and that of each process. What this process and those
that it started have used is ours; the rest of the busy time is others'.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from time import monotonic
from typing import Any

BUSY = 0.1
"""CPUs in use by others from which a machine counts as busy: an idle system's own services use a hundredth."""
SHORTEST = 0.1
"""Seconds below which CPU time, which is counted in hundredths of a second, tells too little."""

PROC = Path("/proc")
USER, NICE, SYSTEM, STEAL = 0, 1, 2, 7
"""Places of the counters in the first line of `/proc/stat`."""
PARENT, TIMES = 1, slice(11, 15)
"""Places of fields in `/proc/PID/stat` behind the command's name: the parent, and CPU times with those of children."""


@dataclass(frozen=True)
class MachineLoad:
    """What others did meanwhile: the average number of CPUs that their processes used, and that other virtual machines
    took (`stolen`); None where the system does not tell. `queue` is the load average of the minute before."""

    seconds: float
    cpus: int
    queue: float
    others: float | None = None
    stolen: float | None = None

    @property
    def busy(self) -> bool:
        return max(self.others or 0.0, self.stolen or 0.0) >= BUSY

    def text(self) -> str:
        """What disturbed a measurement; empty if nothing did."""
        if not self.busy:
            return ""
        parts = []
        if self.others is not None and self.others >= BUSY:
            parts.append(f"other processes used {self.others:.1f} of {self.cpus} CPUs")
        if self.stolen is not None and self.stolen >= BUSY:
            parts.append(f"other virtual machines took {self.stolen:.1f} of {self.cpus} CPUs")
        return f"the machine was busy: {' and '.join(parts)} meanwhile (load average {self.queue:.1f})"

    def facts(self) -> dict[str, Any]:
        """The load as values for JSON."""
        return {**asdict(self), "busy": self.busy}


@dataclass(frozen=True)
class Watch:
    """A moment from which the machine is watched: `Watch.start()`, and later `load()`."""

    began: float
    queue: float
    used: float | None
    stolen: float | None
    own: float

    @staticmethod
    def start() -> Watch:
        used, stolen = _machine_seconds()
        return Watch(monotonic(), os.getloadavg()[0], used, stolen, _own_seconds())

    def load(self) -> MachineLoad:
        """What others did since the start."""
        later = Watch.start()
        seconds, cpus = later.began - self.began, os.cpu_count() or 1
        if seconds < SHORTEST or None in (self.used, later.used):
            return MachineLoad(seconds, cpus, self.queue)
        others = _rise(self.used, later.used) - (later.own - self.own)
        stolen = _rise(self.stolen, later.stolen)
        return MachineLoad(seconds, cpus, self.queue, max(0.0, others / seconds), max(0.0, stolen / seconds))


def _rise(before: float | None, after: float | None) -> float:
    return (after or 0.0) - (before or 0.0)


def _machine_seconds() -> tuple[float | None, float | None]:
    """CPU seconds of all processes, and those that a hypervisor took, since the machine started; None if unknown."""
    try:
        fields = (PROC / "stat").read_text().splitlines()[0].split()[1:]
        ticks = [int(field) for field in fields]
        return (ticks[USER] + ticks[NICE] + ticks[SYSTEM]) / _hertz(), ticks[STEAL] / _hertz()
    except (OSError, ValueError, IndexError):
        return None, None


def _own_seconds() -> float:
    """CPU seconds of this process, of its descendants, and of their children that have ended."""
    found = dict(filter(None, map(_process, PROC.glob("[0-9]*"))))
    return sum(sum(found[number][1]) for number in _descendants(os.getpid(), found)) / _hertz()


def _process(folder: Path) -> tuple[int, tuple[int, tuple[int, ...]]] | None:
    """A process: its number, its parent's, and its CPU times; None if it has ended."""
    try:
        fields = (folder / "stat").read_text(errors="replace").rpartition(")")[2].split()
        return int(folder.name), (int(fields[PARENT]), tuple(map(int, fields[TIMES])))
    except (OSError, ValueError, IndexError):
        return None


def _descendants(root: int, found: Mapping[int, tuple[int, tuple[int, ...]]]) -> set[int]:
    children: dict[int, list[int]] = {}
    for number, (parent, _) in found.items():
        children.setdefault(parent, []).append(number)
    family, more = set(), [root] if root in found else []
    while more:
        number = more.pop()
        family.add(number)
        more += children.get(number, [])
    return family


def _hertz() -> int:
    return os.sysconf("SC_CLK_TCK")
