"""Scenes: dots, lines, boxes and texts at their places in pixels.

The kind of a shape says what it is (`flow`, `tile`, `tick`); its looks are in the style.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from math import hypot

from poly.pictures.style import SHADES

HEAD = 6.0
"""The length of an arrow's head in pixels."""


@dataclass(frozen=True)
class Dot:
    """An iteration, or several at one place: their `turns`, and a `shade` (None: not in an order)."""

    x: float
    y: float
    radius: float
    turns: tuple[int, ...] = ()
    shade: int | None = None


@dataclass(frozen=True)
class Stroke:
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
class Outline:
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


Shape = Dot | Stroke | Outline | Text


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
        if isinstance(one, Stroke):
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


def middle(line: Stroke) -> tuple[float, float]:
    """The control point of a bent line."""
    dx, dy = line.x2 - line.x1, line.y2 - line.y1
    length = hypot(dx, dy) or 1.0
    x, y = (line.x1 + line.x2) / 2, (line.y1 + line.y2) / 2
    return x - 2 * line.bend * dy / length, y + 2 * line.bend * dx / length


def _direction(line: Stroke) -> tuple[float, float]:
    """The direction in which a line ends."""
    x, y = middle(line) if line.bend else (line.x1, line.y1)
    length = hypot(line.x2 - x, line.y2 - y) or 1.0
    return (line.x2 - x) / length, (line.y2 - y) / length


def end(line: Stroke) -> tuple[float, float]:
    """Where a line's stroke ends: short of the tip of its head."""
    dx, dy = _direction(line)
    back = HEAD * 0.8 if line.arrow else 0.0
    return line.x2 - back * dx, line.y2 - back * dy


def tip(line: Stroke) -> tuple[tuple[float, float], ...]:
    """The corners of an arrow's head."""
    dx, dy = _direction(line)
    x, y = line.x2 - HEAD * dx, line.y2 - HEAD * dy
    half = HEAD * 0.45
    return (line.x2, line.y2), (x - half * dy, y + half * dx), (x + half * dy, y - half * dx)
