"""The default schedule on a GPU of loops without microkernels; one rule a file."""

from poly.autoschedule.rules.gpu.mapped import gpu_schedule

__all__ = ["gpu_schedule"]
