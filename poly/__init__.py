"""poly: compiles loop nests to fast kernels, with loop transformations that are proven legal.

`logging.getLogger("poly")` tells what poly does, by its children `poly.compile`, `poly.calibrate`, `poly.tune` and
`poly.cache`: at the level INFO what takes time, at DEBUG each trial of a search and each library.
"""

import logging
import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

from poly.siblings import need_siblings
from poly.version import __version__

if TYPE_CHECKING:
    from codegen.errors import ArgumentError, DeviceError, ToolchainError
    from microkernels.dtypes import DType
    from microkernels.errors import PluginError, PolyError, TargetError
    from poly.analysis.dependences import dependences
    from poly.autoschedule.derive import space
    from poly.compilation import compile_nest as compile
    from poly.einsums import einsum
    from poly.embed import write_header
    from poly.embed.build import write_package
    from poly.embed.opencl import write_opencl
    from poly.errors import (
        CostWarning,
        FileError,
        RecordError,
        RecordWarning,
        ScheduleError,
        SearchError,
        SearchWarning,
        SpecError,
    )
    from poly.explanation import compare, explain
    from poly.function import Function, from_c, nest, sizes
    from poly.ir.nest import Nest
    from poly.kernel import Kernel
    from poly.machine import machine
    from poly.microkernel import microkernel
    from poly.opencl_kernel import OpenCLKernel
    from poly.parsed import parse
    from poly.scalar_types import bf16, c64, c128, f16, f32, f64, i8, i16, i32, i64, u8, u16
    from poly.schedules.schedule import Schedule, schedule
    from poly.timing.benchmark import Benchmark
    from poly.tune import tune

__all__ = [
    "ArgumentError",
    "Benchmark",
    "CostWarning",
    "DType",
    "DeviceError",
    "FileError",
    "Function",
    "Kernel",
    "Nest",
    "OpenCLKernel",
    "PluginError",
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
    "bf16",
    "c64",
    "c128",
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
    "u16",
    "write_header",
    "write_opencl",
    "write_package",
]

LATER = {
    **dict.fromkeys(("ArgumentError", "DeviceError", "ToolchainError"), "codegen.errors"),
    **dict.fromkeys(
        ("bf16", "c64", "c128", "f16", "f32", "f64", "i8", "i16", "i32", "i64", "u8", "u16"), "poly.scalar_types"
    ),
    **dict.fromkeys(("PluginError", "PolyError", "TargetError"), "microkernels.errors"),
    **dict.fromkeys(("CostWarning", "FileError", "RecordError", "RecordWarning", "ScheduleError"), "poly.errors"),
    **dict.fromkeys(("SearchError", "SearchWarning", "SpecError"), "poly.errors"),
    **dict.fromkeys(("compare", "explain"), "poly.explanation"),
    **dict.fromkeys(("Function", "from_c", "nest", "sizes"), "poly.function"),
    **dict.fromkeys(("Schedule", "schedule"), "poly.schedules.schedule"),
    "Benchmark": "poly.timing.benchmark",
    "DType": "microkernels.dtypes",
    "Kernel": "poly.kernel",
    "Nest": "poly.ir.nest",
    "OpenCLKernel": "poly.opencl_kernel",
    "compile": "poly.compilation:compile_nest",
    "dependences": "poly.analysis.dependences",
    "einsum": "poly.einsums",
    "machine": "poly.machine",
    "microkernel": "poly.microkernel",
    "parse": "poly.parsed",
    "space": "poly.autoschedule.derive",
    "tune": "poly.tune",
    "write_header": "poly.embed",
    "write_opencl": "poly.embed.opencl",
    "write_package": "poly.embed.build",
}
"""The module of each name, imported when the name is first used, so that `import poly` and `poly --help` take no time.

A name that is another one there follows a colon."""


class _Package(ModuleType):
    """This package. A function stays what its name means when the module of the same name is imported."""

    def __setattr__(self, name: str, value: Any) -> None:
        if not (name in LATER and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


def __getattr__(name: str) -> Any:
    if name not in LATER:
        raise AttributeError(f"module 'poly' has no attribute {name!r}")
    module, _, other = LATER[name].partition(":")
    globals()[name] = found = getattr(import_module(module), other or name)
    return found


def __dir__() -> list[str]:
    """The public names alone, those that are imported on first use among them."""
    return sorted(__all__)


need_siblings()
sys.modules[__name__].__class__ = _Package
logging.getLogger("poly").addHandler(logging.NullHandler())
