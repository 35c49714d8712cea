"""OpenCL kernels: the outermost parallel loops become work-groups, and their contents the kernel's body.

for i in range(M):  # parallel        __kernel void f_i(int64_t M, …, __global float *restrict B)
  for j in range(N):            ->    {
    B[i, j] = …                         const int64_t i = (int64_t)get_group_id(0);
                                        for (int64_t j = 0; j < N; j += 1)
                                          B[i*N + j] = …
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import cgen

from codegen import style
from codegen.instruction_text import FENCES
from codegen.ir.instructions import ITEM
from codegen.ir.integer import Int, Linear, Test, minimum, primary
from codegen.ir.loop_ir import Node
from codegen.ir.program import Program, Workspace
from codegen.lanes.reached import conditions, independent_of
from codegen.names import c_name, fresh
from codegen.opencl.groups import GroupLoop, grouped, work_items
from codegen.opencl.items import WAIT
from codegen.opencl.values import Argument, DeviceKernel, Launch
from codegen.opencl.writer import DeviceWriter
from codegen.parameters import Parameter, prototype
from codegen.scope import LoopScope
from codegen.style import Line, names_in
from codegen.workspace import Layout
from microkernels.ctext import KEYWORDS
from microkernels.opencl_isa import DeviceISA

GROUP, NUMBER = "group", "number"
"""The variables that count the groups, and the iterations of a loop that fewer groups share."""
ONE: tuple[Int, ...] = (Linear.of(1),)
"""One group."""
NARROW = 256
"""The widest vectors, in bits, that every compiler uses by default."""


@dataclass(frozen=True)
class Written:
    """A kernel's text, its description for the host, and its launch.

    If one of the conditions `needed` does not hold, the groups have nothing to do.
    """

    text: str
    kernel: DeviceKernel
    launch: Launch
    needed: tuple[Test, ...] = ()


def parallel_kernel(program: Program, taken: frozenset[str], node: Node, scope: LoopScope) -> Written:
    """The kernel for a parallel loop; its name is not among those `taken`."""
    made = grouped(node, scope)
    needed = conditions(made.body)
    for loop in made.loops:
        needed = independent_of(needed, loop.variable)
    needed = scope.unknown(needed)
    body = _Body.of(program, [made.body], made.scope)
    if not body.apart or not made.loops:
        variables = [
            _variable(loop, f"(int64_t)get_group_id({dimension})")
            for dimension, loop in reversed(list(enumerate(reversed(made.loops))))
        ]
        around = [*variables, *body.lines]
        groups = tuple(loop.trips for loop in reversed(made.loops)) or ONE
        return replace(_written(program, taken, scope, body, made.loops, around, groups), needed=needed)
    made = grouped(node, scope, most=1)
    body = _Body.of(program, [made.body], made.scope)
    fewer = minimum(units(program), made.loops[0].trips)
    written = _written(program, taken, scope, body, made.loops, _few_groups(made.loops[0], body), (fewer,))
    return replace(written, needed=needed)


def task_kernel(program: Program, taken: frozenset[str], nodes: Sequence[Node], scope: LoopScope) -> Written:
    """The kernel for nodes that a single group runs."""
    body = _Body.of(program, nodes, scope)
    return _written(program, taken, scope, body, (), body.lines, ONE)


@dataclass(frozen=True)
class _Body:
    """The body of a kernel: its lines, the number of work-items of a group, and the declarations at the top.

    `apart` are the scratch arrays in `__global` memory of which each group has its own part.
    """

    lines: list[cgen.Generable]
    items: int
    declarations: tuple[Line, ...]
    apart: tuple[Workspace, ...]

    @staticmethod
    def of(program: Program, nodes: Sequence[Node], scope: LoopScope) -> _Body:
        items = max(work_items(program, node) for node in nodes)
        writer = DeviceWriter(program, "none", items=items)
        lines = [line for node in nodes for line in writer.write(node, replace(scope, parallel=True))]
        used = names_in(lines)
        private = [w for w in Layout.of(program).private if c_name(w.name) in used]
        declared = [_declaration(w) for w in private if w.space != "global"]
        number = [Line(f"const int {ITEM} = (int)get_local_id(0);")] * (items > 1)
        apart = tuple(w for w in private if w.space == "global")
        return _Body(lines, items, (*number, *declared), apart)


def _few_groups(loop: GroupLoop, body: _Body) -> list[cgen.Generable]:
    """The loop in which each group runs every n-th iteration; the n groups each have their own scratch arrays."""
    wait = [Line(WAIT)] * (body.items > 1)
    counted = style.ForStatement(
        Line(f"int64_t {NUMBER} = {GROUP}"),
        Line(f"{NUMBER} < {loop.trips}", loop.trips.names),
        Line(f"{NUMBER} += (int64_t)get_num_groups(0)"),
        style.Braces([_variable(loop, NUMBER), *body.lines, *wait]),
    )
    return [counted]


def _variable(loop: GroupLoop, number: str) -> Line:
    """The declaration of a loop's variable, in the iteration of this number."""
    return Line(f"const int64_t {loop.variable} = {loop.at(number)};", loop.start.names)


def _written(
    program: Program,
    taken: frozenset[str],
    scope: LoopScope,
    body: _Body,
    loops: tuple[GroupLoop, ...],
    lines: list[cgen.Generable],
    groups: tuple[Int, ...],
) -> Written:
    name = fresh(f"{program.name}_{loops[-1].variable if loops else 'once'}", taken)
    setup = [*body.declarations]
    if body.apart:
        setup.append(Line(f"const int64_t {GROUP} = (int64_t)get_group_id(0);"))
        setup += [_part(workspace) for workspace in body.apart]
    whole = style.Braces([*setup, *lines])
    text = str(whole)
    arguments = _arguments(program, names_in([whole]), scope, body.apart)
    alone = FENCES["global"] not in text
    head = prototype("void", name, [_parameter(program, argument, alone) for argument in arguments])
    attributes = ", ".join(_attributes(program, body.items))
    attribute = f"__kernel __attribute__(({attributes}))" if attributes else "__kernel"
    return Written(f"{attribute}\n{head}\n{text}", DeviceKernel(name, arguments, (body.items,)), Launch(name, groups))


def _attributes(program: Program, items: int) -> list[str]:
    """The group's size, and for a CPU the width of its vectors, since clang halves the widest ones by default.

    Where registers are limited, the size is left to the launch: it would override the limit.
    """
    bits = 8 * program.isa.vector_bytes
    size = [] if program.registers else [f"reqd_work_group_size({items}, 1, 1)"]
    return [*size, *[f"min_vector_width({bits})"] * (bits > NARROW)]


def _declaration(workspace: Workspace) -> Line:
    """`__local float A_panels[384] __attribute__((aligned(64)));`"""
    space, c_type = KEYWORDS[workspace.space], workspace.dtype.c_name
    text = f"{space}{c_type} {c_name(workspace.name)}[{workspace.count}] __attribute__((aligned(64)));"
    return Line(text, workspace.count.names)


def _part(workspace: Workspace) -> Line:
    """The declaration of the group's part of a scratch array; the argument with all parts has another name."""
    c_type, name = workspace.dtype.c_name, c_name(workspace.name)
    text = f"{KEYWORDS['global']}{c_type} *const {name} = {_all(name)} + {GROUP}*{primary(workspace.count)};"
    return Line(text, workspace.count.names | {_all(name)})


def _all(name: str) -> str:
    return f"all_{name}"


def _arguments(
    program: Program, names: frozenset[str], scope: LoopScope, apart: tuple[Workspace, ...]
) -> tuple[Argument, ...]:
    """The arguments that statements name: sizes, arrays and scalars, scratch arrays, variables of host loops."""
    buffers = [b for b in program.buffers if b.kind != "local"]
    candidates = [
        *(Argument(c_name(size), "integer") for size in program.sizes),
        *(Argument(c_name(b.name), "scalar" if b.kind == "scalar" else "buffer", b.dtype) for b in buffers),
        *(Argument(c_name(w.name), "scratch", w.dtype) for w in Layout.of(program).shared),
        *(Argument(_all(c_name(w.name)), "scratch", w.dtype) for w in apart),
        *(Argument(variable, "integer") for variable in scope.variables),
    ]
    return tuple(argument for argument in candidates if argument.name in names)


def _parameter(program: Program, argument: Argument, alone: bool) -> Parameter:
    """The declaration of an argument.

    Only arrays that are written are `restrict`: that suffices to tell them from all others. From a `restrict` input
    NVIDIA's compiler (580.159) reads through a cache that no store updates, and `c ? out[0] : in[i]` becomes one such
    read, of either array.

    None is where items read what others of their group write, which are not `alone` then: `restrict` says that nobody
    else writes what an item reads, so that the same compiler reads it before the barrier.
    """
    if argument.kind == "integer":
        return Parameter("int64_t ", argument.name)
    assert argument.dtype is not None
    if argument.kind == "scalar":
        return Parameter(f"{argument.dtype.c_name} ", argument.name)
    if any(c_name(b.name) == argument.name and b.kind == "in" for b in program.buffers):
        return Parameter(f"{KEYWORDS['global']}const {argument.dtype.c_name} *", argument.name)
    restrict = "restrict " if alone else ""
    return Parameter(f"{KEYWORDS['global']}{argument.dtype.c_name} *{restrict}", argument.name)


def scratch_name(workspace: Workspace) -> str:
    """The name of a scratch array's argument."""
    name = c_name(workspace.name)
    return _all(name) if workspace.private else name


def units(program: Program) -> int:
    """The number of groups that run at a time."""
    return program.isa.units if isinstance(program.isa, DeviceISA) else 1
