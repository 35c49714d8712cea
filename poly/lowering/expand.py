"""Replace the copies and microkernels of a loop tree by statements whose instances are panels and tiles.

    for j_tile:                    for j_tile:
      pack B                         B_pack[j_tile]          one call of the packing routine
      for i_tile:              ->    for i_tile:
        microkernel over i, j, k       S_tile[j_tile, i_tile]  one call of the microkernel

The result is a tree of plain statements, sequences and bands, which isl can scan.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

import islpy as isl

from codegen.ir.loop_ir import LoopMark
from codegen.ir.program import Assign, PrintedStatement, Workspace
from codegen.names import c_name, fresh
from microkernels.isa import ISA
from microkernels.opencl_isa import DeviceISA
from poly.ir.instances import coordinate
from poly.ir.nest import Nest, Statement
from poly.ir.sets import for_any_sizes
from poly.ir.tree import Band, Copy, Leaf, Micro, Node, Sequence, children, map_absorbed, mapped, statements, walk
from poly.lowering.box_copy import reading_kernels
from poly.lowering.calls import WHOLE, MemoryParts, Panel, RoutineCall
from poly.lowering.micro_call import kernel_call
from poly.lowering.panel_copy import panel_copy

Texts = Mapping[str, tuple[isl.Set, PrintedStatement]]
NO_TEXTS: Texts = MappingProxyType({})


@dataclass
class Expansion:
    """The result of expanding a tree: a plain tree, the domains and bodies of its statements, and scratch arrays."""

    tree: Node
    domains: dict[str, isl.Set] = field(default_factory=dict)
    statements: dict[str, PrintedStatement] = field(default_factory=dict)
    workspaces: list[Workspace] = field(default_factory=list)
    calls: list[RoutineCall] = field(default_factory=list)
    marks: dict[str, LoopMark] = field(default_factory=dict)
    parts: MemoryParts = field(default_factory=dict)
    ahead: str | None = None
    """An array whose panels are the same, whatever the values of open sizes."""
    initials: dict[str, str] = field(default_factory=dict)
    """For each initialising statement that a microkernel takes over: the microkernel's statement."""


@dataclass(frozen=True)
class _Path:
    """The bands above a node, and the panels of the copies above it by statement and role."""

    bands: tuple[Band, ...] = ()
    panels: Mapping[tuple[str, str], Panel] = field(default_factory=dict)

    @property
    def is_parallel(self) -> bool:
        return any(band.parallel for band in self.bands)

    def loops(self, statement: str) -> tuple[tuple[str, isl.PwAff], ...]:
        return tuple((band.name, band.function(statement)) for band in self.bands)


def expand(
    nest: Nest,
    tree: Node,
    target: ISA,
    texts: Texts = NO_TEXTS,
    parts: MemoryParts = WHOLE,
    ahead: str | None = None,
) -> Expansion:
    """The tree with every copy and microkernel turned into a statement.

    `texts` has the domains and bodies of leaves that are not statements of the nest, `parts` those of arrays that have
    memory. The panels of the array `ahead` are filled for all values of open sizes.
    """
    expansion = Expansion(tree, parts=parts, ahead=ahead)
    for name, (domain, printed) in texts.items():
        expansion.domains[name], expansion.statements[name] = domain, printed
    micros = [n for n in walk(tree) if isinstance(n, Micro)]
    expansion.initials = {m.initial: m.statement for m in micros if m.initial is not None}
    names = (*nest.integers, *(array.name for array in nest.arrays))
    taken = frozenset((*names, *map(c_name, names)))
    expansion.tree = _expand(nest, _unique_names(tree, taken), target, _Path(), expansion)
    return expansion


def _unique_names(tree: Node, others: frozenset[str]) -> Node:
    """The tree with bands whose names, which become C variables, differ along every path and from `others`."""

    def visit(node: Node, taken: frozenset[str]) -> Node:
        def named(band: Band) -> Band:
            nonlocal taken
            name = fresh(band.name, taken)
            taken |= {name}
            return replace(band, name=name)

        match node:
            case Band():
                node = named(node)
            case Micro():
                return map_absorbed(node, named)
        return mapped(node, lambda child: visit(child, taken))

    return visit(tree, others)


def _expand(nest: Nest, node: Node, target: ISA, path: _Path, out: Expansion) -> Node:
    match node:
        case Leaf(name) if name in out.statements:
            return node
        case Leaf(name):
            statement = nest.statement(name)
            out.domains[name] = _left_over(nest, statement, out.initials.get(name))
            out.statements[name] = PrintedStatement(
                statement.iterators, Assign(statement.target, statement.op, statement.expr)
            )
            return node
        case Sequence():
            return mapped(node, lambda child: _expand(nest, child, target, path, out))
        case Band():
            return _band(nest, node, target, path, out)
        case Copy():
            return _pack(nest, node, target, path, out)
        case Micro():
            return _micro(nest, node, target, path, out)
    raise TypeError(type(node).__name__)


def _left_over(nest: Nest, zero: Statement, taken_by: str | None) -> isl.Set:
    """The instances of a statement whose element is not initialised by a microkernel."""
    if taken_by is None:
        return zero.domain
    other = nest.statement(taken_by)
    done = zero.relation(zero.target).intersect_range(other.relation(other.target).range()).domain()
    return zero.domain.subtract(done).coalesce()


def _band(nest: Nest, band: Band, target: ISA, path: _Path, out: Expansion) -> Node:
    depth = len(path.bands)
    body = _expand(nest, band.body, target, replace(path, bands=(*path.bands, band)), out)
    known = dict(band.functions)
    functions = tuple((name, known.get(name) or coordinate(out.domains[name], depth)) for name in statements(body))
    out.marks[band.name] = LoopMark(
        band.name, band.parallel, band.vectorize, band.unroll, band.group, band.items, band.variables
    )
    return replace(band, functions=functions, body=body)


def _micro(nest: Nest, node: Micro, target: ISA, path: _Path, out: Expansion) -> Node:
    call = kernel_call(nest, node, target, path.loops(node.statement), path.panels, out.parts)
    name = f"{node.statement}_tile"
    out.domains[name] = call.domain
    out.statements[name] = PrintedStatement(call.iterators, replace(call.body, comment=_done_by(node)))
    out.workspaces += call.workspaces
    out.calls.append(call)
    return Leaf(name)


def _done_by(micro: Micro) -> str:
    """The comment on a microkernel's call: `S1 by gemm_avx512_6x64: a tile of i by j, summed over k`."""
    tile = " by ".join(band.name for band in (micro.rows, micro.columns) if band is not None)
    summed = f", summed over {', '.join(band.name for band in micro.reduce)}" if micro.reduce else ""
    return f"{micro.statement} by {micro.kernel}: a tile of {tile}{summed}"


def _along(micro: Micro, role: str) -> str:
    """The part of a copy's comment on its lanes and vectors: ` of j for each k`."""
    side = micro.rows if role == "left" else micro.columns
    steps = ", ".join(band.name for band in micro.reduce)
    return (f" of {side.name}" if side is not None else "") + (f" for each {steps}" if steps else "")


def _pack(nest: Nest, node: Copy, target: ISA, path: _Path, out: Expansion) -> Node:
    micro = reading_kernels(nest, node)[0]
    between = _bands_to(node.body, micro)
    loops_around = path.loops(micro.statement)
    free = _free(path, target, out)
    copy = panel_copy(
        nest, node, micro, target, loops_around, between, path.is_parallel, out.workspaces, free, out.parts
    )
    if node.array == out.ahead:
        copy = replace(copy, call=replace(copy.call, domain=for_any_sizes(copy.call.domain)))
    out.domains[copy.call.name] = copy.call.domain
    comment = f"panel of {node.array}: {copy.panel.width} lanes{_along(micro, copy.role)}"
    out.statements[copy.call.name] = PrintedStatement(copy.call.iterators, replace(copy.call.body, comment=comment))
    out.workspaces[:] = [*(w for w in out.workspaces if w.name != copy.workspace.name), copy.workspace]
    out.calls.append(copy.call)
    loops: Node = Leaf(copy.call.name)
    shared_parallel = not path.is_parallel and any(band.parallel for band in between)
    for number, name in reversed(list(enumerate(copy.loops))):
        function = coordinate(copy.call.domain, len(path.bands) + number)
        outermost = shared_parallel and number == 0
        label = f"{name}_{node.array}"
        loops = Band(label, ((copy.call.name, function),), loops, parallel=outermost)
        out.marks[label] = LoopMark(label, outermost)
    panels = {**path.panels, (micro.statement, copy.role): copy.panel}
    body = _expand(nest, node.body, target, replace(path, panels=panels), out)
    return Sequence((loops, body))


def _free(path: _Path, target: ISA, out: Expansion) -> list[Workspace]:
    """The workspaces of panels that no microkernel below the path's copies reads: those of loops that are over.

    None on a device, whose work-groups may be in several loops, or if panels are to be packed before the call.
    """
    if isinstance(target, DeviceISA) or out.ahead is not None:
        return []
    read = {panel.buffer for panel in path.panels.values()}
    return [w for w in out.workspaces if w.copied and c_name(w.name) not in read]


def _bands_to(node: Node, goal: Node) -> tuple[Band, ...]:
    """The bands from `node` down to `goal`."""
    if node is goal:
        return ()
    below = next(child for child in children(node) if any(n is goal for n in walk(child)))
    rest = _bands_to(below, goal)
    return (node, *rest) if isinstance(node, Band) else rest
