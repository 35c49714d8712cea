"""Measuring: candidates compiled in parallel, checked and timed alone in a child process."""

from poly.measure.live import Effort, LiveMeasurer

__all__ = ["Effort", "LiveMeasurer"]
