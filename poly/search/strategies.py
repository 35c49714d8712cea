"""The strategies by name, the definitions of the simple ones, and how to add one.

A strategy is a generator function: it yields asks and is sent their trials. This one moves to the best neighbour for as
long as that is faster; it is used as `search(space, greedy, measurer)`, or by its name:

    from poly.search import Ask, Journal, along, register

    def greedy(space, start, random):
        journal, here, ask = Journal(), None, Ask((start,))
        while ask.points:
            journal.enter(ask, (yield ask))
            if here == journal.ranking.best:
                return
            here = journal.ranking.best
            ask = Ask(tuple(point for point in along(space, here, 1) if point not in journal))

    register("greedy", greedy)

A package can add one for all its users through the entry point group `poly.strategies`.
"""

from __future__ import annotations

from difflib import get_close_matches
from random import Random

from microkernels.errors import shown
from microkernels.plugins import load, names
from poly.autoschedule.spaces.space import Point, Space
from poly.errors import SearchError
from poly.search.annealing import annealing
from poly.search.droplet import Droplet, from_origin
from poly.search.events import Ask, Search, Strategy
from poly.search.evolution import evolution
from poly.search.proposals import batches, by_model, everywhere
from poly.search.raindrop import Raindrop

GROUP = "poly.strategies"
MANY, FEW = 16, 4
"""Points asked for at a time: if all are measured anyway, many to compile in parallel; if any may be the last, few."""


def exhaustive(space: Space, start: Point, random: Random) -> Search:
    """Ask for the start, then for all other points in the space's order: the reference for the other strategies."""
    yield Ask((start,))
    for batch in batches((point for point in space if point != start), MANY):
        yield Ask(batch)


def at_random(space: Space, start: Point, random: Random) -> Search:
    """Ask for all points in a random order, ignoring the start: the baseline that other strategies must beat."""
    for batch in batches(everywhere(space, list, random), FEW):
        yield Ask(batch)


def model_only(space: Space, start: Point, random: Random) -> Search:
    """Ask for the start only; if it fails, for the points that the model expects to be fastest, one by one."""
    (trial,) = yield Ask((start,))
    others = (point for point in everywhere(space, by_model(space), random) if point != start)
    while trial.failure and (point := next(others, None)):
        (trial,) = yield Ask((point,))


_STRATEGIES: dict[str, Strategy] = {
    "droplet": Droplet(),
    "droplet-origin": from_origin,
    "raindrop": Raindrop(),
    "annealing": annealing,
    "evolution": evolution,
    "exhaustive": exhaustive,
    "random": at_random,
    "model": model_only,
}


def register(name: str, strategy: Strategy) -> None:
    """Add a strategy under a name, or replace the one that has it."""
    _STRATEGIES[name] = strategy


def strategies() -> list[str]:
    """The names of all strategies: built-in, registered, and from entry points."""
    return sorted({*_STRATEGIES, *names(GROUP)})


def strategy(wanted: str | Strategy) -> Strategy:
    """The strategy with a name; a callable is returned as it is. Raises `SearchError` for anything else."""
    if not isinstance(wanted, str):
        if not callable(wanted):
            raise SearchError(f"{shown(wanted)} is not a strategy: give a name, or a generator function.")
        return wanted
    if wanted in _STRATEGIES:
        return _STRATEGIES[wanted]
    offered: Strategy | None = load(GROUP, wanted, callable, "strategy")
    if offered is not None:
        return offered
    close = get_close_matches(wanted[:80], strategies(), 1)
    hint = f"; did you mean {close[0]!r}?" if close else "."
    raise SearchError(f"there is no strategy named {shown(wanted)}{hint} There are: {', '.join(strategies())}")
