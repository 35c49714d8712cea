"""Give each iteration of some loops its own copy of an array: privatisation, also called array expansion.

for i:                                 for i:
  for j: t[j] = A[i, j]                  for j: t_private[i, j] = A[i, j]
  for j: B[i, j] = t[N-1-j]    ->        for j: B[i, j] = t_private[i, N-1-j]
                                         if i == M-1: for j: t[j] = t_private[i, j]

Iterations that only take turns at the same memory then have any order. (Feautrier, "Array expansion", ICS 1988; Tu and
Padua, "Automatic array privatization", LCPC 1993.) The values that the program leaves in the array are copied by the
iteration that writes an element last, the last-value assignment.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import ClassVar

import islpy as isl

from codegen.ir.expr import Load, map_loads
from codegen.ir.integer import Affine
from codegen.names import fresh
from microkernels.errors import plain
from poly.analysis.dependences import Dependence
from poly.analysis.legality import witness
from poly.analysis.values import Sources, ValueFlow
from poly.errors import ScheduleError
from poly.ir.coordinates import linear
from poly.ir.edits import find_loop, rename_repeats, sequence
from poly.ir.instances import coordinate, loop_values
from poly.ir.nest import Array, Nest, Statement
from poly.ir.paths import loops_around
from poly.ir.sets import set_space
from poly.ir.tree import Band, Leaf, Node, bands, mapped, statements
from poly.schedules.steps.base import check_given, kernel_on
from poly.schedules.steps.in_local import InLocal, accesses_array


@dataclass(frozen=True)
class Privatize(InLocal):
    """Each iteration of `loops` has its own elements of `array`, in a local called `into`.

    In the loops, each element must be written before it is read in the same iteration.
    """

    array: str
    loops: tuple[str, ...]
    into: str | None = None
    name: ClassVar[str] = "privatize"
    ending: ClassVar[str] = "private"
    reorders: ClassVar[bool] = True

    @property
    def behind(self) -> tuple[str, ...]:
        return self.loops

    def rewritten(self, nest: Nest, tree: Node) -> tuple[Nest, Node]:
        """The nest with the local, and the tree with the copies to the array; both are unchanged if they have them.

        Whether the order of the tree is legal for the new nest is not checked here.

        Raises:
            ScheduleError: no such array or loops, loops that are not inside each other or no longer as written, a name
                that is taken, a read of an element that its iteration has not written before, or a copy or microkernel
                that accesses the array.
        """
        self._check(nest, tree)
        written = rename_repeats(nest.tree)
        place = _Place.of(written, self.loops)
        if place is None:
            raise self.refused(f"loops {', '.join(self.loops)} are not inside one another, in this order", "others")
        inside = frozenset(statements(place.loops[-1]))
        own = tuple(s for s in nest.statements if s.name in inside and accesses_array(s, self.array))
        if any(array.name == self.local for array in nest.arrays):
            return self._made_before(nest, own), tree
        now = self._checked_place(nest, tree, place, own)
        self._check_values(nest, place, own)
        return _expanded(nest, (written, tree), (place, now), own, nest.array(self.array), self.local)

    def _check(self, nest: Nest, tree: Node) -> None:
        check_given(tree, self.name, "an array and loops, such as 'i'", self.loops)
        arrays = [array.name for array in nest.arrays if array.kind != "scalar"]
        if self.array not in arrays:
            raise ScheduleError(f"{self.name}: there is no array {plain(self.array)}. Arrays: {', '.join(arrays)}.")
        self.check_accesses(nest, tree)
        if self.local in (*nest.sizes, *(s.name for s in nest.statements)):
            raise self.refused(f"{self.local} is a size or statement", "another name, into=…")

    def _made_before(self, nest: Nest, own: Sequence[Statement]) -> Nest:
        """The nest, whose array of the local's name has to be the local."""
        copied = all(s.target.array == self.array and accesses_array(s, self.local) for s in own)
        rank = len(self.loops) + len(nest.array(self.array).shape)
        if nest.array(self.local).kind == "local" and len(nest.array(self.local).shape) == rank and copied:
            return nest
        raise self.name_is_taken()

    def _checked_place(self, nest: Nest, tree: Node, place: _Place, own: Sequence[Statement]) -> _Place:
        """The loops in the tree, which have to count what those as written do."""
        if not any(s.target.array == self.array for s in own):
            raise self.refused(f"no statement in loop {self.loops[-1]} writes it", "leave it as it is")
        beside = frozenset(statements(place.loops[0])) - frozenset(statements(place.loops[-1]))
        other = next((s.name for s in nest.statements if s.name in beside and accesses_array(s, self.array)), None)
        if other is not None:
            raise self.refused(f"{other} accesses it in loop {self.loops[0]}, not {self.loops[-1]}", "fewer loops")
        if kernel_on(nest, tree, self.array) is not None:
            raise self.refused("a microkernel accesses it", "privatize first, then microkernel")
        now = _Place.of(tree, self.loops)
        if now is None or not now.counts_like(place):
            raise self.refused("these loops are not as written any more", "privatize first")
        return now

    def _check_values(self, nest: Nest, place: _Place, own: Sequence[Statement]) -> None:
        """Refuse reads of elements that their iteration has not written before."""
        flow = ValueFlow(nest)
        for reader in own:
            for load in dict.fromkeys(load for load in reader.reads if load.array == self.array):
                found = flow.read(reader.name, load)
                assert found is not None, "nothing passes through copies here"
                broken = _from_outside(self.array, reader.name, found, place)
                if broken is not None:
                    first = witness(broken)
                    sizes = ", ".join(f"{name} = {value}" for name, value in first.sizes)
                    told = f"{reader.name}{list(first.sink)} reads {load} as {_origin(broken, first.source)}"
                    raise self.refused(told + (f" (with {sizes})" if sizes else ""), "fewer loops, or other ones")


@dataclass(frozen=True)
class _Place:
    """Loops inside one another, and the loops around them."""

    around: tuple[Band, ...]
    loops: tuple[Band, ...]

    @staticmethod
    def of(tree: Node, names: Sequence[str]) -> _Place | None:
        """The loops of these names; None if they aren't inside one another in this order, or if others are between.

        Raises:
            ScheduleError: there is no such loop.
        """
        inner = find_loop(tree, names[-1])
        found = loops_around(tree, statements(inner)[0])
        at = [band.name for band in found].index(inner.name) + 1
        chain = tuple(found[at - len(names) : at]) if at >= len(names) else ()
        if [band.name for band in chain] != list(names):
            for name in names:
                find_loop(tree, name)
            return None
        return _Place(tuple(found[: at - len(names)]), chain)

    @property
    def all(self) -> tuple[Band, ...]:
        return (*self.around, *self.loops)

    def counts_like(self, other: _Place) -> bool:
        """Whether the loops count the same as others."""
        return len(self.all) == len(other.all) and all(
            dict(one.functions).keys() == dict(two.functions).keys()
            and all(function.is_equal(two.function(name)) for name, function in one.functions)
            for one, two in zip(self.all, other.all, strict=True)
        )

    def values(self, statement: Statement, loops: Sequence[Band]) -> isl.Map:
        """`{ S[i, j] -> [values of the loops] }`."""
        return loop_values(statement.domain, [band.function(statement.name) for band in loops])


def _from_outside(array: str, reader: str, found: Sources, place: _Place) -> Dependence | None:
    """What an iteration reads from before the nest, which has the array as its source, or from other iterations."""
    initial = found.initial.get_map_list()
    if initial.n_map():
        return Dependence("flow", array, array, reader, initial.get_at(0).reverse())
    maps = found.written.get_map_list()
    for pairs in (maps.get_at(at) for at in range(maps.n_map())):
        writer = pairs.get_tuple_name(isl.dim_type.out)
        within = pairs if writer in dict(place.loops[-1].functions) else pairs.subtract(pairs)
        for band in place.all if not within.is_empty() else ():
            within = within.intersect(band.function(reader).eq_map(band.function(writer)))
        other = pairs.subtract(within)
        if not other.is_empty():
            return Dependence("flow", array, writer, reader, other.reverse())
    return None


def _origin(broken: Dependence, source: Sequence[int]) -> str:
    if broken.source == broken.array:
        return "it is before the loops"
    return f"{broken.source}{list(source)} left it in another iteration"


def _expanded(
    nest: Nest,
    trees: tuple[Node, Node],
    places: tuple[_Place, _Place],
    own: Sequence[Statement],
    array: Array,
    local: str,
) -> tuple[Nest, Node]:
    """The nest with a local in place of an array in the statements `own`, and the tree.

    `trees` and `places` are those as written, and as scheduled.
    """
    (written, tree), (place, now) = trees, places
    lows, extents = zip(*(_range(nest, place, band, own) for band in place.loops), strict=True)

    def redirected(statement: Statement) -> Statement:
        counts = [linear(statement.iterators, band.function(statement.name)) for band in place.loops]
        assert None not in counts, "the loops as written count iterators"
        prefix = tuple(count - low for count, low in zip(counts, lows, strict=True) if count is not None)

        def put(load: Load) -> Load:
            return Load(local, (*prefix, *load.indices)) if load.array == array.name else load

        return replace(statement, target=put(statement.target), expr=map_loads(statement.expr, put))

    names = {s.name for s in own}
    changed = tuple(redirected(s) if s.name in names else s for s in nest.statements)
    private = Array(local, array.dtype, (*extents, *array.shape), "local").with_sizes({})
    made = replace(nest, arrays=(*nest.arrays, private), statements=changed, tree=written, opened=nest.structure)
    if array.kind == "local" and not any(accesses_array(s, array.name) for s in changed):
        return made, tree
    taken = frozenset((*(band.name for one in (written, tree) for band in bands(one)), *nest.sizes))
    writers = [s for s in own if s.target.array == array.name]
    last = _last(made, place, writers, private, lows, taken)
    ordered = _with_copy(written, place.all, last)
    return replace(made, statements=(*changed, last), tree=ordered), _with_copy(tree, now.all, last)


def _range(nest: Nest, place: _Place, band: Band, own: Sequence[Statement]) -> tuple[Affine, Affine]:
    """The least value of a loop, and how many there are to the greatest, in terms of sizes."""
    values = reduce(isl.Set.union, (place.values(s, [band]).range() for s in own)).intersect_params(nest.context)
    low, high = (linear((), end) for end in (values.coalesce().dim_min(0), values.coalesce().dim_max(0)))
    if low is None or high is None:
        problem = f"the first or last iteration of loop {band.name} is no single affine function of sizes"
        raise ScheduleError(f"privatize: {problem}. Remedy: known sizes (with_sizes).")
    return low, high - low + 1


def _last(
    nest: Nest,
    place: _Place,
    writers: Sequence[Statement],
    private: Array,
    lows: Sequence[Affine],
    taken: frozenset[str],
) -> Statement:
    """The copies of the elements to the array, each in the iteration that writes it last."""
    array, around, loops = writers[0].target.array, len(place.around), len(place.loops)
    rank = len(private.shape) - loops
    pairs = []
    for writer in writers:
        element = writer.relation(writer.target).reset_tuple_id(isl.dim_type.out)
        outside = place.values(writer, place.around).flat_range_product(element)
        pairs.append(outside.reverse().apply_range(place.values(writer, place.loops)))
    every = reduce(isl.Map.union, pairs).intersect_params(nest.context)
    found = every.coalesce().lexmax().wrap().flatten()
    order = (*range(around), *range(around + rank, around + rank + loops), *range(around, around + rank))
    points = loop_values(found, [coordinate(found, at) for at in order]).range()
    name = fresh(f"{array}_last", frozenset(s.name for s in nest.statements) | {a.name for a in nest.arrays})
    domain = points.align_params(set_space(nest.sizes, 0)).coalesce().set_tuple_name(name)
    iterators = [band.name for band in place.all]
    for index in writers[0].target.indices:
        moved = [one for one in writers[0].iterators if one in index.names]
        iterators.append(fresh(moved[0] if len(moved) == 1 else "e", taken | {*iterators}))
    named = [Affine.name(one) for one in iterators]
    prefix = (value - low for value, low in zip(named[around:], lows, strict=False))
    indices = tuple(named[around + loops :])
    target, own = Load(array, indices), Load(private.name, (*prefix, *indices))
    return Statement(name, tuple(iterators), domain, target, "=", own, writers[0].place, f"{target} = {own}")


def _with_copy(tree: Node, loops: Sequence[Band], last: Statement) -> Node:
    """The tree with the statement, in loops of its own, behind everything else in the innermost of the loops."""
    counted = [coordinate(last.domain, at) for at in range(len(last.iterators))]
    copy: Node = Leaf(last.name)
    for name, function in reversed([*zip(last.iterators, counted, strict=True)][len(loops) :]):
        copy = Band(name, ((last.name, function),), copy)

    def visit(node: Node, at: int) -> Node:
        if at == len(loops):
            return sequence([node, copy])
        if node is loops[at]:
            functions = (*loops[at].functions, (last.name, counted[at]))
            return replace(loops[at], functions=functions, body=visit(loops[at].body, at + 1))
        return mapped(node, lambda child: visit(child, at))

    return visit(tree, 0)
