"""A statement as the loops around it see it: what each loop counts, and how far its accesses move along them.

    for t_tile: for i: for t: for j:              loops   floor(t/16), i + 2*t, t, j
      B[i - 2*t, j] = …                           access  row: i - 2*t, column: j      (in values of the loops)

Everything is linear in the loops' values, so that what a part of the loops touches has a closed form: along each
dimension one more than the sum of (values of the loop - 1) times its coefficient.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil, prod

import islpy as isl

from codegen.expr import Load
from codegen.integer import Affine
from poly.ir.coordinates import linear
from poly.ir.nest import Nest, Statement
from poly.ir.tree import Band
from poly.model.footprint import spread

Size = int | str
"""The values of a block: a number, or the name of the knob that says it."""

Sizes = Mapping[str, int]
"""The values of knobs."""


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
class Reference:
    """Accesses of one array that differ by constants only, as the shifted reads of a stencil do.

    `indices` are the terms of each index in coordinates, with the least and the greatest constant. `copy` is the copy
    that serves them (0 for none).
    """

    array: str
    indices: tuple[tuple[tuple[tuple[str, int], ...], int, int], ...]
    written: bool
    copy: int = 0

    @property
    def key(self) -> tuple[object, ...]:
        """What references have in common that are one."""
        return (self.array, self.copy, *(terms for terms, _, _ in self.indices))

    def joined(self, other: Reference) -> Reference:
        """Both as one; they have the same key."""
        pairs = zip(self.indices, other.indices, strict=True)
        spans = tuple((terms, min(low, a), max(high, b)) for (terms, low, high), (_, a, b) in pairs)
        return Reference(self.array, spans, self.written or other.written, self.copy)


@dataclass(frozen=True)
class View:
    """A statement with its loops, outermost first, the extents of its iterators, and its accesses.

    `brought` says which iterators each loop over single values brings in, those first that depend on no other loop;
    a flattened loop brings several, the last the fastest. `places` has each iterator in coordinates: the value of the
    loop that brings it in, or its digit of that.
    """

    statement: Statement
    rings: tuple[Ring, ...]
    extents: Mapping[str, int]
    brought: Mapping[int, tuple[str, ...]]
    places: Mapping[str, Affine]
    _known: dict[tuple[int, frozenset[tuple[str, int]]], list[float]] = field(
        default_factory=dict, compare=False, repr=False
    )

    def widths(self, depth: int, sizes: Sizes) -> list[float]:
        """How many values each loop takes while the outer `depth` loops stand still; of blocks, parts of one count."""
        key = depth, frozenset(sizes.items())
        if key not in self._known:
            self._known[key] = self._widths(depth, sizes)
        return self._known[key]

    def _widths(self, depth: int, sizes: Sizes) -> list[float]:
        found = [1.0] * len(self.rings)
        for position in self.brought:
            if position >= depth:
                found[position] = self._left(position, found, depth, sizes)
        for position in range(depth, len(self.rings)):
            ring = self.rings[position]
            if ring.block is not None and ring.of is not None:
                found[position] = self._left(ring.of, found, depth, sizes) / number(ring.block, sizes)
        return found

    def counts(self, widths: Sequence[float]) -> dict[str, float]:
        """The values of each coordinate where the loops take so many."""
        found: dict[str, float] = {}
        for position, iterators in self.brought.items():
            if len(iterators) == 1:
                found[str(position)] = widths[position]
            else:
                names = [(_digit(position, iterator), self.extents[iterator]) for iterator in iterators]
                found |= spread(names, ceil(widths[position] - 1e-9))
        return found

    def blocks(self, position: int, sizes: Sizes) -> tuple[int, ...]:
        """The blocks that a loop over single values is cut into, outermost first."""
        rings = (ring for ring in self.rings if ring.of == position)
        return tuple(number(ring.block, sizes) for ring in rings if ring.block is not None)

    def whole(self, position: int) -> float:
        """The values that a loop over single values takes in all, shifts aside."""
        return prod(self.extents[iterator] for iterator in self.brought.get(position, ()))

    def fastest(self, position: int) -> str:
        """The coordinate that changes with each step of a loop over single values."""
        names = self.brought.get(position, ())
        return _digit(position, names[-1]) if len(names) > 1 else str(position)

    def _left(self, position: int, widths: Sequence[float], depth: int, sizes: Sizes) -> float:
        """The values of a loop in the blocks that stand still around it.

        All of them are those of the iterators that it brings in, and what other loops shift them by.
        """
        own = self.brought.get(position, ())
        shifting = [(name, c) for name, c in self.rings[position].value.terms if name not in own]
        values = self.whole(position) + sum(abs(c) * (widths[self._place(name)] - 1) for name, c in shifting)
        for ring in self.rings[:depth]:
            if ring.of == position and ring.block is not None:
                values = min(values, number(ring.block, sizes))
        return values

    def _place(self, iterator: str) -> int:
        """The loop that brings in an iterator."""
        return next(position for position, names in self.brought.items() if iterator in names)


def number(size: Size, sizes: Sizes) -> int:
    """A size as a number."""
    return sizes[size] if isinstance(size, str) else size


def view(statement: Statement, bands: Sequence[Band], knobs: Mapping[str, str]) -> View:
    """The view of a statement below `bands`. `knobs` names the knob that says the block of a loop."""
    values = [_counted(statement, band) for band in bands]
    rings = []
    for position, (band, (value, block)) in enumerate(zip(bands, values, strict=True)):
        of = next((p for p in range(position + 1, len(bands)) if values[p] == (value, None)), None) if block else None
        rings.append(Ring(band.name, value, knobs.get(band.name, block) if of is not None else None, of))
    known = extents(statement)
    brought, places = _solved(rings, known)
    return View(statement, tuple(rings), known, brought, places)


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
    beside = aff.set_coefficient_val(isl.dim_type.div, 0, isl.Val(0))  # 5*i + floor(j/6) is floor((30*i + j)/6)
    inner = linear(statement.iterators, isl.PwAff.from_aff(quotient.add(beside).scale_val(size)))
    if inner is None or not aff.get_coefficient_val(isl.dim_type.div, 0).is_one():
        return Affine(), None
    return Affine.make([(n, c) for n, c in inner.terms if n in statement.iterators], inner.constant), size.to_python()


def _solved(rings: Sequence[Ring], known: Mapping[str, int]) -> tuple[dict[int, tuple[str, ...]], dict[str, Affine]]:
    """For each loop the iterators that it brings in, and each iterator in coordinates.

    Found one by one, from loops in which all iterators but one are known, or all of a flattened loop's are not.
    """
    brought: dict[int, tuple[str, ...]] = {}
    found: dict[str, Affine] = {}
    left = [position for position, ring in enumerate(rings) if ring.of is None]
    while left:
        solvable = ((position, _unknown(rings[position].value, found)) for position in left)
        position, names = next(((p, names) for p, names in solvable if len(names) == 1), (left[0], None))
        left.remove(position)
        value = rings[position].value
        if names is None:
            digits = _digits(value, _unknown(value, found), known)
            if digits:
                brought[position] = digits
                found |= {name: Affine.name(_digit(position, name)) for name in digits}
        elif abs(value.coefficient(names[0])) == 1:
            rest = value.substitute({names[0]: 0}).substitute(found)
            brought[position] = (names[0],)
            found[names[0]] = (Affine.name(str(position)) - rest) * value.coefficient(names[0])
    return brought, found


def _unknown(value: Affine, known: Mapping[str, object]) -> list[str]:
    return [name for name, _ in value.terms if name not in known]


def _digits(value: Affine, unknown: Sequence[str], known: Mapping[str, int]) -> tuple[str, ...]:
    """The iterators of which a loop counts the digits, the last the fastest; none where it counts anything else."""
    names = sorted(unknown, key=lambda name: -value.coefficient(name))
    weight = 1
    for name in reversed(names):
        if value.coefficient(name) != weight:
            return ()
        weight *= known[name]
    return tuple(names) if len(names) == len(value.terms) else ()


def _digit(position: int, iterator: str) -> str:
    """The coordinate of an iterator that is a digit of a loop's value."""
    return f"{position} {iterator}"


def references(nest: Nest, view: View, copies: Mapping[Load, int]) -> dict[Load, Reference]:
    """How a statement's accesses of arrays move; `copies` has the copy that serves an access."""
    found: dict[Load, Reference] = {}
    statement = view.statement
    for access in (statement.target, *statement.reads):
        if nest.array(access.array).shape:
            indices = tuple(_index(index, view.places) for index in access.indices)
            written = access == statement.target
            copy = 0 if written else copies.get(access, 0)
            found.setdefault(access, Reference(access.array, indices, written, copy))
    return found


def _index(index: Affine, places: Mapping[str, Affine]) -> tuple[tuple[tuple[str, int], ...], int, int]:
    moved = index.substitute(places)
    terms = tuple((name, c) for name, c in moved.terms if name.partition(" ")[0].isdigit())
    return terms, moved.constant, moved.constant


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
