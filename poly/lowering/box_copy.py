"""Copies that no microkernel reads: dense boxes, which plain statements read in place of the array.

    for i_tile:                                for i_tile:
      pack A                                     for A_0: for A_1:
      for i: for j:                    ->          A_box[A_0 - 64*i_tile, A_1] = A[A_0, A_1]
        B[j, i] = A[i, j]                        for i: for j:
                                                   B[j, i] = A_box[i - 64*i_tile, j]

The copy is a statement `A_box_copy[i_tile, x0, x1]` over the elements read in one iteration of the loops around it. A
statement that reads the box has the box's start as further iterators, `S0[i, j, s0, s1]`, so that its indices stay
affine.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import reduce

import islpy as isl

from codegen.ir.expr import Load, map_loads
from codegen.ir.integer import Affine, Int
from codegen.ir.program import Buffer, Workspace
from codegen.names import another, fresh
from microkernels.isa import ISA
from poly.analysis.contraction import formed
from poly.ir.instances import Instances, coordinate, loop_values
from poly.ir.layout import strides
from poly.ir.nest import Array, Nest, Statement
from poly.ir.sets import own_names
from poly.ir.tree import Band, Copy, Leaf, Memory, Micro, Node, Sequence, bands, mapped, walk
from poly.lowering.box import Box, enclose
from poly.lowering.box_place import BoxLayout, CopyPlace
from poly.lowering.iterators import extended, on_extended


@dataclass(frozen=True)
class Boxed:
    """A nest and its tree with the copies as statements, and the memory of the boxes.

    The boxes are arrays of the nest, and the tree is its order, so that its dependences include those through boxes.
    `taken` has the bytes of local memory that boxes take, by `CopyPlace.kernel_name`.
    """

    nest: Nest
    tree: Node
    buffers: tuple[Buffer, ...] = ()
    workspaces: tuple[Workspace, ...] = ()
    taken: Mapping[str, int] = field(default_factory=dict)


def with_boxes(nest: Nest, tree: Node, isa: ISA) -> Boxed:
    """The nest with a statement for each copy that no microkernel reads, from inner to outer copies, which feed them.

    Raises:
        ScheduleError: a memory that `isa` lacks, that is too small, or that is not accessible to all readers.
    """
    boxed = Boxed(nest, tree)
    while packs := [n for n in walk(boxed.tree) if isinstance(n, Copy) and not reading_kernels(nest, n)]:
        boxed = _with_box(nest, boxed, packs[-1], isa)
    return boxed


def reading_kernels(nest: Nest, node: Copy) -> list[Micro]:
    """The microkernels below a copy that read it."""
    micros = [n for n in walk(node.body) if isinstance(n, Micro) and node.statement in (None, n.statement)]
    return [m for m in micros if any(load.array == node.array for load in nest.statement(m.statement).reads)]


def boxed_reads(written: Nest, nest: Nest, node: Copy) -> dict[str, tuple[Load, ...]]:
    """The accesses that read a copy, by the plain statements below it; `written` is the nest without copies.

    With a role, only the operand of a contraction in this role reads the copy.
    """
    names = [n.statement for n in walk(node.body) if isinstance(n, Leaf) and node.statement in (None, n.statement)]
    found = {name: tuple(dict.fromkeys(nest.statement(name).reads)) for name in names}
    if node.role is not None:
        operands = {s.name: _operand(written, s, node.role) for s in written.statements if s.name in found}
        found = {name: tuple(load for load in found[name] if load == operand) for name, operand in operands.items()}
    own = {name: tuple(load for load in loads if load.array == node.array) for name, loads in found.items()}
    return {name: loads for name, loads in own.items() if loads}


def _operand(nest: Nest, statement: Statement, role: str) -> Load | None:
    """The operand of a contraction in a role; None if the statement is not a contraction."""
    contraction = formed(nest, statement)
    if contraction is None:
        return None
    return contraction.left if role == "left" else contraction.right


def _with_box(written: Nest, boxed: Boxed, node: Copy, isa: ISA) -> Boxed:
    """The nest with one copy as a statement; `written` is the nest without copies."""
    nest, tree = boxed.nest, boxed.tree
    place = CopyPlace.of(tree, node)
    place.check(isa)
    above = place.above
    read = boxed_reads(written, nest, node)
    readers = [nest.statement(name) for name in read]
    groups = {s.name: _groups(s.domain, [band.function(s.name) for band in above]) for s in readers}
    footprints = [groups[s.name].reverse().apply_range(s.relation(load)) for s in readers for load in read[s.name]]
    footprint = reduce(isl.Map.union, footprints) if footprints else None
    if footprint is None or footprint.is_empty():  # nothing is read here, or only from other copies
        return replace(boxed, tree=_Change(node, node.body).visit(tree))
    array = nest.array(node.array)
    taken = {a.name for a in nest.arrays} | set(nest.sizes) | {b.name for b in boxed.buffers}
    name = another(f"{array.name}_box", frozenset(taken))
    box = enclose(footprint, array.elements(nest.sizes))
    layout = BoxLayout.of(node, box.extents)
    taken_there = boxed.taken.get(place.kernel_name, 0) if node.memory == "local" else 0
    size = place.check_size(isa, layout.count, array.dtype, taken_there)
    starts = Starts.of(name, box, node.buffers)
    copy = _copy(array.name, starts, box, len(above))
    redirected = {s.name: _redirected(s, read[s.name], starts, groups[s.name]) for s in readers}
    loops = _copy_loops(nest, tree, place, copy, box.extents)
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
        (*boxed.buffers, Buffer(name, array.dtype, shape, "local", layout=layout.strides)),
        (
            *boxed.workspaces,
            Workspace(name, array.dtype, layout.count, place.is_private, node.memory, f"a box of {array.name}"),
        ),
        {**boxed.taken, place.kernel_name: taken_there + size} if node.memory == "local" else boxed.taken,
    )


def _groups(domain: isl.Set, loops: list[isl.PwAff]) -> isl.Map:
    """`{ S0[i, j] -> copy[i_tile] }`."""
    return Instances("copy", domain, tuple(("", function) for function in loops)).groups


@dataclass(frozen=True)
class Starts:
    """The start of the box `buffer`, and its number if there are several: functions `{ copy[loops] -> [x] }`."""

    buffer: str
    functions: tuple[isl.PwAff, ...]
    turns: bool
    """Whether the last function is the number of the box."""

    @staticmethod
    def of(buffer: str, box: Box, buffers: int) -> Starts:
        if buffers == 1:
            return Starts(buffer, box.starts, False)
        domain = box.elements.domain()
        turn = coordinate(domain, domain.dim(isl.dim_type.set) - 1).mod_val(isl.Val(buffers))
        return Starts(buffer, (*box.starts, turn), True)

    @property
    def names(self) -> tuple[str, ...]:
        """The iterators that hold the functions' values."""
        return own_names(f"{self.buffer}_start", len(self.functions))

    def shifted(self, load: Load) -> Load:
        """`A[i, j]` as `A_box[i - s0, j - s1]`, or as `A_box[turn, i - s0, j - s1]`."""
        indices = (index - Affine.name(self.names[d]) for d, index in enumerate(load.indices))
        return Load(self.buffer, (*[Affine.name(self.names[-1])] * self.turns, *indices))

    def added(self, statement: Statement, groups: isl.Map) -> Statement:
        """The statement with these as its last iterators."""
        starts = loop_values(isl.Set.universe(groups.get_space().range()), self.functions)
        return extended(statement, self.names, groups.apply_range(starts))


def _copy(array: str, starts: Starts, box: Box, depth: int) -> Statement:
    """The statement `A_box_copy[i_tile, x0, x1, s0, s1]`: `A_box[x0 - s0, x1 - s1] = A[x0, x1]`."""
    name = f"{starts.buffer}_copy"
    domain = box.elements.wrap().flatten().set_tuple_name(name)
    iterators = own_names(starts.buffer, depth + len(box.starts))
    indices = tuple(Affine.name(i) for i in iterators[depth:])
    copy = Statement(name, iterators, domain, Load(array, indices), "=", Load(array, indices))
    moved = starts.added(copy, _groups(domain, [coordinate(domain, d) for d in range(depth)]))
    return replace(moved, target=starts.shifted(copy.target))


def _redirected(statement: Statement, read: tuple[Load, ...], starts: Starts, groups: isl.Map) -> Statement:
    """The statement with these accesses going to the box in place of the array."""
    expr = map_loads(statement.expr, lambda load: starts.shifted(load) if load in read else load)
    return replace(starts.added(statement, groups), expr=expr)


@dataclass(frozen=True)
class _Change:
    """Puts `body` in place of the copy `node`, and adapts each loop's functions to the statements' new iterators."""

    node: Copy
    body: Node
    above: tuple[Band, ...] = ()
    copy: Statement | None = None
    redirected: Mapping[str, Statement] = field(default_factory=dict)

    def visit(self, node: Node) -> Node:
        if node is self.node:
            return self.visit(self.body)
        if isinstance(node, Band):
            functions = tuple((name, self._function(name, function)) for name, function in node.functions)
            node = replace(node, functions=(*functions, *self._copied(node)))
        return mapped(node, self.visit)

    def _function(self, name: str, function: isl.PwAff) -> isl.PwAff:
        """The loop's function on a redirected statement's iterators, of which it ignores the new ones."""
        return on_extended(function, self.redirected[name]) if name in self.redirected else function

    def _copied(self, band: Band) -> tuple[tuple[str, isl.PwAff], ...]:
        """The copy statement's function in a band, if the band is around the copy."""
        depth = next((d for d, one in enumerate(self.above) if one is band), None)
        return () if self.copy is None or depth is None else ((self.copy.name, coordinate(self.copy.domain, depth)),)


def _copy_loops(nest: Nest, tree: Node, place: CopyPlace, copy: Statement, extents: tuple[Int, ...]) -> Node:
    """The loops over the elements of a box with these extents, the innermost contiguous in the array.

    They are shared by threads, work-groups or work-items like the loops around.

    for A_0: for A_1:  # vectorize            one thread, or a work-group of one item
    for A_0:  # parallel …                    above parallel loops: a copy for all their iterations
    for A_0:  # 8 items                       a group of 256 items, neighbours along the contiguous dimension
      for A_1:  # 32 items
    """
    depth, rank = len(place.above), len(extents)
    order = _fastest_last(nest.array(place.node.array))
    shared = not place.is_private and any(band.parallel for band in bands(place.node))
    shares = _last_alone(rank, place.items) if shared else place.shares(tuple(extents[d] for d in order))
    taken = frozenset(band.name for band in bands(tree))
    loops: Node = Leaf(copy.name)
    for position, d in reversed(list(enumerate(order))):
        function = _counted(copy, place.node.memory, depth + d, rank)
        last = position == rank - 1
        loops = Band(
            fresh(f"{place.node.array}_{d}", taken),
            ((copy.name, function),),
            loops,
            parallel=shared and position == 0 and not last,
            vectorize=last and place.items == 1,
            unroll=extents[d].constant if place.node.memory == "private" else 0,
            items=shares[position] if shares[position] > 1 else 0,
        )
    return loops


def _counted(copy: Statement, memory: Memory, position: int, rank: int) -> isl.PwAff:
    """The function of a loop over a dimension: the array's index or, in local and private memory, the box's."""
    index = coordinate(copy.domain, position)
    return index if memory == "global" else index.sub(coordinate(copy.domain, position + rank))


def _last_alone(rank: int, items: int) -> tuple[int, ...]:
    return (*[1] * (rank - 1), items)


def _fastest_last(array: Array) -> list[int]:
    """The dimensions of an array, with the contiguous one last."""
    steps = [stride.number for stride in strides(array)]
    fastest = next((d for d, step in enumerate(steps) if step == 1), len(steps) - 1)
    return [*(d for d in range(len(steps)) if d != fastest), fastest]
