"""The exact dependences of a nest: which statement instances must stay in order, and why.

A dependence is a relation between instances that access the same element, at least one of which writes it:

    flow     a write, then a read of the written value
    anti     a read, then the write that replaces the value
    output   a write, then the next write of the element

They come from isl's dataflow analysis, so that transitively implied pairs (a write, a write between, a read) are left
out. If the analysis takes too much work (loops with steps, many statements), implied pairs are included, which does not
change what is legal. If these take too much work too (many statements under conditions with `%` and `or`), conditions
are left out: more pairs are ordered than necessary, so that fewer schedules are legal, and `rough` is set.
Two updates of one element by the same reduction (`+=` and `+=`) may be swapped if the nest allows reassociation. They
are listed as flow dependences with `reduction` set; every other access is then ordered against all the updates of a
run, not only the last.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import reduce
from itertools import product
from typing import Literal

import islpy as isl

from codegen.ir.expr import Load, loads
from poly.analysis.last import Timeline, last_accesses
from poly.display import Block, Cells, Displayed, Preformatted
from poly.errors import CostWarning, warn
from poly.ir.budget import TooCostly, forgotten, limited, printed
from poly.ir.guards import without_conditions
from poly.ir.nest import Nest, Statement, checked_nest
from poly.ir.paths import times

Kind = Literal["flow", "anti", "output"]


@dataclass(frozen=True, repr=False)
class Dependence(Displayed):
    """`relation`: `{ source[...] -> sink[...] }`, from each instance to those that must run after it."""

    kind: Kind
    array: str
    source: str
    sink: str
    relation: isl.Map
    reduction: bool = False

    @property
    def distance(self) -> tuple[int, ...] | None:
        """Sink minus source in each iterator, if both are of one statement and it is constant."""
        return constant_distance(self.relation) if self.source == self.sink else None

    def __str__(self) -> str:
        label, relation, distance = self.cells()
        return f"{label}: {relation}" + (f"  distance {distance}" if distance else "")

    def cells(self) -> tuple[str, str, str]:
        """Its kind and array, its relation, and its distance or an empty text."""
        label = f"{self.kind} on {self.array}" + (" (reduction)" if self.reduction else "")
        relation = "{" + printed(self.relation).partition("{")[2]
        return label, relation, "" if self.distance is None else vector(self.distance)

    def _title(self) -> str:
        return f"{self.kind} dependence on {self.array}, {self.source} to {self.sink}"


@dataclass(frozen=True, repr=False)
class Dependences(Displayed):
    """All dependences of a nest.

    `races` relates, for each array and reduction, every two different updates of one element, in both directions: a
    parallel loop must not carry them, even if the updates may be reordered.
    """

    items: tuple[Dependence, ...]
    races: tuple[Dependence, ...]
    reassociate: bool
    rough: bool = False
    """Whether conditions of statements were left out, so that there are more dependences than necessary."""

    @property
    def binding(self) -> tuple[Dependence, ...]:
        """The dependences that a schedule must keep."""
        return tuple(d for d in self.items if not (d.reduction and self.reassociate))

    def __iter__(self) -> Iterator[Dependence]:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)

    def __str__(self) -> str:
        lines = [*map(str, self.items)] or ["no dependences"]
        return "\n".join([*lines, *[f"# {ROUGH}"] * self.rough])

    def _title(self) -> str:
        return f"{len(self) or 'no'} dependence{'s' if len(self) != 1 else ''}"

    def _parts(self) -> Iterable[Block]:
        if self.items:
            yield Cells(
                [d.cells() for d in self.items], ("dependence", "from each instance to those after it", "distance")
            )
        if self.rough:
            yield Preformatted(ROUGH)


EXACT = 300_000
"""Operations that isl may use for the exact dependences of one kind on one array; a large stencil takes a tenth."""

ALL = 2_000_000
"""Operations that isl may use for all dependences of a nest, and again for the rough ones."""

ROUGH = "these are rough: the conditions of statements were left out, since exact dependences take too much work"

_known: dict[int, tuple[weakref.ref[Nest], Dependences | None]] = {}
"""Dependences by the identity of the nest; None if even rough ones take too much work."""

_alike: dict[str, Dependences | None] = forgotten({})
"""Those that this public call has found, by the contents of the nest: each candidate for a schedule makes the nest that
it rewrites anew, so that half of the nests are like another one."""


def dependences(nest: Nest) -> Dependences:
    """The dependences of a nest, computed once and kept as long as the nest exists.

    If they are rough, a CostWarning says so.

    Raises:
        SpecError: not a nest.
        TooCostly: even rough dependences take too much work.
    """
    key = id(nest)
    if key not in _known or _known[key][0]() is not nest:
        analysed = _analyse(checked_nest(nest))
        _keep(nest, analysed)
        if analysed is not None and analysed.rough:
            warn(f"the dependences of {nest.name}: {ROUGH}.", CostWarning)
    found = _known[key][1]
    if found is None:
        raise TooCostly
    return found


def _keep(nest: Nest, found: Dependences | None) -> None:
    key = id(nest)
    _known[key] = weakref.ref(nest, lambda _: _known.pop(key, None)), found


def divide(whole: Nest, parted: Nest, first: str, second: str) -> None:
    """Keep the dependences of a nest as those of one in which some instances of `first` are the statement `second`.

    They are the same pairs, so that no analysis is needed.
    """
    found = dependences(whole)
    domains = [parted.statement(name).domain for name in (first, second)]

    def divided(given: tuple[Dependence, ...]) -> tuple[Dependence, ...]:
        return tuple(part for dependence in given for part in _divided(dependence, first, domains))

    _keep(parted, replace(found, items=divided(found.items), races=divided(found.races)))


def _divided(dependence: Dependence, name: str, domains: Sequence[isl.Set]) -> Iterator[Dependence]:
    """The pairs of a dependence, by the domains that a statement now has."""
    sources, sinks = (domains if end == name else [None] for end in (dependence.source, dependence.sink))
    for source, sink in product(sources, sinks):
        relation = dependence.relation
        if source is not None:
            relation = relation.intersect_domain(source.set_tuple_name(name))
            relation = relation.set_tuple_name(isl.dim_type.in_, source.get_tuple_name())
        if sink is not None:
            relation = relation.intersect_range(sink.set_tuple_name(name))
            relation = relation.set_tuple_name(isl.dim_type.out, sink.get_tuple_name())
        if not relation.is_empty():
            first, second = (relation.get_tuple_name(end) for end in (isl.dim_type.in_, isl.dim_type.out))
            yield replace(dependence, source=first, sink=second, relation=relation)


def vector(values: tuple[int, ...]) -> str:
    """`(1, -1)`."""
    return f"({', '.join(map(str, values))})"


def constant_distance(relation: isl.Map) -> tuple[int, ...] | None:
    """Range minus domain, if it is the same for all pairs; otherwise None."""
    deltas = relation.deltas()
    values = [deltas.dim_max_val(d) for d in range(deltas.dim(isl.dim_type.set))]
    lowest = [deltas.dim_min_val(d) for d in range(deltas.dim(isl.dim_type.set))]
    if not all(value.is_int() and value.eq(low) for value, low in zip(values, lowest, strict=True)):
        return None
    return tuple(value.to_python() for value in values)


def _analyse(nest: Nest) -> Dependences | None:
    with limited(ALL, apart=True):
        if nest.contents not in _alike:
            _alike[nest.contents] = _within_limits(nest)
        return _alike[nest.contents]


def _within_limits(nest: Nest) -> Dependences | None:
    for rough in (False, True):
        with suppress(TooCostly), limited(ALL, apart=True):
            return _found(nest, rough)
    return None


def _found(given: Nest, rough: bool) -> Dependences:
    nest = without_conditions(given) if rough else given
    order = Timeline(reduce(isl.UnionMap.union, times(nest, nest.tree).values(), _empty(nest)))
    flows = [_ArrayFlow(nest, array.name, order, rough) for array in nest.arrays if array.name in nest.written]
    items = tuple(dependence for flow in flows for dependence in flow.dependences())
    races = tuple(dependence for flow in flows for dependence in flow.races())
    return Dependences(items, races, nest.reassociate, nest is not given)


def _empty(nest: Nest) -> isl.UnionMap:
    return isl.UnionMap.empty(nest.context.get_space())


class _ArrayFlow:
    """The dataflow through one array.

    A plain write kills the accesses before it: later ones depend on it instead. With reassociation the updates of a
    reduction kill nothing, so that an access which depends on one update of a run depends on all of them.
    """

    def __init__(self, nest: Nest, array: str, order: Timeline, rough: bool) -> None:
        self.nest, self.array, self.order = nest, array, order
        self.exact = not rough
        writers = [s for s in nest.statements if s.target.array == array]
        self.reads = [
            self._relation(s, load)
            for s in nest.statements
            for load in dict.fromkeys(loads(s.expr))
            if load.array == array
        ]
        self.writes = self._union(writers)
        self.plain = self._union([s for s in writers if s.op == "="])
        ops = dict.fromkeys(s.op for s in writers if s.op != "=")
        self.updates = {op: self._union([s for s in writers if s.op == op]) for op in ops}
        self.ending = self.plain if nest.reassociate else self.writes

    def _relation(self, statement: Statement, access: Load) -> isl.UnionMap:
        return isl.UnionMap.from_map(statement.relation(access).intersect_params(self.nest.context))

    def _union(self, writers: list[Statement]) -> isl.UnionMap:
        return reduce(isl.UnionMap.union, (self._relation(s, s.target) for s in writers), _empty(self.nest))

    def dependences(self) -> Iterator[Dependence]:
        """All dependences. An update reads what it writes, so flow dependences alone order it after earlier writes.

        Each access of a sink comes after the last killing write before it, and after the updates since.
        """
        for read in self.reads:
            yield from self._pairs("flow", self.writes, read, self.ending)
        for update in self.updates.values():
            yield from self._pairs("flow", self.writes.subtract(update), update, self.ending)
            before = self._pairs("flow", update, update, self.writes)
            yield from (replace(d, reduction=True) for d in before)
        for read in self.reads:
            yield from self._pairs("anti", read, self.writes, self.ending)
        yield from self._pairs("output", self.writes, self.plain, self.ending)

    def races(self) -> Iterator[Dependence]:
        """All pairs of different updates of one element."""
        for update in self.updates.values():
            for pairs in _maps(update.apply_range(update.reverse())):
                if pairs.get_tuple_name(isl.dim_type.in_) == pairs.get_tuple_name(isl.dim_type.out):
                    pairs = pairs.subtract(isl.Map.identity(pairs.get_space()))
                yield self._dependence("flow", pairs, True)

    def _pairs(
        self, kind: Kind, source: isl.UnionMap, sink: isl.UnionMap, ending: isl.UnionMap
    ) -> Iterator[Dependence]:
        """The pairs back to the last of `ending` or, if these take too much work, all ordered pairs."""
        found = self._exact_pairs(source, sink, ending)
        for relation in _maps(self.order.pairs(source, sink) if found is None else found):
            yield self._dependence(kind, relation.coalesce(), False)

    def _exact_pairs(self, source: isl.UnionMap, sink: isl.UnionMap, ending: isl.UnionMap) -> isl.UnionMap | None:
        """The pairs without implied ones; None if they take too much work, and then for all later calls too."""
        try:
            with limited(EXACT):
                return last_accesses(source, sink, ending, self.order) if self.exact else None
        except TooCostly:
            self.exact = False
            return None

    def _dependence(self, kind: Kind, relation: isl.Map, reduction: bool) -> Dependence:
        source, sink = relation.get_tuple_name(isl.dim_type.in_), relation.get_tuple_name(isl.dim_type.out)
        return Dependence(kind, self.array, source, sink, relation, reduction)


def _maps(union: isl.UnionMap) -> list[isl.Map]:
    maps = union.get_map_list()
    return [maps.get_at(index) for index in range(maps.n_map())]
