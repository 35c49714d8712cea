"""The dependences of a nest, as arrows from each iteration to those that must run after it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import mean

from poly.pictures.instance import SmallInstance
from poly.pictures.lattice import Arrow, Lattice, Place
from poly.pictures.projection import Projection, projection
from poly.pictures.visits import Pair, pairs, points

MOST, APART = 70, 24
"""The most arrows of a picture, and of those from panel to panel; with more, only those at one place are drawn."""

MEANINGS = {
    "flow": "flow: reads what was written",
    "anti": "anti: writes what was read before",
    "output": "output: writes what was written before",
    "reduction": "updates of a reduction, in any order",
}


@dataclass(frozen=True)
class DependencePicture:
    """A lattice with arrows. `only` names the place whose dependences alone are drawn, if there are too many.

    `inside` is the number of pairs that lie on one dot, since they differ in other loops.
    """

    lattice: Lattice
    only: str
    inside: int

    @property
    def legend(self) -> dict[str, str]:
        """The kinds of arrows that it has, with their meanings."""
        kinds = {arrow.kind for arrow in self.lattice.arrows}
        return {kind: words for kind, words in MEANINGS.items() if kind in kinds}


def dependence_picture(instance: SmallInstance, names: Sequence[str] = ()) -> DependencePicture:
    """The picture along these loops, or along those in which the dependences differ most."""
    nest = instance.nest
    found = pairs(nest)
    along = projection(nest, names, _scores(found))
    order = [
        place
        for statement in nest.statements
        for point in sorted(points(statement.domain))
        if (place := along.place(statement.name, point)) is not None
    ]
    arrows, inside = _arrows(found, along)
    only = ""
    if len(arrows) > MOST or sum(arrow.source.panel != arrow.sink.panel for arrow in arrows) > APART:
        centre = _central(arrows, order)
        arrows = [arrow for arrow in arrows if centre in (arrow.source, arrow.sink)]
        only = along.words(centre)
    label = f"{len(arrows)} dependences of {nest.name}"
    return DependencePicture(
        Lattice(along.panels, tuple(order), tuple(arrows), numbered=False, label=label), only, inside
    )


def _scores(found: Sequence[Pair]) -> dict[tuple[str, tuple[int, ...]], float]:
    """How many different distances the dependences of a statement on itself have along each pair of its loops.

    Opposite ones do not count: along these loops one cannot see which of two iterations is first.
    """
    distances: dict[tuple[str, tuple[int, ...]], set[tuple[int, ...]]] = {}
    for pair in found:
        (name, source), (other, sink) = pair.source, pair.sink
        if name == other:
            for axes in combinations(range(len(source)), 2):
                distance = tuple(sink[at] - source[at] for at in axes)
                if any(distance):
                    distances.setdefault((name, axes), set()).add(distance)
    return {
        key: sum(tuple(-step for step in distance) not in values for distance in values)
        for key, values in distances.items()
    }


def _arrows(found: Sequence[Pair], along: Projection) -> tuple[list[Arrow], int]:
    """The arrows, each once, and the number of pairs that lie on one dot."""
    arrows: dict[Arrow, None] = {}
    inside = 0
    for pair in found:
        source, sink = along.place(*pair.source), along.place(*pair.sink)
        if source is None or sink is None:
            continue
        if source == sink:
            inside += 1
        else:
            arrows[Arrow(source, sink, pair.kind)] = None
    return list(arrows), inside


def _central(arrows: Sequence[Arrow], order: Sequence[Place]) -> Place:
    """The place nearest to the middle of its panel, of those that have many arrows."""
    ends = Counter(place for arrow in arrows for place in (arrow.source, arrow.sink))

    def off(place: Place) -> float:
        own = [other for other in order if other.panel == place.panel]
        middle = mean(p.row for p in own), mean(p.column for p in own)
        return abs(place.row - middle[0]) + abs(place.column - middle[1])

    many = max(ends.values()) / 2
    return min((place for place in ends if ends[place] >= many), key=lambda place: (off(place), -ends[place]))


def notes(picture: DependencePicture) -> Iterator[str]:
    """What a reader must know of the picture."""
    if picture.only:
        yield f"There are too many to draw: the arrows are those at {picture.only}."
    if picture.inside:
        yield f"{picture.inside} more lie within one dot: their iterations differ in other loops."
