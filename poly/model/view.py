"""A statement in terms of the loops around it: what each loop counts, and how the accesses depend on the loops.

    for t_tile: for i: for t: for j:              loops   floor(t/16), i + 2*t, t, j
      B[i - 2*t, j] = …                           access  row: i - 2*t, column: j      (in values of the loops)

All accesses are linear in the loops, so the footprint of a part of the loops has a closed form: its extent along each
dimension is one plus the sum of (values of a loop - 1) times its coefficient.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil, prod

import islpy as isl

from codegen.ir.expr import Load
from codegen.ir.integer import Affine, Int, straight
from microkernels.cached import cached_property
from poly.ir.budget import kept
from poly.ir.coordinates import linear
from poly.ir.instances import KNOWN
from poly.ir.nest import Nest, Statement
from poly.ir.tree import Band
from poly.model.footprint import spread

Size = int | str
"""The number of values in a block, or the name of the knob that sets it."""

Sizes = Mapping[str, int]
"""The values of knobs."""


@dataclass(frozen=True)
class EnclosingLoop:
    """One loop around a statement. `value` is what it counts in terms of iterators, `block` the values per block.

    `of` is the position, among the statement's loops, of the loop over the values in a block. For a loop over single
    values, `block` and `of` are None. `across` is the position of a loop over blocks inside it whose number this loop
    adds to its own: one iteration is a diagonal of blocks.
    """

    name: str
    value: Affine
    block: Size | None
    of: int | None
    across: int | None = None


@dataclass(frozen=True)
class Reference:
    """Accesses of one array that differ only by constants, like the shifted reads of a stencil.

    `indices` are the terms of each index in coordinates, with the least and the greatest constant. `copy` is the number
    of the copy that serves them (0 for none).
    """

    array: str
    indices: tuple[tuple[tuple[tuple[str, int], ...], int, int], ...]
    written: bool
    copy: int = 0

    @property
    def key(self) -> tuple[object, ...]:
        """References with the same key can be merged; rows that no loop moves, such as two boundaries, lie apart."""
        return (self.array, self.copy, *(terms or (low, high) for terms, low, high in self.indices))

    def joined(self, other: Reference) -> Reference:
        """This reference merged with another one of the same key."""
        pairs = zip(self.indices, other.indices, strict=True)
        spans = tuple((terms, min(low, a), max(high, b)) for (terms, low, high), (_, a, b) in pairs)
        return Reference(self.array, spans, self.written or other.written, self.copy)


@dataclass(frozen=True)
class View:
    """A statement with its loops, outermost first, the extents of its iterators, and its accesses.

    `determined` maps each loop over single values to the iterators that it determines, starting with loops that depend
    on no other; a flattened loop determines several, the last varying fastest. `places` expresses each iterator in
    coordinates: the value of the loop that determines it, or a digit of that value.
    """

    statement: Statement
    enclosing: tuple[EnclosingLoop, ...]
    extents: Mapping[str, int]
    determined: Mapping[int, tuple[str, ...]]
    places: Mapping[str, Affine]
    _known: dict[tuple[int, frozenset[tuple[str, int]]], list[float]] = field(
        default_factory=dict, compare=False, repr=False
    )

    def widths(self, depth: int, sizes: Sizes) -> list[float]:
        """The number of values of each loop while the outer `depth` loops are fixed; blocks count fractionally."""
        key = depth, frozenset(sizes.items())
        if key not in self._known:
            self._known[key] = self._widths(depth, sizes)
        return self._known[key]

    def _widths(self, depth: int, sizes: Sizes) -> list[float]:
        found = [1.0] * len(self.enclosing)
        for position in self.determined:
            if position >= depth:
                found[position] = self._left(position, found, depth, sizes)
        for position in range(depth, len(self.enclosing)):
            ring = self.enclosing[position]
            if ring.block is not None and ring.of is not None:
                found[position] = self._left(ring.of, found, depth, sizes, ring.value) / number(ring.block, sizes)
        return found

    def counts(self, widths: Sequence[float]) -> dict[str, float]:
        """The number of values of each coordinate, given those of the loops."""
        found: dict[str, float] = {}
        for position, iterators in self.determined.items():
            if len(iterators) == 1:
                found[str(position)] = widths[position]
            else:
                found |= spread(self.digits(position), ceil(widths[position] - 1e-9))
        return found

    def share(self, trips: Sequence[float], sizes: Sizes) -> float:
        """The part of the iterations of the outer loops, which have so many `trips`, in which the statement runs."""
        found = 1.0
        for position, trip in enumerate(trips):
            if position in self.determined or self.enclosing[position].of is not None:
                found *= min(1.0, self.widths(position, sizes)[position] / trip)
        return found

    def values(self, coordinate: str, depth: int, counts: Mapping[str, float]) -> tuple[object, ...]:
        """What determines the values of a coordinate while the outer `depth` loops are fixed.

        It has one value, or so many in blocks of these loops, or from the least ones of its iterators.
        """
        position = int(coordinate.partition(" ")[0])
        if position < depth:
            return (coordinate,)
        blocks = tuple(at for at in range(depth) if self.enclosing[at].of == position)
        return (counts.get(coordinate, 1), blocks or tuple(self._least[name] for name in self.determined[position]))

    @cached_property
    def _least(self) -> dict[str, object]:
        """The least value of each iterator."""
        statement = self.statement
        values = (statement.domain.dim_min_val(at).to_str() for at in range(len(statement.iterators)))
        return dict(zip(statement.iterators, values, strict=True))

    def blocks(self, position: int, sizes: Sizes) -> tuple[int, ...]:
        """The blocks that a loop over single values is cut into, outermost first."""
        enclosing = (ring for ring in self.enclosing if ring.of == position)
        return tuple(number(ring.block, sizes) for ring in enclosing if ring.block is not None)

    def whole(self, position: int) -> float:
        """The total number of values of a loop over single values, apart from shifts."""
        return prod(self.extents[iterator] for iterator in self.determined.get(position, ()))

    def fastest(self, position: int) -> str:
        """The coordinate that changes with each step of a loop over single values."""
        return self.digits(position)[-1][0] if position in self.determined else str(position)

    def digits(self, position: int) -> tuple[tuple[str, int], ...]:
        """The coordinates that a loop over single values counts, each with its extent, the last varying fastest."""
        names = self.determined.get(position, ())
        if len(names) == 1:
            return ((str(position), self.extents[names[0]]),)
        return tuple((_digit(position, name), self.extents[name]) for name in names)

    def _left(
        self, position: int, widths: Sequence[float], depth: int, sizes: Sizes, counted: Affine | None = None
    ) -> float:
        """The number of values of a loop within the fixed blocks around it, or of what a loop over its blocks counts.

        In total, it takes as many values as the iterators it determines, plus the range by which other loops shift it:
        those that shift its blocks, too, within each, and those that skew it inside a block beyond that.
        """
        own, counted = self.determined.get(position, ()), counted or self.enclosing[position].value
        shifts = {name: abs(c) * (widths[self._place(name)] - 1) for name, c in counted.terms if name not in own}
        values = self.whole(position) + sum(shifts.values())
        for ring in self.enclosing[:depth]:
            if ring.of == position and ring.block is not None:
                beyond = sum(shift for name, shift in shifts.items() if not ring.value.coefficient(name))
                values = min(values, number(ring.block, sizes) + beyond)
        return values

    def _place(self, iterator: str) -> int:
        """The position of the loop that determines an iterator."""
        return next(position for position, names in self.determined.items() if iterator in names)


def number(size: Size, sizes: Sizes) -> int:
    """The value of a size."""
    return sizes[size] if isinstance(size, str) else size


def view(statement: Statement, bands: Sequence[Band], knobs: Mapping[str, str]) -> View:
    """The view of a statement below `bands`. `knobs` maps loops over blocks to the knobs that set their size."""
    across = [_across(statement, bands, position) for position in range(len(bands))]
    values = [_counted(statement, function) for function, _ in across]
    known, enclosing = extents(statement), []
    for position, (band, (value, block)) in enumerate(zip(bands, values, strict=True)):
        finer = [(p, _steps(value, p, values, known)) for p in range(position + 1, len(bands))] if block else []
        fixed = band.name not in knobs
        of, steps = next(((p, steps) for p, steps in finer if steps == 1 or (steps and fixed)), (None, 0))
        size = knobs.get(band.name, (block or 0) * steps) if of is not None else None
        enclosing.append(EnclosingLoop(band.name, value, size, of, across[position][1] if of is not None else None))
    determined, places = _solved(enclosing, known)
    return View(statement, tuple(enclosing), known, determined, places)


def _steps(value: Affine, position: int, values: Sequence[tuple[Affine, int | None]], known: Mapping[str, int]) -> int:
    """The steps of a loop over single values for each step of `value`: several if it is flattened, 0 if it is another.

    Either may go down where the other goes up. The loop over `64*i + d` with 64 values of `d` has 64 steps for each of
    `i`, if no other loop counts `d`.
    """
    single, block = values[position]
    if block is None and single in (value, value * -1):
        return 1
    if block is None and _skewed(value, position, values):
        return 1
    digits = () if block is not None else _digits(single, [name for name, _ in single.terms], known)
    outer, others = [name for name, _ in value.terms], (one for p, (one, _) in enumerate(values) if p != position)
    inner = digits[len(outer) :]
    if not inner or set(digits) != {*outer, *inner} or any(one.coefficient(name) for one in others for name in inner):
        return 0
    steps = prod(known[name] for name in inner)
    return steps if all(single.coefficient(name) == c * steps for name, c in value.terms) else 0


def _skewed(value: Affine, position: int, values: Sequence[tuple[Affine, int | None]]) -> bool:
    """Whether a loop counts `value` shifted by single loops beside it, and no loop counts `value` alone."""
    single = values[position][0]
    inside = [one for p, (one, block) in enumerate(values) if block is None and p != position]
    shifts = single - value
    beside = {name for one in inside for name, _ in one.terms if len(one.terms) == 1}
    alone = any(one in (value, value * -1) for one in inside)
    kept = bool(value.terms) and all(single.coefficient(name) == c for name, c in value.terms)
    return kept and not alone and {name for name, _ in shifts.terms} <= beside


def _across(statement: Statement, bands: Sequence[Band], position: int) -> tuple[isl.PwAff, int | None]:
    """The function of a loop without the number of the blocks along whose diagonals it goes, and their position."""
    function = bands[position].function(statement.name)
    if _blocks(function) != 2:
        return function, None
    for inner in range(position + 1, len(bands)):
        along = bands[inner].function(statement.name)
        if _blocks(along) == 1 and _blocks(alone := function.sub(along)) == 1:
            return alone, inner
    return function, None


def _blocks(function: isl.PwAff) -> int:
    """The number of different quotients in a function."""
    return sum(int(aff.dim(isl.dim_type.div)) for _, aff in function.get_pieces())


def _counted(statement: Statement, function: isl.PwAff) -> tuple[Affine, int | None]:
    """What a loop counts in terms of iterators, and the values per block; zero and None if it is not affine."""
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


def _solved(
    enclosing: Sequence[EnclosingLoop], known: Mapping[str, int]
) -> tuple[dict[int, tuple[str, ...]], dict[str, Affine]]:
    """The iterators that each loop determines, and each iterator in coordinates.

    They are solved one by one, from loops with a single unknown iterator or, for flattened loops, only unknown ones.
    """
    determined: dict[int, tuple[str, ...]] = {}
    found: dict[str, Affine] = {}
    left = [position for position, ring in enumerate(enclosing) if ring.of is None]
    while left:
        solvable = ((position, _unknown(enclosing[position].value, found)) for position in left)
        position, names = next(((p, names) for p, names in solvable if len(names) == 1), (left[0], None))
        left.remove(position)
        value = enclosing[position].value
        if names is None:
            digits = _digits(value, _unknown(value, found), known)
            if digits:
                determined[position] = digits
                found |= {name: Affine.name(_digit(position, name)) for name in digits}
        elif abs(value.coefficient(names[0])) == 1:
            rest = value.substitute({names[0]: 0}).substitute(found)
            determined[position] = (names[0],)
            found[names[0]] = (Affine.name(str(position)) - rest) * value.coefficient(names[0])
    return determined, found


def _unknown(value: Affine, known: Mapping[str, object]) -> list[str]:
    return [name for name, _ in value.terms if name not in known]


def _digits(value: Affine, unknown: Sequence[str], known: Mapping[str, int]) -> tuple[str, ...]:
    """The iterators that are the digits of a loop's value, the last varying fastest; empty for any other loop."""
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
    """The references of a statement's array accesses; `copies` has the copy that serves an access."""
    found: dict[Load, Reference] = {}
    statement = view.statement
    for access in (statement.target, *statement.reads):
        if nest.array(access.array).shape:
            indices = tuple(_index(index, view.places) for index in access.indices)
            written = access == statement.target
            copy = 0 if written else copies.get(access, 0)
            found.setdefault(access, Reference(access.array, indices, written, copy))
    return found


def _index(index: Int, places: Mapping[str, Affine]) -> tuple[tuple[tuple[str, int], ...], int, int]:
    moved = straight(index).substitute(places)
    terms = tuple((name, c) for name, c in moved.terms if name.partition(" ")[0].isdigit())
    return terms, moved.constant, moved.constant


def extents(statement: Statement) -> dict[str, int]:
    """The number of values of each iterator with those before it at the middle of their range: half, in a triangle."""
    return dict(zip(statement.iterators, _extents(statement.domain), strict=True))


@kept(KNOWN)
def _extents(domain: isl.Set) -> tuple[int, ...]:
    found: list[int] = []
    for position in range(domain.dim(isl.dim_type.set)):
        low, high = domain.dim_min_val(position), domain.dim_max_val(position)
        if not (low.is_int() and high.is_int()):
            found.append(1)
            continue
        first, last = low.to_python(), high.to_python()
        found.append(last - first + 1)
        middle = domain.lower_bound_val(isl.dim_type.set, position, isl.Val((first + last) // 2))
        domain = domain.fix_val(isl.dim_type.set, position, middle.dim_min_val(position))
    return tuple(found)
