"""No search: what the model chose, measured once to know how fast it is."""

from __future__ import annotations

from random import Random

from poly.search.trial import Ask, Search
from poly.spaces.space import Point, Space


def model_only(space: Space, start: Point, random: Random) -> Search:
    """Asks for the start alone; where it fails, for the points that the model expects to be fastest, one by one."""
    (trial,) = yield Ask((start,))
    untried = iter(point for point in space.ranked() if point != start) if trial.failure else iter(())
    for point in untried:
        (trial,) = yield Ask((point,))
        if not trial.failure:
            return
