"""The C library that builds the kernels and follows the plan of launches.

Most of it is fixed C text, in the files `c/host_*.h`. Between them stand a function for each kernel, which sets its
arguments and launches it, and the function that runs the plan: host loops become C loops.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

from codegen.c import used_helpers
from codegen.ir.integer import Affine, extent, in_c
from codegen.ir.program import Buffer
from codegen.ir.signature import condition
from codegen.names import c_name, fresh
from codegen.opencl.builds import OPTIONS
from codegen.opencl.values import Argument, DeviceKernel, DeviceProgram, HostLoop, HostNode, Launch, Scratch
from codegen.package.api import block, filled
from codegen.package.opencl.interface import enqueue, own_name
from codegen.package.opencl.standalone import Standalone, named
from codegen.parameters import Parameter, prototype, unused
from codegen.workspace import array_bytes

OPENING = """#include "pfx.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
"""


def host(made: Standalone) -> str:
    """The text of NAME.c."""
    launches = [_launch_function(made, kernel, at) for at, kernel in enumerate(made.program.kernels)]
    run = _enqueue_function(made)
    parts = [
        f"/* pfx for OpenCL: see pfx.h. */\n{OPENING}",
        _settings(made),
        part("errors"),
        part("program"),
        part("call"),
        *[part("sizes")] * bool(made.program.sizes),
        *[part("scratch")] * bool(made.program.scratch),
        *launches,
        used_helpers(run),
        run,
    ]
    return named("\n\n".join(text.rstrip("\n") for text in parts if text), made) + "\n"


@cache
def part(name: str) -> str:
    """A C file of the library."""
    return (Path(__file__).parent / "c" / f"host_{name}.h").read_text()


def _settings(made: Standalone) -> str:
    names = "".join(f'  "{kernel.name}",\n' for kernel in made.program.kernels)
    return f"""#define PFX_BUILD_OPTIONS "{" ".join(OPTIONS)}"
#define PFX_SCRATCH {len(made.program.scratch)} /* arrays that kernels hand on to each other */
#define PFX_KERNELS {len(made.program.kernels)}
static const char *const pfx_kernels[PFX_KERNELS] = {{
{names}}};"""


def _launch_function(made: Standalone, kernel: DeviceKernel, number: int) -> str:
    """`pfx_launch_NAME(call, groups…, arguments…)`."""
    taken = frozenset(argument.name for argument in kernel.arguments)
    call, groups, items = (fresh(name, taken) for name in ("c", "groups", "items"))
    dimensions = max(len(launch.groups) for launch in _launches(made.program.plan) if launch.kernel == kernel.name)
    shape = (*kernel.items, *[1] * dimensions)[:dimensions]
    counts = tuple(Parameter("int64_t ", fresh(f"groups_{d}", taken)) for d in range(dimensions))
    parameters = (Parameter("pfx_call *", call), *counts, *map(_parameter, kernel.arguments))
    lines = [
        f"const int64_t {groups}[] = {{{', '.join(count.name for count in counts)}}};",
        f"const size_t {items}[] = {{{', '.join(map(str, shape))}}};",
        *(
            f"pfx_argument({call}, {number}, {at}, sizeof {name}, &{name});"
            for at, name in enumerate(argument.name for argument in kernel.arguments)
        ),
        f"pfx_launch({call}, {number}, {dimensions}, {groups}, {items});",
    ]
    return f"{prototype('static void', _launch_name(made.program, kernel.name), parameters)}\n{block(lines)}"


def _launches(nodes: Sequence[HostNode]) -> Iterator[Launch]:
    """The launches of a plan."""
    for node in nodes:
        if isinstance(node, Launch):
            yield node
        else:
            yield from _launches(node.body if isinstance(node, HostLoop) else (*node.then, *node.otherwise))


def _launch_name(program: DeviceProgram, kernel: str) -> str:
    return f"pfx_launch_{kernel.removeprefix(f'{program.name}_')}"


def _parameter(argument: Argument) -> Parameter:
    """A kernel's argument as a parameter in C."""
    if argument.kind == "integer":
        return Parameter("int64_t ", argument.name)
    if argument.kind == "scalar":
        assert argument.dtype is not None
        return Parameter(f"{argument.dtype.c_name} ", argument.name)
    return Parameter("cl_mem ", argument.name)


def _enqueue_function(made: Standalone) -> str:
    """`NAME_enqueue`: checks, scratch memory, launches."""
    program = made.program
    call, queue = own_name(made, "c"), own_name(made, "queue")
    began, done = own_name(made, "began"), own_name(made, "done")
    start = [own_name(made, "program"), queue, own_name(made, "waits"), own_name(made, "wait_list")]
    finish = f"return pfx_finish(&{call}, {began}, {done});"
    outputs = [filled(b) for b in program.buffers if b.kind in ("out", "inout")]
    idle = "".join(f" && !({output})" for output in outputs).removeprefix(" && ") if all(outputs) else ""
    lines = [
        f"pfx_call {call} = {{{', '.join(start)}, NULL, NULL, CL_SUCCESS}};",
        f"pfx_check_queue(&{call});",
        *(f'pfx_check_size(&{call}, "{size}", {c_name(size)});' for size in program.sizes),
        *(_check_condition(value, call) for value in made.reference.conditions),
        *(_check_array(buffer, call) for buffer in program.buffers if buffer.kind != "scalar"),
        f"if ({call}.status != CL_SUCCESS) {finish}",
        *[f"if ({idle}) {finish}"] * bool(idle),
        *(_scratch(scratch, at, call) for at, scratch in enumerate(program.scratch)),
        *_steps(program, program.plan, call),
        finish,
    ]
    parameters = enqueue(made)
    launched = {argument.name for kernel in program.kernels for argument in kernel.arguments}
    idle_scalars = {c_name(b.name) for b in program.buffers if b.kind == "scalar"} - launched
    void = unused(parameters, {parameter.name for parameter in parameters} - idle_scalars)
    return f"{prototype('cl_int', 'pfx_enqueue', parameters)}\n{block([*void, *lines])}"


def _check_condition(value: Affine, call: str) -> str:
    failed = f'pfx_fail(&{call}, CL_INVALID_VALUE, "looking at the sizes", "{condition(value)}")'
    return f"if ({call}.status == CL_SUCCESS && {in_c(value)} < 0) {failed};"


def _check_array(buffer: Buffer, call: str) -> str:
    shape = ", ".join(extent(size) for size in buffer.shape)
    described = f'"{buffer.name}", {c_name(buffer.name)}, {buffer.dtype.size}, {len(buffer.shape)}'
    return f"pfx_check_array(&{call}, {described}, (const int64_t[]){{{shape}}});"


def _scratch(scratch: Scratch, at: int, call: str) -> str:
    needed = array_bytes(scratch.count, scratch.dtype.size)
    return f"const cl_mem {scratch.name} = pfx_scratch(&{call}, {at}, {needed});"


def _steps(program: DeviceProgram, nodes: Sequence[HostNode], call: str, indent: str = "") -> Iterator[str]:
    """C lines that follow the plan."""
    inner = f"{indent}  "
    for node in nodes:
        if isinstance(node, Launch):
            yield f"{indent}{_launch(program, node, call)}"
            continue
        if isinstance(node, HostLoop):
            start = f"int64_t {node.variable} = {node.start}"
            yield f"{indent}for ({start}; {node.condition}; {node.variable} += {node.step}) {{"
            yield from _steps(program, node.body, call, inner)
        else:
            yield f"{indent}if ({node.condition}) {{"
            yield from _steps(program, node.then, call, inner)
            if node.otherwise:
                yield f"{indent}}} else {{"
                yield from _steps(program, node.otherwise, call, inner)
        yield f"{indent}}}"


def _launch(program: DeviceProgram, node: Launch, call: str) -> str:
    names = (argument.name for argument in program.kernel(node.kernel).arguments)
    return f"{_launch_name(program, node.kernel)}({', '.join([f'&{call}', *map(str, node.groups), *names])});"
