"""No search: what the model chose, measured once to know how fast it is."""

from __future__ import annotations

from random import Random

from poly.search.ranking import by_model, everywhere
from poly.search.trial import Ask, Search
from poly.spaces.space import Point, Space


def model_only(space: Space, start: Point, random: Random) -> Search:
    """Asks for the start alone; where it fails, for the points that the model expects to be fastest, one by one."""
    (trial,) = yield Ask((start,))
    others = (point for point in everywhere(space, by_model(space), random) if point != start)
    while trial.failure and (point := next(others, None)):
        (trial,) = yield Ask((point,))
