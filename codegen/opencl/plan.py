"""From a program to a device program: parallel loops become kernels, the loops around them the host's plan.

for t in range(T):                    for t:
  for i in range(N):  # parallel        launch step_i over N groups
    B[i] = …                    ->
  for i in range(N):  # parallel        launch step_i_2 over N groups
    A[i] = …
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import groupby

from codegen.c import heading
from codegen.ir.integer import Test
from codegen.ir.loop_ir import Block, Comment, For, If, Node, Once
from codegen.ir.program import Program, Workspace
from codegen.lanes.reached import conditions, conjunction, independent_of
from codegen.opencl.dialect import helpers, prelude
from codegen.opencl.groups import has_groups, is_grouped
from codegen.opencl.kernels import Written, parallel_kernel, scratch_name, task_kernel, units
from codegen.opencl.values import DeviceProgram, HostIf, HostLoop, HostNode, Scratch
from codegen.scope import LoopScope
from codegen.style import wrapped
from codegen.workspace import Layout
from microkernels.prune import items_of, pruned


def device_program(program: Program) -> DeviceProgram:
    """The kernels of a program and the plan of their launches."""
    planner = HostPlanner(program)
    plan = planner.nodes([program.named_loops], LoopScope.of(program))
    kernels = [wrapped(written.text) for written in planner.kernels]
    used = {a.name for written in planner.kernels for a in written.kernel.arguments if a.kind == "scratch"}
    layout = Layout.of(program)
    return DeviceProgram(
        name=program.name,
        sizes=program.sizes,
        buffers=tuple(b for b in program.buffers if b.kind != "local"),
        source=source(program, kernels),
        routines=routines(program, kernels),
        kernels=tuple(written.kernel for written in planner.kernels),
        plan=plan,
        scratch=tuple(_scratch(program, w) for w in layout.shared + layout.private if scratch_name(w) in used),
        registers=program.registers,
    )


def source(program: Program, kernels: Sequence[str]) -> str:
    """The complete OpenCL C text."""
    code = "\n\n".join(kernels)
    small = helpers(code)
    tuned = wrapped(routines(program, kernels))
    widest = max((buffer.dtype for buffer in program.buffers), key=lambda dtype: dtype.size)
    known = prelude("\n".join([small, tuned, code]), program.isa.lanes(widest))
    unfused = "" if program.fused else "#pragma OPENCL FP_CONTRACT OFF"
    top = [heading(program), unfused, known, small, tuned]
    return "\n\n".join(part for part in [*top, code] if part) + "\n"


def routines(program: Program, kernels: Sequence[str]) -> str:
    """The part of the source that is microkernels: those of their functions that the kernels call."""
    defined = {name for item in items_of(program.preamble) for name in item.names}
    called = defined & frozenset(re.findall(r"\w+", "\n\n".join(kernels)))
    return pruned(program.preamble, called).strip("\n") if called else ""


def _scratch(program: Program, workspace: Workspace) -> Scratch:
    count = workspace.count * (units(program) if workspace.private else 1)
    return Scratch(scratch_name(workspace), workspace.dtype, count)


@dataclass
class HostPlanner:
    """Walks the nodes that the host runs, and collects the kernels."""

    program: Program
    kernels: list[Written] = field(default_factory=list)

    def nodes(self, nodes: Sequence[Node], scope: LoopScope) -> tuple[HostNode, ...]:
        """The plan for nodes in order; neighbours without parallel loops share a kernel."""
        plan: list[HostNode] = []
        for shared, group in groupby(nodes, has_groups):
            if shared:
                plan += [step for node in group for step in self._node(node, scope)]
            else:
                plan.append(self._launched(task_kernel(self.program, self._taken, list(group), scope)))
        return tuple(plan)

    def _node(self, node: Node, scope: LoopScope) -> tuple[HostNode, ...]:
        """The plan for a node with parallel loops at or below it."""
        if is_grouped(node):
            return (self._launched(parallel_kernel(self.program, self._taken, node, scope)),)
        match node:
            case Block():
                return self.nodes(node.nodes, scope)
            case If():
                other = () if node.other is None else self.nodes([node.other], scope)
                return (HostIf(node.test, self.nodes([node.then], scope), other),)
            case For():
                return self._loop(node, scope)
            case Once() | Comment():
                return self.nodes([node.body], scope)
        raise AssertionError(f"a {type(node).__name__} has no parallel loops")

    def _loop(self, loop: For, scope: LoopScope) -> tuple[HostNode, ...]:
        body = self.nodes([loop.body], scope.inside(loop))
        needed = scope.unknown(independent_of(conditions(loop.body), loop.variable))
        return (_where(needed, HostLoop(loop.variable, loop.start, loop.test, loop.step, body)),)

    @property
    def _taken(self) -> frozenset[str]:
        return frozenset(written.kernel.name for written in self.kernels)

    def _launched(self, written: Written) -> HostNode:
        self.kernels.append(written)
        return _where(written.needed, written.launch)


def _where(needed: tuple[Test, ...], node: HostNode) -> HostNode:
    """The node under conditions, if there are any."""
    return HostIf(conjunction(needed), (node,)) if needed else node
