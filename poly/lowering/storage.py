"""Storage of locals: in place of the array over all loops around, what the loops as scheduled need at a time.

    for i:                                 for i:
      for j:                                 for j:
        s[i, j] = A[i, j] + A[i, j + 1]        double s = A[i, j] + A[i, j + 1];
        B[i, j] = s[i, j] * s[i, j]    ->      B[i, j] = s * s
      for j:                                 for j:
        row[i, j] = B[i, j]                    row[j] = B[i, j]
      for j:                                 for j:
        C[i, j] = row[i, j - 1]                C[i, j] = row[j - 1]

A local lives in one iteration of the innermost loops within which all its values are both written and read: the next
iteration may use its memory again. If a single element, or few, are accessed there, they are variables of the loop's
body, and else an array that has for each dimension the elements accessed in one iteration. If values are read in a
later iteration of the next loop, at most `d` later, the iterations use d + 1 parts of the array in turn:

    for i:                                 for i:
      for j: row[i, j] = …                   for j: row[i % 2, j] = …
      for j: … = row[i - 1, j]               for j: … = row[(i + 1) % 2, j]

This is decided last, so it keeps no schedule from being legal. Where it takes too much work, the array stays as it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import reduce
from itertools import takewhile
from math import inf, prod

import islpy as isl

from codegen.ir.expr import Load, map_loads
from codegen.ir.integer import Affine, Int, Linear, element_count, in_c
from codegen.ir.program import Buffer, Workspace
from poly.analysis.dependences import dependences
from poly.ir.budget import TooCostly, limited
from poly.ir.instances import loop_values
from poly.ir.nest import Array, Nest, Statement
from poly.ir.paths import Path, paths
from poly.ir.sets import function, number, own_names, set_space
from poly.ir.strides import accesses
from poly.ir.tree import Band, Copy, Micro, Node, bands, mapped, only_loops, walk
from poly.ir.work_groups import width
from poly.lowering import box
from poly.lowering.calls import MemoryPart, involves
from poly.lowering.iterators import extended, on_all_extended
from poly.lowering.mapping.partials import Shared

STORED, ALL = 200_000, 2_000_000
"""Operations that isl may use for one local, and for all of a nest."""

VARIABLE_BYTES = 256
"""The largest array that is a variable of a loop's body."""

SMALL_BYTES = 1 << 16
"""An array of at most this many bytes is not folded: it stays in a cache, and its indices stay simple."""


@dataclass(frozen=True)
class Side:
    """A dimension of a local's storage: its extent, and the place in it of an index of the local.

    This is `index - start`, for a function `{ store[loops] -> [start] }`, or `index mod fold`, or the index itself.
    """

    extent: Int
    start: isl.PwAff | None = None
    fold: int = 0


@dataclass(frozen=True)
class Stored:
    """The storage of a local in each iteration of the loops `above`.

    A side is None if the index has one value there. `beside_kernels` tells that microkernels access it.
    """

    array: Array
    above: tuple[Band, ...]
    sides: tuple[Side | None, ...]
    variable: bool = False
    beside_kernels: bool = False

    @property
    def extents(self) -> tuple[Int, ...]:
        """The extents of the dimensions that are left."""
        return tuple(side.extent for side in self.sides if side is not None)

    @property
    def bytes(self) -> int | None:
        """The bytes of the storage; None if they are not known."""
        count = element_count(self.extents).number
        return None if count is None else count * self.array.dtype.size

    @property
    def buffer(self) -> Buffer:
        """The buffer that statements access."""
        name, dtype = self.array.name, self.array.dtype
        if self.variable:
            return Buffer(name, dtype, tuple(Affine.of(e.constant) for e in self.extents), "local", variable=True)
        shape = tuple(n for n, side in zip(self.array.shape, self.sides, strict=True) if side is not None)
        return Buffer(name, dtype, shape, "local", layout=self.part.strides)

    @property
    def part(self) -> MemoryPart:
        """The same for microkernels."""
        sides = [side for side in self.sides if side is not None]
        return MemoryPart(len(self.above), tuple(side.start for side in sides), self.extents)

    @property
    def workspace(self) -> Workspace:
        """The memory, of which each thread has its own if the loops above are shared by threads."""
        name = self.array.name
        where = f"in an iteration of {self.above[-1].name}" if self.above else "in use at a time"
        private = any(band.parallel for band in self.above)
        return Workspace(
            name, self.array.dtype, element_count(self.extents), private, holds=f"the part of {name} {where}"
        )


def with_storage(shared: Shared, written: Nest, launched: bool) -> Shared:
    """The nest with its locals in less memory, where this is possible.

    `written` is the nest whose dependences are known: without partial results of reductions. If the loops are
    `launched` on a device, nothing is a variable around all of them.
    """
    placed = {buffer.name for buffer in shared.buffers}
    arrays = [array for array in written.arrays if array.kind == "local" and array.name not in placed]
    if not arrays or shared.nest is not written:
        return shared
    found: list[Stored] = []
    places = _Places.of(shared, launched)
    with suppress(TooCostly), limited(ALL, apart=True):
        for array in arrays:
            with suppress(TooCostly), limited(STORED):
                stored = places.stored(array)
                found += [] if stored is None else [stored]
    return _stored(shared, found)


@dataclass(frozen=True)
class _Use:
    """A statement that accesses a local, its accesses of it, and the loops around it."""

    statement: Statement
    accesses: tuple[Load, ...]
    path: Path

    @property
    def elements(self) -> isl.Map:
        """`{ S[i, j] -> A[x, y] }`."""
        return reduce(isl.Map.union, map(self.statement.relation, self.accesses))

    @property
    def writes(self) -> isl.Map | None:
        """`{ S[i, j] -> A[x, y] }` of the target; None if it is not the local's."""
        own = self.statement.target in self.accesses
        return self.statement.relation(self.statement.target) if own else None

    def groups(self, above: Sequence[Band]) -> isl.Map:
        """`{ S[i, j] -> store[loops] }`."""
        functions = [band.function(self.statement.name) for band in above]
        return loop_values(self.statement.domain, functions).set_tuple_name(isl.dim_type.out, "store")


@dataclass(frozen=True)
class _Places:
    """The loops as they run."""

    nest: Nest
    tree: Node
    paths: Mapping[str, Path]
    temporaries: frozenset[str]
    items: int
    """The work-items of a group: memory that they share would need further barriers."""
    launched: bool
    """Whether the outermost loops are launches of a device."""

    @staticmethod
    def of(shared: Shared, launched: bool) -> _Places:
        found = shared.nest.temporaries
        return _Places(shared.nest, shared.tree, paths(shared.tree), found, width(shared.tree), launched)

    def stored(self, array: Array) -> Stored | None:
        """The storage of a local; None if it stays as it is."""
        uses = self._uses(array.name)
        if not uses:
            return None
        around = _loops_around(uses)
        flows = self._flows(array.name, uses)
        within = tuple(takewhile(lambda band: _delays(flows, band) == (0, 0), around))
        if self._beside_kernels(array.name):
            above = tuple(takewhile(lambda band: not band.vectorize, within))
            return None if self.items > 1 else _part(array, uses, above, self._has_own_strides(array))
        sides = _sides(array, uses, within)
        if sides is None:
            return None
        place = Stored(array, within, sides)
        if self._may_be_variable(place):
            return replace(place, variable=True)
        return None if self.items > 1 else self._in_memory(place, uses, around, flows)

    def _in_memory(
        self, place: Stored, uses: Sequence[_Use], around: Sequence[Band], flows: Sequence[isl.Map]
    ) -> Stored | None:
        """The storage in a workspace, which lanes don't share; None if it would be no smaller."""
        above = tuple(takewhile(lambda band: not band.vectorize, place.above))
        sides = _sides(place.array, uses, above)
        if sides is None:
            return None
        folded = _folded(replace(place, above=above, sides=sides), uses, around, flows)
        return folded if any(side is None or side.start or side.fold for side in folded.sides) else None

    def _uses(self, name: str) -> list[_Use]:
        found = []
        for statement in self.nest.statements:
            own = tuple(load for load in accesses(statement) if load.array == name)
            if own:
                found.append(_Use(statement, own, self.paths[statement.name]))
        return found

    def _beside_kernels(self, name: str) -> bool:
        """Whether a microkernel or a copy for one accesses a local, by the strides of the whole array."""
        micros = [node.statement for node in walk(self.tree) if isinstance(node, Micro)]
        accessed = {load.array for micro in micros for load in accesses(self.nest.statement(micro))}
        return name in accessed or any(isinstance(node, Copy) and node.array == name for node in walk(self.tree))

    def _has_own_strides(self, array: Array) -> bool:
        """Whether microkernels only write a local, and none takes two of its dimensions as one."""
        for node in walk(self.tree):
            if isinstance(node, Copy) and node.array == array.name:
                return False
            if not isinstance(node, Micro):
                continue
            statement = self.nest.statement(node.statement)
            own = [load for load in accesses(statement) if load.array == array.name]
            if any(load != statement.target for load in own):
                return False
            if own and any(_dimensions(statement, band) > 1 for band in (node.rows, node.columns) if band):
                return False
        return True

    def _flows(self, name: str, uses: Sequence[_Use]) -> list[isl.Map]:
        """The flow of values through a local, from writes to reads; of a temporary, all pairs of a write and a read."""
        if name not in self.temporaries:
            flows = (d for d in dependences(self.nest) if d.kind == "flow")
            return [flow.relation for flow in flows if flow.array == name]
        made = [use.writes for use in uses if use.writes is not None]
        return [written.apply_range(use.elements.reverse()) for written in made for use in uses]

    def _may_be_variable(self, place: Stored) -> bool:
        """Whether a local is small enough for a variable of a loop's body, or of all, that a single thread runs."""
        body = place.above[-1].body if place.above else self.tree
        if any(band.parallel or band.items for band in bands(body)) or (self.launched and not place.above):
            return False
        if prod(max(band.items, 1) for band in place.above) < self.items:
            return False
        return place.bytes is not None and place.bytes <= VARIABLE_BYTES


def _part(array: Array, uses: Sequence[_Use], above: Sequence[Band], own_strides: bool) -> Stored | None:
    """The part of a local that an iteration of loops accesses; None if that is no less.

    If it may not have strides of its own, it is a range of indices in one dimension, a single index in those before it,
    and all in those behind it.
    """
    accessed = _accessed(uses, above)
    if accessed.is_empty():
        return None
    found = [box.side(_along(accessed, d), 0) for d in range(len(array.shape))]
    single = len(found) if own_strides else len([*takewhile(lambda side: side[1].number == 1, found)])
    starts = (start if at <= single else None for at, (start, _) in enumerate(found))
    counts = (found[at][1] if at <= single else in_c(extent) for at, extent in enumerate(array.shape))
    sides = tuple(Side(count, start) for count, start in zip(counts, starts, strict=True))
    less = any(side.extent != in_c(extent) for side, extent in zip(sides, array.shape, strict=True))
    return Stored(array, tuple(above), sides, beside_kernels=True) if less else None


def _dimensions(statement: Statement, band: Band) -> int:
    """The number of dimensions of a statement's target along which a loop moves."""
    moved = {
        name for name in statement.iterators if involves(statement, band.function(statement.name), frozenset({name}))
    }
    return sum(bool(moved & index.names) for index in statement.target.indices)


def _loops_around(uses: Sequence[_Use]) -> tuple[Band, ...]:
    """The loops around all uses: those in the common start of their paths."""
    first, *others = (use.path for use in uses)
    common = []
    for at, part in enumerate(first):
        if not all(len(path) > at and (path[at] is part or path[at] == part) for path in others):
            break
        common.append(part)
    return only_loops(common)


def _sides(array: Array, uses: Sequence[_Use], above: Sequence[Band]) -> tuple[Side | None, ...] | None:
    """The sides of the box around the elements that are accessed in one iteration of loops; None if there are none."""
    accessed = _accessed(uses, above)
    if accessed.is_empty():
        return None
    if accessed.is_single_valued():
        return (None,) * len(array.shape)
    return tuple(_side(_along(accessed, d), extent) for d, extent in enumerate(array.shape))


def _accessed(uses: Sequence[_Use], above: Sequence[Band]) -> isl.Map:
    """`{ store[loops] -> A[x, y] }`: the elements accessed in an iteration of loops."""
    return reduce(isl.Map.union, (use.groups(above).reverse().apply_range(use.elements) for use in uses)).coalesce()


def _side(accessed: isl.Map, extent: Affine) -> Side | None:
    """The side along a dimension in which `accessed` are the indices: `{ store[loops] -> [x] }`."""
    if accessed.is_single_valued():
        return None
    start, count = box.side(accessed, 0)
    moves = start.involves_dims(isl.dim_type.in_, 0, start.dim(isl.dim_type.in_))
    return Side(count, start) if moves else Side(in_c(extent))


def _along(elements: isl.Map, dimension: int) -> isl.Map:
    """The indices along one dimension: `{ store[loops] -> [x] }`."""
    after = elements.dim(isl.dim_type.out) - dimension - 1
    return elements.project_out(isl.dim_type.out, dimension + 1, after).project_out(isl.dim_type.out, 0, dimension)


def _delays(flows: Sequence[isl.Map], band: Band) -> tuple[int, int] | None:
    """The least and the greatest number of iterations of a loop from a write to a read; None if not bounded."""
    found = [0]
    for flow in flows:
        source, sink = (band.function(flow.get_tuple_name(kind)) for kind in (isl.dim_type.in_, isl.dim_type.out))
        later = flow.apply_domain(isl.Map.from_pw_aff(source)).apply_range(isl.Map.from_pw_aff(sink)).deltas()
        if later.is_empty():
            continue
        ends = (later.dim_min_val(0), later.dim_max_val(0))
        if not all(end.is_int() for end in ends):
            return None
        found += [end.to_python() for end in ends]
    return min(found), max(found)


def _folded(place: Stored, uses: Sequence[_Use], around: Sequence[Band], flows: Sequence[isl.Map]) -> Stored:
    """The storage folded along the next loop inside, whose iterations then use parts of it in turn."""
    below = around[len(place.above) : len(place.above) + 1]
    if not below or below[0].parallel or below[0].vectorize or (place.bytes or inf) <= SMALL_BYTES:
        return place
    delays = _delays(flows, below[0])
    if delays is None or delays[0] < 0:
        return place
    loops = (*place.above, *below)
    made = [use.groups(loops).reverse().apply_range(use.writes) for use in uses if use.writes is not None]
    live = _during(delays[1], len(loops)).apply_range(reduce(isl.Map.union, made))
    sides = (side and _folded_side(side, _along(live, d)) for d, side in enumerate(place.sides))
    return replace(place, sides=tuple(sides))


def _during(delay: int, depth: int) -> isl.Map:
    """`{ store[…, w] -> store[…, v] : w <= v <= w + delay }`: the iterations in which values live at the same time."""
    last, relation = depth - 1, isl.Map.universe(isl.Space.map_from_set(set_space((), depth, "store")))
    for at in range(last):
        relation = relation.equate(isl.dim_type.in_, at, isl.dim_type.out, at)
    space = isl.LocalSpace.from_space(relation.space)
    for way, room in ((1, 0), (-1, delay)):
        bound = isl.Constraint.alloc_inequality(space).set_constant_val(number(room))
        bound = bound.set_coefficient_val(isl.dim_type.in_, last, number(-way))
        relation = relation.add_constraint(bound.set_coefficient_val(isl.dim_type.out, last, number(way)))
    return relation


def _folded_side(side: Side, live: isl.Map) -> Side:
    """The side with as many elements as lie between the first and the last that live at a time, if these are fewer."""
    most = live.reverse().apply_range(live).deltas().dim_max_val(0)
    if not most.is_int():
        return side
    fold = most.to_python() + 1
    whole = side.extent.number
    return Side(Linear.of(fold), fold=fold) if whole is None or fold < whole else side


def _stored(shared: Shared, found: Sequence[Stored]) -> Shared:
    """The nest with locals in their storage."""
    if not found:
        return shared
    storage = {stored.array.name: stored for stored in found}
    computed = {node.statement for node in walk(shared.tree) if isinstance(node, Micro)}
    changed = {s.name: s if s.name in computed else _redirected(s, storage) for s in shared.nest.statements}

    def owned(node: Node) -> Node:
        made = mapped(node, owned)
        if not isinstance(made, Band):
            return made
        own = (s.array.name for s in found if s.variable and any(band is node for band in s.above))
        return replace(made, variables=tuple(own))

    return replace(
        shared,
        nest=replace(shared.nest, statements=tuple(changed.values())),
        tree=on_all_extended(owned(shared.tree), changed),
        parts={name: stored.part for name, stored in storage.items() if stored.beside_kernels},
        buffers=(*shared.buffers, *(stored.buffer for stored in found)),
        workspaces=(*shared.workspaces, *(stored.workspace for stored in found if not stored.variable)),
    )


def _redirected(statement: Statement, storage: Mapping[str, Stored]) -> Statement:
    """The statement with its accesses of locals in their storage; their places are further iterators of it."""
    values: dict[str, isl.Map] = {}
    loads = {
        load: _placed(statement, load, storage[load.array], values)
        for load in accesses(statement)
        if load.array in storage
    }
    if not loads:
        return statement
    made = extended(statement, tuple(values), _together(values.values(), statement.domain)) if values else statement
    expr = map_loads(statement.expr, lambda load: loads.get(load, load))
    return replace(made, target=loads.get(statement.target, statement.target), expr=expr)


def _placed(statement: Statement, load: Load, stored: Stored, values: dict[str, isl.Map]) -> Load:
    """An access of a local in its storage. Adds the functions that it needs to `values`, by the names of iterators."""
    use = _Use(statement, (load,), ())
    indices = []
    for d, (index, side) in enumerate(zip(load.indices, stored.sides, strict=True)):
        if side is None:
            continue
        if side.fold:
            name = own_names(f"{load.array}_part", len(values) + 1)[-1]
            place = isl.PwAff.from_aff(function(statement.domain.get_space(), index, statement.iterators))
            values[name] = isl.Map.from_pw_aff(place.mod_val(isl.Val(side.fold)))
            index = Affine.name(name)
        elif side.start is not None:
            name = own_names(f"{load.array}_start", d + 1)[-1]
            values[name] = use.groups(stored.above).apply_range(isl.Map.from_pw_aff(side.start))
            index = index - Affine.name(name)
        indices.append(index)
    return Load(load.array, tuple(indices))


def _together(values: Iterable[isl.Map], domain: isl.Set) -> isl.Map:
    """`{ S[i, j] -> [all values] }`."""
    return reduce(isl.Map.flat_range_product, values).intersect_domain(domain)
