"""The strategies by name, and how to add one.

A strategy is a generator function: it yields what it wants measured and is sent the trials. This one moves on to the
best neighbour for as long as that is faster; it is used as `search(space, greedy, measurer)`, or by its name:

    from poly.search.moves import along
    from poly.search.standing import Standing
    from poly.search.strategies import register
    from poly.search.trial import Ask

    def greedy(space, start, random):
        standing, asked = Standing(), {start}
        for trial in (yield Ask((start,))):
            standing.add(trial)
        here = None
        while here != standing.best:
            here = standing.best
            fresh = [point for point in along(space, here, 1) if point not in asked]
            asked.update(fresh)
            for trial in (yield Ask(tuple(fresh))):
                standing.add(trial)

    register("greedy", greedy)

A package adds one for all its users by the entry point group `poly.strategies`.
"""

from __future__ import annotations

from difflib import get_close_matches
from importlib.metadata import entry_points

from microkernels.errors import shown
from poly.errors import SearchError
from poly.search.annealing import annealing
from poly.search.droplet import Droplet, from_origin
from poly.search.evolution import evolution
from poly.search.exhaustive import exhaustive
from poly.search.model_only import model_only
from poly.search.raindrop import Raindrop
from poly.search.random_search import random_search
from poly.search.trial import Strategy

GROUP = "poly.strategies"
_STRATEGIES: dict[str, Strategy] = {
    "droplet": Droplet(),
    "droplet-origin": from_origin,
    "raindrop": Raindrop(),
    "annealing": annealing,
    "evolution": evolution,
    "exhaustive": exhaustive,
    "random": random_search,
    "model": model_only,
}


def register(name: str, strategy: Strategy) -> None:
    """Adds a strategy under a name, in place of one that had it."""
    _STRATEGIES[name] = strategy


def strategies() -> list[str]:
    """The names of all strategies: poly's own, those registered, those of entry points."""
    return sorted({*_STRATEGIES, *(entry.name for entry in entry_points(group=GROUP))})


def strategy(wanted: str | Strategy) -> Strategy:
    """The strategy of a name; a callable is one itself. Raises `SearchError` for anything else."""
    if not isinstance(wanted, str):
        if not callable(wanted):
            raise SearchError(f"{shown(wanted)} is no strategy: give a name, or a generator function.")
        return wanted
    if wanted in _STRATEGIES:
        return _STRATEGIES[wanted]
    for entry in entry_points(group=GROUP, name=wanted):
        loaded: Strategy = entry.load()
        return loaded
    close = get_close_matches(wanted[:80], strategies(), 1)
    hint = f"; did you mean {close[0]!r}?" if close else "."
    raise SearchError(f"there is no strategy named {shown(wanted)}{hint} There are: {', '.join(strategies())}")
