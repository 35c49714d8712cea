"""The bytes of each level of memory as bars: the time that they take alone, beside that of the whole call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from poly.display import time_text
from poly.explanation.explanation import Explanation
from poly.explanation.text import bytes_text
from poly.explanation.values import ARITHMETIC
from poly.pictures.charts import NARROW, WIDE, Heading, chart
from poly.pictures.roofline import COLOURS, subject
from poly.pictures.style import INK, PAPER, QUIET, light

if TYPE_CHECKING:
    from matplotlib.figure import Figure

UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))


def levels(explained: Explanation, cpu: str, width: float = WIDE, titled: bool = True) -> Figure:
    """The chart of one explanation: a bar for the operations, and one for each level, loads before stores."""
    names = list(explained.times)
    longest = max(*explained.times.values(), explained.expected, *_measured(explained))
    scale, unit = next((pair for pair in UNITS if longest >= pair[0]), UNITS[-1])
    legend = [_label("predicted", explained.expected), *(_label("measured", s) for s in _measured(explained))]
    heading = Heading(f"Time of each resource alone, {explained.schedule.nest.name}", subject(explained, cpu))
    made = chart(width, 0.36 * len(names) + 0.1, heading if titled else None, 1.05, legend, 2)
    axes, room = made.axes, longest / scale
    for row, name in enumerate(names):
        _bar(axes, explained, name, row, scale)
        words = _words(explained, name, width <= NARROW)
        inside = explained.times[name] / scale > 0.6 * room
        axes.annotate(
            words, (explained.times[name] / scale, row), (-5 if inside else 5, 0), textcoords="offset points",
            ha="right" if inside else "left", va="center", fontsize=8, color=PAPER if inside else INK, zorder=4,
            bbox=None if inside else {"facecolor": PAPER, "edgecolor": "none", "pad": 1},
        )  # fmt: skip
    styles = ((INK, (0, (4, 3))), (light("red"), "-"))
    for label, seconds, (colour, style) in zip(
        legend, [explained.expected, *_measured(explained)], styles, strict=False
    ):
        axes.axvline(seconds / scale, color=colour, linestyle=style, linewidth=1.4, label=label, zorder=3)
    axes.set(xlim=(0, room * 1.04), ylim=(len(names) - 0.5, -0.5), xlabel=f"{unit} per call")
    axes.set_yticks(range(len(names)), names)
    axes.grid(axis="x")
    made.legend(2)
    return made.figure


def _measured(explained: Explanation) -> list[float]:
    return [explained.measurement.seconds] if explained.measurement else []


def _label(name: str, seconds: float) -> str:
    return f"{name}: {time_text(seconds)}"


def _bar(axes: Any, explained: Explanation, name: str, row: int, scale: float) -> None:
    if name == ARITHMETIC:
        axes.barh(row, explained.arithmetic / scale, height=0.62, color=QUIET)
        return
    number, level = next((at, one) for at, one in enumerate(explained.levels) if one.name == name)
    loaded = level.loaded / level.rate / scale
    axes.barh(row, loaded, height=0.62, color=light(COLOURS[number % len(COLOURS)]))
    stored = level.stored / level.rate / scale
    axes.barh(row, stored, left=loaded, height=0.62, color=light(COLOURS[number % len(COLOURS)]), alpha=0.55)


def _words(explained: Explanation, name: str, short: bool) -> str:
    """`45.2 MB at 121 GB/s`."""
    if name == ARITHMETIC:
        if not explained.flop:
            return "not counted"
        rate = f" at {explained.peak / 1e9:.4g} GFLOP/s"
        return f"{explained.flop / 1e9:.3g} GFLOP{'' if short else rate}"
    level = next(one for one in explained.levels if one.name == name)
    if not level.bytes:
        return "nothing"
    return f"{bytes_text(level.bytes)}{'' if short else f' at {level.rate / 1e9:.3g} GB/s'}"
