"""Sum in blocks of iterations, each into elements of its own, which are added up behind the loops.

for i:                                 for p < 2: for j: S0_sums[p, j] = 0
  for j:                               for i:
    x[j] += A[i, j]*y[i]       ->        for j:
                                           S0_sums[i // 500, j] += A[i, j]*y[i]
                                       for p < 2: for j: x[j] += S0_sums[p, j]

The blocks then need nothing of each other, so that threads may share them. (Suriana, Adams, Kamil, "Parallel
associative reductions in Halide", CGO 2017.)
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

from codegen.ir.expr import Const, Load, loads
from codegen.ir.integer import Affine, floor_quotient
from codegen.names import fresh
from poly.errors import ScheduleError
from poly.ir.edits import rename_repeats
from poly.ir.lookups import index_reads
from poly.ir.nest import Array, Nest, Statement
from poly.ir.paths import times
from poly.ir.strides import accesses
from poly.ir.tree import Node, bands, statements
from poly.schedules.steps.base import (
    Arguments,
    check_integer,
    kernel_on,
    loops_over,
    part_with,
    statement_over,
    with_beside,
)


@dataclass(frozen=True)
class RFactor:
    """Each `size` iterations of `iterator` in `statement` are summed into elements of a local called `into`.

    The statement has to be a sum. In the loops around it, no other may access an element that it has added to.
    """

    statement: str
    iterator: str
    size: int
    into: str | None = None
    name: ClassVar[str] = "rfactor"
    reorders: ClassVar[bool] = True

    def apply(self, nest: Nest, tree: Node) -> Node:
        return self.rewritten(nest, tree)[1]

    def arguments(self) -> Arguments:
        return (self.statement,), {self.iterator: self.size} | ({} if self.into is None else {"into": self.into})

    def rewritten(self, nest: Nest, tree: Node) -> tuple[Nest, Node]:
        """The nest with the local, and the tree with what begins and ends its sums; unchanged if they have it.

        Raises:
            ScheduleError: no such statement or iterator, no sum, iterations of unknown number, a name that is taken, or
                an access by another statement, in the loops around, to an element that has been added to.
        """
        check_integer(f"the block size of {self.iterator}", self.size, least=1)
        found = self._checked(nest)
        local = f"{self.statement}_sums" if self.into is None else self.into
        if found.target.array == local:
            return nest, tree
        if local in {*nest.open_or_fixed, *(a.name for a in nest.arrays), *(s.name for s in nest.statements)}:
            raise self._refused(f"there is {local} already", "another name, into=…")
        self._check_alone(nest, tree, found)
        low, count = self._span(found)
        array, first = nest.array(found.target.array), low // self.size
        blocks = (low + count - 1) // self.size - first + 1
        block = floor_quotient(Affine.name(self.iterator), self.size) - first
        sums = replace(found, target=Load(local, (block, *found.target.indices)))
        written = rename_repeats(nest.tree)
        own = Array(local, array.dtype, (Affine.of(blocks), *array.shape), "local")
        changed = replace(nest, arrays=(*nest.arrays, own))
        around = _around(changed, sums, array.name, (written, tree))
        every = (around[0], *(sums if s is found else s for s in nest.statements), around[1])
        loops = [*map(loops_over, around)]
        trees = [with_beside(one, self.statement, *loops) for one in (written, tree)]
        return replace(changed, statements=every, tree=trees[0], opened=nest.structure), trees[1]

    def _checked(self, nest: Nest) -> Statement:
        found = statement_over(self.name, nest, self.statement, self.iterator)
        if found.op != "+" or not nest.reassociate:
            problem = f"{nest.name} has reassociate=False" if found.op == "+" else "it is no sum"
            raise self._refused(problem, "leave it as it is")
        if index_reads(nest) or any(load.array == found.target.array for load in loads(found.expr)):
            raise self._refused("its terms may read what it adds to", "leave it as it is")
        return found

    def _span(self, found: Statement) -> tuple[int, int]:
        """The least value of the iterator, and the number of values."""
        span = found.spans[self.iterator]
        if span is None or span[1] < 1:
            raise self._refused(f"how many iterations {self.iterator} has depends on sizes", "known sizes (with_sizes)")
        return span

    def _check_alone(self, nest: Nest, tree: Node, found: Statement) -> None:
        """Refuse a sum of which another statement in the loops around it reads, writes or adds to what was added."""
        array, sums = found.target.array, found.relation(found.target).intersect_params(nest.context)
        for one in (nest.tree, tree):
            inside, order = {*statements(part_with(one, found.name))} - {found.name}, None
            for other in (s for s in nest.statements if s.name in inside):
                for load in (load for load in accesses(other) if load.array == array):
                    order = order or times(nest, one)
                    same = sums.apply_range(other.relation(load).reverse())
                    if not same.intersect(order[found.name].lex_lt_map(order[other.name])).is_empty():
                        problem = f"{other.name} accesses {array} in the loops around it, too"
                        raise self._refused(problem, "distribute the loops, or leave it as it is")
        if kernel_on(nest, tree, array) is not None:
            raise self._refused(f"a microkernel accesses {array}", "rfactor first, then microkernel")

    def _refused(self, reason: str, remedy: str) -> ScheduleError:
        return ScheduleError(f"{self.name}({self.statement}, {self.iterator}={self.size}): {reason}. Remedy: {remedy}.")


def _around(nest: Nest, sums: Statement, array: str, trees: Iterable[Node]) -> tuple[Statement, Statement]:
    """The statements that begin all sums, and that add them to the array."""
    elements = sums.relation(sums.target).range().intersect_params(nest.context).coalesce()
    taken = frozenset((*(band.name for tree in trees for band in bands(tree)), *nest.open_or_fixed))
    names = frozenset((*(s.name for s in nest.statements), *(a.name for a in nest.arrays)))
    made: list[Statement] = []
    zero = Const(0.0 if nest.array(array).dtype.is_float else 0)
    for ending in ("first", "sum"):
        iterators: list[str] = []
        for _ in sums.target.indices:
            used = taken | {*iterators, *(i for other in made for i in other.iterators)}
            iterators.append(fresh("e", used))
        own = Load(sums.target.array, tuple(map(Affine.name, iterators)))
        whole = Load(array, own.indices[1:])
        name = fresh(f"{own.array}_{ending}", names)
        make = partial(Statement, name, tuple(iterators), elements.set_tuple_name(name))
        is_first = not made
        made.append(
            make(own, "=", zero, "", f"{own} = 0") if is_first else make(whole, "+", own, "", f"{whole} += {own}")
        )
    return made[0], made[1]
