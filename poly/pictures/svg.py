"""Scenes as SVG with CSS classes.

On a page, shapes also carry the turns at which they appear, for a script that steps through them.
"""

from __future__ import annotations

from collections.abc import Iterator
from xml.sax.saxutils import escape, quoteattr

from poly.pictures.scene import Dot, Outline, Scene, Shape, Stroke, Text, end, middle, tip
from poly.pictures.style import DARK_SHADES, rules


def svg(scene: Scene, alone: bool = True) -> str:
    """The scene as SVG: a file of its own with the light colours, or a part of a page, which has the rules."""
    width, height = f"{scene.width:.0f}", f"{scene.height:.0f}"
    space = f'viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="scene" {space} role="img" aria-label={quoteattr(scene.label)}>'
    )
    ground = [f"<style>{rules(False)}</style>", '<rect width="100%" height="100%" fill="#ffffff"/>'] if alone else []
    return "\n".join([head, *ground, *(line for shape in scene.shapes for line in _svg(shape)), "</svg>\n"])


def _svg(shape: Shape) -> Iterator[str]:
    match shape:
        case Dot():
            yield from _dot(shape)
        case Stroke():
            yield from _line(shape)
        case Outline(x, y, width, height, kind):
            where = f'x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}"'
            yield f'<rect class="{kind}" {where} rx="6"{_turns(shape.turns)}/>'
        case Text(x, y, text, kind, anchor):
            at = "" if anchor == "start" else f' text-anchor="{anchor}"'
            yield f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}"{at}>{escape(text)}</text>'


def _dot(dot: Dot) -> Iterator[str]:
    kind = "plain" if dot.shade is None else f"dot turn{dot.shade}"
    yield f'<circle class="{kind}" cx="{dot.x:.1f}" cy="{dot.y:.1f}" r="{dot.radius:.1f}"{_turns(dot.turns)}/>'
    if dot.turns and dot.shade is not None:
        strong = " strong" if dot.shade < DARK_SHADES else ""
        yield f'<text class="number{strong}" x="{dot.x:.1f}" y="{dot.y + 3.5:.1f}">{dot.turns[0] + 1}</text>'


def _turns(turns: tuple[int, ...]) -> str:
    return f' data-turns="{" ".join(map(str, turns))}"' if turns else ""


def _line(line: Stroke) -> Iterator[str]:
    turn = "" if line.turn is None else f' data-turn="{line.turn}"'
    (mx, my), (x, y) = middle(line), end(line)
    if line.bend:
        path = f"M{line.x1:.1f},{line.y1:.1f} Q{mx:.1f},{my:.1f} {x:.1f},{y:.1f}"
    else:
        path = f"M{line.x1:.1f},{line.y1:.1f} L{x:.1f},{y:.1f}"
    yield f'<path class="{line.kind}" d="{path}"{turn}/>'
    if line.arrow:
        points = " ".join(f"{x:.1f},{y:.1f}" for x, y in tip(line))
        yield f'<polygon class="{line.kind}-head" points="{points}"/>'
