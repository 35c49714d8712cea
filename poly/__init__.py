"""poly: loop nests to kernels at the machine's speed, legal by proof."""

from codegen.errors import ArgumentError, ToolchainError
from microkernels.dtypes import DType, f32, f64, i8, i32, i64
from microkernels.errors import TargetError
from poly.dependences import dependences
from poly.errors import PolyError, RecordError, RecordWarning, ScheduleError, SearchError, SearchWarning, SpecError
from poly.function import Function, einsum, nest, sizes
from poly.kernel import Kernel
from poly.kernel import compile_nest as compile
from poly.machine import machine
from poly.nest import Nest
from poly.schedule import Schedule, schedule
from poly.spaces.derive import space
from poly.tune import tune
from poly.version import __version__

__all__ = [
    "ArgumentError",
    "DType",
    "Function",
    "Kernel",
    "Nest",
    "PolyError",
    "RecordError",
    "RecordWarning",
    "Schedule",
    "ScheduleError",
    "SearchError",
    "SearchWarning",
    "SpecError",
    "TargetError",
    "ToolchainError",
    "__version__",
    "compile",
    "dependences",
    "einsum",
    "f32",
    "f64",
    "i8",
    "i32",
    "i64",
    "machine",
    "nest",
    "schedule",
    "sizes",
    "space",
    "tune",
]
