"""What all charts share: a figure in our style, with room for its heading, axes and legend, and plain numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from poly.pictures.files import settled
from poly.pictures.style import QUIET

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WIDE, NARROW = 6.4, 3.7
"""Widths of charts in inches: on a desktop's page and in a file, and on a phone's page."""
LETTERS = 15.5
"""Letters of the small text that fit in an inch."""
LINE = 0.165
"""The height of a line of small text in inches."""
LEGEND, LABELS = 0.62, 0.42
"""Inches: from the axes to the legend, and of the names below the axes alone."""


@dataclass(frozen=True)
class Heading:
    """The title of a chart in a file, and a quiet line below it; a page says both around the chart."""

    title: str
    below: str


@dataclass(frozen=True)
class Chart:
    """A figure and its axes of known size, in inches."""

    figure: Figure
    axes: Any
    width: float
    height: float
    left: float

    def legend(self, columns: int = 1) -> None:
        """The legend below the axes, its texts broken at the figure's width."""
        handles, labels = self.axes.get_legend_handles_labels()
        room = int((self.figure.get_figwidth() - 0.5) / columns * LETTERS)
        texts = ["\n".join(wrap(label, room)) for label in labels]
        self.figure.legend(
            handles, texts, loc="lower left", bbox_to_anchor=(0, 0), ncols=columns, borderpad=0.3, handlelength=1.8
        )


def chart(
    width: float, axes_height: float, heading: Heading | None, left: float, legend: Sequence[str], columns: int = 1
) -> Chart:
    """A figure of this width whose axes have this height, with room for a legend of these texts below them."""
    settled()
    from matplotlib.figure import Figure

    below = wrap(heading.below, int(width * LETTERS)) if heading else []
    top = 0.42 + LINE * len(below) if heading else 0.1
    room = int((width - 0.5) / columns * LETTERS)
    lines = [len(wrap(text, room)) for text in legend]
    bottom = LABELS + (0.1 + LINE * sum(max(lines[at : at + columns]) for at in range(0, len(lines), columns)))
    height = top + axes_height + bottom
    figure = Figure(figsize=(width, height))
    inside = width - left - 0.12
    axes = figure.add_axes((left / width, bottom / height, inside / width, axes_height / height))
    if heading:
        figure.text(0.1 / width, 1 - 0.26 / height, heading.title, fontsize=11.5, weight="bold")
        for number, line in enumerate(below):
            figure.text(0.1 / width, 1 - (0.45 + LINE * number) / height, line, fontsize=8.5, color=QUIET)
    return Chart(figure, axes, inside, axes_height, left)


def plain_numbers(axis: Any, steps: Sequence[float] = (1,)) -> None:
    """Numbers instead of powers of ten on a logarithmic axis, at these multiples of them."""
    from matplotlib import ticker

    axis.set_major_locator(ticker.LogLocator(subs=steps))
    axis.set_major_formatter(ticker.FormatStrFormatter("%g"))
    axis.set_minor_locator(ticker.NullLocator())
