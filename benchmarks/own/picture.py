"""The picture of one nest's run: a bar for each contender, with the quartiles of its samples."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from benchmarks.document import Key, Row
from poly.display import time_text
from poly.pictures.files import save, settled
from poly.pictures.style import INK, light
from poly.timing.summary import summarize

NAME = "poly"


def draw(rows: Sequence[Row], path: Path) -> None:
    """Draw the row of a nest into a file; its suffix selects the format. Shorter bars are faster."""
    from matplotlib.figure import Figure

    settled()
    (row,) = rows
    others = ((name + " (wrong)" * (not peer["right"]), peer["samples"]) for name, peer in row["peers"].items())
    entries = [(NAME, row["samples"]), *others]
    found = [(name, summarize(samples)) for name, samples in entries if samples]
    unit = 1e3 if max(summary.median for _, summary in found) >= 1e-3 else 1e6
    figure = Figure(figsize=(7, 1.3 + 0.4 * len(found)), layout="constrained")
    axes = figure.subplots()
    for place, (name, summary) in enumerate(found):
        middle, low, high = (unit * value for value in (summary.median, summary.low, summary.high))
        axes.barh(place, middle, height=0.6, color=light("orange" if name == NAME else "blue"), zorder=2)
        axes.hlines(place, low, high, color=INK, linewidth=2, zorder=3)
        axes.annotate(time_text(summary.median), (max(middle, high), place), (5, -3), textcoords="offset points")
    axes.set_yticks(range(len(found)), [name for name, _ in found])
    axes.set(xlabel=f"{'ms' if unit == 1e3 else 'µs'} a call (line: quartiles)", ylim=(len(found) - 0.5, -0.5))
    axes.margins(x=0.15)
    axes.grid(axis="x")
    busy = ", busy machine" if (row.get("load") or {}).get("busy") else ""
    axes.set_title(f"{Key.of(row).title}{busy}\n{row['host']}")
    save(figure, path)
