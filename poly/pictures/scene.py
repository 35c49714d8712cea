"""Scenes: dots, lines, boxes and texts at their places, as SVG with CSS classes, or drawn by matplotlib for other files.

A class says what a shape is (`flow`, `tile`, `tick`); its looks are in the style. On a page, shapes also carry the turns
at which they appear, for a script that steps through them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from math import hypot
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape, quoteattr

from poly.pictures.style import DARK_SHADES, SHADES, rules

if TYPE_CHECKING:
    from matplotlib.figure import Figure

HEAD = 6.0
"""The length of an arrow's head in pixels."""


@dataclass(frozen=True)
class Dot:
    """An iteration, or several at one place: their `turns`, a `shade` (None: not in an order), and a text for readers."""

    x: float
    y: float
    radius: float
    turns: tuple[int, ...] = ()
    shade: int | None = None
    tip: str = ""


@dataclass(frozen=True)
class Line:
    """A line from one point to another, bent by `bend` pixels, with a head if it is an arrow."""

    x1: float
    y1: float
    x2: float
    y2: float
    kind: str
    bend: float = 0.0
    arrow: bool = False
    turn: int | None = None


@dataclass(frozen=True)
class Box:
    """A frame around the iterations of a tile."""

    x: float
    y: float
    width: float
    height: float
    kind: str
    turns: tuple[int, ...] = ()


@dataclass(frozen=True)
class Text:
    """A text, whose first line begins at this point unless `anchor` says `middle` or `end`."""

    x: float
    y: float
    text: str
    kind: str
    anchor: str = "start"


Shape = Dot | Line | Box | Text


@dataclass(frozen=True)
class Scene:
    """Shapes, and the size of the picture in pixels. `label` says in words what it shows."""

    width: float
    height: float
    shapes: tuple[Shape, ...]
    label: str = ""


def shade(rank: int, count: int) -> int:
    """The shade of a dot by its rank among so many."""
    return min(len(SHADES) - 1, rank * len(SHADES) // max(1, count))


def moved(scene: Scene, right: float, down: float) -> tuple[Shape, ...]:
    """The shapes of a scene at another place."""

    def shape(one: Shape) -> Shape:
        if isinstance(one, Line):
            return replace(one, x1=one.x1 + right, x2=one.x2 + right, y1=one.y1 + down, y2=one.y2 + down)
        return replace(one, x=one.x + right, y=one.y + down)

    return tuple(map(shape, scene.shapes))


def beside(scenes: Iterable[Scene], label: str = "") -> Scene:
    """Scenes side by side."""
    shapes: list[Shape] = []
    right = low = 0.0
    for scene in scenes:
        shapes += moved(scene, right, 0.0)
        right, low = right + scene.width, max(low, scene.height)
    return Scene(right, low, tuple(shapes), label)


def svg(scene: Scene, alone: bool = True) -> str:
    """The scene as SVG: a file of its own with the light colours, or a part of a page, which has the rules."""
    width, height = f"{scene.width:.0f}", f"{scene.height:.0f}"
    space = f'viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" class="scene" {space} role="img" aria-label={quoteattr(scene.label)}>'
    ground = [f"<style>{rules(False)}</style>", '<rect width="100%" height="100%" fill="#ffffff"/>'] if alone else []
    return "\n".join([head, *ground, *(line for shape in scene.shapes for line in _svg(shape)), "</svg>\n"])


def _svg(shape: Shape) -> Iterator[str]:
    match shape:
        case Dot():
            yield from _dot(shape)
        case Line():
            yield from _line(shape)
        case Box(x, y, width, height, kind):
            where = f'x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}"'
            yield f'<rect class="{kind}" {where} rx="6"{_turns(shape.turns)}/>'
        case Text(x, y, text, kind, anchor):
            at = "" if anchor == "start" else f' text-anchor="{anchor}"'
            yield f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}"{at}>{escape(text)}</text>'


def _dot(dot: Dot) -> Iterator[str]:
    kind = "plain" if dot.shade is None else f"dot turn{dot.shade}"
    tip = f"<title>{escape(dot.tip)}</title>" if dot.tip else ""
    circle = f'<circle class="{kind}" cx="{dot.x:.1f}" cy="{dot.y:.1f}" r="{dot.radius:.1f}"{_turns(dot.turns)}'
    yield f"{circle}>{tip}</circle>" if tip else f"{circle}/>"
    if dot.turns and dot.shade is not None:
        strong = " strong" if dot.shade < DARK_SHADES else ""
        yield f'<text class="number{strong}" x="{dot.x:.1f}" y="{dot.y + 3.5:.1f}">{dot.turns[0] + 1}</text>'


def _turns(turns: tuple[int, ...]) -> str:
    return f' data-turns="{" ".join(map(str, turns))}"' if turns else ""


def _line(line: Line) -> Iterator[str]:
    turn = "" if line.turn is None else f' data-turn="{line.turn}"'
    (mx, my), end = _middle(line), _end(line)
    if line.bend:
        path = f"M{line.x1:.1f},{line.y1:.1f} Q{mx:.1f},{my:.1f} {end[0]:.1f},{end[1]:.1f}"
    else:
        path = f"M{line.x1:.1f},{line.y1:.1f} L{end[0]:.1f},{end[1]:.1f}"
    yield f'<path class="{line.kind}" d="{path}"{turn}/>'
    if line.arrow:
        points = " ".join(f"{x:.1f},{y:.1f}" for x, y in _head(line))
        yield f'<polygon class="{line.kind}-head" points="{points}"/>'


def _middle(line: Line) -> tuple[float, float]:
    """The control point of a bent line."""
    dx, dy = line.x2 - line.x1, line.y2 - line.y1
    length = hypot(dx, dy) or 1.0
    x, y = (line.x1 + line.x2) / 2, (line.y1 + line.y2) / 2
    return x - 2 * line.bend * dy / length, y + 2 * line.bend * dx / length


def _direction(line: Line) -> tuple[float, float]:
    """The direction in which a line ends."""
    x, y = _middle(line) if line.bend else (line.x1, line.y1)
    length = hypot(line.x2 - x, line.y2 - y) or 1.0
    return (line.x2 - x) / length, (line.y2 - y) / length


def _end(line: Line) -> tuple[float, float]:
    """Where a line's stroke ends: short of the tip of its head."""
    dx, dy = _direction(line)
    back = HEAD * 0.8 if line.arrow else 0.0
    return line.x2 - back * dx, line.y2 - back * dy


def _head(line: Line) -> tuple[tuple[float, float], ...]:
    dx, dy = _direction(line)
    x, y = line.x2 - HEAD * dx, line.y2 - HEAD * dy
    half = HEAD * 0.45
    return (line.x2, line.y2), (x - half * dy, y + half * dx), (x + half * dy, y - half * dx)


def figure(scene: Scene) -> Figure:
    """The scene as a figure of matplotlib, with the same looks as the SVG."""
    from matplotlib.figure import Figure

    made = Figure(figsize=(scene.width / 72, scene.height / 72), dpi=72)
    axes = made.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, scene.width), ylim=(scene.height, 0))
    axes.set_axis_off()
    looks = _looks()
    for shape in scene.shapes:
        for patch in _patches(shape, looks):
            axes.add_artist(patch)
    return made


Looks = dict[str, dict[str, str]]


def _looks() -> Looks:
    """The rules of the style by class: `{"flow": {"stroke": "#c62828", …}}`."""
    found: Looks = {}
    for selector, body in re.findall(r"\.scene ([^{]+?) \{([^}]*)\}", rules(False)):
        pairs = (item.partition(":") for item in body.split(";") if item.strip())
        found.setdefault(selector.strip().removeprefix("."), {}).update(
            {name.strip(): value.strip() for name, _, value in pairs}
        )
    return found


def _patches(shape: Shape, looks: Looks) -> Iterator[object]:
    from matplotlib import patches, path, patheffects, text

    match shape:
        case Dot(x, y, radius, turns, level):
            look = looks["plain"] if level is None else looks["dot"] | looks[f"turn{level}"]
            yield patches.Circle((x, y), radius, facecolor=look["fill"], edgecolor=look["stroke"], zorder=3)
            if turns and level is not None:
                ink = looks["strong" if level < DARK_SHADES else "text"]["fill"]
                yield text.Text(x, y, str(turns[0] + 1), color=ink, size=10, ha="center", va="center", zorder=4)
        case Line():
            look = looks[shape.kind]
            start, middle, end = (shape.x1, shape.y1), _middle(shape), _end(shape)
            curve = path.Path([start, middle, end], [1, 3, 3]) if shape.bend else path.Path([start, end])
            yield patches.PathPatch(curve, fill=False, zorder=2, **_stroke(look))
            if shape.arrow:
                yield patches.Polygon(_head(shape), closed=True, color=look["stroke"], zorder=4)
        case Box(x, y, width, height, kind):
            style = patches.BoxStyle("Round", pad=0, rounding_size=6)
            yield patches.FancyBboxPatch((x, y), width, height, boxstyle=style, fill=False, **_stroke(looks[kind]))
        case Text(x, y, words, kind, anchor):
            look = looks["text"] | looks.get(kind, {})
            size = float(re.search(r"(\d+)px", look.get("font-size", look["font"]))[1])  # type: ignore[index]
            side = {"start": "left", "middle": "center", "end": "right"}[anchor]
            family = "monospace" if "Mono" in look["font"] else "DejaVu Sans"
            halo = [patheffects.withStroke(linewidth=3, foreground=looks["strong"]["fill"])]
            where = {"size": size, "ha": side, "va": "baseline", "family": family}
            yield text.Text(x, y, words, color=look["fill"], path_effects=halo, zorder=5, **where)


def _stroke(look: dict[str, str]) -> dict[str, object]:
    dashes = [float(part) for part in look.get("stroke-dasharray", "").split()]
    width = float(look.get("stroke-width", "1"))
    return {
        "edgecolor": look["stroke"],
        "linewidth": width,
        "linestyle": (0, [dash / width for dash in dashes]) if dashes else "-",
    }
