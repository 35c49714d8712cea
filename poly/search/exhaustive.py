"""Every point of the space, in its order: what the others are compared with."""

from __future__ import annotations

from random import Random

from poly.search.champion import batches
from poly.search.trial import Ask, Search
from poly.spaces.space import Point, Space

BATCH = 16
"""Points asked for at a time: enough to compile several at once."""


def exhaustive(space: Space, start: Point, random: Random) -> Search:
    """Asks for the start, then for all other points."""
    yield Ask((start,))
    for batch in batches((point for point in space if point != start), BATCH):
        yield Ask(batch)
