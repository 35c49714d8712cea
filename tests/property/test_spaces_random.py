"""Spaces of random nests: derived without an error, every point that is drawn is legal and has a cost."""

from __future__ import annotations

from math import isfinite
from random import Random

from hypothesis import HealthCheck, given, settings
from machines import LARGE, TINY, derived
from random_nests import nests

import poly
from microkernels.isa import host
from poly.autoschedule.default import default_schedule
from poly.model.core import Target
from poly.schedules.schedule import Schedule


@settings(max_examples=10, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(nest=nests())
def test_points_are_legal_and_have_a_cost(nest: poly.Nest) -> None:
    for known, caches, threads in ((nest.with_sizes({"N": 40}), TINY, 1), (nest, LARGE, 2)):
        space = derived(known, threads, caches)
        assert space.schedule(space.choice) == default_schedule(known, Target.nominal(host(), caches, threads))
        for point in [space.origin, *space.sample(3, Random(1))]:
            made = space.schedule(point)
            assert Schedule.from_json(made.nest, made.to_json()) == made, "each step is legal on its own"
            cost = space.predict(point)
            assert isfinite(cost.seconds) and cost.seconds >= 0
            assert all(part.seconds >= 0 and part.bytes >= 0 for part in cost.parts)
