"""The header of the C library: the contract, and three functions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from codegen.ir.program import Buffer
from codegen.names import c_name, fresh
from codegen.opencl.values import HostIf, HostLoop, HostNode
from codegen.package.comments import arguments, comment, indented
from codegen.package.opencl.standalone import Standalone, named
from codegen.parameters import Parameter, prototype, size_parameters

ABOUT = """pfx for OpenCL: the kernels are in pfx.cl, and pfx.c launches them.{made}

pfx computes

{math}

{arguments}

Arrays are row-major without gaps; a buffer may be larger than its array. An output shares no memory with another array.

{notes}
Its loops, for {isa}:

{loops}

Build pfx.c into a program that links with -lOpenCL. pfx_check.c is one: it checks the kernels on a device.
    cc -O2 pfx.c pfx_check.c -o pfx_check -lOpenCL -lm && ./pfx_check"""

OPENING = """#ifndef PFX_OPENCL_H
#define PFX_OPENCL_H

#ifndef CL_TARGET_OPENCL_VERSION
#define CL_TARGET_OPENCL_VERSION 120
#endif
#ifdef __APPLE__
#include <OpenCL/opencl.h>
#else
#include <CL/cl.h>
#endif
#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The most that a size may be. */
#define PFX_SIZE_LIMIT INT64_C(0xFFFFFFFFFF)

/* The kernels, built for one device. */
typedef struct pfx_program pfx_program;

/* Reads and builds the .cl file at `path` for a device of the context. `messages` is where this and later calls tell
   what fails, with the log of the device's compiler; NULL for nowhere. On failure, *made is NULL. */
cl_int pfx_create(pfx_program **made, cl_context context, cl_device_id device, const char *path, FILE *messages);
"""

ENQUEUE = """\
/* Puts the launches into a queue of the context and device, which must run its commands in order, once the events of
   the wait list are complete; nothing is waited for. *began and *done become the events of the first and of the last
   launch, to be released, unless their pointers are NULL. A negative size or a buffer that is too small is an error,
   and nothing is launched then.
   A program serves one queue, and one thread, at a time: calls share its kernels and scratch memory. */
"""

CLOSING = """/* After the last call's commands are complete. NULL is fine. */
void pfx_release(pfx_program *program);

/* The name of a status, such as CL_OUT_OF_RESOURCES. */
const char *pfx_error_name(cl_int status);

#ifdef __cplusplus
}
#endif

#endif /* PFX_OPENCL_H */
"""


def interface(made: Standalone) -> str:
    """The text of NAME.h."""
    function = f"{ENQUEUE}{prototype('cl_int', 'pfx_enqueue', enqueue(made))};\n"
    parts = [comment(_about(made)), OPENING, function, CLOSING]
    return named("\n".join(part.replace("…", "...") for part in parts), made)


def own_name(made: Standalone, name: str) -> str:
    """A name for a variable of the function that enqueues launches, distinct from the nest's."""
    program = made.program
    names = (*map(c_name, program.sizes), *(c_name(b.name) for b in program.buffers))
    return fresh(name, frozenset((*names, *(s.name for s in program.scratch), *variables(program.plan))))


def variables(nodes: Sequence[HostNode]) -> Iterator[str]:
    """The variables of the host loops."""
    for node in nodes:
        if isinstance(node, HostLoop):
            yield node.variable
            yield from variables(node.body)
        elif isinstance(node, HostIf):
            yield from variables((*node.then, *node.otherwise))


def enqueue(made: Standalone) -> tuple[Parameter, ...]:
    """The parameters of `NAME_enqueue`."""
    own = (
        ("pfx_program *", "program"),
        ("cl_command_queue ", "queue"),
        ("cl_uint ", "waits"),
        ("const cl_event *", "wait_list"),
        ("cl_event *", "began"),
        ("cl_event *", "done"),
    )
    parameters = tuple(Parameter(prefix, own_name(made, name)) for prefix, name in own)
    sizes = size_parameters(made.program.sizes)
    return (*parameters[:2], *sizes, *map(_parameter, made.program.buffers), *parameters[2:])


def _parameter(buffer: Buffer) -> Parameter:
    return Parameter("cl_mem " if buffer.kind != "scalar" else f"{buffer.dtype.c_name} ", c_name(buffer.name))


def _about(made: Standalone) -> str:
    return ABOUT.format(
        made=f" Made by poly {made.version}." if made.version else "",
        math=indented(made.math),
        arguments=indented(arguments(made.program.sizes, made.program.buffers)),
        notes="".join(f"{note}\n" for note in made.notes),
        isa=made.isa.name,
        loops=indented(made.loops),
    )
