"""A plot of the roofline: operations per second over operations per byte, with a roof for each level of memory."""

from __future__ import annotations

from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

from codegen.files import write_file
from poly.explanation.explanation import Explanation

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLOURS = ("#4c78a8", "#54a24b", "#b279a2", "#9d9da1")
MARKS = ("o", "s", "D")
INK, GRID = "#1f2430", "#e5e7eb"
MARGIN = 4.0
"""The factor by which the axis extends beyond the least and the greatest intensity."""


def draw(explanations: Mapping[str, Explanation], path: Path) -> None:
    """Draw explanations of one machine, by name, into a file; its suffix selects the format (`.svg`, `.png`).

    Each explanation has a point for each level of memory: its operations per byte of that level, and its speed, as
    measured or else as expected.
    """
    from matplotlib.figure import Figure

    one = next(iter(explanations.values()))
    every = [level.intensity(t.flop) for t in explanations.values() for level in t.levels if level.bytes and t.flop]
    low, high = min(every, default=1.0) / MARGIN, max(every, default=1.0) * MARGIN
    figure = Figure(figsize=(7, 4.5), layout="constrained")
    axes = figure.subplots()
    for level, colour in zip(one.levels, COLOURS, strict=False):
        ridge = one.peak / level.rate
        roof = [min(one.peak, at * level.rate) / 1e9 for at in (low, ridge, high)]
        axes.plot([low, max(low, ridge), high], [roof[0], max(roof[:2]), roof[2]], color=colour, label=level.name)
    for (name, explained), mark in zip(explanations.items(), MARKS, strict=False):
        seconds = explained.measurement.seconds if explained.measurement else explained.expected
        for level, colour in zip(explained.levels, COLOURS, strict=False):
            if level.bytes and explained.flop:
                at = level.intensity(explained.flop)
                axes.plot(at, explained.flop / seconds / 1e9, mark, color=colour, markeredgecolor=INK)
        axes.plot([], [], mark, color="white", markeredgecolor=INK, label=name)
    axes.set(xscale="log", yscale="log", xlabel="operations a byte", ylabel="GFLOP/s")
    axes.grid(color=GRID, which="both")
    axes.set_axisbelow(True)
    axes.legend(frameon=False)
    save(figure, path)


def save(figure: Figure, path: Path, dpi: float = 100) -> None:
    """Write a figure atomically; the suffix selects the format. Raises OSError."""
    picture = BytesIO()
    figure.savefig(picture, format=path.suffix.removeprefix(".") or "png", dpi=dpi)
    write_file(path if path.suffix else path.with_suffix(".png"), picture.getvalue())
