"""One schedule measured by itself: built, checked against the trusted result, timed, and its events counted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from poly.autoschedule.spaces.space import Point, Space, Structure
from poly.machine.target import Backend
from poly.measure.builder import Builder, DeviceBuilder
from poly.measure.child import Child
from poly.measure.counters import Counts, counted
from poly.measure.live import own_workplace
from poly.measure.timer import Timer
from poly.measure.trusted import prepared
from poly.model.cost import Cost
from poly.schedules.schedule import Schedule
from poly.timing.benchmark import SAMPLE

SAMPLES, SECONDS = (5, 101), 0.6
"""The least and the most samples, and the seconds that they may take together."""
PATIENCE = 5.0
"""Seconds by which a call may exceed the expected time."""
ONLY = Point(0, ())


@dataclass(frozen=True)
class Alone:
    """Seconds per call, or why there are none, and the events of a call."""

    samples: tuple[float, ...]
    failure: str
    counts: Counts


def measured_alone(made: Schedule, target: Backend, threads: int, sizes: Mapping[str, int], expected: float) -> Alone:
    """Measure a schedule, whose calls should take `expected` seconds, at these values of its open sizes.

    Raises:
        SearchError: the nest cannot be measured at all.
        ToolchainError: the cache directory cannot be used.
    """
    only = Structure((), (), lambda _: True, lambda _: made, lambda _: Cost(expected, ()))
    space = Space(made.nest, target.isa, threads, (only,), ONLY, tuple(sizes.items()), target.device)
    with own_workplace() as name:
        folder = Path(name)
        child = Child(folder)
        builder = (Builder if target.device is None else DeviceBuilder)(space, folder)
        try:
            setup = prepared(space, child, folder, 0, False)
            (built,) = builder.build([ONLY])
            if built.path is None:
                return Alone((), built.failure, Counts(refusal="No hardware counters: nothing could be built."))
            timer = Timer(child, setup, PATIENCE)
            timing = timer.alone(built.path, expected, SAMPLES[0])
            if timing.samples:
                more = int(SECONDS / max(SAMPLE, min(timing.samples)))
                timing = timer.alone(built.path, expected, max(SAMPLES[0], min(SAMPLES[1], more)))
            child.close()
            if not timing.samples:
                return Alone((), timing.failure, Counts(refusal="No hardware counters: no call succeeded."))
            if target.device is not None:
                return Alone(timing.samples, "", Counts(refusal="No hardware counters: only C is counted."))
            return Alone(timing.samples, "", counted(built.path, setup, min(timing.samples), folder))
        finally:
            child.close(kill=True)
            builder.close()
