"""The style of all pictures: colours for light and dark, and matplotlib's settings.

A chart is drawn in the light colours. On a page they become CSS variables, so that they follow the reader's scheme.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Colour:
    """A colour on light and on dark paper. No two have the same light value, by which a chart's colours are known."""

    light: str
    dark: str


PALETTE = {
    "paper": Colour("#ffffff", "#13161d"),
    "ink": Colour("#1f2430", "#e8eaf0"),
    "quiet": Colour("#596273", "#a3adbf"),
    "grid": Colour("#e3e6eb", "#313744"),
    "orange": Colour("#e4572e", "#ff8159"),
    "blue": Colour("#4c78a8", "#7fb0e6"),
    "sky": Colour("#9ecae9", "#4f86b8"),
    "purple": Colour("#b279a2", "#d59cc6"),
    "green": Colour("#54a24b", "#7ccc72"),
    "yellow": Colour("#d9a514", "#f0c544"),
    "teal": Colour("#439894", "#6cc5c0"),
    "grey": Colour("#8f8f94", "#8b93a3"),
    "red": Colour("#c62828", "#ff7b72"),
}
"""All colours, by name."""

SHADES = (
    Colour("#173678", "#a9c8ff"),
    Colour("#2f4e8f", "#94b6f2"),
    Colour("#4a69a6", "#7fa3e4"),
    Colour("#6684bb", "#6b90d4"),
    Colour("#839fcf", "#597dc1"),
    Colour("#a0b9df", "#486bac"),
    Colour("#bcd1ec", "#395994"),
    Colour("#d6e6fa", "#2c487b"),
)
"""From the first turn to the last: towards the paper, in either scheme."""

DARK_SHADES = 4
"""So many of the shades are strong: the numbers on them have the paper's colour."""

SERIES = ("orange", "blue", "purple", "green", "teal", "yellow", "sky", "red")
"""The colours of things that have no colour of their own, in turn; what is left over is grey."""

INK, QUIET, GRID, PAPER = (PALETTE[name].light for name in ("ink", "quiet", "grid", "paper"))
FONTS = ("Inter", "Helvetica Neue", "Arial", "DejaVu Sans")

SETTINGS: dict[Any, Any] = {
    "font.family": "sans-serif",
    "font.sans-serif": list(FONTS),
    "font.size": 9,
    "text.color": INK,
    "figure.facecolor": PAPER,
    "axes.facecolor": PAPER,
    "axes.edgecolor": GRID,
    "axes.labelcolor": QUIET,
    "axes.titlelocation": "left",
    "axes.titlesize": 11,
    "axes.titleweight": "bold",
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.spines.left": False,
    "grid.color": GRID,
    "grid.linewidth": 0.8,
    "legend.frameon": False,
    "legend.fontsize": 8.5,
    "xtick.color": QUIET,
    "ytick.color": INK,
    "xtick.major.size": 0,
    "ytick.major.size": 0,
    "xtick.minor.size": 0,
    "ytick.minor.size": 0,
    "svg.fonttype": "none",
    "svg.hashsalt": "poly",
}
"""matplotlib's settings for every chart; the salt makes the same file of the same chart."""


def light(name: str) -> str:
    """The light value of a colour, as charts use it."""
    return PALETTE[name].light


def variables() -> str:
    """The colours as CSS variables, for either scheme."""
    return (
        f":root {{ color-scheme: light dark; {' '.join(_values('light'))} }}\n"
        f"@media (prefers-color-scheme: dark) {{ :root {{ {' '.join(_values('dark'))} }} }}"
    )


def _values(scheme: str) -> Iterator[str]:
    for name, colour in _named().items():
        yield f"--{name}: {getattr(colour, scheme)};"


def _named() -> dict[str, Colour]:
    return PALETTE | {f"turn{number}": colour for number, colour in enumerate(SHADES)}


def with_variables(svg: str) -> str:
    """The SVG of a chart with variables in place of its colours."""
    names = {colour.light: name for name, colour in PALETTE.items()}
    return re.sub(r"#[0-9a-f]{6}\b", lambda found: f"var(--{names[found[0]]})" if found[0] in names else found[0], svg)


def rules(variable: bool) -> str:
    """The CSS of scenes; without `variable`, with the light colours in it, for a file on its own."""
    made = RULES.replace("\n", " ").strip()
    if variable:
        return made
    light = {name: colour.light for name, colour in _named().items()}
    return re.sub(r"var\(--(\w+)\)", lambda found: light[found[1]], made)


RULES = """
.scene text { font: 10px "DejaVu Sans", Arial, sans-serif; fill: var(--ink); }
.scene .title, .scene .axis, .scene .tick { paint-order: stroke; stroke: var(--paper); stroke-width: 3; }
.scene .title { font: 12px "DejaVu Sans Mono", monospace; }
.scene .axis { font-size: 11px; fill: var(--quiet); }
.scene .tick { font-size: 9px; fill: var(--quiet); }
.scene .number { text-anchor: middle; }
.scene .strong { fill: var(--paper); }
.scene .dot { stroke: var(--turn0); }
.scene .plain { fill: var(--paper); stroke: var(--quiet); }
.scene .next { stroke: var(--turn0); stroke-width: 1.6; fill: none; }
.scene .jump { stroke: var(--grey); stroke-dasharray: 3 3; fill: none; }
.scene .flow { stroke: var(--red); fill: none; stroke-width: 1.3; }
.scene .anti { stroke: var(--blue); fill: none; stroke-width: 1.3; }
.scene .output { stroke: var(--purple); fill: none; stroke-width: 1.3; }
.scene .reduction { stroke: var(--grey); fill: none; stroke-width: 1.3; stroke-dasharray: 4 2; }
.scene .flow-head { fill: var(--red); } .scene .anti-head { fill: var(--blue); }
.scene .output-head { fill: var(--purple); } .scene .reduction-head { fill: var(--grey); }
.scene .tile { fill: none; stroke: var(--teal); stroke-width: 1.8; }
.scene .block { fill: none; stroke: var(--orange); stroke-width: 2.2; stroke-dasharray: 7 3; }
""" + "\n".join(f".scene .turn{number} {{ fill: var(--turn{number}); }}" for number in range(len(SHADES)))
