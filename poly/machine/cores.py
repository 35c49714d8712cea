"""The cores that this process may use: the affinity mask and the quota of its control group."""

from __future__ import annotations

import os
from pathlib import Path


def allowed_cpus() -> tuple[int, ...]:
    """The numbers of the logical CPUs that this process may run on, ascending."""
    if hasattr(os, "sched_getaffinity"):
        return tuple(sorted(os.sched_getaffinity(0)))
    return tuple(range(os.cpu_count() or 1))


def allowed_cores() -> int:
    """The number of threads that run at once unthrottled: the affinity mask limited by the quota, at least 1."""
    quota = cgroup_quota()
    cpus = len(allowed_cpus())
    return cpus if quota is None else max(1, min(cpus, int(quota)))


def cgroup_quota(proc: Path = Path("/proc/self/cgroup"), mount: Path = Path("/sys/fs/cgroup")) -> float | None:
    """The tightest CPU quota, in cores, of this process's control group and its ancestors; None if there is none.

    Reads `cpu.max` of version 2, and `cpu.cfs_quota_us` over `cpu.cfs_period_us` of version 1.
    """
    quotas: list[float] = []
    for line in _lines(proc):
        _, controllers, group = line.split(":", 2)
        if not controllers:
            quotas += [q for folder in _ancestors(mount, group) if (q := _quota_v2(folder)) is not None]
        elif "cpu" in controllers.split(","):
            quotas += [q for folder in _ancestors(mount / controllers, group) if (q := _quota_v1(folder)) is not None]
            quotas += [q for folder in _ancestors(mount / "cpu", group) if (q := _quota_v1(folder)) is not None]
    return min(quotas, default=None)


def _ancestors(mount: Path, group: str) -> list[Path]:
    """The group's folder and its ancestors, up to the mount. Inside a container only the mount itself may exist."""
    parts = [part for part in group.split("/") if part not in ("", "..")]
    return [mount.joinpath(*parts[:depth]) for depth in range(len(parts), -1, -1)]


def _quota_v2(folder: Path) -> float | None:
    words = " ".join(_lines(folder / "cpu.max")).split()
    return int(words[0]) / int(words[1]) if len(words) == 2 and words[0] != "max" else None


def _quota_v1(folder: Path) -> float | None:
    quota, period = _lines(folder / "cpu.cfs_quota_us"), _lines(folder / "cpu.cfs_period_us")
    return int(quota[0]) / int(period[0]) if quota and period and int(quota[0]) > 0 else None


def _lines(path: Path) -> list[str]:
    """The lines of a small system file; empty if it cannot be read."""
    try:
        return path.read_text().splitlines()
    except OSError:
        return []
