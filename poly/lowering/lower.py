"""Lower a nest and its loop tree to the program that code generation prints."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from typing import Literal

from codegen.declarations import around_shared, declared, shadows
from codegen.ir.expr import Cast, NodeT, map_operands
from codegen.ir.loop_ir import LoopMark
from codegen.ir.program import Assign, PrintedStatement, Program
from microkernels.catalogue import gemv_source, pack_source, scatter_source
from microkernels.ctext import letters
from microkernels.dtypes import bf16, f16, in_c
from microkernels.errors import TargetError
from microkernels.group_kernel import GroupKernel
from microkernels.isa import ISA
from microkernels.kernel import TileKernel
from microkernels.opencl_isa import DeviceISA
from poly.analysis.overflow import check_room, prove
from poly.errors import CostWarning, ScheduleError, warn
from poly.ir.budget import TooCostly, limited
from poly.ir.guards import NONE, Conditions, guarded
from poly.ir.instances import Instances
from poly.ir.lookups import index_reads
from poly.ir.nest import Nest
from poly.ir.tree import Band, Leaf, Micro, Node, bands, mapped, statements, walk
from poly.lowering.arguments import buffer
from poly.lowering.box_copy import with_boxes
from poly.lowering.calls import RoutineCall
from poly.lowering.expand import Expansion, expand
from poly.lowering.late_terms import with_late_terms
from poly.lowering.mapping.items import with_items
from poly.lowering.quotients import with_quotients
from poly.lowering.scan import scan
from poly.lowering.storage import with_storage

LOWERED = 2_000_000
"""Operations that isl may use for copies, microkernels and loops, and again for loops with conditions inside."""

KNOWN = 8
"""The programs that are kept."""

ROUTINES = {"gemv": gemv_source, "scatter": scatter_source}
"""Generators of the C text of the routines other than packing and the outer-product kernels."""


def lower(nest: Nest, tree: Node, isa: ISA, expanded: bool = False, ahead: str | None = None) -> Program:
    """The program that runs `nest` in the order of `tree` on `isa`; `expanded` keeps locals as they are in the nest.

    The panels of the array `ahead` are filled for all values of open sizes, whatever their values are in a call.

    Raises ScheduleError if a microkernel does not fit the loops around it, if an integer may exceed 64 bits, or if the
    loops take too much work to find, and TargetError if the target does not support a type of the nest.
    """
    _check_types(nest, isa)
    whole = expanded or not any(array.kind == "local" for array in nest.arrays)
    for kept in dict.fromkeys((whole, True)):
        with suppress(TooCostly), limited(LOWERED):
            return _unconditional(nest, tree, isa, kept, ahead)
    try:
        with limited(LOWERED):
            return _guarded(nest, tree, isa)
    except TooCostly as error:
        raise ScheduleError(
            f"the loops of this schedule of {nest.name} are too many or too complicated to find their bounds. Remedy: "
            "known sizes, fewer tiles in tiles, tile sizes that divide each other, or a nest with simpler conditions."
        ) from error


@lru_cache(KNOWN)
def _unconditional(nest: Nest, tree: Node, isa: ISA, expanded: bool, ahead: str | None) -> Program:
    """The program without conditions inside its loops, kept for a compilation after the question whether it is one."""
    return _lowered(nest, tree, isa, NONE, expanded, ahead)


def _guarded(nest: Nest, tree: Node, isa: ISA) -> Program:
    """The program with the conditions of its statements inside the loops, which are not vectorised.

    Raises:
        TooCostly: this takes too much work, too, or the tree has microkernels or work-items, which need loops without
            such conditions.
    """
    simple, conditions = guarded(nest)
    if not conditions or any(isinstance(n, Micro) or (isinstance(n, Band) and n.items) for n in walk(tree)):
        raise TooCostly
    warn(
        f"the loops of {nest.name} have conditions inside: better ones take too much work to find.",
        CostWarning,
    )
    return _lowered(simple, tree, isa, conditions, expanded=True)  # it is not known how long its values live


def _lowered(
    nest: Nest, tree: Node, isa: ISA, conditions: Conditions, expanded: bool, ahead: str | None = None
) -> Program:
    nest, tree = with_quotients(with_late_terms(nest), tree)
    shared = tree if isinstance(isa, DeviceISA) else _shared_once(nest, tree, ())
    copied = with_boxes(nest, _without_idle(nest, shared), isa)
    boxed = with_items(copied, isa)
    if not expanded:
        boxed = with_storage(boxed, copied.nest, isinstance(isa, DeviceISA))
    expansion = expand(boxed.nest, boxed.tree, isa, boxed.texts, boxed.parts, ahead)
    workspaces = (*expansion.workspaces, *boxed.workspaces)
    private = any(workspace.private for workspace in workspaces)
    loops = scan(expansion.domains, expansion.tree, nest.context, _marks(expansion, conditions), private)
    prove(loops, nest, conditions)
    variables = frozenset(buffer.name for buffer in boxed.buffers if buffer.variable)
    loops = declared(loops, expansion.statements, variables)
    if shadows(loops) or (isinstance(isa, DeviceISA) and around_shared(loops)):  # a launch has its own variables
        return _lowered(nest, tree, isa, conditions, expanded=True, ahead=ahead)
    check_room(workspaces)
    idle = {array.name for array in nest.arrays if array.kind == "local"} - _accessed(nest)
    placed = {*idle, *(buffer.name for buffer in boxed.buffers)}
    program = Program(
        name=nest.name,
        sizes=nest.integers,
        buffers=(*(buffer(nest, array) for array in nest.arrays if array.name not in placed), *boxed.buffers),
        loops=loops,
        statements={name: replace(s, where=conditions.get(name)) for name, s in expansion.statements.items()},
        workspaces=workspaces,
        preamble=_preamble(tree, expansion, isa),
        fixed=nest.fixed,
        comment=f"{nest.name} for {isa.name}.",
        text=nest.source,
        isa=isa,
        fused=nest.reassociate,
        registers=isa.registers if _is_crowded(tree) else 0,
        conditions=nest.conditions,
    )
    return program if isinstance(isa, DeviceISA) else _with_stored_types(program)


def _is_crowded(tree: Node) -> bool:
    """Whether a work-group's microkernel needs a limit of registers."""
    kernels = (node.kernel for node in walk(tree) if isinstance(node, Micro))
    return any(isinstance(kernel, GroupKernel) and kernel.is_crowded for kernel in kernels)


def _accessed(nest: Nest) -> frozenset[str]:
    """The names of the arrays that some statement accesses; a step of the schedule may have replaced others."""
    return frozenset(load.array for s in nest.statements for load in (s.target, *s.reads))


def _without_idle(nest: Nest, node: Node) -> Node:
    """The tree without the microkernels of statements that have no instances, and thus no tiles."""
    if isinstance(node, Micro) and nest.statement(node.statement).domain.is_empty():
        return Leaf(node.statement)
    return mapped(node, lambda child: _without_idle(nest, child))


def _shared_once(nest: Nest, node: Node, above: tuple[Band, ...]) -> Node:
    """The tree with serial loops in place of parallel ones that run once and have a parallel loop inside."""
    if isinstance(node, Band):
        idle = node.parallel and any(b.parallel for b in bands(node.body)) and _runs_once(nest, node, above)
        above = (*above, node)
        node = replace(node, parallel=node.parallel and not idle)
    return mapped(node, lambda child: _shared_once(nest, child, above))


def _runs_once(nest: Nest, band: Band, above: tuple[Band, ...]) -> bool:
    """Whether the loop has a single iteration in each iteration of the loops around it."""
    outer = {name: tuple((b.name, b.function(name)) for b in above) for name in statements(band)}
    return all(
        Instances("once", nest.statement(name).domain, loops).values([band.function(name)]).is_single_valued()
        for name, loops in outer.items()
    )


def _marks(made: Expansion, conditions: Conditions) -> dict[str, LoopMark]:
    """The marks of the loops; statements with conditions are not vectorised."""
    if not conditions:
        return made.marks
    return {name: replace(mark, vectorize=False) for name, mark in made.marks.items()}


def _check_types(nest: Nest, isa: ISA) -> None:
    if isinstance(isa, DeviceISA) and index_reads(nest):
        read = index_reads(nest)[0]
        problem = f"{nest.name} looks up indices of {read.into} in {read.index.array}, which no device checks"
        raise TargetError(f"{problem}: take the target 'c'.")
    on_device = isinstance(isa, DeviceISA)
    known = {"f16": isa.f16, "f64": isa.f64} if isinstance(isa, DeviceISA) else {}
    for array in nest.arrays:
        if not known.get(array.dtype.name, True):
            problem = f"{isa.name} does not support {array.dtype}, the type of {array.name}"
            raise TargetError(f"{problem}: take another device, or f32.")
        if array.kind == "scalar" and array.dtype in (bf16, f16) and not on_device:
            problem = f"{array.name} is a number of type {array.dtype}, of which C only stores arrays"
            raise TargetError(f"{problem}: make it f32.")


def _preamble(tree: Node, expansion: Expansion, isa: ISA) -> str:
    """The C text of the routines that are called, specialised to the extents of the calls."""
    texts = []
    micros = [node for node in walk(tree) if isinstance(node, Micro)]
    for dtype in sorted({micro.kernel.dtype for micro in micros}, key=lambda d: d.name):
        routines = {call.routine for call in expansion.calls}
        copies = [call for call in expansion.calls if call.routine == "pack" and call.dtype == dtype]
        packs = dict.fromkeys((call.to, call.elements) for call in copies)
        texts += [pack_source(isa, dtype, place, elements) for place, elements in packs]
        texts += [make(isa, dtype) for routine, make in ROUTINES.items() if routine in routines]
    tiles = {micro.kernel for micro in micros if isinstance(micro.kernel, TileKernel)}
    for kernel in sorted(tiles, key=lambda kernel: (kernel.name, kernel.dtype.name)):
        users = {f"{micro.statement}_tile" for micro in micros if micro.kernel == kernel}
        calls = [call for call in expansion.calls if call.name in users]
        named = {letters(isa, *call.spaces): call.spaces for call in calls}
        for name, spaces in sorted(named.items()):
            alike = [call for call in calls if letters(isa, *call.spaces) == name]
            texts.append(kernel.source(_extents(alike, "rows"), _extents(alike, "columns"), spaces))
    return "\n".join(texts)


def _extents(calls: list[RoutineCall], role: Literal["rows", "columns"]) -> frozenset[int] | None:
    values = [call.rows if role == "rows" else call.columns for call in calls]
    known = [v for v in values if v is not None]
    return frozenset().union(*known) if len(known) == len(values) else None


def _with_stored_types(program: Program) -> Program:
    """The program with the types of C in place of those that it lacks: of arrays, scratch memory and conversions."""
    return replace(
        program,
        buffers=tuple(replace(buffer, dtype=in_c(buffer.dtype)) for buffer in program.buffers),
        workspaces=tuple(replace(memory, dtype=in_c(memory.dtype)) for memory in program.workspaces),
        statements={name: _converting(statement) for name, statement in program.statements.items()},
    )


def _converting(statement: PrintedStatement) -> PrintedStatement:
    body = statement.body
    if not isinstance(body, Assign):
        return statement
    return replace(statement, body=replace(body, expr=_casts(body.expr)))


def _casts(node: NodeT) -> NodeT:
    below: NodeT = map_operands(node, _casts)
    return replace(below, dtype=in_c(below.dtype)) if isinstance(below, Cast) else below
