"""The Python text that launches a program's kernels: the plan with its loops, generated once and run by each call.

def launch(_enqueue, _queue, _wait, _fence, _room, v_A, v_B, v_T, v_N):
    _kernel_step, = _room.kernels
    v_t = 0
    while (v_t < v_T):
        _g0 = v_N
        if _g0 > 0:
            _kernel_step.set_args(v_A, v_B, v_N, v_t)
            _room.last = _enqueue(_queue, _kernel_step, (_g0*64,), (64,), None, _wait)
            _wait = [_room.last] if _fence else None
        v_t += 1
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from codegen.ir.integer import PYTHON
from codegen.names import c_name
from codegen.opencl.values import DeviceKernel, DeviceProgram, HostIf, HostLoop, HostNode, Launch


def variable(name: str) -> str:
    """A name of the plan with a prefix, so that it clashes with no Python keyword."""
    return f"v_{name}"


HOST = replace(PYTHON, named=variable)
"""The syntax of the plan's expressions."""


def launch_source(program: DeviceProgram) -> str:
    """The text of `launch`: its arguments after the room (see `codegen.opencl.sessions`) are the memory of the arrays
    and the values of the scalars, the memory of the scratch arrays, and the sizes, each in order.

    With `_fence` each launch waits for the previous one, as an out-of-order queue requires. The last launch's event is
    left in the room.
    """
    names = [
        *(c_name(buffer.name) for buffer in program.buffers),
        *(scratch.name for scratch in program.scratch),
        *map(c_name, program.sizes),
    ]
    kernels = [_kernel(kernel) for kernel in program.kernels]
    head = ", ".join(["_enqueue", "_queue", "_wait", "_fence", "_room", *map(variable, names)])
    body = _indented([f"{_tuple(kernels)} = _room.kernels", *_nodes(program, program.plan)])
    return "\n".join([f"def launch({head}):", *body]) + "\n"


def scratch_source(program: DeviceProgram) -> str:
    """The text of the function `scratch`: from the sizes to the bytes of each scratch array."""
    counts = [HOST.integer(scratch.count * scratch.dtype.size) for scratch in program.scratch]
    sizes = ", ".join(variable(c_name(size)) for size in program.sizes)
    return f"def scratch({sizes}):\n    return ({''.join(f'{count}, ' for count in counts)})\n"


def _nodes(program: DeviceProgram, nodes: Iterable[HostNode]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, Launch):
            yield from _launch(program.kernel(node.kernel), node)
        elif isinstance(node, HostLoop):
            yield from _loop(program, node)
        else:
            yield from _choice(program, node)


def _loop(program: DeviceProgram, loop: HostLoop) -> Iterator[str]:
    counter = variable(loop.variable)
    yield f"{counter} = {HOST.integer(loop.start)}"
    yield f"while {HOST.test(loop.condition)}:"
    yield from _indented([*_nodes(program, loop.body), f"{counter} += {loop.step}"])


def _choice(program: DeviceProgram, choice: HostIf) -> Iterator[str]:
    yield f"if {HOST.test(choice.condition)}:"
    yield from _indented([*_nodes(program, choice.then), "pass"])
    if choice.otherwise:
        yield "else:"
        yield from _indented(_nodes(program, choice.otherwise))


def _launch(kernel: DeviceKernel, launch: Launch) -> Iterator[str]:
    """The lines of a launch, which happens only if every number of groups is above 0."""
    rank = max(len(launch.groups), len(kernel.items))
    groups = [f"_g{n}" for n in range(len(launch.groups))]
    for group, count in zip(groups, launch.groups, strict=True):
        yield f"{group} = {HOST.integer(count)}"
    items = [*kernel.items, *[1] * (rank - len(kernel.items))]
    counts = [*groups, *["1"] * (rank - len(groups))]
    total = [count if width == 1 else f"{count}*{width}" for count, width in zip(counts, items, strict=True)]
    arguments = ", ".join(variable(argument.name) for argument in kernel.arguments)
    name, size, group = _kernel(kernel), _tuple(total), _tuple(map(str, items))
    yield f"if {' and '.join(f'{group} > 0' for group in groups) or 'True'}:"
    yield from _indented(
        [
            f"{name}.set_args({arguments})",
            f"_room.last = _enqueue(_queue, {name}, {size}, {group}, None, _wait)",
            "_wait = [_room.last] if _fence else None",
        ]
    )


def _kernel(kernel: DeviceKernel) -> str:
    return f"_kernel_{kernel.name}"


def _indented(lines: Iterable[str]) -> list[str]:
    return [f"    {line}" for line in lines]


def _tuple(items: Iterable[str]) -> str:
    """`(a, b)`, or `(a,)` for one item."""
    texts: Sequence[str] = list(items)
    return f"({', '.join(texts)}{',' * (len(texts) == 1)})"


@dataclass(frozen=True)
class Functions:
    """A program's `launch` and `scratch`, and pyopencl's functions that each call needs, with the errors they raise."""

    launch: Callable[..., None]
    scratch: Callable[..., tuple[int, ...]]
    enqueue: Callable[..., Any]
    marker: Callable[..., Any]
    errors: tuple[type[Exception], ...]


def functions(program: DeviceProgram) -> Functions:
    """Make the functions from their texts."""
    import pyopencl as cl

    names: dict[str, Any] = {}
    exec(launch_source(program) + scratch_source(program), names)
    errors = (cl.Error, MemoryError)
    return Functions(names["launch"], names["scratch"], cl.enqueue_nd_range_kernel, cl.enqueue_marker, errors)
