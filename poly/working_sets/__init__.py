"""Working sets: how much data a schedule touches between two uses of the same data, computed on the sets exactly."""

from poly.working_sets.placement import Placement, optimistic, pairs, pessimistic
from poly.working_sets.reuses import Instance, Reuse, WorkingSet, working_sets
from poly.working_sets.traffic import LevelTraffic, LoopFootprint, footprints, traffic

__all__ = [
    "Instance",
    "LevelTraffic",
    "LoopFootprint",
    "Placement",
    "Reuse",
    "WorkingSet",
    "footprints",
    "optimistic",
    "pairs",
    "pessimistic",
    "traffic",
    "working_sets",
]
