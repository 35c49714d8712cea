"""Measurement: candidates are compiled in parallel, then checked and timed one at a time in a child process."""

from poly.measure.live import Effort, LiveMeasurer

__all__ = ["Effort", "LiveMeasurer"]
