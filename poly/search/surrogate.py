"""The surrogate of a measurement: the model's prediction for a point, corrected by its errors at the measured points.

The error of the model at a point is e = log(measured / predicted). Similar points have similar errors, so these are
modelled as a Gaussian process (Rasmussen and Williams, "Gaussian Processes for Machine Learning", 2006, chapter 2), in
which the covariance between two points is

    s^2 (B + T^(traits that differ) * K^(steps between their knobs) + N [the same point])

where B leaves the common factor open, and s starts at `SPREAD` and adapts to the observations. The mean and the
covariance of the errors elsewhere follow from those observed. The surrogate decides nothing about which point is best;
it only suggests what to try next and when to stop.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import log
from typing import Any

import numpy as np
from numpy.typing import NDArray

from microkernels.cached import cached_property
from poly.autoschedule.spaces.space import Point, Space
from poly.search.journal import Ranking

Vector = NDArray[np.floating[Any]]
BIAS = 25.0
"""B: the model may be off by five times as much overall as from point to point."""
TRAIT, STEP, NUGGET = 0.6, 0.8, 0.02
"""T, K and N: the correlation of errors at a distance of one trait and of one step; independent noise."""
SPREAD, WEIGHT = 0.1, 4
"""The prior error of the analytical model, one tenth, and the number of trials that this prior counts for."""


class Surrogate:
    """The expected log seconds of points and their covariance, updated as trials come in."""

    def __init__(self, space: Space) -> None:
        self._space = space
        self._predicted: dict[Point, float] = {}
        self._codes: dict[tuple[str, str], int] = {}
        self._seen: list[Point] = []
        self._errors: Vector = np.zeros(0)

    def predicted(self, point: Point) -> float:
        """The model's log seconds."""
        if point not in self._predicted:
            self._predicted[point] = log(self._space.predict(point).seconds)
        return self._predicted[point]

    def learn(self, ranking: Ranking) -> None:
        """Replace the observations by those of a ranking."""
        self._seen = ranking.points()
        self._errors = np.array([log(ranking.seconds(p)) - self.predicted(p) for p in self._seen])

    def expect(self, points: Sequence[Point]) -> tuple[Vector, Vector]:
        """The expected log seconds of points, and their standard deviations."""
        mean, scale, between, solved = self._given(points)
        left = BIAS + 1 + NUGGET - np.einsum("ps,sp->p", between, solved)
        return mean, np.sqrt(scale * np.maximum(left, 0.0))

    def sorted(self, points: Iterable[Point]) -> list[Point]:
        """The points by ascending expected seconds."""
        given = list(points)
        return [given[i] for i in np.argsort(self._given(given)[0], kind="stable")] if given else []

    def draws(self, points: Sequence[Point], count: int) -> Vector:
        """`count` draws from the joint distribution of the points' log seconds (count x points), with a fixed seed."""
        mean, scale, between, solved = self._given(points)
        covariance = scale * (self._covariance(points, points) - between @ solved)
        return np.random.default_rng(0).multivariate_normal(mean, covariance, count, method="eigh")

    def _given(self, points: Sequence[Point]) -> tuple[Vector, float, Vector, Vector]:
        """The posterior mean, s^2, and the covariances with the observed points: plain, and solved for the weights."""
        prior = np.array([self.predicted(point) for point in points])
        between = self._covariance(points, self._seen)
        if not self._seen:
            return prior, SPREAD**2, between, between.T
        right = np.column_stack([self._errors, between.T])
        solved = np.linalg.solve(self._covariance(self._seen, self._seen), right)
        scale = (WEIGHT * SPREAD**2 + float(self._errors @ solved[:, 0])) / (WEIGHT + len(self._seen))
        return prior + between @ solved[:, 0], scale, between, solved[:, 1:]

    def _covariance(self, some: Sequence[Point], others: Sequence[Point]) -> Vector:
        traits, knobs = self._features(some)
        other_traits, other_knobs = self._features(others)
        differ = (traits[:, None, :] != other_traits[None, :, :]).sum(axis=2)
        steps = np.abs(knobs[:, None, :] - other_knobs[None, :, :]).sum(axis=2)
        same = (differ == 0) & (steps == 0)
        covariance: Vector = BIAS + TRAIT**differ * STEP**steps + NUGGET * same
        return covariance

    def _features(self, points: Sequence[Point]) -> tuple[NDArray[np.int64], Vector]:
        """The traits of each point as numbers, and the positions of its knobs, 0 for a knob that it does not have."""
        names = self._names
        traits = np.zeros((len(points), len(names[0])), dtype=np.int64)
        knobs = np.zeros((len(points), len(names[1])))
        for row, point in enumerate(points):
            structure = self._space.structures[point.structure]
            for trait in structure.traits:
                traits[row, names[0][trait[0]]] = self._codes.setdefault(trait, len(self._codes) + 1)
            for knob, at in zip(structure.knobs, point.at, strict=True):
                knobs[row, names[1][knob.name]] = at
        return traits, knobs

    @cached_property
    def _names(self) -> tuple[dict[str, int], dict[str, int]]:
        """The column of each trait and of each knob."""
        traits = dict.fromkeys(name for s in self._space.structures for name, _ in s.traits)
        knobs = dict.fromkeys(knob.name for s in self._space.structures for knob in s.knobs)
        return {name: i for i, name in enumerate(traits)}, {name: i for i, name in enumerate(knobs)}
