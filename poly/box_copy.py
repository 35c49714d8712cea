"""Copies that no microkernel reads: dense boxes of their own, which plain statements read instead of the array.

    for i_tile:                                for i_tile:
      pack A                                     for A_0: for A_1:
      for i: for j:                    ->          A_box[A_0 - 64*i_tile, A_1] = A[A_0, A_1]
        B[j, i] = A[i, j]                        for i: for j:
                                                   B[j, i] = A_box[i - 64*i_tile, j]

The copy is a statement `A_box_copy[i_tile, x0, x1]` over the elements read in one iteration of the loops around it. A
statement that reads the box has its start as further iterators, `S0[i, j, s0, s1]`, so that its indices stay affine.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import reduce

import islpy as isl

from codegen.affine import Affine
from codegen.expr import Load, map_loads
from codegen.names import fresh
from codegen.program import Buffer, Workspace
from poly.box import Box, enclose
from poly.errors import ScheduleError
from poly.instances import Instances, coordinate
from poly.nest import Array, Nest, Statement
from poly.steps.base import chain
from poly.tree import Band, Leaf, Micro, Node, Pack, Sequence, bands, walk


@dataclass(frozen=True)
class Boxed:
    """A nest and its tree with the copies as statements, and the memory of the boxes."""

    nest: Nest
    tree: Node
    buffers: tuple[Buffer, ...] = ()
    workspaces: tuple[Workspace, ...] = ()


def with_boxes(nest: Nest, tree: Node) -> Boxed:
    """The nest with a statement for each copy that no microkernel reads; inner copies first, which the outer ones feed.

    Raises:
        ScheduleError: a copy of an operand in a role, where no microkernel reads it.
    """
    boxed = Boxed(nest, tree)
    while packs := [n for n in walk(boxed.tree) if isinstance(n, Pack) and not reading_kernels(nest, n)]:
        boxed = _with_box(boxed, packs[-1])
    return boxed


def reading_kernels(nest: Nest, node: Pack) -> list[Micro]:
    """The microkernels below a copy that read it."""
    micros = [n for n in walk(node.body) if isinstance(n, Micro) and node.statement in (None, n.statement)]
    return [m for m in micros if _reads(nest.statement(m.statement), node.array)]


def _reads(statement: Statement, array: str) -> list[isl.Map]:
    """The access relations of the statement's reads of an array."""
    return [statement.relation(load) for load in statement.reads if load.array == array]


def _readers(nest: Nest, node: Pack) -> list[Statement]:
    """The plain statements below a copy that read it."""
    leaves = [nest.statement(n.statement) for n in walk(node.body) if isinstance(n, Leaf)]
    return [s for s in leaves if _reads(s, node.array) and node.statement in (None, s.name)]


def _with_box(boxed: Boxed, node: Pack) -> Boxed:
    """One copy made a statement."""
    nest, tree = boxed.nest, boxed.tree
    if node.role is not None:
        raise ScheduleError(f"pack({node.array}, role={node.role}): no microkernel below the copy reads {node.array}.")
    above = tuple(n for n in chain(tree, node) if isinstance(n, Band))
    readers = _readers(nest, node)
    groups = {s.name: _groups(s.domain, [band.function(s.name) for band in above]) for s in readers}
    footprints = [groups[s.name].reverse().apply_range(read) for s in readers for read in _reads(s, node.array)]
    footprint = reduce(isl.Map.union, footprints)
    if footprint.is_empty():
        return replace(boxed, tree=_Change(node, node.body).visit(tree))
    array = nest.array(node.array)
    taken = {a.name for a in nest.arrays} | set(nest.sizes) | {b.name for b in boxed.buffers}
    name = fresh(f"{array.name}_box", frozenset(taken))
    box = enclose(footprint, _elements(nest, array))
    copy = _copy(name, array.name, box, len(above))
    redirected = {s.name: _redirected(s, name, array.name, box, groups[s.name]) for s in readers}
    body = Sequence((_copy_loops(tree, node, copy, len(above)), node.body))
    return Boxed(
        replace(nest, statements=(*(redirected.get(s.name, s) for s in nest.statements), copy)),
        _Change(node, body, above, copy, redirected).visit(tree),
        (*boxed.buffers, Buffer(name, array.dtype, array.shape, "local", box.strides)),
        (*boxed.workspaces, Workspace(name, array.dtype, box.count, private=any(band.parallel for band in above))),
    )


def _elements(nest: Nest, array: Array) -> isl.Set:
    """`{ A[x0, x1] : 0 <= x0 < M, 0 <= x1 < N }`."""
    names = [f"x{d}" for d in range(len(array.shape))]
    bounds = " and ".join(f"0 <= {name} < {extent}" for name, extent in zip(names, array.shape, strict=True))
    return isl.Set(f"[{', '.join(nest.sizes)}] -> {{ {array.name}[{', '.join(names)}] : {bounds} }}")


def _groups(domain: isl.Set, loops: list[isl.PwAff]) -> isl.Map:
    """`{ S0[i, j] -> copy[i_tile] }`."""
    return Instances("copy", domain, tuple(("", function) for function in loops)).groups


def _copy(buffer: str, array: str, box: Box, depth: int) -> Statement:
    """`A_box_copy[i_tile, x0, x1, s0, s1]`, which is `A_box[x0 - s0, x1 - s1] = A[x0, x1]`."""
    name = f"{buffer}_copy"
    domain = box.elements.wrap().flatten().set_tuple_name(name)
    iterators = tuple(f"{buffer}_{d}" for d in range(depth + len(box.starts)))
    indices = tuple(Affine.name(i) for i in iterators[depth:])
    copy = Statement(name, iterators, domain, Load(array, indices), "=", Load(array, indices))
    moved = _with_starts(copy, buffer, box, _groups(domain, [coordinate(domain, d) for d in range(depth)]))
    return replace(moved, target=_shifted(copy.target, buffer))


def _redirected(statement: Statement, buffer: str, array: str, box: Box, groups: isl.Map) -> Statement:
    """The statement with the box in place of the array."""
    expr = map_loads(statement.expr, lambda load: _shifted(load, buffer) if load.array == array else load)
    return replace(_with_starts(statement, buffer, box, groups), expr=expr)


def _shifted(load: Load, buffer: str) -> Load:
    """`A[i, j]` as `A_box[i - s0, j - s1]`."""
    return Load(buffer, tuple(index - Affine.name(_start(buffer, d)) for d, index in enumerate(load.indices)))


def _start(buffer: str, dimension: int) -> str:
    """The iterator that holds the box's start."""
    return f"{buffer}_start{dimension}"


def _with_starts(statement: Statement, buffer: str, box: Box, groups: isl.Map) -> Statement:
    """The statement with the box's start as its last iterators."""
    graph = isl.Map.from_domain(groups.domain())
    for start in box.starts:
        graph = graph.flat_range_product(groups.apply_range(isl.Map.from_pw_aff(start)))
    domain = graph.wrap().flatten().set_tuple_name(statement.name)
    added = tuple(_start(buffer, d) for d in range(len(box.starts)))
    return replace(statement, iterators=(*statement.iterators, *added), domain=domain)


def _copy_loops(tree: Node, node: Pack, copy: Statement, depth: int) -> Node:
    """The loops over the elements, the innermost contiguous; threads share them where they share the loops below."""
    rank = (len(copy.iterators) - depth) // 2
    private = any(band.parallel for band in chain(tree, node) if isinstance(band, Band))
    shared = not private and any(band.parallel for band in bands(node))
    loop_names = frozenset(band.name for band in bands(tree))
    loops: Node = Leaf(copy.name)
    for d in reversed(range(rank)):
        function = coordinate(copy.domain, depth + d)
        last = d == rank - 1
        name, parallel = fresh(f"{node.array}_{d}", loop_names), shared and d == 0 and not last
        loops = Band(name, ((copy.name, function),), loops, parallel=parallel, vectorize=last)
    return loops


@dataclass(frozen=True)
class _Change:
    """The tree with `body` in place of the copy `node`, and every loop's functions on the statements' new iterators."""

    node: Pack
    body: Node
    above: tuple[Band, ...] = ()
    copy: Statement | None = None
    redirected: Mapping[str, Statement] = field(default_factory=dict)

    def visit(self, node: Node) -> Node:
        match node:
            case Sequence(nodes):
                return Sequence(tuple(self.visit(child) for child in nodes))
            case Pack():
                return self.visit(self.body) if node is self.node else replace(node, body=self.visit(node.body))
            case Band():
                functions = tuple((name, self._function(name, function)) for name, function in node.functions)
                return replace(node, functions=(*functions, *self._copied(node)), body=self.visit(node.body))
        return node

    def _function(self, name: str, function: isl.PwAff) -> isl.PwAff:
        """The loop's value in terms of a redirected statement's iterators, of which it does not use the last."""
        if name not in self.redirected:
            return function
        old, new = function.dim(isl.dim_type.in_), len(self.redirected[name].iterators)
        space = self.redirected[name].domain.get_space()
        dropped = isl.MultiAff.project_out_map(space, isl.dim_type.set, old, new - old)
        return function.pullback_multi_aff(dropped.set_tuple_name(isl.dim_type.out, name))

    def _copied(self, band: Band) -> tuple[tuple[str, isl.PwAff], ...]:
        """The function of the copy's statement in a loop around it."""
        depth = next((d for d, one in enumerate(self.above) if one is band), None)
        return () if self.copy is None or depth is None else ((self.copy.name, coordinate(self.copy.domain, depth)),)
