"""The machine: what it says of itself (instant), and what was measured on it (lazily, kept on disk)."""

from poly.machine.description import Cache, Machine, machine
from poly.machine.measured import Bandwidth, Measured, Peak, measured
from poly.machine.text import facts, table

__all__ = ["Bandwidth", "Cache", "Machine", "Measured", "Peak", "facts", "machine", "measured", "table"]
