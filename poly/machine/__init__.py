"""The machine: the properties that the system reports (instant), and measured rates (on demand, cached on disk)."""

from poly.machine.calibration import measured
from poly.machine.description import Cache, Machine, machine
from poly.machine.measured import Bandwidth, Measured, Peak
from poly.machine.text import facts, table

__all__ = ["Bandwidth", "Cache", "Machine", "Measured", "Peak", "facts", "machine", "measured", "table"]
