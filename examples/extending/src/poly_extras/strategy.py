"""A search strategy: one knob after another, as long as a neighbour is faster."""

from __future__ import annotations

from random import Random
from typing import Any

from poly.search import Ask, Journal, along


def downhill(space: Any, start: Any, random: Random) -> Any:
    """A generator: it yields what to measure, and is sent the trials."""
    journal, here, ask = Journal(), None, Ask((start,))
    while ask.points:
        journal.enter(ask, (yield ask))
        if here == journal.ranking.best:
            return
        here = journal.ranking.best
        ask = Ask(tuple(point for point in along(space, here, 1) if point not in journal))
