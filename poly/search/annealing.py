"""Simulated annealing (Kirkpatrick, Gelatt and Vecchi, Science 220, 1983) on the grid of knobs and structures."""

from __future__ import annotations

from math import exp, inf, log
from random import Random

from poly.autoschedule.spaces.space import Point, Space
from poly.search.events import Ask, Search
from poly.search.journal import Journal, Ranking
from poly.search.neighbourhood import neighbours
from poly.search.proposals import sampled

WALKERS = 4
"""The number of parallel walks, whose steps form a batch."""
HOT, COLD, COOLING = 0.3, 0.003, 0.95
"""The initial temperature, the final one, and the factor from one step to the next.

A temperature is the slowdown, in log seconds, that is accepted with a probability of 1/e."""


def annealing(space: Space, start: Point, random: Random) -> Search:
    """Walk from the start and some random points; a step to a slower neighbour becomes less and less likely."""
    journal = Journal()
    walkers: list[Point] = []
    steps = list(dict.fromkeys([start, *sampled(space, WALKERS - 1, random)]))
    heat = HOT
    while heat > COLD:
        unknown = tuple(dict.fromkeys(point for point in steps if point not in journal))
        if unknown:
            ask = Ask(unknown)
            journal.enter(ask, (yield ask))
        walkers = [_chosen(*pair, journal.ranking, heat, random) for pair in zip(walkers or steps, steps, strict=True)]
        steps = [_step(space, walker, random) for walker in walkers]
        heat *= COOLING


def _chosen(here: Point, there: Point, ranking: Ranking, heat: float, random: Random) -> Point:
    """The next position of a walker by Metropolis' rule: `there` if it is faster; a failed point is infinitely slow."""
    slowdown = _height(there, ranking) - _height(here, ranking) if here in ranking else -inf
    return there if slowdown <= 0 or random.random() < exp(-slowdown / heat) else here


def _height(point: Point, ranking: Ranking) -> float:
    return log(ranking.seconds(point)) if point in ranking else inf


def _step(space: Space, point: Point, random: Random) -> Point:
    around = list(dict.fromkeys(neighbours(space, point, reach=1)))
    return random.choice(around) if around else point
