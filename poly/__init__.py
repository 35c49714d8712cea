"""poly: compiles loop nests to fast kernels, with loop transformations that are proven legal.

`logging.getLogger("poly")` tells what poly does, by its children `poly.compile`, `poly.calibrate`, `poly.tune` and
`poly.cache`: at the level INFO what takes time, at DEBUG each trial of a search and each library.
"""

import logging
from importlib import import_module
from typing import TYPE_CHECKING, Any

from codegen.errors import ArgumentError, DeviceError, ToolchainError
from microkernels.dtypes import DType
from microkernels.errors import TargetError
from poly.analysis.dependences import dependences
from poly.compilation import compile_nest as compile
from poly.errors import (
    CostWarning,
    FileError,
    PolyError,
    RecordError,
    RecordWarning,
    ScheduleError,
    SearchError,
    SearchWarning,
    SpecError,
)
from poly.function import Function, einsum, from_c, nest, sizes
from poly.ir.nest import Nest
from poly.kernel import Kernel
from poly.machine import machine
from poly.microkernel import microkernel
from poly.opencl_kernel import OpenCLKernel
from poly.parsed import parse
from poly.scalar_types import f16, f32, f64, i8, i16, i32, i64, u8
from poly.schedules.schedule import Schedule, schedule
from poly.tune import tune
from poly.version import __version__

if TYPE_CHECKING:
    from poly.autoschedule.derive import space
    from poly.embed.opencl import write_opencl
    from poly.embed.write import write_header
    from poly.explanation import compare, explain

__all__ = [
    "ArgumentError",
    "CostWarning",
    "DType",
    "DeviceError",
    "FileError",
    "Function",
    "Kernel",
    "Nest",
    "OpenCLKernel",
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
    "compare",
    "compile",
    "dependences",
    "einsum",
    "explain",
    "f16",
    "f32",
    "f64",
    "from_c",
    "i8",
    "i16",
    "i32",
    "i64",
    "machine",
    "microkernel",
    "nest",
    "parse",
    "schedule",
    "sizes",
    "space",
    "tune",
    "u8",
    "write_header",
    "write_opencl",
]

LATER = {
    "compare": "poly.explanation",
    "explain": "poly.explanation",
    "space": "poly.autoschedule.derive",
    "write_header": "poly.embed",
    "write_opencl": "poly.embed.opencl",
}
"""Names that are imported on first use, so that `import poly` stays light."""


def __getattr__(name: str) -> Any:
    if name not in LATER:
        raise AttributeError(f"module 'poly' has no attribute {name!r}")
    globals()[name] = found = getattr(import_module(LATER[name]), name)
    return found


def __dir__() -> list[str]:
    """The public names alone, those that are imported on first use among them."""
    return sorted(__all__)


logging.getLogger("poly").addHandler(logging.NullHandler())
