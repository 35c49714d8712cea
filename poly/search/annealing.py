"""Simulated annealing (Kirkpatrick, Gelatt and Vecchi, Science 220, 1983) on the grid of knobs and structures."""

from __future__ import annotations

from math import exp, inf, log
from random import Random

from poly.search.moves import neighbours
from poly.search.ranking import sampled
from poly.search.standing import Standing
from poly.search.trial import Ask, Search
from poly.spaces.space import Point, Space

WALKERS = 4
"""Walks side by side: their steps make a batch."""
HOT, COLD, COOLING = 0.3, 0.003, 0.95
"""The temperature at first, that at which a walk ends, and the factor from one step to the next.

A temperature is the slowdown, in log seconds, that is accepted with a probability of 1/e."""


def annealing(space: Space, start: Point, random: Random) -> Search:
    """Walks from the start and some random points; a step to a slower neighbour is taken less and less often."""
    standing, failed = Standing(), set[Point]()
    walkers: list[Point] = []
    steps = list(dict.fromkeys([start, *sampled(space, WALKERS - 1, random)]))
    heat = HOT
    while heat > COLD:
        unknown = tuple(dict.fromkeys(point for point in steps if point not in standing and point not in failed))
        if unknown:
            for trial in (yield Ask(unknown)):
                standing.add(trial)
                failed.update(() if trial.samples else (trial.point,))
        walkers = [_chosen(*pair, standing, heat, random) for pair in zip(walkers or steps, steps, strict=True)]
        steps = [_step(space, walker, random) for walker in walkers]
        heat *= COOLING


def _chosen(here: Point, there: Point, standing: Standing, heat: float, random: Random) -> Point:
    """Where a walker goes: there if it is faster, or by Metropolis' rule; a failed point is infinitely slow."""
    slowdown = _height(there, standing) - _height(here, standing) if here in standing else -inf
    return there if slowdown <= 0 or random.random() < exp(-slowdown / heat) else here


def _height(point: Point, standing: Standing) -> float:
    return log(standing.seconds(point)) if point in standing else inf


def _step(space: Space, point: Point, random: Random) -> Point:
    around = list(dict.fromkeys(neighbours(space, point, reach=1)))
    return random.choice(around) if around else point
