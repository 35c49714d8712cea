"""An explanation as plain values for JSON: bytes, seconds, operations a second."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from poly.explanation.comparison import Comparison
from poly.explanation.explanation import Explanation
from poly.working_sets import Reuse, WorkingSet

Facts = dict[str, Any]


def facts(told: Explanation) -> Facts:
    """All that an explanation says. `intensity` is None at a level that delivers nothing."""
    prediction, measurement = told.prediction, told.measurement
    return {
        "nest": told.schedule.nest.name,
        "sizes": dict(told.schedule.nest.fixed),
        "steps": told.schedule.to_json(),
        "target": told.target,
        "threads": told.threads,
        "flop": told.flop,
        "peak": told.peak,
        "predicted": None if prediction is None else asdict(prediction),
        "measured": None if measurement is None else asdict(measurement),
        "bound": told.bound,
        "times": told.times,
        "levels": [
            {
                **asdict(level),
                "bytes": level.bytes,
                "intensity": level.intensity(told.flop) if level.bytes else None,
                "roof": level.roof(told.flop, told.peak),
            }
            for level in told.levels
        ],
        "loops": [
            {
                "loop": found.loop,
                "depth": found.depth,
                "iterations": found.iterations,
                "bytes": found.footprint.bytes,
                "lines": found.footprint.loaded,
            }
            for found in told.footprints
        ],
        "working_sets": [_reuse(reuse) for reuse in told.reuses],
        "caches": asdict(told.caches),
        "pessimistic": asdict(told.pessimistic),
        "optimistic": asdict(told.optimistic),
        "exact": told.exact,
    }


def comparison_facts(told: Comparison) -> Facts:
    """Both explanations, who wins, and why."""
    both = {"first": facts(told.first), "second": facts(told.second)}
    return {**both, "winner": told.winner, "sentences": list(told.sentences)}


def _reuse(reuse: Reuse) -> Facts:
    return {
        "kind": reuse.kind,
        "array": reuse.array,
        "loop": reuse.loop,
        "accesses": [reuse.first, reuse.then],
        "source": str(reuse.source),
        "nearest": {"instance": str(reuse.nearest), **_working_set(reuse.least)},
        "furthest": {"instance": str(reuse.furthest), **_working_set(reuse.most)},
    }


def _working_set(found: WorkingSet) -> Facts:
    return {"bytes": found.bytes, "elements": dict(found.arrays), "exact": found.exact}
