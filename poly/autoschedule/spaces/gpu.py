"""The space of a nest on a GPU: a microkernel's shape for its heaviest contraction, and loops without microkernels."""

from __future__ import annotations

from collections.abc import Mapping

from microkernels.opencl_isa import DeviceISA
from poly.autoschedule.default import default_schedule
from poly.autoschedule.rules.form import always, located
from poly.autoschedule.spaces.gpu_contraction import group_structures
from poly.autoschedule.spaces.gpu_loops import gpu_loop_structures
from poly.autoschedule.spaces.space import Family, Point, Structure
from poly.ir.nest import Nest
from poly.model.core import Target
from poly.model.gpu_loops import gpu_loop_cost


def gpu_family(nest: Nest, isa: DeviceISA, target: Target, sizes: Mapping[str, int]) -> Family:
    """The structures of a nest; the choice is the default schedule."""
    default = default_schedule(nest, target)
    found = [*group_structures(nest, isa, default), *gpu_loop_structures(nest, isa, sizes)]
    for number, (structure, values) in enumerate(found):
        if structure.schedule(values).steps == default.steps:
            return Family(tuple(one for one, _ in found), Point(number, structure.at(values)))
    cost = gpu_loop_cost(located(default, sizes), isa)
    alone = Structure((("order", "by default"),), (), always, lambda values: default, lambda values: cost)
    return Family((*(one for one, _ in found), alone), Point(len(found), ()))
