"""Merge perfectly nested loops into one."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import islpy as isl

from poly.errors import ScheduleError
from poly.ir.edits import edit, find_loop, fresh
from poly.ir.nest import Nest
from poly.ir.tree import Band, Node
from poly.schedules.steps.base import Arguments
from poly.schedules.steps.order import nested


@dataclass(frozen=True)
class Flatten:
    """Loop `p` and, directly inside it, loop `q` with 28 iterations become the loop `p_q` over `28*p + q`."""

    loops: tuple[str, ...]
    name: ClassVar[str] = "flatten"
    reorders: ClassVar[bool] = False

    def apply(self, nest: Nest, tree: Node) -> Node:
        if len(self.loops) < 2:
            raise ScheduleError("flatten needs two loops or more, outermost first.")
        joined = find_loop(tree, self.loops[0])
        nested(tree, self.loops)
        for name in self.loops[1:]:
            inner = find_loop(tree, name)
            flat = _joined(nest, joined, inner)
            tree = edit(tree, joined, flat)
            joined = flat
        return edit(tree, joined, replace(joined, name=fresh(tree, "_".join(self.loops))))

    def arguments(self) -> Arguments:
        return self.loops, {}


def _joined(nest: Nest, outer: Band, inner: Band) -> Band:
    if outer.body is not inner:
        raise ScheduleError(f"loop {inner.name} is not directly in loop {outer.name}: nothing may stand between them.")
    shared = outer if outer.items else inner
    if shared.items:
        raise ScheduleError(f"work-items share loop {shared.name}. Remedy: flatten first, then items.")
    first, extent = _range(nest, inner)
    for name, function in inner.functions:
        _check_rectangular(nest, name, outer.function(name), function, inner.name, outer.name)
    functions = tuple(
        (name, outer.function(name).scale_val(isl.Val(extent)).add(function).add_constant_val(isl.Val(-first)))
        for name, function in inner.functions
    )
    return replace(
        inner,
        name=outer.name,
        functions=functions,
        parallel=outer.parallel and inner.parallel,
        group=outer.group and inner.group,
    )


def _range(nest: Nest, band: Band) -> tuple[int, int]:
    """The first value of a loop and the number of its values.

    Raises:
        ScheduleError: they depend on a size.
    """
    ends = []
    for name, function in band.functions:
        values = isl.Map.from_pw_aff(function).intersect_domain(nest.statement(name).domain).range()
        ends += [values.dim_min_val(0), values.dim_max_val(0)]
    if not all(end.is_int() for end in ends):
        sizes = ", ".join(f"{size!r}: …" for size in nest.sizes)
        raise ScheduleError(
            f"the extent of loop {band.name} is not known. Remedy: fix the sizes first: nest.with_sizes({{{sizes}}})."
        )
    numbers = [end.to_python() for end in ends]
    return min(numbers), max(numbers) - min(numbers) + 1


def _check_rectangular(
    nest: Nest, name: str, outer: isl.PwAff, inner: isl.PwAff, inner_name: str, outer_name: str
) -> None:
    """Refuse an inner loop whose range depends on the outer loop."""
    domain = nest.statement(name).domain
    first = isl.Map.from_pw_aff(outer).intersect_domain(domain).range()
    second = isl.Map.from_pw_aff(inner).intersect_domain(domain).range()
    pairs = isl.Map.from_pw_aff(outer).reverse().intersect_range(domain).apply_range(isl.Map.from_pw_aff(inner))
    if not pairs.is_equal(isl.Map.from_domain_and_range(first, second)):
        raise ScheduleError(
            f"the range of loop {inner_name} changes with loop {outer_name}: only rectangular loops can be flattened."
        )
