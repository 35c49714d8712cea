"""Where each read takes its value from: the write before it, or the value that the element has before the nest runs.

    w[i] = b[i]                    the read of w[0] in `+=` takes the value of b[0], since a copy wrote it,
    for j: w[i] += L[i, j]         the next one that of the `+=` before it

Two nests with the same statements compute the same values, in the order as written, if each of their reads takes the
same value, and so does each element that is left behind. A copy passes on the value that it reads, so that a nest
may have copies that the other one lacks. (Verdoolaege, Janssens, Bruynooghe, "Equivalence checking of static affine
programs using widening to handle recurrences", TOPLAS 34(3), 2012, checks more general pairs of programs.)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce

import islpy as isl

from codegen.ir.expr import Load, loads
from microkernels.cached import cached_property
from poly.analysis.last import Timeline, last_accesses
from poly.ir.nest import Nest, Statement
from poly.ir.paths import times
from poly.ir.sets import OUT, zero

CHAIN = 4
"""The most copies that a value may pass through from one array to another before it is used."""


@dataclass(frozen=True)
class Sources:
    """Where readers take values from: `{ reader -> writer }`, and `{ reader -> element }` for those from before."""

    written: isl.UnionMap
    initial: isl.UnionMap

    def union(self, other: Sources) -> Sources:
        return Sources(self.written.union(other.written), self.initial.union(other.initial))

    def behind(self, readers: isl.UnionMap) -> Sources:
        """The same for `{ other reader -> reader }`."""
        return Sources(readers.apply_range(self.written), readers.apply_range(self.initial))

    def equals(self, other: Sources) -> bool:
        return bool(self.written.is_equal(other.written) and self.initial.is_equal(other.initial))


class ValueFlow:
    """The flow of values through a nest in the order as written, through `copies`: statements that are passed over."""

    def __init__(self, nest: Nest, copies: Sequence[str] = ()) -> None:
        self.nest = nest
        self.copies = copies

    def read(self, statement: str, access: Load) -> Sources | None:
        """Where the instances of a statement take an element from; None if through too many copies."""
        reader = self.nest.statement(statement)
        return self._forwarded(self._sources(self._relation(reader, access), access.array))

    def left(self, array: str) -> Sources | None:
        """The same for each element as the nest leaves it behind, in place of a reader."""
        elements = self._elements(array)
        own = isl.Map.identity(elements.get_space().map_from_set()).intersect_domain(elements)
        return self._forwarded(self._sources(isl.UnionMap.from_map(_left(own)), array))

    def _elements(self, array: str) -> isl.Set:
        return self.nest.array(array).elements(self.nest.sizes).intersect_params(self.nest.context)

    def _relation(self, statement: Statement, access: Load) -> isl.UnionMap:
        return isl.UnionMap.from_map(statement.relation(access).intersect_params(self.nest.context))

    def _sources(self, reads: isl.UnionMap, array: str) -> Sources:
        writers = (self._relation(s, s.target) for s in self.nest.statements if s.target.array == array)
        writes = reduce(isl.UnionMap.union, writers, isl.UnionMap.empty(reads.get_space()))
        written = last_accesses(writes, reads, writes, self._order(array)).reverse()
        return Sources(written, reads.subtract_domain(written.domain()))

    def _order(self, array: str) -> Timeline:
        """The times of all statements, and behind them that of each element of the array as it is left behind."""
        return Timeline(self._statements.union(isl.UnionMap.from_map(self._after(array))))

    @cached_property
    def _statements(self) -> isl.UnionMap:
        found = times(self.nest, self.nest.tree).values()
        return reduce(isl.UnionMap.union, (isl.UnionMap.from_map(_timed(0, one)) for one in found))

    def _after(self, array: str) -> isl.Map:
        elements = self._elements(array)
        length = max(one.dim(OUT) for one in times(self.nest, self.nest.tree).values())
        nothing = isl.Map.from_aff(zero(elements.get_space()))
        padded = reduce(isl.Map.flat_range_product, [nothing] * length, isl.Map.from_domain(elements))
        return _left(_timed(1, padded).intersect_domain(elements))

    def _forwarded(self, values: Sources) -> Sources | None:
        for _ in range(CHAIN):
            passed = self._from_copies(values.written)
            if passed.is_empty():
                return values
            kept = Sources(values.written.subtract(passed), values.initial)
            values = reduce(Sources.union, self._behind_copies(passed), kept)
        return values if self._from_copies(values.written).is_empty() else None

    def _from_copies(self, written: isl.UnionMap) -> isl.UnionMap:
        domains = (isl.UnionSet.from_set(self.nest.statement(name).domain) for name in self.copies)
        return written.intersect_range(reduce(isl.UnionSet.union, domains, isl.UnionSet.empty(written.get_space())))

    def _behind_copies(self, passed: isl.UnionMap) -> Iterator[Sources]:
        for name, values in self._copied.items():
            through = passed.intersect_range(isl.UnionSet.from_set(self.nest.statement(name).domain))
            yield values.behind(through)

    @cached_property
    def _copied(self) -> dict[str, Sources]:
        """The sources of what each copy reads."""
        copies = map(self.nest.statement, self.copies)
        return {c.name: self._sources(self._relation(c, read), read.array) for c in copies for read in loads(c.expr)}


def _timed(first: int, time: isl.Map) -> isl.Map:
    """Time vectors with a number in front of them."""
    space = time.get_space().domain()
    return isl.Map.from_aff(zero(space).add_constant_val(isl.Val(first))).flat_range_product(time)


def _left(elements: isl.Map) -> isl.Map:
    """A function of elements, as one of what reads them behind all statements, whose name no statement has."""
    return elements.set_tuple_name(isl.dim_type.in_, f"{elements.get_tuple_name(isl.dim_type.in_)}'left")
