"""A device program without Python: the kernels, a C library that launches them, and a program that checks both.

NAME.cl        the kernels
NAME.h         the library's declarations: NAME_create, NAME_enqueue, NAME_release
NAME.c         the library
NAME_check.c   a program that runs the nest on random data, compares with the plain loops, and measures
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from codegen.ir.program import Program
from codegen.opencl.values import DeviceProgram
from codegen.package.prefix import prefixed
from codegen.package.values import SelfTestSizes
from microkernels.opencl_isa import DeviceISA


@dataclass(frozen=True, eq=False)
class Standalone:
    """The contents of the files.

    `name` is the prefix of files and functions. `math` is the nest as the user wrote it, `loops` its schedule as text.
    `reference` runs the loops as written, with the same sizes and arrays. `delicate` and `drifts` say which values
    suit it, as in `codegen.package.values.Routine`. `notes` say how it was scheduled.
    """

    name: str
    program: DeviceProgram
    isa: DeviceISA
    math: str
    loops: str
    reference: Program
    trials: tuple[SelfTestSizes, ...]
    delicate: bool = False
    drifts: bool = False
    notes: tuple[str, ...] = ()
    version: str = ""


def named(text: str, made: Standalone) -> str:
    """A text written for a nest called `pfx`, with the actual nest's name."""
    return re.sub(r"\bpfx\b", made.name, prefixed(text, made.name))
