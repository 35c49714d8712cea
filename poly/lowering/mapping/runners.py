"""The work-item of a group that runs an instance of a statement.

for i:
  for j:  # 32 items            S0[i, j] is run by item j mod 32
    S0
  S1                            S1[i] is run by item 0

Iteration j belongs to the same item wherever the loop starts, so that values passed from one loop over j to the next
stay with one item. A loop over 1, 4, 7, … is treated as one over 0, 1, 2, …, so that no item is left idle.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial, reduce

import islpy as isl

from microkernels.cached import cached_property
from poly.ir.budget import TooCostly, limited
from poly.ir.edits import edit, map_functions
from poly.ir.instances import loop_values
from poly.ir.nest import Nest
from poly.ir.paths import Path, loops_outside, paths
from poly.ir.tree import Band, Micro, Node, bands, statements, walk
from poly.ir.work_groups import item_loops

CROSSING = 3_000_000
"""Operations that isl may use for the pairs of two statements that different items run: about a second."""


def plainly_counted(nest: Nest, tree: Node) -> Node:
    """The tree with shared loops that count without strides; the order is unchanged.

    A loop with a stride of 3 counts the number of the iteration instead. One of a single value, for which isl generates
    no loop, has the value 0.
    """
    for name in [band.name for band in bands(tree) if band.items]:
        band = next(band for band in bands(tree) if band.name == name)
        values = _values(nest, tree, band)
        stride = int(values.wrap().flatten().get_stride(values.dim(isl.dim_type.in_)).to_python())
        if values.is_single_valued():
            tree = edit(tree, band, map_functions(band, _zero))
        elif stride > 1:
            tree = edit(tree, band, map_functions(band, partial(_quotient, stride)))
    return tree


def _zero(_: str, function: isl.PwAff) -> isl.PwAff:
    return isl.PwAff.zero_on_domain(isl.LocalSpace.from_space(function.get_domain_space()))


def _quotient(divisor: int, _: str, function: isl.PwAff) -> isl.PwAff:
    return function.scale_down_val(isl.Val(divisor)).floor()


def _values(nest: Nest, tree: Node, band: Band) -> isl.Map:
    """`{ [loops around] -> [value of the loop] }`."""
    found = paths(tree)
    maps = []
    for name in statements(band):
        domain = nest.statement(name).domain.intersect_params(nest.context)
        outer = loop_values(domain, (loop.function(name) for loop in loops_outside(found[name], band.name)))
        maps.append(outer.reverse().apply_range(loop_values(domain, (band.function(name),))))
    return reduce(isl.Map.union, maps)


@dataclass(frozen=True)
class Runners:
    """The items that run the statements of `nest` in a tree; each work-item has its own copy of `private` arrays."""

    nest: Nest
    tree: Node
    private: frozenset[str] = frozenset()

    @cached_property
    def paths(self) -> Mapping[str, Path]:
        return paths(self.tree)

    @cached_property
    def together(self) -> frozenset[str]:
        """The statements that all items run: microkernels', and writes of private arrays outside shared loops."""
        micros = (node for node in walk(self.tree) if isinstance(node, Micro))
        kernels = {micro.statement for micro in micros if micro.kernel.by_group}
        own = {s.name for s in self.nest.statements if s.target.array in self.private and s.name in self.paths}
        return frozenset(kernels | {name for name in own if not item_loops(self.paths[name])})

    @cached_property
    def _numbers(self) -> Mapping[str, isl.PwAff | None]:
        known = {statement.name for statement in self.nest.statements}
        return {name: self._number(name) for name in self.paths if name in known}

    def crossing(self, pairs: isl.Map, source: str, sink: str) -> isl.Map:
        """The pairs `{ source[…] -> sink[…] }` that different items may run; all pairs if isl takes too much work."""
        try:
            with limited(CROSSING):
                return self._crossing(pairs, source, sink)
        except TooCostly:
            return pairs

    def _crossing(self, pairs: isl.Map, source: str, sink: str) -> isl.Map:
        pairs = pairs.subtract(self._same_iteration(pairs, source, sink))
        first, second = self._numbers[source], self._numbers[sink]
        if first is None or second is None or pairs.is_empty():
            return pairs
        return pairs.subtract(first.eq_map(second))

    def _number(self, statement: str) -> isl.PwAff | None:
        """The item's number as a function of the instance; None if all items of the group run it.

        The innermost shared loop's share varies fastest.
        """
        shared = item_loops(self.paths[statement])
        if statement in self.together:
            return None
        space = isl.LocalSpace.from_space(self.nest.statement(statement).domain.get_space())
        number = isl.PwAff.zero_on_domain(space)
        for band in shared:
            share = band.function(statement).mod_val(isl.Val(band.items))
            number = number.scale_val(isl.Val(band.items)).add(share)
        return number

    def _same_iteration(self, pairs: isl.Map, source: str, sink: str) -> isl.Map:
        """The pairs within one iteration of all shared loops; empty if the statements are not in the same ones."""
        shared = item_loops(self.paths[source])
        for before, after in zip(self.paths[source], self.paths[sink], strict=False):
            if not shared or not isinstance(before, Band) or not isinstance(after, Band):
                break
            pairs = pairs.intersect(before.function(source).eq_map(after.function(sink)))
            shared = tuple(band for band in shared if band.name != before.name)
        names = [[band.name for band in item_loops(self.paths[statement])] for statement in (source, sink)]
        apart = shared or names[0] != names[1] or {source, sink} & self.together
        return isl.Map.empty(pairs.get_space()) if apart else pairs
