"""The plot of the results: a panel for each workload, with a bar for each contender, against the machine's peak."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from poly.explanation.plot import save

Row = Mapping[str, Any]

OURS = "poly"
INK, QUIET, GRID = "#1f2430", "#6b7280", "#e5e7eb"
COLOURS = {
    OURS: "#e4572e",
    "numpy": "#4c78a8",
    "mkl": "#9ecae9",
    "torch": "#b279a2",
    "onednn": "#54a24b",
    "blis": "#eeca3b",
    "libxsmm": "#72b7b2",
    "gcc": "#9d9da1",
    "scipy": "#2f6f8f",
}
STYLE: dict[Any, Any] = {
    "font.family": "sans-serif",
    "font.sans-serif": ["Inter", "Helvetica Neue", "Arial", "DejaVu Sans"],
    "font.size": 9,
    "text.color": INK,
    "axes.edgecolor": GRID,
    "axes.labelcolor": QUIET,
    "xtick.color": QUIET,
    "ytick.color": INK,
    "svg.fonttype": "none",
}
KEY = "Bars: poly, and below it the best peer of the case. Dots: the other peers. Hatched, with !: unsteady times."
UNSTEADY = "////"
"""The hatching of cases whose times remained unsteady."""
SLOT = 0.36
"""The height of a case in inches."""
HEAD = 0.95
"""The height of a panel without its cases, for title and axis, in inches."""
FOOT = 0.5
"""The part of HEAD below the bars, in inches."""
LABELS, BARS, FIGURES = 1.9, 3.9, 1.2
"""Widths in a panel, in inches: the cases' names, the bars, and the figures at the right."""
TOP = 1.05
"""The height above the panels, for the heading and the legend, in inches."""


def plot(rows: Sequence[Row], path: Path, caption: str) -> None:
    """Draw rows in the format of `--json`; the file's suffix selects the format. Rows without our figure are left out.

    A case has a bar for poly, a thinner one for the best peer, and a dot for each other peer. They are in percent of
    the measured peak; for stencils, which are far from it, of the compiler's speed. Unreliable cases are hatched.
    """
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    groups = panels(rows)
    columns = [c for c in balanced([(t, HEAD + SLOT * len(members)) for t, members in groups.items()]) if c]
    height = max(sum(inches for _, inches in column) for column in columns)
    total_width = len(columns) * (LABELS + BARS + FIGURES)
    total_height = height + TOP
    with pyplot.rc_context(STYLE):
        figure = pyplot.figure(figsize=(total_width, total_height))
        for number, column in enumerate(columns):
            left = number * (LABELS + BARS + FIGURES) + LABELS
            top = height
            for title, inches in column:
                bottom = top - inches + FOOT
                box = (left / total_width, bottom / total_height, BARS / total_width, (inches - HEAD) / total_height)
                _panel(figure.add_axes(box), title, groups[title])
                top -= inches
        figure.text(0.25 / total_width, 1 - 0.36 / total_height, "poly and its peers", fontsize=17, weight="bold")
        figure.text(2.95 / total_width, 1 - 0.36 / total_height, caption, fontsize=10, color=QUIET)
        figure.text(0.25 / total_width, 1 - 0.9 / total_height, KEY, fontsize=8, color=QUIET)
        _legend(figure, pyplot, groups, 1 - 0.45 / total_height)
        save(figure, path, dpi=160)
        pyplot.close(figure)


def panels(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """The rows of each panel by its title, in the order in which they were measured."""
    groups: dict[str, list[Row]] = {}
    for row in rows:
        if row["gflops"]:
            threads = f"{row['threads']} thread" + "s" * (row["threads"] > 1)
            groups.setdefault(f"{row['workload']}, {row['dtype']}, {threads}", []).append(row)
    return groups


def balanced(heights: Sequence[tuple[str, float]]) -> tuple[list[tuple[str, float]], list[tuple[str, float]]]:
    """Two columns of panels, in order, split so that the taller one is as short as possible."""
    cuts = range(1, len(heights) + 1)
    cut = min(cuts, key=lambda c: max(sum(h for _, h in heights[:c]), sum(h for _, h in heights[c:])))
    return list(heights[:cut]), list(heights[cut:])


def peers(row: Row) -> list[tuple[str, float]]:
    """The peers of a row with their GFLOP/s, the fastest first."""
    return sorted(((name, peer["gflops"]) for name, peer in row["peers"].items()), key=lambda pair: -pair[1])


def scale(row: Row) -> tuple[float, str]:
    """The divisor of a row's figures, and the unit that it gives: percent of the peak or of the compiler."""
    if row["workload"] == "stencil" and "gcc" in row["peers"]:
        return row["peers"]["gcc"]["gflops"] / 100, "percent of the speed of gcc -O3 -march=native"
    return row["gflops"] / row["peak_fraction"] / 100, "percent of the FMA peak, probed in the same run"


def _panel(axis: Any, title: str, rows: Sequence[Row]) -> None:
    longest = 100.0
    for place, row in enumerate(rows):
        unit, _ = scale(row)
        others = peers(row)
        ours = row["gflops"] / unit
        hatch = None if row["reliable"] else UNSTEADY
        axis.barh(place - 0.14, ours, height=0.42, color=COLOURS[OURS], zorder=2, hatch=hatch, edgecolor="white")
        if others:
            name, gflops = others[0]
            axis.barh(place + 0.21, gflops / unit, height=0.2, color=COLOURS[name], zorder=2)
        for name, gflops in others[1:]:
            axis.plot(
                gflops / unit, place + 0.21, "o", markersize=4, color=COLOURS[name], mec="white", mew=0.6, zorder=4
            )
        longest = max(longest, ours, *(gflops / unit for _, gflops in others))
    axis.axvline(100, color=INK, linewidth=1.1, linestyle=(0, (4, 3)), zorder=3)
    axis.set(xlim=(0, longest * 1.02), ylim=(len(rows) - 0.4, -0.6))
    axis.set_yticks(range(len(rows)), [row["size"] for row in rows])
    for place, row in enumerate(rows):
        ratio = row["ratio_to_best_peer"]
        against = ("" if ratio is None else f"   {ratio:.2f} x") + " !" * (not row["reliable"])
        axis.text(
            1.02, place, f"{row['gflops']:.1f}{against}", transform=axis.get_yaxis_transform(),
            va="center", fontsize=8, color=INK if ratio is None or ratio >= 1 else QUIET,
        )  # fmt: skip
    axis.text(1.02, -0.75, "GFLOP/s, vs best", transform=axis.get_yaxis_transform(), fontsize=7, color=QUIET)
    axis.set_xlabel(scale(rows[0])[1], fontsize=8)
    axis.set_title(title, loc="left", fontsize=12, weight="bold", pad=8)
    axis.grid(axis="x", color=GRID, linewidth=0.8)
    axis.set_axisbelow(True)
    axis.tick_params(length=0)
    for side in ("top", "right", "left"):
        axis.spines[side].set_visible(False)


def _legend(figure: Any, pyplot: Any, groups: Mapping[str, Sequence[Row]], top: float) -> None:
    used = {OURS, *(name for members in groups.values() for row in members for name in row["peers"])}
    names = [name for name in COLOURS if name in used]
    handles = [pyplot.Rectangle((0, 0), 1, 1, color=COLOURS[name]) for name in names]
    figure.legend(
        handles,
        names,
        loc="upper left",
        bbox_to_anchor=(0, top),
        ncols=len(names),
        frameon=False,
        handlelength=0.9,
        fontsize=10,
    )
