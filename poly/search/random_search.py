"""Points at random, none twice: the line that every other strategy must stay above."""

from __future__ import annotations

from random import Random

from poly.search.champion import batches
from poly.search.ranking import everywhere
from poly.search.trial import Ask, Search
from poly.spaces.space import Point, Space

BATCH = 4
"""Points asked for at a time."""


def random_search(space: Space, start: Point, random: Random) -> Search:
    """Asks for all points in a random order; the start has no say in it."""
    for batch in batches(everywhere(space, list, random), BATCH):
        yield Ask(batch)
