"""The trail of a tuning: the time of each trial in order, coloured by structure, the failures, and the best so far."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from statistics import median
from typing import TYPE_CHECKING

from poly.display import time_text
from poly.pictures.charts import WIDE, Heading, chart, plain_numbers
from poly.pictures.levels import UNITS
from poly.pictures.style import INK, SERIES, light
from poly.records.place import read_point
from poly.records.record import StoredTrial
from poly.tuning.outcome import counted, in_words

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAMED = 6
"""The most structures with a colour of their own: those that found the fastest schedules."""
LOGARITHMIC = 1.8
"""The ratio of the longest to the shortest time from which the axis is logarithmic."""


@dataclass(frozen=True)
class TrailPoint:
    """A trial: its number, its structure, and the median of its seconds per call; None if it failed."""

    number: int
    structure: str
    seconds: float | None


def trail_points(trials: Sequence[StoredTrial]) -> tuple[TrailPoint, ...]:
    """The trials in order. Their structures are named by the traits in which they differ."""
    traits = [dict(read_point(trial.point)[0]) for trial in trials]
    names = dict.fromkeys(name for one in traits for name in one)
    differ = [name for name in names if len({one.get(name) for one in traits}) > 1]

    def structure(one: Mapping[str, str]) -> str:
        return ", ".join(f"{name} {one[name]}" for name in differ or names if name in one) or "as written"

    return tuple(
        TrailPoint(number, structure(one), median(trial.samples) if trial.samples else None)
        for number, (trial, one) in enumerate(zip(trials, traits, strict=True), start=1)
    )


def trail(trials: Sequence[StoredTrial], heading: Heading | None, width: float = WIDE) -> Figure | None:
    """The chart of these trials; None if none was measured."""
    points = trail_points(trials)
    timed = [(point.number, point.structure, point.seconds) for point in points if point.seconds is not None]
    if not timed:
        return None
    best: dict[str, float] = {}
    for _, name, seconds in timed:
        best[name] = min(seconds, best.get(name, seconds))
    named = sorted(best, key=lambda name: best[name])[:NAMED]
    longest, least = max(seconds for *_, seconds in timed), min(seconds for *_, seconds in timed)
    scale, unit = next((pair for pair in UNITS if least >= pair[0]), UNITS[-1])
    others = f"{len(best) - len(named)} other structures" if len(best) > len(named) else ""
    failures = in_words(counted(trial.failure for trial in trials if not trial.samples))
    legend = [f"best so far: {time_text(least)}", *named, others, f"failed: {failures}" if failures else ""]
    made = chart(width, 2.6, heading, 0.62, list(filter(None, legend)))
    axes = made.axes
    so_far = [seconds / scale for seconds in accumulate((seconds for *_, seconds in timed), min)]
    axes.step([number for number, *_ in timed], so_far, where="post", color=INK, linewidth=1.2, label=legend[0])
    for label, colour in [*zip(named, SERIES, strict=False), (others, "grey")]:
        own = [(n, s / scale) for n, name, s in timed if (name if name in named else others) == label]
        if own:
            axes.plot(*zip(*own, strict=True), "o", markersize=5, color=light(colour), label=label, zorder=3)
    failed = [point.number for point in points if point.seconds is None]
    if failed:
        where = axes.get_xaxis_transform()
        axes.plot(failed, [0.97] * len(failed), "x", color=light("red"), transform=where, label=legend[-1])
    axes.set(xlabel="trial", ylabel=f"{unit} per call", xlim=(0, len(points) + 1))
    if longest > LOGARITHMIC * least:
        axes.set_yscale("log")
        plain_numbers(axes.yaxis, (1, 1.5, 2, 3, 5, 7))
    axes.grid(which="major")
    made.legend()
    return made.figure
