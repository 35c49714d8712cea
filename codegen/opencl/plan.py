"""From a program to a device program: what is parallel becomes kernels, the loops around them the host's plan.

for t in range(T):                    for t:
  for i in range(N):  # parallel        launch step_i over N groups
    B[i] = …                    ->
  for i in range(N):  # parallel        launch step_i_2 over N groups
    A[i] = …
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby

import islpy as isl

from codegen.c import heading
from codegen.integer import Linear, Test
from codegen.isl_ast import children, condition, integer, kind
from codegen.loops import Scope
from codegen.names import RESERVED, c_name, fresh
from codegen.opencl.dialect import helpers, prelude
from codegen.opencl.groups import has_groups, head
from codegen.opencl.kernels import Written, parallel_kernel, scratch_name, task_kernel, units
from codegen.opencl.values import DeviceProgram, HostIf, HostLoop, HostNode, Scratch
from codegen.program import Program, Workspace
from codegen.reached import conditions, every, outside
from codegen.workspace import Layout
from microkernels.prune import items_of, pruned


def device_program(program: Program) -> DeviceProgram:
    """The kernels of a program and the plan of their launches."""
    planner = Planner(program)
    names = (*program.sizes, *(b.name for b in program.buffers), *(w.name for w in program.workspaces))
    values = {size: Linear.name(c_name(size)) for size in program.sizes}
    plan = planner.nodes([program.ast], Scope(values, frozenset(map(c_name, names)) | RESERVED))
    used = {a.name for written in planner.kernels for a in written.kernel.arguments if a.kind == "scratch"}
    layout = Layout.of(program)
    return DeviceProgram(
        name=program.name,
        sizes=program.sizes,
        buffers=tuple(b for b in program.buffers if b.kind != "local"),
        source=source(program, [written.text for written in planner.kernels]),
        kernels=tuple(written.kernel for written in planner.kernels),
        plan=plan,
        scratch=tuple(_scratch(program, w) for w in layout.shared + layout.private if scratch_name(w) in used),
    )


def source(program: Program, kernels: Sequence[str]) -> str:
    """The complete OpenCL C text."""
    code = "\n\n".join(kernels)
    small = helpers(code)
    tuned = _needed(program.preamble, code)
    widest = max((buffer.dtype for buffer in program.buffers), key=lambda dtype: dtype.size)
    known = prelude("\n".join([small, tuned, code]), program.isa.lanes(widest))
    unfused = "" if program.fused else "#pragma OPENCL FP_CONTRACT OFF"
    top = [heading(program), unfused, known, small, tuned]
    return "\n\n".join(part for part in [*top, code] if part) + "\n"


def _needed(preamble: str, code: str) -> str:
    """What the code calls of the microkernels' text."""
    defined = {name for item in items_of(preamble) for name in item.names}
    called = defined & frozenset(re.findall(r"\w+", code))
    return pruned(preamble, called).strip("\n") if called else ""


def _scratch(program: Program, workspace: Workspace) -> Scratch:
    count = workspace.count * (units(program) if workspace.private else 1)
    return Scratch(scratch_name(workspace), workspace.dtype, count)


@dataclass
class Planner:
    """Walks what the host runs, and collects the kernels."""

    program: Program
    kernels: list[Written] = field(default_factory=list)

    def nodes(self, nodes: Sequence[isl.AstNode], scope: Scope) -> tuple[HostNode, ...]:
        """The plan for nodes in order; neighbours without parallel loops share a kernel."""
        plan: list[HostNode] = []
        for shared, group in groupby(nodes, lambda node: has_groups(self.program, node, scope.mark)):
            if shared:
                plan += [step for node in group for step in self._node(node, scope)]
            else:
                plan.append(self._launched(task_kernel(self.program, self._taken, list(group), scope)))
        return tuple(plan)

    def _node(self, node: isl.AstNode, scope: Scope) -> tuple[HostNode, ...]:
        """The plan for a node with parallel loops at or below it."""
        top = head(self.program, node, scope.mark)
        if top.is_gone or top.is_loop:
            return (self._launched(parallel_kernel(self.program, self._taken, node, scope)),)
        below, scope = top.below, replace(scope, mark=top.handed_down)
        match kind(below):
            case "block":
                return self.nodes(children(below), scope)
            case "if_":
                other = self.nodes([below.if_get_else_node()], scope) if below.if_has_else_node() else ()
                then = self.nodes([below.if_get_then_node()], scope)
                return (HostIf(condition(below.if_get_cond(), scope.values), then, other),)
        return self._loop(below, top.mark.name, scope)

    def _loop(self, node: isl.AstNode, name: str, scope: Scope) -> tuple[HostNode, ...]:
        isl_name = node.for_get_iterator().get_id().get_name()
        start = integer(node.for_get_init(), scope.values)
        if node.for_is_degenerate():
            inner = replace(scope, values={**scope.values, isl_name: start})
            return self.nodes([node.for_get_body()], inner)
        variable = fresh(name or isl_name, scope.taken)
        inner = replace(
            scope,
            values={**scope.values, isl_name: Linear.name(variable)},
            taken=scope.taken | {variable},
            variables=(*scope.variables, variable),
        )
        body = self.nodes([node.for_get_body()], inner)
        needed = outside(conditions(node.for_get_body(), inner.values), variable)
        test = condition(node.for_get_cond(), inner.values)
        loop = HostLoop(variable, start, test, integer(node.for_get_inc(), scope.values).constant, body)
        return (_where(needed, loop),)

    @property
    def _taken(self) -> frozenset[str]:
        return frozenset(written.kernel.name for written in self.kernels)

    def _launched(self, written: Written) -> HostNode:
        self.kernels.append(written)
        return _where(written.needed, written.launch)


def _where(needed: tuple[Test, ...], node: HostNode) -> HostNode:
    """The node under conditions, if there are any."""
    return HostIf(every(needed), (node,)) if needed else node
