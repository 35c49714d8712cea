"""The space of a nest on a GPU: microkernel shapes for its heaviest contraction, and loops without microkernels."""

from __future__ import annotations

from microkernels.opencl_isa import DeviceISA
from poly.autoschedule.default import default_form
from poly.autoschedule.rules.form import always, located
from poly.autoschedule.rules.gpu.contraction import group_structure
from poly.autoschedule.rules.gpu.mapped import gpu_loop_structures
from poly.autoschedule.spaces.space import Family, Point, Structure
from poly.ir.nest import Nest
from poly.model.core import Target
from poly.model.gpu_loops import gpu_loop_cost


def gpu_family(nest: Nest, isa: DeviceISA, target: Target) -> Family:
    """The structures of a nest; the choice is the default schedule.

    If that has a microkernel for a contraction other than the heaviest, it becomes a structure without knobs.
    """
    default = default_form(nest, target)
    made, group = default.tried, group_structure(nest, isa, default.tried)
    found = [*([group] if group else []), *gpu_loop_structures(nest, isa, {})]
    structures = [structure for structure, _ in found]
    traits = [structure.traits for structure in structures]
    values = found[traits.index(default.traits)][1] if default.traits in traits else None
    if values is not None:
        number = traits.index(default.traits)
        return Family(tuple(structures), Point(number, structures[number].at(values)))
    cost = gpu_loop_cost(located(made, {}), isa)
    alone = Structure((("order", "by default"),), (), always, lambda values: made, lambda values: cost)
    return Family((*structures, alone), Point(len(structures), ()))
