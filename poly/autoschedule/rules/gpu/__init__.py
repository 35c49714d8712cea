"""The rules for GPUs: how loops map to work-groups and work-items, and what is copied to local memory."""

from microkernels.opencl_isa import DeviceISA
from poly.autoschedule.rules.form import Form
from poly.autoschedule.rules.gpu.contraction import GROUP, gpu_contracted
from poly.autoschedule.rules.gpu.mapped import PLAIN, gpu_schedule
from poly.ir.nest import Nest

__all__ = ["gpu_schedule", "usual_form"]


def usual_form(nest: Nest, isa: DeviceISA) -> Form:
    """The form with microkernels for all contractions they serve, and all other loops mapped to groups and items.

    Its sizes are open in the structures with the same traits.
    """
    made = gpu_contracted(nest, isa, {})
    return Form.fixed(GROUP if made.steps else PLAIN, gpu_schedule(made, isa))
