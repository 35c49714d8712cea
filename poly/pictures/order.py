"""The order in which a schedule runs its iterations, with the blocks that it forms."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations, pairwise

from poly.ir.nest import Nest
from poly.pictures.instance import SmallInstance
from poly.pictures.lattice import Frame, Lattice, Place
from poly.pictures.projection import Projection, projection
from poly.pictures.visits import Visit, blocks, visits
from poly.schedules.schedule import Schedule

LEGEND = {
    "next": "to the next iteration",
    "jump": "the same, over others",
    "block": "a block of blocks",
    "tile": "a block",
}


def order(instance: SmallInstance, names: Sequence[str] = ()) -> Lattice:
    """The picture of the order along these loops, or along those that the schedule has changed most."""
    made = instance.schedule
    found = visits(made)
    along = axes(made, found, names)
    spots = [(visit, place) for visit in found if (place := along.place(visit.statement, visit.point)) is not None]
    where = ", ".join(panel.title for panel in along.panels)
    return Lattice(
        along.panels,
        tuple(place for _, place in spots),
        frames=_frames(made, spots),
        said=tuple(f"{v.statement}: {', '.join(f'{name} = {value}' for name, value in v.loops)}" for v, _ in spots),
        label=f"The order of {len(spots)} iterations of {made.nest.name}: {where}",
    )


def axes(made: Schedule, found: Sequence[Visit], names: Sequence[str]) -> Projection:
    """Each statement along the pair of its loops in which successive iterations differ from the order as written."""
    scores: dict[tuple[str, tuple[int, ...]], float] = {}
    for statement in made.nest.statements:
        own = [visit.point for visit in found if visit.statement == statement.name]
        for pair in combinations(range(len(statement.iterators)), 2):
            seen = list(dict.fromkeys(tuple(point[at] for at in pair) for point in own))
            written = sorted(seen)
            scores[statement.name, pair] = sum(one != other for one, other in zip(seen, written, strict=True))
    return projection(made.nest, names, scores)


def undrawn(made: Nest) -> Iterator[str]:
    """A note of the statements that are not drawn, if there are such ones."""
    names = projection(made, (), {}).left_out
    if names:
        yield f"{', '.join(names)} are not drawn."


def legend(lattice: Lattice) -> dict[str, str]:
    """The kinds of lines and frames that a picture has, with their meanings."""
    kinds = {"next", *(frame.kind for frame in lattice.frames)}
    if any(max(abs(a.row - b.row), abs(a.column - b.column)) > 1 for a, b in pairwise(lattice.order)):
        kinds.add("jump")
    return {kind: words for kind, words in LEGEND.items() if kind in kinds}


def _frames(made: Schedule, spots: Sequence[tuple[Visit, Place]]) -> tuple[Frame, ...]:
    """The innermost blocks, and the blocks that these form if the schedule has such ones."""
    found = blocks(made)
    frames: dict[tuple[frozenset[Place], str], list[int]] = {}
    for name, ends in found.items():
        for kind, depth in zip(("tile", "block"), ends, strict=False):
            groups: dict[tuple[int, ...], dict[int, Place]] = {}
            for turn, (visit, place) in enumerate(spots):
                if visit.statement == name:
                    key = tuple(value for _, value in visit.loops[:depth])
                    groups.setdefault(key, {})[turn] = place
            if len(groups) > 1 and max(len(set(group.values())) for group in groups.values()) > 1:
                for group in groups.values():
                    frames.setdefault((frozenset(group.values()), kind), []).extend(group)
    return tuple(Frame(places, tuple(sorted(turns)), kind) for (places, kind), turns in frames.items())
