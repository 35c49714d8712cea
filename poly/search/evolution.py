"""Evolutionary search: new schedules recombine the traits and knobs of earlier ones.

In the manner of Ansor (Zheng et al., OSDI 2020, section 5.1), but without its learned cost model: measurements alone
select the parents.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from random import Random

from poly.autoschedule.spaces.space import Point, Space
from poly.search.events import Ask, Search
from poly.search.journal import Journal
from poly.search.neighbourhood import neighbours
from poly.search.proposals import everywhere, sampled

POPULATION = 16
"""The number of fastest points that may become parents."""
CHILDREN = 8
"""Points per generation: one batch."""
MUTATION = 0.5
"""The probability that a child mutates to a neighbour."""
TRIES = 200
"""The most attempts at a child before a generation is filled up with random points."""


def evolution(space: Space, start: Point, random: Random) -> Search:
    """Begin with the start and random points, and breed until every point was asked for."""
    journal = Journal()
    ask = Ask(tuple(dict.fromkeys([start, *sampled(space, POPULATION - 1, random)])))
    while ask.points:
        journal.enter(ask, (yield ask))
        ask = Ask(tuple(islice(_generation(space, journal, random), CHILDREN)))


def _generation(space: Space, journal: Journal, random: Random) -> Iterator[Point]:
    """Children that were not measured yet, then other unmeasured points at random, without repetition."""
    parents = journal.ranking.points()[:POPULATION]
    born: set[Point] = set()
    for _ in range(TRIES if parents else 0):
        mother, father = (_parent(parents, random) for _ in range(2))
        child = crossed(space, mother, father, random)
        if random.random() < MUTATION:
            child = random.choice(list(neighbours(space, child, reach=1)) or [child])
        if child not in journal and child not in born:
            born.add(child)
            yield child
    yield from (point for point in everywhere(space, list, random) if point not in journal and point not in born)


def _parent(parents: list[Point], random: Random) -> Point:
    """The faster of two random parents, which are sorted by time."""
    return parents[min(random.randrange(len(parents)) for _ in range(2))]


def crossed(space: Space, mother: Point, father: Point, random: Random) -> Point:
    """A child with each trait and knob from one of its parents, as far as a structure has this combination."""
    traits = [random.choice(pair) for pair in zip(_traits(space, mother), _traits(space, father), strict=False)]
    number = max(range(len(space.structures)), key=lambda n: len(set(traits) & set(space.structures[n].traits)))
    values = {**space.values(mother), **space.values(father)}
    for name, value in space.values(mother).items():
        values[name] = random.choice((value, values[name]))
    return space.nearest(number, values) or mother


def _traits(space: Space, point: Point) -> tuple[tuple[str, str], ...]:
    return space.structures[point.structure].traits
