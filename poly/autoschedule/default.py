"""The default schedule of a nest: contractions through microkernels, whatever else by its dependences.

    for i: for j:                         for i: for j:
      C[i, j] = 0                           C[i, j] = 0          (taken over by the kernel's first visit)
      for k:                      ->      …tiles, copies and the microkernel of the second statement
        C[i, j] += A[i, k] * B[k, j]

Loops that are no contraction are made contiguous, fused, shared among threads, tiled over time steps, overlapped, and
run in vector lanes: by each rule that applies, at its usual values. All that is done is steps of a schedule, each
checked.
"""

from __future__ import annotations

import warnings

from microkernels.opencl_isa import is_gpu
from poly.autoschedule.rules.blocks import lines
from poly.autoschedule.rules.form import Form
from poly.autoschedule.rules.grain import in_groups
from poly.autoschedule.rules.lanes import in_lanes
from poly.autoschedule.rules.microkernels import contracted
from poly.autoschedule.rules.orders import usual_order
from poly.autoschedule.rules.sharing import usual_sharing
from poly.autoschedule.rules.solves import usual_solve
from poly.autoschedule.rules.time_tiles import usual_time_tiles
from poly.autoschedule.rules.wavefront import side_by_side
from poly.errors import CostWarning
from poly.ir.budget import TooCostly, limited
from poly.ir.nest import Nest
from poly.model.core import Target
from poly.schedules.schedule import Schedule, schedule

AFFORDABLE = 6_000_000
"""The operations that isl may take for the choice of a schedule: some seconds."""


def default_schedule(nest: Nest, target: Target) -> Schedule:
    """The schedule that poly.compile takes where none is given; nothing is measured.

    It is the loops as written, and a CostWarning says so, where finding a better one would take isl too long.
    """
    return default_form(nest, target).tried


def default_form(nest: Nest, target: Target) -> Form:
    """The form whose usual schedule is the default."""
    try:
        with limited(AFFORDABLE):
            return _chosen(nest, target)
    except TooCostly:
        problem = f"the loops of {nest.name} run as they are written: a better schedule takes too much work to find"
        warnings.warn(f"{problem}. Remedy: give one, poly.compile(…, schedule=…).", CostWarning, stacklevel=2)
        return Form.fixed((("order", "as written"), ("innermost", "as written")), schedule(nest))


def _chosen(nest: Nest, target: Target) -> Form:
    if is_gpu(target.isa):
        from poly.autoschedule.rules.gpu import usual_form  # a CPU's schedules need no rule for GPUs

        return usual_form(nest, target.isa)
    made = contracted(nest, target)
    return Form.fixed(KERNELS, made) if made.steps else usual_loops(nest, target)


KERNELS = (("microkernels", "by the model"),)
"""The traits of a default that has microkernels: its sizes are open in the forms of rules/microkernels.py."""


def usual_loops(nest: Nest, target: Target) -> Form:
    """The form of loops without contractions: each rule at its usual values, left out where it is illegal."""
    solve = usual_solve(nest, target)
    if solve is not None:
        return solve
    form = usual_time_tiles(usual_sharing(usual_order(nest), target.threads), target.caches)
    for rule in (lines, side_by_side):
        form = rule(form) or form
    return in_groups(in_lanes(form), target.isa)
