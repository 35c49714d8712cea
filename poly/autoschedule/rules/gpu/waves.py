"""Wavefronts: a skewed sequential loop over waves, whose iterations work-items run in parallel.

for i: for j:                                    for j:                     j counts 2*i + j
  A[i, j] = f(A[i, j-1], A[i-1, j+1])    ->        for i:  # 256 items
                                                     A[i, j - 2*i] = …
"""

from __future__ import annotations

from poly.autoschedule.rules.attempt import attempt
from poly.autoschedule.rules.distances import STEEPEST
from poly.autoschedule.rules.gpu.items import GroupShape
from poly.autoschedule.rules.gpu.parallel import chain_names
from poly.ir.tree import Band
from poly.schedules.schedule import Schedule
from poly.schedules.steps import Interchange, Items, Skew, Step


def in_waves(schedule: Schedule, band: Band, shape: GroupShape) -> Schedule | None:
    """The schedule with the two innermost loops of a chain skewed as little as needed and interchanged, in one group.

    None if no skew makes the iterations of a wave independent.
    """
    chain = chain_names(band)
    if len(chain) < 2:
        return None
    outer, inner = chain[-2:]
    for factor in range(STEEPEST + 1):
        skewed: list[Step] = [Skew(inner, outer, factor)] if factor else []
        made = attempt(schedule, [*skewed, Interchange(outer, inner), Items(((outer, shape.rows // 2),))])
        if made is not None:
            return made
    return None
