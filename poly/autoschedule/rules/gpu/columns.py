"""Independent columns: move their loop around the sequential one, where it becomes work-groups.

for i:                                  for k:  (parallel)
  for j < i: for k:                       for i:
    X[i, k] -= L[i, j]*X[j, k]    ->        for j < i:
  for k:                                      X[i, k] -= L[i, j]*X[j, k]
    X[i, k] /= L[i, i]                      X[i, k] /= L[i, i]
"""

from __future__ import annotations

from itertools import pairwise

from poly.analysis.legality import is_parallel
from poly.autoschedule.rules.attempt import attempt
from poly.autoschedule.rules.gpu.parallel import parallel_first
from poly.autoschedule.rules.shapes import parts
from poly.ir.edits import find_loop
from poly.ir.tree import Band, statements
from poly.schedules.schedule import Schedule
from poly.schedules.steps import Fuse, Interchange


def columns_first(schedule: Schedule, band: Band) -> tuple[Schedule, tuple[str, ...]] | None:
    """The schedule with one parallel loop around `band`, fused from one in each part of its body, and its name.

    None if a part has no such loop, or the loops cannot be fused or moved outside.
    """
    first: list[str] = []
    for part in parts(band.body):
        found = parallel_first(schedule, part) if isinstance(part, Band) else None
        if found is None:
            return None
        schedule, names = found
        first.append(names[0])
    leaders = [statements(find_loop(schedule.tree, name))[0] for name in first]
    fusions = [Fuse(one, other, at=first[0]) for one, other in pairwise(leaders)]
    made = attempt(schedule, [*fusions, Interchange(band.name, first[0])])
    if made is None or not is_parallel(made.nest, made.tree, first[0]):
        return None
    return made, (first[0],)
