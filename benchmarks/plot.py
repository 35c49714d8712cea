"""The plot of the results: a panel for each workload, with a bar for each contender, against the machine's peak."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from textwrap import wrap
from typing import Any

from poly.pictures.files import save, settled
from poly.pictures.style import INK, QUIET, SERIES, light

Row = Mapping[str, Any]

OURS = "poly"
COLOURS = {
    OURS: "orange",
    "numpy": "blue",
    "mkl": "sky",
    "torch": "purple",
    "onednn": "green",
    "blis": "yellow",
    "libxsmm": "teal",
    "gcc": "grey",
    "scipy": "red",
}
"""Colours of the contenders; others have those of `SERIES` in turn, from the end."""
KEY = (
    "Bars: poly, with the quartiles of its times, and below it the best peer of the case. Dots: the other peers. "
    "Right: GFLOP/s, and the speed relative to the best peer. Hatched, with !: unsteady times."
)
UNSTEADY = "////"
"""The hatching of cases whose times remained unsteady."""
SLOT = 0.36
"""The height of a case in inches."""
HEAD = 0.95
"""The height of a panel without its cases, for title and axis, in inches."""
FOOT = 0.5
"""The part of HEAD below the bars, in inches."""
LETTER, BARS, FIGURES = 0.09, 3.9, 1.5
"""Widths in a panel, in inches: a letter of the cases' names, the bars, and the figures at the right."""
FAR = 25.0
"""The percentage of the peak below which a panel ends at its longest bar instead of the peak."""
TOP, EDGE = 1.42, 0.25
"""The height above the panels, for the heading and the legend, and the margin at the left, in inches."""


def plot(rows: Sequence[Row], path: Path, caption: str) -> None:
    """Draw rows in the format of `--json`; the file's suffix selects the format. Rows without our figure are left out.

    A case has a bar for poly, a thinner one for the best peer, and a dot for each other peer. They are in percent of
    the measured peak; for stencils, which are far from it, of the compiler's speed. Unreliable cases are hatched.
    """
    settled()
    from matplotlib.figure import Figure

    groups = panels(rows)
    columns = [c for c in balanced([(t, HEAD + SLOT * len(members)) for t, members in groups.items()]) if c]
    height = max(sum(inches for _, inches in column) for column in columns)
    labels = LETTER * max(len(row["size"]) for members in groups.values() for row in members)
    panel_width = labels + BARS + FIGURES
    total_width = len(columns) * panel_width
    total_height = height + TOP
    colours = _colours(groups)
    figure = Figure(figsize=(total_width, total_height))
    for number, column in enumerate(columns):
        left = number * panel_width + labels
        top = height
        for title, inches in column:
            bottom = top - inches + FOOT
            box = (left / total_width, bottom / total_height, BARS / total_width, (inches - HEAD) / total_height)
            _panel(figure.add_axes(box), title, groups[title], colours)
            top -= inches
    edge = EDGE / total_width
    figure.text(edge, 1 - 0.38 / total_height, "poly and its peers", fontsize=17, weight="bold")
    words = wrap(KEY, int(16 * total_width))
    figure.text(edge, 1 - 0.61 / total_height, caption, fontsize=10, color=QUIET)
    figure.text(edge, 1 - 1.13 / total_height, "\n".join(words), fontsize=8.5, color=QUIET, va="top")
    _legend(figure, colours, (edge, 1 - 0.78 / total_height))
    save(figure, path)


def _colours(groups: Mapping[str, Sequence[Row]]) -> dict[str, str]:
    """The colour of each contender, in the order of the legend."""
    used = dict.fromkeys(name for members in groups.values() for row in members for name in row["peers"])
    known = [name for name in COLOURS if name == OURS or name in used]
    others = [name for name in used if name not in COLOURS]
    more = zip(others, [*reversed(SERIES), *["grey"] * len(others)], strict=False)
    return {**{name: light(COLOURS[name]) for name in known}, **{name: light(colour) for name, colour in more}}


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


def scale(row: Row) -> tuple[float, str, str]:
    """The divisor of a row's figures, the unit that it gives, and what 100 of it are: the peak, or the compiler."""
    if row["workload"] == "stencil" and "gcc" in row["peers"]:
        return row["peers"]["gcc"]["gflops"] / 100, "percent of the speed of gcc -O3 -march=native", "gcc"
    return row["gflops"] / row["peak_fraction"] / 100, "percent of the FMA peak, probed in the same run", "FMA peak"


def _panel(axis: Any, title: str, rows: Sequence[Row], colours: Mapping[str, str]) -> None:
    longest = 0.0
    for place, row in enumerate(rows):
        unit, *_ = scale(row)
        others = peers(row)
        ours = row["gflops"] / unit
        hatch = None if row["reliable"] else UNSTEADY
        axis.barh(place - 0.14, ours, height=0.42, color=colours[OURS], zorder=2, hatch=hatch, edgecolor="white")
        _spread(axis, ours, place - 0.14, row)
        if others:
            name, gflops = others[0]
            axis.barh(place + 0.21, gflops / unit, height=0.2, color=colours[name], zorder=2)
            _spread(axis, gflops / unit, place + 0.21, row["peers"][name])
        for name, gflops in others[1:]:
            axis.plot(
                gflops / unit, place + 0.21, "o", markersize=4, color=colours[name], mec="white", mew=0.6, zorder=4
            )
        longest = max(longest, ours * (1 + row.get("spread", 0.0)), *(gflops / unit for _, gflops in others))
    _, unit_name, whole = scale(rows[0])
    if longest >= FAR:
        longest = max(longest, 100.0)
        axis.axvline(100, color=INK, linewidth=1.1, linestyle=(0, (4, 3)), zorder=3)
        axis.text(100, -0.68, whole, ha="right" if longest <= 100 else "center", va="bottom", fontsize=8, color=INK)
    axis.set(xlim=(0, longest * 1.03), ylim=(len(rows) - 0.4, -0.6))
    axis.set_yticks(range(len(rows)), [row["size"] for row in rows])
    for place, row in enumerate(rows):
        where = axis.get_yaxis_transform()
        axis.text(1.02, place, figures(row), transform=where, va="center", fontsize=8, color=INK)
    axis.set_xlabel(unit_name, fontsize=8)
    axis.set_title(title, fontsize=12, pad=16)
    axis.grid(axis="x")


def _spread(axis: Any, value: float, place: float, timed: Row) -> None:
    """The quartiles around a speed, if they are known: `spread` is half their distance, relative to the median."""
    spread = timed.get("spread")
    if spread:
        axis.errorbar(value, place, xerr=value * spread, color=INK, elinewidth=1.1, capsize=2, zorder=3)


def figures(row: Row) -> str:
    """`94.4   0.93 ± 0.02 x !`."""
    ratio, spread = row["ratio_to_best_peer"], row.get("ratio_spread")
    around = f" ± {ratio * spread:.2f}" if ratio is not None and spread is not None else ""
    against = "" if ratio is None else f"   {ratio:.2f}{around} x"
    return f"{row['gflops']:.1f}{against}{'' if row['reliable'] else ' !'}"


def _legend(figure: Any, colours: Mapping[str, str], place: tuple[float, float]) -> None:
    from matplotlib.patches import Rectangle

    handles = [Rectangle((0, 0), 1, 1, color=colour) for colour in colours.values()]
    figure.legend(
        handles, list(colours), loc="upper left", bbox_to_anchor=place, ncols=len(colours), frameon=False,
        handlelength=0.9, fontsize=10, borderaxespad=0, borderpad=0,
    )  # fmt: skip
