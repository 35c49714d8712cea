"""The machine: the properties that the system reports (instant), and measured rates (on demand, cached on disk)."""

from poly.machine.calibration import measured, nearest_level
from poly.machine.description import Machine, machine
from poly.machine.measured import Bandwidth, Measured, Peak
from poly.machine.text import facts, table
from poly.machine.topology import Cache, CoreKind, MemoryNode

__all__ = [
    "Bandwidth",
    "Cache",
    "CoreKind",
    "Machine",
    "Measured",
    "MemoryNode",
    "Peak",
    "facts",
    "machine",
    "measured",
    "nearest_level",
    "table",
]
