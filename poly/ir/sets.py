"""Sets and functions of sizes, iterators and array elements, built from spaces.

Names are never parsed in isl's notation: in `[N] -> { A[d0] : 0 <= d0 < N }` a size called `d0` would be the index.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce

import islpy as isl

from codegen.ir.integer import Affine, Int, Op, lookups
from poly.ir.budget import TooCostly, limited

PARAM, SET, IN, OUT = isl.dim_type.param, isl.dim_type.set, isl.dim_type.in_, isl.dim_type.out

LEAST = 50_000
"""Operations that isl may use to find the first point of a set."""


def number(value: int) -> isl.Val:
    """An integer of any size, as a value of isl, whose own constructor takes 64 bits."""
    return isl.Val(str(value))


def integer(value: isl.Val) -> int:
    """An integer of isl's as Python's."""
    return int(value.to_python())


def set_space(sizes: Sequence[str], rank: int, name: str = "") -> isl.Space:
    """`[M, N] -> { name[·, ·] }`, with `rank` dimensions."""
    space = isl.Space.set_alloc(isl.DEFAULT_CONTEXT, len(sizes), rank)
    space = reduce(lambda made, at: made.set_dim_name(PARAM, at, sizes[at]), range(len(sizes)), space)
    return space.set_tuple_name(SET, name) if name else space


def parameters(space: isl.Space | isl.Set | isl.PwAff) -> tuple[str, ...]:
    """The names of the parameters, in order."""
    return tuple(space.get_dim_name(PARAM, at) or "" for at in range(space.dim(PARAM)))


def own_names(what: str, count: int) -> tuple[str, ...]:
    """Names for the dimensions of an internal set, such as `A_box'0`, which differ from all that a user can write."""
    return tuple(f"{what}'{at}" for at in range(count))


def function(space: isl.Space, value: Int, iterators: Sequence[str] = ()) -> isl.Aff:
    """An expression of names and quotients, rounded down, as a function on a space.

    The space's dimensions are the iterators, and its parameters the sizes.
    """
    places = {name: (PARAM, at) for at, name in enumerate(parameters(space))}
    places |= {name: (IN, at) for at, name in enumerate(iterators)}
    made = isl.Aff.zero_on_domain(isl.LocalSpace.from_space(space)).set_constant_val(number(value.constant))
    quotients = []
    for atom, coefficient in value.terms:
        if isinstance(atom, str):
            made = made.set_coefficient_val(*places[atom], number(coefficient))
        else:
            assert isinstance(atom, Op) and atom.name == "floordiv", "a nest has no other operations"
            dividend, divisor = atom.args
            whole = function(space, dividend, iterators).scale_down_val(number(divisor.constant)).floor()
            quotients.append(whole.scale_val(number(coefficient)))
    return reduce(isl.Aff.add, quotients, made)


def index(space: isl.Space, position: int) -> isl.Aff:
    """A dimension of a space as a function on it."""
    return isl.Aff.var_on_domain(isl.LocalSpace.from_space(space), SET, position)


def conjunction(conditions: Iterable[isl.Set], space: isl.Space) -> isl.Set:
    """The points that satisfy all conditions; the universe if there are none."""
    return reduce(isl.Set.intersect, conditions, isl.Set.universe(space))


def box(sizes: Sequence[str], name: str, extents: Sequence[Affine]) -> isl.Set:
    """`{ A[x, y] : 0 <= x < M and 0 <= y < N }`."""
    space = set_space(sizes, len(extents), name)
    sides = [
        side
        for at, extent in enumerate(extents)
        for side in (zero(space).le_set(index(space, at)), index(space, at).lt_set(function(space, extent)))
    ]
    return conjunction(sides, space)


def zero(space: isl.Space) -> isl.Aff:
    """The function 0 on a space."""
    return function(space, Affine())


def at_least(sizes: Sequence[str], values: Iterable[Affine], least: int) -> isl.Set:
    """`[M, N] -> { : M >= 1 and N >= 1 }`: the sizes for which all values are at least `least`."""
    space = set_space(sizes, 0)
    bound = function(space, Affine.of(least))
    return conjunction((bound.le_set(function(space, value)) for value in values), space).params()


def first_point(points: isl.Set) -> tuple[int, ...]:
    """The first point of a non-empty set without parameters; any point if finding the first takes too much work.

    For some sets with quotients isl finds no lexicographic minimum, as if they were empty, but it finds a sample point.
    """
    try:
        with limited(LEAST):
            first = points.lexmin()
            found = points if first.is_empty() else first
    except TooCostly:
        found = points
    point = found.sample_point()
    return tuple(point.get_coordinate_val(isl.dim_type.set, d).to_python() for d in range(points.dim(isl.dim_type.set)))


def access_map(domain: isl.Set, iterators: Sequence[str], array: str, indices: Sequence[Int]) -> isl.Map:
    """`{ S[i, k] -> A[i, k] }` on a domain; an index that is looked up may have any value inside of its dimension."""
    space = domain.get_space()
    open_ = {at: found[0].extent for at, value in enumerate(indices) if (found := lookups(value))}
    values = [zero(space) if at in open_ else function(space, value, iterators) for at, value in enumerate(indices)]
    made = mapped(space, array, values)
    for at, extent in open_.items():
        made = made.project_out(OUT, at, 1).insert_dims(OUT, at, 1).set_tuple_name(OUT, array)
        within = made.get_space().range()
        own = index(within, at)
        made = made.intersect_range(zero(within).le_set(own).intersect(own.lt_set(function(within, extent))))
    return made.intersect_domain(domain)


def mapped(space: isl.Space, name: str, functions: Sequence[isl.Aff]) -> isl.Map:
    """`{ domain -> name[values of the functions] }`, for functions on the domain's `space`."""
    target = isl.Space.map_from_domain_and_range(space, set_space(parameters(space), len(functions), name))
    values = isl.MultiAff.zero(target)
    for at, value in enumerate(functions):
        values = values.set_aff(at, value)
    return isl.Map.from_multi_aff(values)


def for_any_sizes(domain: isl.Set) -> isl.Set:
    """The points that are in the set for some values of the parameters, for all values of the parameters."""
    space, count = domain.get_space(), domain.dim(isl.dim_type.param)
    return domain.project_out(isl.dim_type.param, 0, count).align_params(space)
