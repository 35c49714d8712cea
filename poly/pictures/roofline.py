"""The roofline: operations per second over operations per byte, with a roof for each level of memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import atan2, degrees, log10
from typing import TYPE_CHECKING, Any

from poly.explanation.explanation import Explanation
from poly.explanation.values import Level
from poly.pictures.charts import NARROW, WIDE, Heading, chart, plain_numbers
from poly.pictures.style import INK, PAPER, QUIET, light

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLOURS = ("blue", "green", "purple", "orange")
"""Of the levels, L1 first."""
MARKS = ("o", "s", "D")
"""Of the explanations."""
MARGIN = 4.0
"""The factor by which the axis extends beyond the least and the greatest intensity."""
CROWDED = 1.7
"""A roof is named below its line if the roof above it is less than so many times as high."""
NEAR = 0.16
"""Levels whose intensities differ by less than this, in decades, share one label."""


@dataclass(frozen=True)
class Speed:
    """Operations per second of an explanation, as predicted or as measured."""

    name: str
    flops: float
    is_measured: bool


def roofline(
    explanations: Mapping[str, Explanation], cpu: str, width: float = WIDE, titled: bool = True
) -> Figure | None:
    """The roofline of explanations of one machine, by name; None if they have no operations that can be counted.

    Each has a point for each level of memory, at its operations per byte of that level: a hollow one at the predicted
    speed and, if the schedule was measured, a filled one at the measured speed.
    """
    if not any(explained.flop for explained in explanations.values()):
        return None
    one = next(iter(explanations.values()))
    every = [level.intensity(t.flop) for t in explanations.values() for level in t.levels if level.bytes and t.flop]
    ridges = [one.peak / level.rate for level in one.levels]
    low, high = min(*every, *ridges) / MARGIN, max(*every, *ridges) * MARGIN
    several = len(explanations) > 1
    legend = [
        f"{name + ', ' if several else ''}{speed.name}: {speed.flops / 1e9:.4g} GFLOP/s"
        for name, explained in explanations.items()
        for speed in (speeds(explained) if explained.flop else ())
    ]
    heading = Heading(f"Roofline of {one.schedule.nest.name}", subject(one, cpu)) if titled else None
    columns = 1 if width <= NARROW else 2
    made = chart(width, 3.0, heading, 0.62, legend, columns)
    axes, peak = made.axes, one.peak / 1e9
    slowest = min(speed.flops for explained in explanations.values() if explained.flop for speed in speeds(explained))
    bottom, top = min(min(level.rate for level in one.levels) * low, slowest / 2) / 1e9, peak * 2.0
    axes.set(xscale="log", yscale="log", xlim=(low, high), ylim=(bottom, top))
    axes.set(xlabel="operations per byte", ylabel="GFLOP/s")
    turn = degrees(atan2(made.height / log10(top / bottom), made.width / log10(high / low)))
    _roofs(axes, one, low, high, turn)
    labels = iter(legend)
    for explained, mark in zip(explanations.values(), MARKS, strict=False):
        if explained.flop:
            _points(axes, explained, mark, labels)
    for axis in (axes.xaxis, axes.yaxis):
        plain_numbers(axis)
    axes.grid(which="major")
    made.legend(columns)
    return made.figure


def subject(one: Explanation, cpu: str) -> str:
    """The sizes, the target, the threads and the machine in one line."""
    sizes = ", ".join(f"{name} = {value}" for name, value in one.schedule.nest.fixed)
    threads = f"{one.threads} thread{'s' if one.threads > 1 else ''}"
    return "; ".join(filter(None, (sizes, f"{one.target}, {threads}", cpu)))


def _roofs(axes: Any, one: Explanation, low: float, high: float, turn: float) -> None:
    """A line up to the peak for each level, then the peak, each with its name along it."""
    peak, bottom = one.peak / 1e9, axes.get_ylim()[0]
    for number, (level, colour) in enumerate(zip(one.levels, COLOURS, strict=False)):
        ridge, rate = one.peak / level.rate, level.rate / 1e9
        axes.plot([low, ridge], [low * rate, peak], color=light(colour), linewidth=1.6)
        first = max(low, bottom / rate)
        share = 0.42 + 0.16 * (number % 2)
        at = first ** (1 - share) * ridge**share
        crowded = number > 0 and one.levels[number - 1].rate < CROWDED * level.rate
        axes.annotate(
            f"{level.name} {rate:.3g} GB/s", (at, at * rate), (3, -3) if crowded else (-3, 3),
            textcoords="offset points", fontsize=8, rotation=turn, rotation_mode="anchor", ha="center",
            va="top" if crowded else "bottom", color=light(colour),
        )  # fmt: skip
    axes.plot([min(one.peak / level.rate for level in one.levels), high], [peak, peak], color=INK, linewidth=1.6)
    axes.annotate(
        f"peak {peak:.4g} GFLOP/s", (high, peak), (-4, 4), textcoords="offset points", ha="right", va="bottom"
    )


def speeds(explained: Explanation) -> Iterator[Speed]:
    """The predicted speed, and the measured one if there is one."""
    yield Speed("predicted", explained.flop / explained.expected, False)
    if explained.measurement is not None:
        yield Speed("measured", explained.flop / explained.measurement.seconds, True)


def _points(axes: Any, explained: Explanation, mark: str, labels: Iterator[str]) -> None:
    found = list(speeds(explained))
    reached = [(level, colour) for level, colour in zip(explained.levels, COLOURS, strict=False) if level.bytes]
    for speed in found:
        for level, colour in reached:
            at, inside = level.intensity(explained.flop), light(colour) if speed.is_measured else PAPER
            axes.plot(
                at, speed.flops / 1e9, mark, markersize=6 if speed.is_measured else 7.5, color=inside,
                markeredgecolor=light(colour), markeredgewidth=1.8, zorder=4 if speed.is_measured else 3,
            )  # fmt: skip
        filling = QUIET if speed.is_measured else PAPER
        axes.plot([], [], mark, color=filling, markeredgecolor=QUIET, markeredgewidth=1.6, label=next(labels))
    least = min(speed.flops for speed in found)
    for members in _groups(explained.flop, [level for level, _ in reached]):
        spot = (members[0].intensity(explained.flop), least / 1e9)
        axes.annotate(
            ", ".join(level.name for level in members), spot, (0, -8), textcoords="offset points",
            ha="center", va="top", fontsize=8.5, zorder=5,
        )  # fmt: skip


def _groups(flop: int, levels: Sequence[Level]) -> list[list[Level]]:
    """Levels, those together whose points nearly coincide."""
    groups: list[list[Level]] = []
    for level in sorted(levels, key=lambda one: one.intensity(flop)):
        if groups and log10(level.intensity(flop) / groups[-1][-1].intensity(flop)) < NEAR:
            groups[-1].append(level)
        else:
            groups.append([level])
    return groups
