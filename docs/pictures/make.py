"""Draw the order in which the iterations of a schedule run, as SVG files beside this one.

    python docs/pictures/make.py

The numbers come from running the loops that `print(schedule)` shows, so a picture shows what a step really does. The
iterations run from dark to light. A line joins each iteration with the next one, and is dashed where it jumps. Red
arrows are dependences.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import poly
from poly import f64

M, N, T = poly.sizes("M N T")
CELL, MARGIN, TITLE, RADIUS = 34, 30, 40, 11
"""Pixels: from one iteration to the next, around a panel, above it, and of a dot."""

Point = tuple[int, ...]


@poly.nest
def copy(A: f64[M, N], B: f64[M, N]):
    for i in range(M):
        for j in range(N):
            B[i, j] = A[i, j]


@poly.nest
def chain(A: f64[N], X: f64[N], Y: f64[N]):
    for i in range(N):
        X[i] = 2.0 * A[i]
    for j in range(N):
        Y[j] = X[j] + 1.0


@poly.nest
def late(A: f64[N + 1], X: f64[N + 1], Y: f64[N]):
    for i in range(N + 1):
        X[i] = 2.0 * A[i]
    for j in range(N):
        Y[j] = X[j + 1]


@poly.nest
def wave(u: f64[T, N]):
    for t in range(1, T):
        for x in range(N - 1):
            u[t, x] = u[t - 1, x + 1] + u[t - 1, x]


@dataclass(frozen=True)
class Panel:
    """The order of a schedule, over the elements that it writes or over the values of its loops."""

    title: str
    schedule: poly.Schedule
    axes: tuple[str, str]
    """What goes down, and what goes to the right: names of loops where `by_loops`, else only labels."""
    by_loops: bool = False
    distances: tuple[Point, ...] = ()
    """Dependences to draw, from each point to the one at this distance."""


@dataclass(frozen=True)
class Array:
    """Stands for an array: remembers where it is written, and is 0 everywhere."""

    row: int | None
    """Where arrays of one dimension are drawn below each other."""
    panel: Panel
    values: dict[str, object]
    visited: list[Point]

    def __getitem__(self, index: object) -> float:
        return 0.0

    def __setitem__(self, index: int | Point, value: float) -> None:
        if self.panel.by_loops:
            self.visited.append(tuple(int(str(self.values[axis])) for axis in self.panel.axes))
        elif isinstance(index, tuple):
            self.visited.append(index)
        else:
            assert self.row is not None
            self.visited.append((self.row, index))


def visits(panel: Panel) -> list[Point]:
    """The points in the order in which the printed loops visit them."""
    visited: list[Point] = []
    values: dict[str, object] = {}
    written = dict.fromkeys(statement.target.array for statement in panel.schedule.nest.statements)
    rows = {name: row for row, name in enumerate(written)}
    for array in panel.schedule.nest.arrays:
        values[array.name] = Array(rows.get(array.name), panel, values, visited)
    exec(str(panel.schedule), values)
    return visited


def circle(point: Point, number: int, count: int, x: float, y: float) -> str:
    """A dot with the number of its turn."""
    share = number / max(1, count - 1)
    red, green, blue = (round(a + (b - a) * share) for a, b in zip((23, 54, 120), (214, 230, 250), strict=True))
    ink = "#ffffff" if share < 0.55 else "#10243f"
    return (
        f'<circle cx="{x:g}" cy="{y:g}" r="{RADIUS}" fill="rgb({red},{green},{blue})" stroke="#17366e"/>'
        f'<text x="{x:g}" y="{y + 3.5:g}" font-size="10" text-anchor="middle" fill="{ink}">{number + 1}</text>'
    )


def label(x: float, y: float, text: str) -> str:
    return f'<text x="{x:g}" y="{y:g}" font-size="11" fill="#555">{text}</text>'


def drawn(panel: Panel, left: float) -> tuple[list[str], float, float]:
    """The panel as SVG elements, its right edge and its lower edge."""
    points = visits(panel)
    top_row, left_column = (min(p[axis] for p in points) for axis in (0, 1))
    bottom_row, right_column = (max(p[axis] for p in points) for axis in (0, 1))
    inner = left + MARGIN

    def place(point: Point) -> tuple[float, float]:
        return inner + CELL * (point[1] - left_column + 0.5), TITLE + MARGIN + CELL * (point[0] - top_row + 0.5)

    down, across = panel.axes
    lines = [
        f'<text x="{inner:g}" y="22" font-size="12" font-family="monospace">{panel.title}</text>',
        label(inner, TITLE + 14, f"{across} &#8594;"),
        label(left + 8, TITLE + MARGIN + 20, down),
        label(left + 8, TITLE + MARGIN + 34, "&#8595;"),
    ]
    for one, other in pairwise(points):
        (x1, y1), (x2, y2) = place(one), place(other)
        jump = max(abs(a - b) for a, b in zip(one, other, strict=True)) > 1
        style = 'stroke="#9aa7bd" stroke-dasharray="3 3"' if jump else 'stroke="#17366e" stroke-width="1.6"'
        lines.append(f'<line x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}" {style}/>')
    lines += [circle(p, n, len(points), *place(p)) for n, p in enumerate(points)]
    lines += [arrow(place(a), place(b)) for a, b in dependences(panel, points)]
    return lines, place((0, right_column))[0] + CELL, place((bottom_row, 0))[1] + CELL


def dependences(panel: Panel, points: list[Point]) -> Iterator[tuple[Point, Point]]:
    for point in points:
        for distance in panel.distances:
            sink = tuple(a + b for a, b in zip(point, distance, strict=True))
            if sink in points:
                yield point, sink


def arrow(source: tuple[float, float], sink: tuple[float, float]) -> str:
    """A red arrow from the rim of one dot to the rim of another."""
    (x1, y1), (x2, y2) = source, sink
    length = ((x2 - x1) ** 2 + (y2 - y1) ** 2) ** 0.5
    dx, dy = (x2 - x1) / length * (RADIUS + 1), (y2 - y1) / length * (RADIUS + 1)
    ends = f'x1="{x1 + dx:.1f}" y1="{y1 + dy:.1f}" x2="{x2 - dx:.1f}" y2="{y2 - dy:.1f}"'
    return f'<line {ends} stroke="#c62828" stroke-width="1.2" marker-end="url(#arrow)"/>'


def picture(panels: tuple[Panel, ...]) -> str:
    """The panels side by side as an SVG file."""
    body: list[str] = []
    right = bottom = 0.0
    for panel in panels:
        lines, edge, low = drawn(panel, right)
        body += lines
        right = max(edge, right + 2 * MARGIN + 7.3 * len(panel.title))
        bottom = max(bottom, low)
    size = f'width="{right:.0f}" height="{bottom:.0f}"'
    head = '<marker id="arrow" viewBox="0 0 6 6" refX="5" refY="3" markerWidth="6" markerHeight="6" orient="auto">'
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="DejaVu Sans, sans-serif">',
            f'<defs>{head}<path d="M0,0 L6,3 L0,6 z" fill="#c62828"/></marker></defs>',
            '<rect width="100%" height="100%" fill="#ffffff"/>',
            *body,
            "</svg>\n",
        ]
    )


def pictures() -> dict[str, str]:
    """All pictures, by the names of their files."""
    square = poly.schedule(copy.with_sizes({"M": 4, "N": 6}))
    two, two_late = poly.schedule(chain.with_sizes({"N": 6})), poly.schedule(late.with_sizes({"N": 5}))
    steps = poly.schedule(wave.with_sizes({"T": 5, "N": 6}))
    elements, rows, time = ("i", "j"), ("X, Y", "index"), ("t", "x")
    skewed = steps.skew("x", by="t")
    fused = two.fuse("S0", "S1", at="i")
    reads = ((1, -1), (1, 0))
    made: dict[str, tuple[Panel, ...]] = {
        "interchange": (
            Panel("schedule(copy)", square, elements),
            Panel('.interchange("i", "j")', square.interchange("i", "j"), elements),
        ),
        "tile": (
            Panel("schedule(copy)", square, elements),
            Panel(".tile(i=2, j=3)", square.tile(i=2, j=3), elements),
        ),
        "order": (
            Panel(".split(j=3)", square.split(j=3), elements),
            Panel('.split(j=3).order("j_tile i j")', square.split(j=3).order("j_tile i j"), elements),
        ),
        "reverse": (
            Panel("schedule(copy)", square, elements),
            Panel('.reverse("j")', square.reverse("j"), elements),
        ),
        "skew": (
            Panel("schedule(wave)", steps, time, distances=reads),
            Panel('.skew("x", by="t")', skewed, time, by_loops=True, distances=((1, 0), (1, 1))),
            Panel('.interchange("t", "x")', skewed.interchange("t", "x"), time, True, ((1, 0), (1, 1))),
        ),
        "fuse": (
            Panel("schedule(chain)", two, rows),
            Panel('.fuse("S0", "S1", at="i")', fused, rows, distances=((1, 0),)),
        ),
        "shift": (
            Panel("schedule(late)", two_late, rows, distances=((1, -1),)),
            Panel('.shift("j", by=1).fuse("S0", "S1", at="i")', shifted(two_late), rows, distances=((1, -1),)),
        ),
        "distribute": (
            Panel('.fuse("S0", "S1", at="i")', fused, rows),
            Panel('.distribute("i")', fused.distribute("i"), rows, distances=((1, 0),)),
        ),
    }
    return {f"{name}.svg": picture(panels) for name, panels in made.items()}


def shifted(schedule: poly.Schedule) -> poly.Schedule:
    return schedule.shift("j", by=1).fuse("S0", "S1", at="i")


if __name__ == "__main__":
    for name, text in pictures().items():
        (Path(__file__).parent / name).write_text(text)
