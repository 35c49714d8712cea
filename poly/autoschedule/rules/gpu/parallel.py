"""Move parallel loops outermost, where they become work-groups.

for i: for j:                       for j:  (parallel)
  y[j] += x[i, j]           ->        for i:
                                        y[j] += x[i, j]
"""

from __future__ import annotations

from poly.analysis.legality import is_parallel
from poly.autoschedule.rules.attempt import attempt
from poly.ir.edits import find_loop
from poly.ir.strides import extent
from poly.ir.tree import Band
from poly.schedules.schedule import Schedule
from poly.schedules.steps import Order


def parallel_first(schedule: Schedule, band: Band) -> tuple[Schedule, tuple[str, ...]] | None:
    """The schedule with the parallel loops of the chain from `band` outermost, and their names.

    None if there are none, or they cannot be moved outermost. A loop of one iteration is none.
    """
    loops = chain_names(band)
    several = (name for name in loops if extent(schedule.nest, find_loop(schedule.tree, name)) != 1)
    parallel = tuple(name for name in several if is_parallel(schedule.nest, schedule.tree, name))
    candidates = [parallel, *((name,) for name in parallel)] if len(parallel) > 1 else [parallel]
    for wanted in candidates:
        made = _outermost(schedule, wanted, loops)
        if made is not None:
            return made
    return None


def chain_names(band: Band) -> tuple[str, ...]:
    """The names of the perfectly nested loops from `band` inwards."""
    found = [band.name]
    while isinstance(band.body, Band):
        band = band.body
        found.append(band.name)
    return tuple(found)


def _outermost(
    schedule: Schedule, wanted: tuple[str, ...], loops: tuple[str, ...]
) -> tuple[Schedule, tuple[str, ...]] | None:
    """The schedule with the loops `wanted` outermost in a chain, and the leading ones that are still parallel there."""
    made: Schedule | None = schedule
    if wanted != loops[: len(wanted)]:
        made = attempt(schedule, [Order((*wanted, *(name for name in loops if name not in wanted)))])
    if made is None:
        return None
    leading: list[str] = []
    for name in wanted:
        if not is_parallel(made.nest, made.tree, name):
            break
        leading.append(name)
    return (made, tuple(leading)) if leading else None
