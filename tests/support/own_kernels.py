"""The microkernels of the lesson on user-defined ones."""

from __future__ import annotations

import importlib.util
from functools import cache
from pathlib import Path
from types import ModuleType

from microkernels.custom_kernel import CustomKernel


@cache
def lesson() -> ModuleType:
    """The lesson as a module, which adds its microkernels."""
    path = Path(__file__).parents[2] / "examples" / "07_own_microkernel.py"
    spec = importlib.util.spec_from_file_location("own_microkernel", path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def lessons() -> tuple[CustomKernel, ...]:
    """The lesson's microkernels."""
    return lesson().outer_tile, lesson().dot4_tile
