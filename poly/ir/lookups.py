"""Elements looked up as indices of other arrays, `A[idx[i]]`: their values are checked before a nest runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import islpy as isl
import numpy as np

from codegen.calls.arguments import Fitted
from codegen.errors import ArgumentError
from codegen.ir.expr import Cast, Const, Index, Load, Logic, Predicate, Ternary, Truth, accessed
from codegen.ir.integer import Affine, Int, Linear, Lookup, maximum, minimum
from codegen.names import another
from microkernels.dtypes import DType, i32, i64
from poly.ir.fixing import fix_set
from poly.ir.instances import coordinate
from poly.ir.nest import Array, Nest, Statement
from poly.ir.sets import integer
from poly.ir.tree import Band, Leaf, Node, Sequence


@dataclass(frozen=True)
class IndexRead:
    """An element of an array of indices that a statement looks up as the index `axis` of `into`."""

    statement: Statement
    index: Load
    into: str
    axis: int
    least: Int
    """The least value that is inside of `into`."""
    end: Int
    """One more than the greatest."""

    def range(self, sizes: Mapping[str, int]) -> tuple[int, int]:
        """The least value, and one more than the greatest, at some sizes."""
        return self.least.evaluate(sizes), self.end.evaluate(sizes)

    def positions(self, sizes: Mapping[str, int]) -> isl.Set:
        """The elements that are looked up, without parameters."""
        return fix_set(self.statement.relation(self.index).range(), sizes)


def index_reads(nest: Nest) -> tuple[IndexRead, ...]:
    """All elements that a nest looks up as indices."""
    return tuple(dict.fromkeys(read for statement in nest.statements for read in _of(statement)))


def _of(statement: Statement) -> Iterator[IndexRead]:
    for load in dict.fromkeys(accessed(statement.expr)):
        for axis, index in enumerate(load.indices):
            for found, sign in ((atom, sign) for atom, sign in index.terms if isinstance(atom, Lookup)):
                rest = index - Linear(((found, sign),))
                own = Load(found.array, found.indices)
                least, end = (-rest, found.extent - rest) if sign > 0 else (rest - found.extent + 1, rest + 1)
                yield IndexRead(statement, own, load.array, axis, least, end)


def index_ranges(nest: Nest, sizes: Mapping[str, int]) -> tuple[tuple[str, int, int], ...]:
    """The arrays of indices, with the least value and the end of `index_values` at some sizes."""
    known = {**dict(nest.fixed), **sizes}
    return tuple((name, low.evaluate(known), end.evaluate(known)) for name, (low, end) in index_values(nest).items())


def index_values(nest: Nest) -> dict[str, tuple[Int, Int]]:
    """The arrays of indices, with the least value of their type that is inside of all they index, and the end."""
    found: dict[str, tuple[Int, Int]] = {}
    for read in index_reads(nest):
        name, ends = read.index.array, (read.least, read.end)
        dtype = nest.array(name).dtype
        if name not in found and dtype.size < i32.size:
            whole = np.iinfo(dtype.numpy_name)
            found[name] = Linear.of(int(whole.min)), Linear.of(int(whole.max) + 1)
        least, end = found.get(name, ends)
        found[name] = maximum(least, ends[0]), minimum(end, ends[1])
    return found


def checking(nest: Nest) -> Nest | None:
    """Loops that look whether an element looked up is outside of what it indexes; None if that can't be.

    They read the arrays of indices, and set the element of an array of their own, the last one, to 1 if one is.
    """
    wrong = Array(another("wrong", _names(nest)), i32, (Affine.of(1),))
    tested = [(read, test) for read in index_reads(nest) if (test := _outside(nest, read)) is not None]
    if not tested:
        return None
    made = [_checked(nest, read, test, f"S{at}", wrong) for at, (read, test) in enumerate(tested)]
    named = {read.index.array for read, _ in tested}
    return replace(
        nest,
        name=f"{nest.name}_lookups",
        arrays=(*(array for array in nest.arrays if array.name in named), wrong),
        statements=tuple(statement for statement, _ in made),
        tree=Sequence(tuple(node for _, node in made)) if len(made) > 1 else made[0][1],
        opened="",
    )


def _outside(nest: Nest, read: IndexRead) -> Truth | None:
    """Whether the element that is looked up is outside; None if its type has no such value."""
    array = nest.array(read.index.array)
    value = Load(array.name, tuple(map(Linear.name, _places(nest, read))))
    whole = np.iinfo(array.dtype.numpy_name)
    last = read.end - 1
    tests: list[Truth] = []
    if read.least.number is None or read.least.number > whole.min:
        tests.append(_compared(value, "<", read.least, ">=", whole.min, array.dtype))
    if last.number is None or last.number < whole.max:
        tests.append(_compared(value, ">", last, "<=", whole.max, array.dtype))
    return Logic("or", tuple(tests)) if len(tests) > 1 else next(iter(tests), None)


def _places(nest: Nest, read: IndexRead) -> tuple[str, ...]:
    """The iterators that count the dimensions of an array of indices."""
    return tuple(another(f"at{at}", _names(nest)) for at in range(len(read.index.indices)))


def _names(nest: Nest) -> frozenset[str]:
    return frozenset({*nest.integers, *(array.name for array in nest.arrays)})


def _checked(nest: Nest, read: IndexRead, test: Truth, name: str, wrong: Array) -> tuple[Statement, Node]:
    """The statement and the loops that look at what one access looks up."""
    domain = read.statement.relation(read.index).range().intersect_params(nest.context).set_tuple_name(name)
    iterators = _places(nest, read)
    node: Node = Leaf(name)
    for at, iterator in reversed(list(enumerate(iterators))):
        node = Band(iterator, ((name, coordinate(domain, at)),), node)
    target = Load(wrong.name, (Linear(),))
    return Statement(name, iterators, domain, target, "max", Ternary(test, Const(1), Const(0))), node


def _compared(value: Load, op: str, limit: Int, inside: str, end: int, dtype: DType) -> Truth:
    """A comparison in the value's own type, which compilers give the most lanes, if the limit is inside of that."""
    if limit.number is not None:
        return Predicate(op, value, Const(limit.number))
    own = Predicate(op, value, Cast(dtype, Index(limit)))
    return own if dtype.size >= i64.size else Logic("and", (own, Predicate(inside, Index(limit), Const(int(end)))))


def check_indices(nest: Nest, reads: tuple[IndexRead, ...], given: Fitted) -> None:
    """Check the values of arrays of indices.

    Raises:
        ArgumentError: a value that is looked up is outside of the array that it is an index of.
    """
    sizes = {**dict(nest.fixed), **given.sizes}
    for read in reads:
        values = given.values[read.index.array]
        if not _are_inside(values, *read.range(sizes)):
            _check_each(nest, read, values, sizes)


def are_inside(reads: tuple[tuple[int, str, int, int], ...], arguments: tuple[Any, ...]) -> bool:
    """Whether arguments are sure to have indices inside: each at its position, with its type, least value and end."""
    return all(
        place < len(arguments)
        and type(values := arguments[place]) is np.ndarray
        and values.dtype.name == dtype
        and _are_inside(values, low, end)
        for place, dtype, low, end in reads
    )


def _are_inside(values: np.ndarray[Any, Any], low: int, end: int) -> bool:
    """Whether all values are at least `low` and less than `end`: in one pass where negative ones are large unsigned."""
    if not values.size:
        return True
    if low == 0 and end <= np.iinfo(values.dtype).max:
        return bool(values.view(f"u{values.itemsize}").max() < end)
    return bool(values.min() >= low and values.max() < end)


def _check_each(nest: Nest, read: IndexRead, values: np.ndarray[Any, Any], sizes: Mapping[str, int]) -> None:
    low, end = read.range(sizes)
    used = read.positions(sizes)
    wrong = np.argwhere((values < low) | (values >= end))
    for place in wrong[_near(used.remove_divs(), wrong)]:
        if _has(used, place):
            at = ", ".join(map(str, place))
            raise ArgumentError(
                f"{nest.name}: {read.index.array}[{at}] is {values[tuple(place)]}, and must be from {low} "
                f"to {end - 1}, since it is looked up as index {read.axis} of {read.into} at "
                f"{read.statement.place}: {read.statement.text}"
            )


def _near(points: isl.Set, places: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Which rows of `places` are points of a set without existentials: all at once, since there may be millions."""
    found, axes = np.zeros(len(places), bool), range(places.shape[1])
    for piece in points.get_basic_sets():
        inside = np.ones(len(places), bool)
        for constraint in piece.get_constraints():
            coefficients = [integer(constraint.get_coefficient_val(isl.dim_type.set, at)) for at in axes]
            value = places @ np.array(coefficients) + integer(constraint.get_constant_val())
            inside &= value == 0 if constraint.is_equality() else value >= 0
        found |= inside
    return found


def _has(points: isl.Set, place: np.ndarray[Any, Any]) -> bool:
    for at, value in enumerate(place):
        points = points.fix_val(isl.dim_type.set, at, isl.Val(int(value)))
    return not points.is_empty()
