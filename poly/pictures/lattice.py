"""Iterations drawn as dots on lattices: one panel for each statement, in which two of its loops are the axes.

Statements with one loop are rows of one panel. If a statement has more loops than are drawn, a dot stands for all
iterations that agree in the two.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import gcd
from textwrap import wrap

from poly.pictures.scene import Dot, Outline, Scene, Shape, Stroke, Text, moved, shade

CELL, RADIUS, MARGIN, TITLE, GAP = 34.0, 11.0, 30.0, 24.0, 10.0
"""Pixels: from one iteration to the next, of a dot, around a panel, of its title, and between panels."""
FULL = 360.0
"""The width at which panels are put below each other: that of a phone."""
NOTE = 72
"""The most letters of a line of a note."""
LETTER = 7.3
"""The width of a title's letter."""


@dataclass(frozen=True)
class Place:
    """A position: a panel by its number, a row and a column."""

    panel: int
    row: int
    column: int


@dataclass(frozen=True)
class LatticePanel:
    """A lattice of its own: its title, the names of the axes, and names for its rows if these are not numbers."""

    title: str
    down: str
    across: str
    rows: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Arrow:
    """A dependence of one place on another, with its kind."""

    source: Place
    sink: Place
    kind: str


@dataclass(frozen=True)
class Frame:
    """The frame of a block of iterations: where it lies, the turns in which it runs, and its kind."""

    places: frozenset[Place]
    turns: tuple[int, ...]
    kind: str


@dataclass(frozen=True)
class Lattice:
    """What to draw. `order` has the place of each turn, or of each iteration if `numbered` is false."""

    panels: tuple[LatticePanel, ...]
    order: tuple[Place, ...]
    arrows: tuple[Arrow, ...] = ()
    frames: tuple[Frame, ...] = ()
    numbered: bool = True
    label: str = ""
    said: tuple[str, ...] = ()
    """For each turn, what runs."""


def drawn(lattice: Lattice, full: float | None = FULL) -> Scene:
    """The lattice as a scene; panels are put side by side as far as `full` pixels allow (None: all of them)."""
    turns: dict[Place, list[int]] = {}
    for turn, place in enumerate(lattice.order):
        turns.setdefault(place, []).append(turn)
    grids = [_grid(lattice, number, list(turns), full) for number in range(len(lattice.panels))]
    right = top = low = width = 0.0
    for at, grid in enumerate(grids):
        if full is not None and right and right + grid.width > full:
            right, top = 0.0, low + GAP
        grids[at] = grid = grid.at(right, top)
        right, low = right + grid.width, max(low, top + grid.height)
        width = max(width, right)
    shapes: list[Shape] = [*_frames(lattice, grids)]
    shapes += _steps(lattice, grids) if lattice.numbered else ()
    for number, (place, found) in enumerate(turns.items()):
        level = shade(number, len(turns)) if lattice.numbered else None
        own = tuple(found) if lattice.numbered else ()
        shapes.append(Dot(*grids[place.panel].spot(place), grids[place.panel].radius, own, level))
    shapes += _arrows(lattice, grids)
    shapes += (shape for grid in grids for shape in grid.axes())
    return Scene(width, low, tuple(shapes), lattice.label)


@dataclass(frozen=True)
class _Grid:
    """Where a panel's places lie in the picture."""

    panel: LatticePanel
    rows: range
    columns: range
    cell: float
    left: float = 0.0
    top: float = 0.0

    @property
    def margin(self) -> float:
        named = max((len(name) for name in self.panel.rows or ()), default=0)
        return max(MARGIN + 6, 14 + 6.2 * named)

    @property
    def width(self) -> float:
        return max(self.margin + self.cell * len(self.columns) + 12, 16 + LETTER * len(self.panel.title))

    @property
    def height(self) -> float:
        return TITLE + MARGIN + self.cell * len(self.rows) + 6

    @property
    def radius(self) -> float:
        return min(RADIUS, self.cell * RADIUS / CELL)

    def at(self, left: float, top: float) -> _Grid:
        return _Grid(self.panel, self.rows, self.columns, self.cell, left, top)

    def spot(self, place: Place) -> tuple[float, float]:
        """The centre of a place in pixels."""
        return (
            self.left + self.margin + self.cell * (place.column - self.columns.start + 0.5),
            self.top + TITLE + MARGIN + self.cell * (place.row - self.rows.start + 0.5),
        )

    def axes(self) -> Iterator[Shape]:
        """The title, the names of the axes, and the values along them."""
        panel, (x, y) = self.panel, self.spot(Place(0, self.rows.start, self.columns.start))
        edge = self.top + TITLE + 10
        yield Text(self.left + 8, self.top + 16, panel.title, "title")
        if panel.across:
            yield Text(self.left + self.margin - 4, edge, f"{panel.across} →", "axis")
        if panel.down:
            yield Text(self.left + 6, edge, f"{panel.down} ↓", "axis")
        if panel.across:
            for column in self.columns:
                at = x + self.cell * (column - self.columns.start)
                yield Text(at, y - self.radius - 5, str(column), "tick", "middle")
        for row in self.rows if panel.down or panel.rows else ():
            name = panel.rows[row] if panel.rows else str(row)
            down = y + self.cell * (row - self.rows.start) + 3
            yield Text(x - self.radius - 6, down, name, "tick", "end")


def _grid(lattice: Lattice, number: int, places: Sequence[Place], full: float | None) -> _Grid:
    own = [place for place in places if place.panel == number]
    rows = range(min(p.row for p in own), max(p.row for p in own) + 1)
    columns = range(min(p.column for p in own), max(p.column for p in own) + 1)
    grid = _Grid(lattice.panels[number], rows, columns, CELL)
    room = CELL if full is None else (full - grid.margin - 12) / len(columns)
    return _Grid(grid.panel, rows, columns, max(18.0, min(CELL, room)))


def _steps(lattice: Lattice, grids: Sequence[_Grid]) -> Iterator[Stroke]:
    """A line from each iteration to the next one in its panel, dashed where it jumps; each is drawn once."""
    seen = set()
    for number, grid in enumerate(grids):
        own = [(turn, place) for turn, place in enumerate(lattice.order) if place.panel == number]
        for (_, one), (turn, other) in pairwise(own):
            if one == other or (one, other) in seen:
                continue
            seen.add((one, other))
            jump = max(abs(one.row - other.row), abs(one.column - other.column)) > 1
            yield Stroke(*grid.spot(one), *grid.spot(other), "jump" if jump else "next", turn=turn)


def _frames(lattice: Lattice, grids: Sequence[_Grid]) -> Iterator[Outline]:
    for frame in lattice.frames:
        grid = grids[next(iter(frame.places)).panel]
        spots = [grid.spot(place) for place in frame.places]
        room = grid.radius + (2.5 if frame.kind == "tile" else 4.5)
        x, y = (min(spot[at] for spot in spots) - room for at in (0, 1))
        right, low = (max(spot[at] for spot in spots) + room for at in (0, 1))
        yield Outline(x, y, right - x, low - y, frame.kind, frame.turns)


def _arrows(lattice: Lattice, grids: Sequence[_Grid]) -> Iterator[Stroke]:
    """Arrows from rim to rim; one that would run over other dots, or on another arrow, is bent."""
    seen: Counter[frozenset[Place]] = Counter()
    for arrow in lattice.arrows:
        source, sink = arrow.source, arrow.sink
        (x1, y1), (x2, y2) = grids[source.panel].spot(source), grids[sink.panel].spot(sink)
        length = ((x2 - x1) ** 2 + (y2 - y1) ** 2) ** 0.5
        down, across = sink.row - source.row, sink.column - source.column
        over = source.panel == sink.panel and gcd(down, across) > 1
        first, last = (grids[place.panel].radius + 1 for place in (source, sink))
        dx, dy = (x2 - x1) / length, (y2 - y1) / length
        beside = seen[frozenset((source, sink))]
        seen[frozenset((source, sink))] += 1
        apart = min(7.0, 0.4 * length) * ((beside + 1) // 2) * (1 if beside % 2 else -1)
        bend = apart + (min(0.18 * length, 22.0) if over else 0.0)
        yield Stroke(x1 + dx * first, y1 + dy * first, x2 - dx * last, y2 - dy * last, arrow.kind, bend, True)


def with_notes(scene: Scene, title: str, notes: Sequence[str], legend: Mapping[str, str]) -> Scene:
    """The scene with a title above it, a legend of the kinds of its lines, and notes below it."""
    shapes = [Text(8, 16, title, "title"), *moved(scene, 0, 22)]
    y, x = scene.height + 34, 8.0
    for kind, words in legend.items():
        shapes += [Stroke(x, y - 4, x + 26, y - 4, kind, arrow=kind not in ("next", "jump", "tile", "block"))]
        shapes += [Text(x + 32, y, words, "tick")]
        y += 15
    for line in (line for note in notes for line in wrap(note, NOTE)):
        shapes += [Text(x, y, line, "tick")]
        y += 13
    widths = [LETTER * len(title), *(5.0 * min(len(note), NOTE) for note in notes)]
    return Scene(max(scene.width, *widths) + 12, y, tuple(shapes), scene.label)
