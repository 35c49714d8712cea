"""The program that checks the kernels on a device: outputs start as NaN, and are compared with the plain loops.

Arrays are filled and compared by the C code of a header's self-test; `c/try_*.h` here deal with the device.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from codegen.ir.signature import Signature
from codegen.macros import definitions
from codegen.names import function_name
from codegen.package.opencl.standalone import Standalone, named
from codegen.package.selftest import halves, plain_loops
from codegen.package.selftest import part as shared_part
from codegen.package.selftest_routine import (
    arrays_table,
    call_line,
    data,
    function,
    plain_workspace,
    scalar,
    shape_function,
    sizes_table,
    trials_table,
    unused,
)
from codegen.package.values import Routine

INCLUDES = """#include "pfx.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>"""

GUARD = 4096
"""The bytes before and after an array: a multiple of the alignment that devices require of sub-buffers."""


def check(made: Standalone) -> str:
    """The text of NAME_check.c."""
    routine = _routine(made)
    loops = plain_loops([routine])
    parts = [
        "/* Checks pfx on a device, and measures it: see pfx.h. */",
        INCLUDES,
        _settings(made, routine),
        definitions(loops),
        loops,
        shared_part("arrays"),
        part("device"),
        "\n".join(table(routine) for table in (sizes_table, arrays_table, trials_table, shape_function)),
        part("case"),
        _workspace(routine),
        _plain(routine),
        _enqueue(routine),
        part("run"),
        part("program"),
    ]
    return named("\n\n".join(text.rstrip("\n") for text in parts if text), made) + "\n"


@cache
def part(name: str) -> str:
    """A C file of the program."""
    return (Path(__file__).parent / "c" / f"try_{name}.h").read_text()


def _routine(made: Standalone) -> Routine:
    """The nest as a routine, for the text shared with a header's self-test."""
    program = made.program
    return Routine(
        name="nest",
        signature=Signature(made.name, program.sizes, program.buffers),
        strides=(),
        loops=made.math,
        variants=(),
        reference=made.reference,
        trials=made.trials,
        delicate=made.delicate,
        drifts=made.drifts,
    )


def _settings(made: Standalone, routine: Routine) -> str:
    """The nest's constants for the C files."""
    arrays = routine.signature.arrays
    title = f"{made.name} for OpenCL" + (f", made by poly {made.version}" if made.version else "")
    values = {
        "TITLE": f'"{title}"',
        "FILE": '"pfx.cl"',
        "KIND": "CL_DEVICE_TYPE_GPU" if made.isa.is_gpu else "CL_DEVICE_TYPE_CPU",
        "GUARD": GUARD,
        "ARRAYS": len(arrays),
        "RANK": max(2, *(len(b.shape) for b in arrays)),
        "SIZES": len(routine.sizes),
        "DELICATE": int(made.delicate),
        "DRIFTS": int(made.drifts),
    }
    return "\n".join([*(f"#define TRY_{name} {value}" for name, value in values.items()), *halves([routine])])


def _workspace(routine: Routine) -> str:
    head = "static int64_t try_nest_workspace(const int64_t *size)"
    return function(head, [*unused("size"), f"return {plain_workspace(routine)};"])


def _plain(routine: Routine) -> str:
    """A call of the plain loops, with a case's arguments."""
    arguments = [*_sizes(routine), *data(routine), "1", "workspace"]
    name = f"try_{function_name(routine.reference.name)}"
    head = "static void try_nest_plain(const try_case *c, void *workspace)"
    return function(head, [call_line("(void)", name, arguments)])


def _enqueue(routine: Routine) -> str:
    """A call of the device's kernels."""
    arrays = iter(range(len(routine.signature.arrays)))
    values = [scalar(b.dtype) if b.kind == "scalar" else f"c->part[{next(arrays)}]" for b in routine.signature.buffers]
    arguments = ["program", "queue", *_sizes(routine), *values, "0", "NULL", "began", "done"]
    head = """static cl_int try_nest_enqueue(pfx_program *program, cl_command_queue queue, const try_case *c,
                               cl_event *began, cl_event *done)"""
    return function(head, [call_line("return", "pfx_enqueue", arguments)])


def _sizes(routine: Routine) -> list[str]:
    return [f"c->size[{at}]" for at in range(len(routine.sizes))]
