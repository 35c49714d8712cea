"""A statement as the loops around it see it: what each loop counts, and how far its accesses move along them.

    for t_tile: for i: for t: for j:              loops   floor(t/16), i + 2*t, t, j
      B[i - 2*t, j] = …                           access  row: i - 2*t, column: j      (in values of the loops)

Everything is linear in the loops' values, so that what a part of the loops touches has a closed form: along each
dimension one more than the sum of (values of the loop - 1) times its coefficient.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil

import islpy as isl

from codegen.integer import Affine
from poly.coordinates import linear
from poly.nest import Nest, Statement
from poly.tree import Band

Size = int | str
"""The values of a block: a number, or the name of the knob that says it."""


@dataclass(frozen=True)
class Ring:
    """One loop around a statement. `value` is what it counts, in iterators; `block` the values of one of its blocks.

    `block` is None for a loop that counts single values; `of` then is None too. `of` is the position, among the loops
    of the statement, of the loop over the values in a block.
    """

    name: str
    value: Affine
    block: Size | None
    of: int | None


@dataclass(frozen=True)
class Dimension:
    """An index: `terms` are coefficients of loops, by position; the constants of all accesses lie in `low`..`high`."""

    terms: tuple[tuple[int, int], ...]
    low: int
    high: int


@dataclass(frozen=True)
class Group:
    """Accesses of one array that differ by constants only, as the shifted reads of a stencil do."""

    array: str
    dimensions: tuple[Dimension, ...]
    written: bool

    @property
    def key(self) -> tuple[object, ...]:
        """What groups have in common that are one."""
        return (self.array, *(dimension.terms for dimension in self.dimensions))

    def joined(self, other: Group) -> Group:
        """Both as one; they have the same key."""
        pairs = zip(self.dimensions, other.dimensions, strict=True)
        spans = tuple(Dimension(a.terms, min(a.low, b.low), max(a.high, b.high)) for a, b in pairs)
        return Group(self.array, spans, self.written or other.written)


@dataclass(frozen=True)
class View:
    """A statement with its loops, outermost first, the extents of its iterators, and its accesses.

    `brought` says which iterator each loop over single values brings in, those first that depend on no other loop.
    """

    statement: Statement
    rings: tuple[Ring, ...]
    extents: Mapping[str, int]
    brought: Mapping[int, str]
    groups: tuple[Group, ...]

    def widths(self, depth: int, sizes: Mapping[str, int]) -> list[float]:
        """How many values each loop takes while the outer `depth` loops stand still: in a block, as many on average."""
        found = [1.0] * len(self.rings)
        for position, iterator in self.brought.items():
            if position >= depth:
                found[position] = self._left(position, iterator, found, depth, sizes)
        for position in range(depth, len(self.rings)):
            ring = self.rings[position]
            if ring.block is not None and ring.of is not None:
                whole = self._left(ring.of, self.brought[ring.of], found, depth, sizes)
                found[position] = ceil(whole / number(ring.block, sizes))
        return found

    def _left(
        self, position: int, brought: str, widths: Sequence[float], depth: int, sizes: Mapping[str, int]
    ) -> float:
        """The values of a loop in the blocks that stand still around it.

        All of them are those of the iterator that it brings in, and what other loops shift them by.
        """
        shifting = [(name, c) for name, c in self.rings[position].value.terms if name != brought]
        values = self.extents[brought] + sum(abs(c) * (widths[self._place(name)] - 1) for name, c in shifting)
        for ring in self.rings[:depth]:
            if ring.of == position and ring.block is not None:
                values /= ceil(values / number(ring.block, sizes))
        return values

    def _place(self, iterator: str) -> int:
        """The loop that brings in an iterator."""
        return next(position for position, name in self.brought.items() if name == iterator)


def number(size: Size, sizes: Mapping[str, int]) -> int:
    """A size as a number."""
    return sizes[size] if isinstance(size, str) else size


def view(nest: Nest, statement: Statement, bands: Sequence[Band], knobs: Mapping[str, str]) -> View:
    """The view of a statement below `bands`. `knobs` names the knob that says the block of a loop."""
    values = [_counted(statement, band) for band in bands]
    rings = []
    for position, (band, (value, block)) in enumerate(zip(bands, values, strict=True)):
        of = next((p for p in range(position + 1, len(bands)) if values[p] == (value, None)), None) if block else None
        rings.append(Ring(band.name, value, knobs.get(band.name, block) if of is not None else None, of))
    solved = _solved(rings)
    brought = {position: iterator for iterator, (position, _) in solved.items()}
    places = {iterator: value for iterator, (_, value) in solved.items()}
    return View(statement, tuple(rings), extents(statement), brought, _groups(nest, statement, places))


def _counted(statement: Statement, band: Band) -> tuple[Affine, int | None]:
    """What a loop counts, in iterators, and the values in one of its blocks; nothing where it is not affine."""
    function = band.function(statement.name)
    plain = linear(statement.iterators, function)
    if plain is not None:
        return Affine.make([(n, c) for n, c in plain.terms if n in statement.iterators], plain.constant), None
    pieces = function.get_pieces()
    aff = pieces[0][1]
    if len(pieces) != 1 or aff.dim(isl.dim_type.div) != 1:
        return Affine(), None
    quotient = aff.get_div(0)
    size = quotient.get_denominator_val()
    inner = linear(statement.iterators, isl.PwAff.from_aff(quotient.scale_val(size)))
    if inner is None:
        return Affine(), None
    return Affine.make([(n, c) for n, c in inner.terms if n in statement.iterators], inner.constant), size.to_python()


def _solved(rings: Sequence[Ring]) -> dict[str, tuple[int, Affine]]:
    """For each iterator the loop that brings it in, and its value in values of loops, named by their positions.

    Found one by one, from loops in which all iterators but one are known.
    """
    found: dict[str, tuple[int, Affine]] = {}
    left = [position for position, ring in enumerate(rings) if ring.of is None]
    while left:
        solvable = ((position, _unknown(rings[position].value, found)) for position in left)
        position, names = next(((p, names) for p, names in solvable if len(names) == 1), (left[0], []))
        left.remove(position)
        value = rings[position].value
        if names and abs(value.coefficient(names[0])) == 1:
            rest = value.substitute({names[0]: 0}).substitute({name: known for name, (_, known) in found.items()})
            found[names[0]] = position, (Affine.name(str(position)) - rest) * value.coefficient(names[0])
    return found


def _unknown(value: Affine, known: Mapping[str, object]) -> list[str]:
    return [name for name, _ in value.terms if name not in known]


def _groups(nest: Nest, statement: Statement, solved: Mapping[str, Affine]) -> tuple[Group, ...]:
    found: dict[tuple[object, ...], Group] = {}
    for access in (statement.target, *statement.reads):
        if nest.array(access.array).shape:
            dimensions = tuple(_dimension(index, solved) for index in access.indices)
            group = Group(access.array, dimensions, written=access == statement.target)
            found[group.key] = found[group.key].joined(group) if group.key in found else group
    return tuple(found.values())


def _dimension(index: Affine, solved: Mapping[str, Affine]) -> Dimension:
    moved = index.substitute(solved)
    terms = tuple((int(name), c) for name, c in moved.terms if name.isdigit())
    return Dimension(terms, moved.constant, moved.constant)


def extents(statement: Statement) -> dict[str, int]:
    """How many values each iterator takes where those before it are in the middle of theirs: half, in a triangle."""
    found: dict[str, int] = {}
    domain = statement.domain
    for position, iterator in enumerate(statement.iterators):
        low, high = domain.dim_min_val(position), domain.dim_max_val(position)
        if not (low.is_int() and high.is_int()):
            found[iterator] = 1
            continue
        first, last = low.to_python(), high.to_python()
        found[iterator] = last - first + 1
        middle = domain.fix_val(isl.dim_type.set, position, isl.Val((first + last) // 2))
        domain = domain if middle.is_empty() else middle
    return found
