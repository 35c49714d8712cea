"""The benchmark of one kernel on the caller's arrays: samples until their median is known well enough.

The kernel runs in the caller's process, on the arrays as they lie in memory. Arrays that it writes are put back before
each sample, and at the end: thousands of calls that each add to an array would make its values overflow.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from math import ceil
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING, Any

from codegen.calls.clock import Timed
from poly.display import time_text
from poly.timing.load import MachineLoad, Watch
from poly.timing.summary import interval, is_precise, precision, summarize
from poly.timing.yardstick import Yardstick

if TYPE_CHECKING:
    from poly.analysis.work import Work  # the process that measures candidates needs no isl

SAMPLE = 0.002
"""Seconds that a sample fills, unless that takes too many calls."""
LEAST, MOST = 10, 1000
"""The numbers of samples."""
PRECISE = 0.005
"""The half width of the median's interval, relative to the median, at which sampling ends."""
EARLIEST = 0.1
"""The part of the permitted seconds before which sampling does not end: a moment may be a special one."""
TRIES = 3
"""How often the number of calls in a sample is tried."""
LONG = 0.02
"""Seconds of a call above which no untimed call precedes a sample: the first call of a cold start hardly matters."""


@dataclass(frozen=True)
class TimedCalls:
    """What is measured: `timed` runs the calls, at most `calls` in a row before `restore` puts the arrays back."""

    timed: Timed
    calls: int
    restore: Callable[[], None]


@dataclass(frozen=True)
class Setting:
    """Where and what: the nest with its sizes, target, threads and origin of its schedule; versions and machine."""

    nest: str
    sizes: tuple[tuple[str, int], ...]
    target: str
    threads: int
    origin: str
    poly: str
    compiler: str
    machine: str
    packed: str | None = None
    """The array that was packed before, if one was: no sample contains that."""

    @property
    def title(self) -> str:
        sizes = "".join(f", {name} = {value}" for name, value in self.sizes)
        return f"{self.nest}{sizes}, {self.threads} thread{'s' if self.threads > 1 else ''}, {self.target}"


@dataclass(frozen=True, repr=False)
class Benchmark:
    """How long a kernel takes on some arrays: `samples` in seconds per call, each the average of `calls` calls.

    `work` is what a call computes, None if it is too costly to count. `limit` is the rate of the machine that bounds
    the kernel, None if it is unknown. `load` is what else the machine did meanwhile.
    """

    setting: Setting
    samples: tuple[float, ...]
    calls: int
    work: Work | None
    limit: Yardstick | None
    load: MachineLoad
    date: datetime

    @property
    def seconds(self) -> float:
        """The median of the samples."""
        return median(self.samples)

    @property
    def interval(self) -> tuple[float, float] | None:
        """The seconds between which the true median lies with a probability of 95 %; None of fewer than six samples."""
        return interval(self.samples)

    @property
    def quartiles(self) -> tuple[float, float]:
        """The lower and the upper quartile, in seconds."""
        found = summarize(self.samples)
        return found.low, found.high

    @property
    def gflops(self) -> float | None:
        """Operations of the loops as written, in 1e9 a second; None if they are unknown, or none."""
        return self.work.flop / self.seconds / 1e9 if self.work and self.work.flop else None

    @property
    def gbs(self) -> float | None:
        """The arguments' bytes, each read or written once, in 1e9 a second; None if they are unknown."""
        return self.work.bytes / self.seconds / 1e9 if self.work else None

    @property
    def bound_fraction(self) -> float | None:
        """The speed as a fraction of what the machine's peak, or its bandwidth, permits; None if that is unknown."""
        return self.limit.rate(self.seconds) / self.limit.peak if self.limit and self.limit.peak else None

    def facts(self) -> dict[str, Any]:
        """All figures as values for JSON."""
        return {
            "nest": self.setting.nest,
            "sizes": dict(self.setting.sizes),
            "target": self.setting.target,
            "threads": self.setting.threads,
            "schedule": self.setting.origin,
            "packed_before": self.setting.packed,
            "seconds": self.seconds,
            "interval": self.interval,
            "quartiles": self.quartiles,
            "gflops": self.gflops,
            "gbs": self.gbs,
            "bound_fraction": self.bound_fraction,
            "bound_by": self.limit.unit if self.limit else None,
            "samples": self.samples,
            "calls": self.calls,
            "date": self.date.isoformat(timespec="seconds"),
            "poly": self.setting.poly,
            "compiler": self.setting.compiler,
            "machine": self.setting.machine,
            "load": self.load.facts(),
        }

    def __repr__(self) -> str:
        return f"<benchmark {self.setting.title}: {self._time()}{', busy machine' if self.load.busy else ''}>"

    def __str__(self) -> str:
        return "\n".join((self.setting.title, *(f"  {line}" for line in self._lines())))

    def _time(self) -> str:
        found = precision(self.samples)
        return time_text(self.seconds) + (f" ± {100 * found:.1f} %" if found is not None else "")

    def _lines(self) -> list[str]:
        low, high = map(time_text, self.quartiles)
        each = f"{len(self.samples)} samples of {self.calls} call{'s' * (self.calls > 1)}"
        rates = [
            text
            for value, text in (
                (self.gflops, f"{self.gflops or 0:.4g} GFLOP/s"),
                (self.gbs, f"{self.gbs or 0:.3g} GB/s of arguments"),
                (self.bound_fraction, self._bound()),
            )
            if value
        ]
        return [
            f"median     {self._time()} (95 % interval)",
            f"quartiles  {low} to {high}, {each}",
            *([f"rates      {', '.join(rates)}"] if rates else []),
            f"schedule   {self.setting.origin}",
            *([f"without    packing {self.setting.packed}, which was packed before"] if self.setting.packed else []),
            f"measured   {self.date:%Y-%m-%d %H:%M} UTC, poly {self.setting.poly}, {self.setting.compiler}",
            f"on         {self.setting.machine}",
            *([f"busy       {self.load.text()}"] if self.load.busy else []),
        ]

    def _bound(self) -> str:
        if self.limit is None or self.limit.peak is None:
            return ""
        kind = "peak" if self.limit.unit == "GFLOP/s" else "bandwidth"
        return f"{100 * (self.bound_fraction or 0):.0f} % of the {kind}, {self.limit.peak:.4g} {self.limit.unit}"


def benchmark(
    of: TimedCalls, setting: Setting, work: Work | None, limit: Yardstick | None, seconds: float
) -> Benchmark:
    """Take samples for up to so many seconds, or until the median is precise. The arrays are put back at the end."""
    date, watch = datetime.now(UTC), Watch.start()
    try:
        calls, warm = _pace(of)
        samples = _samples(of, calls, warm, seconds)
    finally:
        of.restore()
    return Benchmark(setting, samples, calls, work, limit, watch.load(), date)


def _pace(of: TimedCalls) -> tuple[int, bool]:
    """The number of calls that fill a sample, and whether an untimed call precedes them."""
    of.timed(1)  # starts threads, and reads the arrays for the first time
    calls, taken = 1, _restored(of, 1)
    while taken < SAMPLE / 4 and calls < of.calls:
        calls = min(of.calls, 4 * calls)
        taken = _restored(of, calls)
    each = max(taken / calls, 1e-9)
    return max(1, min(of.calls, ceil(SAMPLE / each))), each < LONG


def _restored(of: TimedCalls, calls: int) -> float:
    """The least of a few times of so many calls: what disturbs the first ones must not make all samples short."""
    times: list[float] = []
    while not times or (len(times) < TRIES and min(times) < LONG):
        of.restore()
        times.append(of.timed(calls))
    return min(times)


def _samples(of: TimedCalls, calls: int, warm: bool, seconds: float) -> tuple[float, ...]:
    """The samples. The interval is looked at each time that half as many more are there: a look takes time."""
    samples: list[float] = []
    began, look = perf_counter(), LEAST
    while len(samples) < MOST:
        of.restore()
        if warm and calls < of.calls:
            of.timed(1)
        samples.append(of.timed(calls) / calls)
        passed = perf_counter() - began
        if len(samples) >= LEAST and passed > seconds:
            break
        if len(samples) >= look and passed > EARLIEST * seconds:
            look = ceil(1.5 * len(samples))
            if is_precise(samples, PRECISE):
                break
    return tuple(samples)


def restorer(arrays: Sequence[Any]) -> Callable[[], None]:
    """A function that puts back what the arrays hold now."""
    kept = [(array, array.copy()) for array in arrays]

    def restore() -> None:
        for array, values in kept:
            array[...] = values

    return restore


def python_timed(call: Callable[[], object]) -> Timed:
    """The clock's loop in Python, for what has no C entry point; it adds some tens of nanoseconds per call."""

    def run(times: int) -> float:
        start = perf_counter()
        for _ in range(times):
            call()
        return perf_counter() - start

    return run
