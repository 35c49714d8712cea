"""An explanation as plain values for JSON: bytes, seconds, operations per second."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from poly.analysis.legality import Witness
from poly.explanation.comparison import Comparison
from poly.explanation.explanation import Explanation
from poly.working_sets import Reuse, WorkingSet

Facts = dict[str, Any]


def facts(explanation: Explanation) -> Facts:
    """All facts of an explanation. `intensity` is None for a level that delivers no bytes."""
    prediction, measurement = explanation.prediction, explanation.measurement
    return {
        "nest": explanation.schedule.nest.name,
        "sizes": dict(explanation.schedule.nest.fixed),
        "steps": json.loads(explanation.schedule.to_json()),
        "target": explanation.target,
        "threads": explanation.threads,
        "flop": explanation.flop,
        "peak": explanation.peak,
        "predicted": None if prediction is None else asdict(prediction),
        "measured": None if measurement is None else asdict(measurement),
        "bound": explanation.bound,
        "times": explanation.times,
        "levels": [
            {
                **asdict(level),
                "bytes": level.bytes,
                "intensity": level.intensity(explanation.flop) if level.bytes else None,
                "roof": level.roof(explanation.flop, explanation.peak),
            }
            for level in explanation.levels
        ],
        "loops": [
            {
                "loop": found.loop,
                "depth": found.depth,
                "iterations": found.iterations,
                "bytes": found.footprint.bytes,
                "lines": found.footprint.loaded,
            }
            for found in explanation.footprints
        ],
        "working_sets": [_reuse(reuse) for reuse in explanation.reuses],
        "caches": asdict(explanation.caches),
        "pessimistic": asdict(explanation.pessimistic),
        "optimistic": asdict(explanation.optimistic),
        "reasons": [
            {
                "subject": reason.subject,
                "not": reason.what,
                "cause": reason.cause,
                "text": reason.text,
                "witness": None if reason.witness is None else _witness(reason.witness),
                "seconds": reason.seconds,
            }
            for reason in explanation.reasons
        ],
        "exact": explanation.exact,
    }


def comparison_facts(explanation: Comparison) -> Facts:
    """Both explanations, the winner, and the reasons."""
    both = {"first": facts(explanation.first), "second": facts(explanation.second)}
    return {**both, "winner": explanation.winner, "sentences": list(explanation.sentences)}


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


def _witness(found: Witness) -> Facts:
    dependence = found.dependence
    return {
        "kind": "reduction" if dependence.reduction else dependence.kind,
        "array": dependence.array,
        "source": {"statement": dependence.source, "iteration": list(found.source)},
        "sink": {"statement": dependence.sink, "iteration": list(found.sink)},
        "sizes": dict(found.sizes),
    }


def _working_set(found: WorkingSet) -> Facts:
    return {"bytes": found.bytes, "elements": dict(found.arrays), "exact": found.exact}
