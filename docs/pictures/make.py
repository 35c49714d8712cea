"""Draw the order in which the iterations of a schedule run, as SVG files beside this one.

    python docs/pictures/make.py

The points come from running the loops that `print(schedule)` shows, so a picture shows what a step really does;
they are drawn as `poly report` draws iterations. The iterations run from dark to light. A line joins each iteration
with the next one, and is dashed where it jumps. Red arrows are dependences.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import poly
from poly import f64
from poly.pictures.lattice import Arrow, Lattice, LatticePanel, Place, drawn
from poly.pictures.scene import beside
from poly.pictures.svg import svg

M, N, T = poly.sizes("M N T")

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
class Order:
    """The order of a schedule, over the elements that it writes or over the values of its loops."""

    title: str
    schedule: poly.Schedule
    axes: tuple[str, str]
    """What goes down, and what goes to the right: names of loops where `by_loops`, else only labels."""
    by_loops: bool = False
    distances: tuple[Point, ...] = ()
    """Dependences to draw, from each point to the one at this distance."""

    @property
    def written(self) -> tuple[str, ...]:
        """The arrays that are written."""
        return tuple(dict.fromkeys(statement.target.array for statement in self.schedule.nest.statements))


@dataclass(frozen=True)
class Array:
    """Stands for an array: remembers where it is written, and is 0 everywhere."""

    row: int | None
    """Where arrays of one dimension are drawn below each other."""
    order: Order
    values: dict[str, object]
    visited: list[Point]

    def __getitem__(self, index: object) -> float:
        return 0.0

    def __setitem__(self, index: int | Point, value: float) -> None:
        if self.order.by_loops:
            self.visited.append(tuple(int(str(self.values[axis])) for axis in self.order.axes))
        elif isinstance(index, tuple):
            self.visited.append(index)
        else:
            assert self.row is not None
            self.visited.append((self.row, index))


def visits(order: Order) -> list[Point]:
    """The points in the order in which the printed loops visit them."""
    visited: list[Point] = []
    values: dict[str, object] = {}
    rows = {name: row for row, name in enumerate(order.written)}
    for array in order.schedule.nest.arrays:
        values[array.name] = Array(rows.get(array.name), order, values, visited)
    exec(str(order.schedule), values)
    return visited


def lattice(order: Order) -> Lattice:
    """The order as dots on a lattice, with arrows for the dependences."""
    points = visits(order)
    names = order.written if len(order.written) > 1 else None
    panel = LatticePanel(order.title, "" if names else order.axes[0], order.axes[1], names)
    places = {point: Place(0, *point) for point in points}
    arrows = tuple(Arrow(places[source], places[sink], "flow") for source, sink in dependences(order, points))
    return Lattice((panel,), tuple(places[point] for point in points), arrows, label=f"The order of {order.title}")


def dependences(order: Order, points: list[Point]) -> Iterator[tuple[Point, Point]]:
    for point in points:
        for distance in order.distances:
            sink = tuple(a + b for a, b in zip(point, distance, strict=True))
            if sink in points:
                yield point, sink


def picture(orders: tuple[Order, ...]) -> str:
    """The orders side by side as an SVG file."""
    label = ", ".join(order.title for order in orders)
    return svg(beside([drawn(lattice(order), full=None) for order in orders], f"The orders of {label}"))


def pictures() -> dict[str, str]:
    """All pictures, by the names of their files."""
    square = poly.schedule(copy.with_sizes({"M": 4, "N": 6}))
    two, two_late = poly.schedule(chain.with_sizes({"N": 6})), poly.schedule(late.with_sizes({"N": 5}))
    steps = poly.schedule(wave.with_sizes({"T": 5, "N": 6}))
    elements, rows, time = ("i", "j"), ("X, Y", "index"), ("t", "x")
    skewed = steps.skew("x", by="t")
    fused = two.fuse("S0", "S1", at="i")
    reads = ((1, -1), (1, 0))
    made: dict[str, tuple[Order, ...]] = {
        "interchange": (
            Order("schedule(copy)", square, elements),
            Order('.interchange("i", "j")', square.interchange("i", "j"), elements),
        ),
        "tile": (
            Order("schedule(copy)", square, elements),
            Order(".tile(i=2, j=3)", square.tile(i=2, j=3), elements),
        ),
        "order": (
            Order(".split(j=3)", square.split(j=3), elements),
            Order('.split(j=3).order("j_tile i j")', square.split(j=3).order("j_tile i j"), elements),
        ),
        "reverse": (
            Order("schedule(copy)", square, elements),
            Order('.reverse("j")', square.reverse("j"), elements),
        ),
        "skew": (
            Order("schedule(wave)", steps, time, distances=reads),
            Order('.skew("x", by="t")', skewed, time, by_loops=True, distances=((1, 0), (1, 1))),
            Order('.interchange("t", "x")', skewed.interchange("t", "x"), time, True, ((1, 0), (1, 1))),
        ),
        "fuse": (
            Order("schedule(chain)", two, rows),
            Order('.fuse("S0", "S1", at="i")', fused, rows, distances=((1, 0),)),
        ),
        "shift": (
            Order("schedule(late)", two_late, rows, distances=((1, -1),)),
            Order('.shift("j", by=1).fuse("S0", "S1", at="i")', shifted(two_late), rows, distances=((1, -1),)),
        ),
        "distribute": (
            Order('.fuse("S0", "S1", at="i")', fused, rows),
            Order('.distribute("i")', fused.distribute("i"), rows, distances=((1, 0),)),
        ),
    }
    return {f"{name}.svg": picture(orders) for name, orders in made.items()}


def shifted(schedule: poly.Schedule) -> poly.Schedule:
    return schedule.shift("j", by=1).fuse("S0", "S1", at="i")


if __name__ == "__main__":
    for name, text in pictures().items():
        (Path(__file__).parent / name).write_text(text)
