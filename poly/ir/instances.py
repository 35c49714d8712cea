"""The instances of a statement, grouped by the values of outer loops: the part of them that is left to inner loops."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import prod

import islpy as isl

from microkernels.cached import cached_property
from poly.ir.budget import kept

KNOWN = 256
"""The answers that are kept of a question that each of a schedule's steps asks again."""


def coordinate(domain: isl.Set, position: int) -> isl.PwAff:
    """The function `{ S[i, j] -> [j] }` on the space of a set."""
    return isl.PwAff.var_on_domain(isl.LocalSpace.from_space(domain.get_space()), isl.dim_type.set, position)


def coordinates(domain: isl.Set, names: Sequence[str]) -> dict[str, isl.PwAff]:
    """The coordinate of each dimension of a set, by its name."""
    return {name: coordinate(domain, position) for position, name in enumerate(names)}


def iterations(domain: isl.Set) -> int:
    """The number of iterations in the bounding box of a domain."""
    return 0 if domain.is_empty() else prod(box_extents(domain))


def box_extents(domain: isl.Set) -> tuple[int, ...]:
    """The extents of the bounding box of a non-empty domain."""
    ends = ((domain.dim_min_val(at), domain.dim_max_val(at)) for at in range(domain.dim(isl.dim_type.set)))
    return tuple(last.to_python() - first.to_python() + 1 for first, last in ends)


def loop_values(domain: isl.Set, functions: Iterable[isl.PwAff]) -> isl.Map:
    """`{ S[i, j] -> [values of the functions] }`."""
    result = isl.Map.from_domain(isl.Set.universe(domain.get_space()))  # each use of the domain adds its locals
    for function in functions:
        result = result.flat_range_product(isl.Map.from_pw_aff(function))
    return result.intersect_domain(domain)


@dataclass(frozen=True)
class Instances:
    """The instances of a statement, grouped by the values of `loops` (name and function of each, outermost first)."""

    name: str
    """The name of the groups' set: `name[loop, …]`."""
    points: isl.Set
    loops: tuple[tuple[str, isl.PwAff], ...]

    @cached_property
    def groups(self) -> isl.Map:
        """`{ S[i, j, k] -> name[i_tile, j_tile] }`."""
        values = loop_values(self.points, (function for _, function in self.loops))
        return values.set_tuple_name(isl.dim_type.out, self.name)

    @cached_property
    def domain(self) -> isl.Set:
        """`{ name[i_tile, j_tile] }`."""
        return self.groups.range().coalesce()

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.loops)

    def values(self, functions: Sequence[isl.PwAff]) -> isl.Map:
        """`{ name[…] -> [values of the functions on the group's points] }`."""
        return self.groups.reverse().apply_range(loop_values(self.points, functions)).coalesce()

    def low(self, function: isl.PwAff) -> isl.PwAff:
        """The least value in each group."""
        return _low(self, function)

    def high(self, function: isl.PwAff) -> isl.PwAff:
        """The greatest value in each group."""
        return self.values([function]).dim_max(0).gist(self.domain).coalesce()

    def count(self, function: isl.PwAff) -> isl.PwAff:
        """The number of integers from the least to the greatest value in each group."""
        return _count(self, function)

    def most(self, function: isl.PwAff) -> isl.PwAff:
        """The greatest count of any group, as a function of the sizes alone."""
        counts = isl.Map.from_pw_aff(_extent(self.values([function])).intersect_domain(self.domain))
        return counts.range().coalesce().dim_max(0)

    def box(self, functions: Sequence[isl.PwAff]) -> isl.Map:
        """`{ name[…] -> [all combinations of values from the functions' least to their greatest] }`."""
        box = isl.Map.from_domain(self.domain)
        for function in functions:
            values = self.values([function])
            from_least = values.apply_range(isl.Map("{ [v] -> [x] : v <= x }"))
            to_greatest = values.apply_range(isl.Map("{ [v] -> [x] : x <= v }"))
            box = box.flat_range_product(from_least.intersect(to_greatest))
        return box

    def is_box(self, functions: Sequence[isl.PwAff]) -> bool:
        """Whether the functions take all combinations of values in their ranges, in each group."""
        return _is_box(self, tuple(functions))


@kept(KNOWN)
def _low(instances: Instances, function: isl.PwAff) -> isl.PwAff:
    return instances.values([function]).dim_min(0).gist(instances.domain).coalesce()


@kept(KNOWN)
def _count(instances: Instances, function: isl.PwAff) -> isl.PwAff:
    return _extent(instances.values([function])).gist(instances.domain).coalesce()


def _extent(values: isl.Map) -> isl.PwAff:
    """The number of integers from the least to the greatest value."""
    return values.dim_max(0).sub(values.dim_min(0)).add_constant_val(isl.Val(1))


@kept(KNOWN)
def span(points: isl.Set, function: isl.PwAff) -> tuple[isl.Val, isl.Val] | None:
    """The least and the greatest value of a function on a set, infinite where sizes bound it; None if it is empty."""
    values = isl.Map.from_pw_aff(function).intersect_domain(points).range()
    return None if values.is_empty() else (values.dim_min_val(0), values.dim_max_val(0))


@kept(KNOWN)
def _is_box(instances: Instances, functions: tuple[isl.PwAff, ...]) -> bool:
    return bool(instances.box(functions).is_subset(instances.values(functions)))
