"""Scenes drawn by matplotlib, with the same looks as their SVG, for files in other formats."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from matplotlib import patches, path, patheffects, text
from matplotlib.artist import Artist
from matplotlib.figure import Figure

from poly.pictures.scene import Dot, Outline, Scene, Shape, Stroke, Text, end, middle, tip
from poly.pictures.style import DARK_SHADES, rules

Look = dict[str, str]
ROUND = 6
"""The radius of a box's corners in pixels."""


def figure(scene: Scene) -> Figure:
    """The scene as a figure."""
    made = Figure(figsize=(scene.width / 72, scene.height / 72), dpi=72)
    axes = made.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, scene.width), ylim=(scene.height, 0))
    axes.set_axis_off()
    looks = _looks()
    for shape in scene.shapes:
        for artist in _artists(shape, looks):
            axes.add_artist(artist)
    return made


def _looks() -> dict[str, Look]:
    """The rules of the style by class: `{"flow": {"stroke": "#c62828", …}}`."""
    found: dict[str, Look] = {}
    for selectors, body in re.findall(r"((?:\.scene [^{,]+,? ?)+)\{([^}]*)\}", rules(False)):
        pairs = (item.partition(":") for item in body.split(";") if item.strip())
        look = {name.strip(): value.strip() for name, _, value in pairs}
        for selector in selectors.split(","):
            found.setdefault(selector.strip().removeprefix(".scene ").removeprefix("."), {}).update(look)
    return found


def _artists(shape: Shape, looks: dict[str, Look]) -> Iterator[Artist]:
    match shape:
        case Dot():
            yield from _dot(shape, looks)
        case Stroke():
            curve = path.Path([(shape.x1, shape.y1), middle(shape), end(shape)], [1, 3, 3])
            straight = path.Path([(shape.x1, shape.y1), end(shape)])
            stroke = _stroke(looks[shape.kind])
            yield patches.PathPatch(curve if shape.bend else straight, fill=False, zorder=2, **stroke)
            if shape.arrow:
                yield patches.Polygon(tip(shape), closed=True, color=looks[shape.kind]["stroke"], zorder=4)
        case Outline():
            style: Any = f"Round,pad=0,rounding_size={ROUND}"
            stroke = _stroke(looks[shape.kind])
            where = (shape.x, shape.y)
            yield patches.FancyBboxPatch(where, shape.width, shape.height, boxstyle=style, fill=False, **stroke)
        case Text():
            yield _text(shape, looks)


def _dot(dot: Dot, looks: dict[str, Look]) -> Iterator[Artist]:
    look = looks["plain"] if dot.shade is None else looks["dot"] | looks[f"turn{dot.shade}"]
    spot = (dot.x, dot.y)
    yield patches.Circle(spot, dot.radius, facecolor=look["fill"], edgecolor=look["stroke"], zorder=3)
    if dot.turns and dot.shade is not None:
        ink = looks["strong" if dot.shade < DARK_SHADES else "text"]["fill"]
        yield text.Text(*spot, str(dot.turns[0] + 1), color=ink, size=10, ha="center", va="center", zorder=4)


def _text(shape: Text, looks: dict[str, Look]) -> Artist:
    look = looks["text"] | looks[shape.kind]
    size = re.search(r"(\d+)px", look.get("font-size", look["font"]))
    halo = [patheffects.withStroke(linewidth=3, foreground=looks["strong"]["fill"])]
    more: dict[str, Any] = {
        "ha": {"start": "left", "middle": "center", "end": "right"}[shape.anchor],
        "family": "monospace" if "Mono" in look["font"] else "DejaVu Sans",
        "size": float(size[1]) if size else None,
    }
    return text.Text(shape.x, shape.y, shape.text, color=look["fill"], path_effects=halo, zorder=5, **more)


def _stroke(look: Look) -> dict[str, Any]:
    dashes = [float(part) for part in look.get("stroke-dasharray", "").split()]
    width = float(look.get("stroke-width", "1"))
    style = (0, [dash / width for dash in dashes]) if dashes else "-"
    return {"edgecolor": look["stroke"], "linewidth": width, "linestyle": style}
