"""The machine: what it says of itself (instant), and what was measured on it (lazily, kept on disk)."""

from poly.machine.description import Cache, Machine, machine
from poly.machine.measured import Bandwidth, Measured, Peak, measured

__all__ = ["Bandwidth", "Cache", "Machine", "Measured", "Peak", "machine", "measured"]
