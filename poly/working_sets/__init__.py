"""Working sets: how much a schedule touches between two uses of the same data, from the sets themselves."""

from poly.working_sets.placement import Placement, optimistic, pairs, pessimistic
from poly.working_sets.reuses import Instance, Reuse, WorkingSet, working_sets

__all__ = ["Instance", "Placement", "Reuse", "WorkingSet", "optimistic", "pairs", "pessimistic", "working_sets"]
