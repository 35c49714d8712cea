"""Keep an array in a local whose dimensions have another order, from before all loops to behind them.

for i:                                 for i, k: Q_reordered[k, i] = Q[i, k]      (what is read before it is written)
  r += Q[i, k]*Q[i, k]         ->      for i: r += Q_reordered[k, i]*Q_reordered[k, i]
                                       for i, k: Q[i, k] = Q_reordered[k, i]      (what is written)

A change of the data layout, after which other loops are contiguous. It is always legal, since each element has one
place, and pays off where an element is used often.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import reduce
from typing import ClassVar

import islpy as isl

from codegen.ir.expr import Load, map_loads
from codegen.ir.integer import Affine
from codegen.names import fresh
from microkernels.errors import plain
from poly.analysis.values import ValueFlow
from poly.errors import ScheduleError
from poly.ir.edits import rename_repeats, sequence
from poly.ir.nest import Array, Nest, Statement
from poly.ir.sets import set_space
from poly.ir.strides import accesses
from poly.ir.tree import Node, bands
from poly.schedules.steps.base import check_integer, kernel_on, loops_over
from poly.schedules.steps.in_local import InLocal, accesses_array


@dataclass(frozen=True)
class ReorderStorage(InLocal):
    """The dimensions `order` of `array` become those of a local called `into`, from the outermost in."""

    array: str
    order: tuple[int, ...]
    into: str | None = None
    name: ClassVar[str] = "reorder_storage"
    ending: ClassVar[str] = "reordered"
    reorders: ClassVar[bool] = True

    @property
    def behind(self) -> tuple[int, ...]:
        return self.order

    def rewritten(self, nest: Nest, tree: Node) -> tuple[Nest, Node]:
        """The nest with the local, and the tree with the copies; both are unchanged if they have them.

        Raises:
            ScheduleError: no such array, an order that isn't one of its dimensions, a name that is taken, or a copy or
                microkernel that accesses the array.
        """
        array = self._checked(nest, tree)
        users = {s.name for s in nest.statements if accesses_array(s, self.array)}
        if any(a.name == self.local for a in nest.arrays):
            return self._made_before(nest), tree
        shape = tuple(array.shape[at] for at in self.order)
        private = Array(self.local, array.dtype, shape, "local")
        statements = tuple(self._redirected(s) if s.name in users else s for s in nest.statements)
        written = rename_repeats(nest.tree)
        taken = frozenset((*(band.name for one in (written, tree) for band in bands(one)), *nest.open_or_fixed))
        first, last = self._copies(nest, array, taken)
        made = replace(nest, arrays=(*nest.arrays, private), statements=(*first, *statements, *last))
        around = [[loops_over(s) for s in copies] for copies in (first, last)]
        trees = [sequence([*around[0], one, *around[1]]) for one in (written, tree)]
        return replace(made, tree=trees[0], opened=nest.structure), trees[1]

    def _checked(self, nest: Nest, tree: Node) -> Array:
        arrays = {array.name: array for array in nest.arrays if array.kind == "array"}
        if self.array not in arrays:
            raise ScheduleError(f"{self.name}: there is no array {plain(self.array)}. Arrays: {', '.join(arrays)}.")
        for at in self.order:
            check_integer("a dimension", at, least=0)
        rank = len(arrays[self.array].shape)
        if sorted(self.order) != list(range(rank)):
            raise self.refused(f"{self.array} has {rank} dimensions", f"an order of {', '.join(map(str, range(rank)))}")
        self.check_accesses(nest, tree)
        if kernel_on(nest, tree, self.array) is not None:
            raise self.refused("a microkernel accesses it", "reorder_storage first, then microkernel")
        return arrays[self.array]

    def _made_before(self, nest: Nest) -> Nest:
        """The nest, whose array of the local's name has to be the local."""
        own = [s for s in nest.statements if accesses_array(s, self.array)]
        copies = all(s.op == "=" and {load.array for load in accesses(s)} == {self.array, self.local} for s in own)
        if own and copies and nest.array(self.local).kind == "local":
            return nest
        raise self.name_is_taken()

    def _placed(self, load: Load) -> Load:
        if load.array != self.array:
            return load
        return Load(self.local, tuple(load.indices[at] for at in self.order))

    def _redirected(self, statement: Statement) -> Statement:
        return replace(statement, target=self._placed(statement.target), expr=map_loads(statement.expr, self._placed))

    def _copies(self, nest: Nest, array: Array, taken: frozenset[str]) -> tuple[list[Statement], list[Statement]]:
        """The statements that copy to the local what is read before it is written, and back what is written."""
        flow, names = ValueFlow(nest), frozenset((*(s.name for s in nest.statements), *(a.name for a in nest.arrays)))
        empty = isl.Set.empty(array.elements(nest.sizes).get_space())
        reads = [(s, load) for s in nest.statements for load in dict.fromkeys(s.reads) if load.array == array.name]
        initial = (flow.read(s.name, load) for s, load in reads)
        found = (maps.get_map_list() for maps in (one.initial for one in initial if one is not None))
        read = [maps.get_at(at).range() for maps in found for at in range(maps.n_map())]
        write = [s.relation(s.target).range() for s in nest.statements if s.target.array == array.name]
        made: list[list[Statement]] = []
        for name, elements in ((f"{array.name}_first", read), (f"{array.name}_last", write)):
            points = reduce(isl.Set.union, elements, empty).intersect_params(nest.context)
            points = points.intersect(array.elements(nest.sizes)).align_params(set_space(nest.sizes, 0)).coalesce()
            iterators: list[str] = []
            for _ in array.shape:
                used = taken | {*iterators, *(i for copies in made for s in copies for i in s.iterators)}
                iterators.append(fresh("e", used))
            own = Load(array.name, tuple(map(Affine.name, iterators)))
            target, value = (self._placed(own), own) if elements is read else (own, self._placed(own))
            name = fresh(name, names)
            copy = Statement(
                name, tuple(iterators), points.set_tuple_name(name), target, "=", value, "", f"{target} = {value}"
            )
            made.append([] if points.is_empty() else [copy])
        return made[0], made[1]
