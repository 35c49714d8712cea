"""Hardware counters of a kernel's calls, by `perf stat` on a process that makes them, where this is permitted.

The process runs twice, with one call and with many: the difference is that of the calls alone, without the start of
Python and the making of the arrays.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from poly.measure import process
from poly.measure.data import Arena
from poly.measure.orders import Setup

EVENTS = (
    "instructions",
    "cycles",
    "L1-dcache-loads",
    "L1-dcache-load-misses",
    "LLC-loads",
    "LLC-load-misses",
    "cache-misses",
    "dTLB-load-misses",
)
"""Generic names, which perf translates for the CPU; a CPU lacks some of them."""

FILL = 0.3
"""Seconds that the counted calls take together."""
LIMIT = 60.0
"""The time limit of a run, in seconds."""
PARANOID = Path("/proc/sys/kernel/perf_event_paranoid")

CHILD = "import sys; from poly.measure.counters import make_calls; make_calls(sys.argv[1], int(sys.argv[2]))"


@dataclass(frozen=True)
class Counts:
    """Events per call, by name. `missing` are those that this CPU does not count, `refusal` says why there are none."""

    events: tuple[tuple[str, float], ...] = ()
    missing: tuple[str, ...] = ()
    refusal: str = ""

    def per_call(self, event: str) -> float | None:
        """The number of these events in a call; None if they were not counted."""
        return dict(self.events).get(event)


def counted(library: Path, setup: Setup, seconds: float, folder: Path) -> Counts:
    """Count the events of calls of a library's kernel that take `seconds` each; `folder` takes files for the process.

    Nothing is raised if counters are not permitted: `refusal` says why, and what to do.
    """
    refusal = refused()
    if refusal:
        return Counts(refusal=refusal)
    order = folder / "calls.pickle"
    order.write_bytes(pickle.dumps((str(library), setup)))
    calls = max(2, int(FILL / max(seconds, 1e-9)))
    try:
        once, many = (_run([sys.executable, "-P", "-c", CHILD, str(order), str(n)], folder) for n in (1, 1 + calls))
    except (OSError, subprocess.SubprocessError) as error:
        return Counts(refusal=f"No hardware counters: perf failed: {error}.")
    return difference(once, many, calls)


def difference(once: Mapping[str, float | None], many: Mapping[str, float | None], calls: int) -> Counts:
    """The events of a call, from those of one and of `calls` more."""
    found = {
        event: max(0.0, (more - base) / calls)
        for event, more in many.items()
        if more is not None and (base := once.get(event)) is not None
    }
    return Counts(tuple(found.items()), tuple(event for event in EVENTS if event not in found))


def refused() -> str:
    """Why there are no hardware counters here, and what to do; empty if there are."""
    try:
        done = subprocess.run(
            ["perf", "stat", "-x,", "-e", "instructions", "true"],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=LIMIT,
            env=_environment(),
        )
    except FileNotFoundError:
        return (
            "No hardware counters: perf is not installed. Debian's package is linux-perf, Ubuntu's linux-tools-generic."
        )
    except (OSError, subprocess.SubprocessError) as error:
        return f"No hardware counters: perf cannot be run: {error}."
    return reason(done.returncode, done.stderr, _level())


def reason(status: int, said: str, level: str) -> str:
    """Why a trial run of perf, with this exit status and output, has counted nothing; empty if it has.

    `level` is the kernel's setting `perf_event_paranoid`.
    """
    if status and any(word in said.lower() for word in ("paranoid", "permission", "not permitted", "access to")):
        now = f" (it is {level})" if level else ""
        return (
            f"No hardware counters: they are not permitted to this user{now}. "
            "`sudo sysctl kernel.perf_event_paranoid=2` allows them, in a container also `--cap-add PERFMON`."
        )
    if status:
        return f"No hardware counters: perf failed: {said.strip().splitlines()[-1] if said.strip() else status}."
    if parse(said).get("instructions") is None:
        return (
            "No hardware counters: this CPU shows none to the system, as in most virtual machines. The host must pass "
            "them on (a virtual PMU), or measure on bare metal."
        )
    return ""


def parse(text: str) -> dict[str, float | None]:
    """The counts in the output of `perf stat -x,`, by event; None for those that are not supported or not counted.

    `instructions:u` counts as `instructions`, and the kinds of cores of a hybrid CPU, as in `cpu_core/cycles/`, are
    added up. Lines in other forms are ignored.
    """
    found: dict[str, float | None] = {}
    for line in text.splitlines():
        fields = line.split(",")
        if line.startswith("#") or len(fields) < 3 or not fields[2]:
            continue
        name = fields[2].partition("/")[2].partition("/")[0] if "/" in fields[2] else fields[2]
        name = name.partition(":")[0]
        try:
            value = float(fields[0])
        except ValueError:
            found.setdefault(name, None)
        else:
            found[name] = (found.get(name) or 0.0) + value
    return found


def make_calls(order: str, calls: int) -> None:
    """What the counted process does: load the kernel, and call it."""
    from poly.measure.bench import load

    library, setup = pickle.loads(Path(order).read_bytes())
    process.clear_environment()
    process.release(setup.cores.cpus)
    arena = Arena(setup.data)
    arena.reset()
    load(library, setup.data.signature, arena, setup.cores.threads, dict(setup.data.sizes)).timed()(calls)


def _run(command: Sequence[str], folder: Path) -> dict[str, float | None]:
    """The events of a command. Raises OSError or SubprocessError."""
    result = folder / "counts.csv"
    perf = ["perf", "stat", "-x,", "-e", ",".join(EVENTS), "-o", str(result), "--", *command]
    subprocess.run(perf, check=True, capture_output=True, timeout=LIMIT, env=_environment())
    return parse(result.read_text(errors="replace"))


def _environment() -> dict[str, str]:
    """The environment, with numbers in perf's output as in C, and this process's modules for Python."""
    found = os.pathsep.join(path or os.getcwd() for path in sys.path)
    return {**os.environ, "LC_ALL": "C", "PYTHONPATH": found}


def _level() -> str:
    try:
        return PARANOID.read_text().strip()
    except OSError:
        return ""
