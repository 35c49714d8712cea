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
from codegen.names import another
from codegen.program import Buffer, Workspace
from microkernels.isa import ISA
from poly.box import Box, enclose
from poly.box_loops import copy_loops
from poly.box_place import BoxLayout, Place
from poly.errors import ScheduleError
from poly.instances import Instances, coordinate
from poly.nest import Array, Nest, Statement
from poly.tree import Band, Leaf, Micro, Node, Pack, Sequence, walk


@dataclass(frozen=True)
class Boxed:
    """A nest and its tree with the copies as statements, and the memory of the boxes.

    The nest has the boxes among its arrays, and the tree as its order, so its dependences are those through boxes, too.
    `taken` has the bytes of local memory that boxes take, by the outermost loop that work-groups share.
    """

    nest: Nest
    tree: Node
    buffers: tuple[Buffer, ...] = ()
    workspaces: tuple[Workspace, ...] = ()
    taken: Mapping[str, int] = field(default_factory=dict)


def with_boxes(nest: Nest, tree: Node, isa: ISA) -> Boxed:
    """The nest with a statement for each copy that no microkernel reads; inner copies first, which the outer ones feed.

    Raises:
        ScheduleError: a copy of an operand in a role, where no microkernel reads it; a memory that `isa` lacks, that is
            too small, or that not all who read the copy can reach; a layout for what a microkernel lays out itself.
    """
    boxed = Boxed(nest, tree)
    for node in walk(tree):
        if isinstance(node, Pack) and reading_kernels(nest, node):
            _check_panels(node, reading_kernels(nest, node)[0])
    while packs := [n for n in walk(boxed.tree) if isinstance(n, Pack) and not reading_kernels(nest, n)]:
        boxed = _with_box(boxed, packs[-1], isa)
    return boxed


def _check_panels(node: Pack, micro: Micro) -> None:
    """Refuse a memory or a layout for a copy that a microkernel reads."""
    if node.label != node.array:
        raise ScheduleError(
            f"pack({node.array}): {micro.kernel} lays its panels out itself. Remedy: leave memory, pad and buffers out."
        )


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


def _with_box(boxed: Boxed, node: Pack, isa: ISA) -> Boxed:
    """One copy made a statement."""
    nest, tree = boxed.nest, boxed.tree
    if node.role is not None:
        raise ScheduleError(f"pack({node.array}, role={node.role}): no microkernel below the copy reads {node.array}.")
    place = Place.of(tree, node)
    place.check(isa)
    above = place.above
    readers = _readers(nest, node)
    groups = {s.name: _groups(s.domain, [band.function(s.name) for band in above]) for s in readers}
    footprints = [groups[s.name].reverse().apply_range(read) for s in readers for read in _reads(s, node.array)]
    footprint = reduce(isl.Map.union, footprints)
    if footprint.is_empty():
        return replace(boxed, tree=_Change(node, node.body).visit(tree))
    array = nest.array(node.array)
    taken = {a.name for a in nest.arrays} | set(nest.sizes) | {b.name for b in boxed.buffers}
    name = another(f"{array.name}_box", frozenset(taken))
    box = enclose(footprint, _elements(nest, array))
    layout = BoxLayout.of(node, box.extents)
    taken_there = boxed.taken.get(place.kernel_name, 0) if node.memory == "local" else 0
    size = place.check_size(isa, layout.count, array.dtype, taken_there)
    starts = Starts.of(name, box, node.buffers)
    copy = _copy(array.name, starts, box, len(above))
    redirected = {s.name: _redirected(s, array.name, starts, groups[s.name]) for s in readers}
    loops = copy_loops(nest, tree, place, copy, box.extents)
    changed = _Change(node, Sequence((loops, node.body)), above, copy, redirected).visit(tree)
    shape = (*[Affine.of(node.buffers)] * (node.buffers > 1), *array.shape)
    return Boxed(
        replace(
            nest,
            arrays=(*nest.arrays, Array(name, array.dtype, shape, "local")),
            statements=(*(redirected.get(s.name, s) for s in nest.statements), copy),
            tree=changed,
        ),
        changed,
        (*boxed.buffers, Buffer(name, array.dtype, shape, "local", layout.strides)),
        (*boxed.workspaces, Workspace(name, array.dtype, layout.count, place.is_private, node.memory)),
        {**boxed.taken, place.kernel_name: taken_there + size} if node.memory == "local" else boxed.taken,
    )


def _elements(nest: Nest, array: Array) -> isl.Set:
    """`{ A[x0, x1] : 0 <= x0 < M, 0 <= x1 < N }`."""
    names = [f"x{d}" for d in range(len(array.shape))]
    bounds = " and ".join(f"0 <= {name} < {extent}" for name, extent in zip(names, array.shape, strict=True))
    return isl.Set(f"[{', '.join(nest.sizes)}] -> {{ {array.name}[{', '.join(names)}] : {bounds} }}")


def _groups(domain: isl.Set, loops: list[isl.PwAff]) -> isl.Map:
    """`{ S0[i, j] -> copy[i_tile] }`."""
    return Instances("copy", domain, tuple(("", function) for function in loops)).groups


@dataclass(frozen=True)
class Starts:
    """Where the box `buffer` starts, and which of several it is: functions `{ copy[loops] -> [x] }`."""

    buffer: str
    functions: tuple[isl.PwAff, ...]
    turns: bool
    """The last function is the number of the box."""

    @staticmethod
    def of(buffer: str, box: Box, buffers: int) -> Starts:
        if buffers == 1:
            return Starts(buffer, box.starts, False)
        domain = box.elements.domain()
        turn = coordinate(domain, domain.dim(isl.dim_type.set) - 1).mod_val(isl.Val(buffers))
        return Starts(buffer, (*box.starts, turn), True)

    @property
    def names(self) -> tuple[str, ...]:
        """The iterators that hold them."""
        numbered = tuple(f"{self.buffer}_start{d}" for d in range(len(self.functions) - self.turns))
        return (*numbered, f"{self.buffer}_turn") if self.turns else numbered

    def shifted(self, load: Load) -> Load:
        """`A[i, j]` as `A_box[i - s0, j - s1]`, or as `A_box[turn, i - s0, j - s1]`."""
        indices = (index - Affine.name(self.names[d]) for d, index in enumerate(load.indices))
        return Load(self.buffer, (*[Affine.name(self.names[-1])] * self.turns, *indices))

    def added(self, statement: Statement, groups: isl.Map) -> Statement:
        """The statement with them as its last iterators."""
        graph = isl.Map.from_domain(groups.domain())
        for start in self.functions:
            graph = graph.flat_range_product(groups.apply_range(isl.Map.from_pw_aff(start)))
        domain = graph.wrap().flatten().set_tuple_name(statement.name)
        return replace(statement, iterators=(*statement.iterators, *self.names), domain=domain)


def _copy(array: str, starts: Starts, box: Box, depth: int) -> Statement:
    """`A_box_copy[i_tile, x0, x1, s0, s1]`, which is `A_box[x0 - s0, x1 - s1] = A[x0, x1]`."""
    name = f"{starts.buffer}_copy"
    domain = box.elements.wrap().flatten().set_tuple_name(name)
    iterators = tuple(f"{starts.buffer}_{d}" for d in range(depth + len(box.starts)))
    indices = tuple(Affine.name(i) for i in iterators[depth:])
    copy = Statement(name, iterators, domain, Load(array, indices), "=", Load(array, indices))
    moved = starts.added(copy, _groups(domain, [coordinate(domain, d) for d in range(depth)]))
    return replace(moved, target=starts.shifted(copy.target))


def _redirected(statement: Statement, array: str, starts: Starts, groups: isl.Map) -> Statement:
    """The statement with the box in place of the array."""
    expr = map_loads(statement.expr, lambda load: starts.shifted(load) if load.array == array else load)
    return replace(starts.added(statement, groups), expr=expr)


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
