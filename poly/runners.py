"""Which work-item of its group runs an instance of a statement.

for i:
  for j:  # 32 items            S0[i, j] is run by item j mod 32
    S0
  S1                            S1[i] is run by item 0

Iteration j belongs to the same item wherever the loop starts, so what one loop over j leaves to the next over the same
values stays with one item. That doesn't hold for a loop that counts by more than one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, reduce

import islpy as isl

from poly.instances import loop_values
from poly.nest import Nest
from poly.paths import Path, paths
from poly.tree import Band, Micro, Node, bands, statements, walk
from poly.work_groups import item_loops, micro_items


@dataclass(frozen=True)
class Runners:
    """Those of the statements of `nest` in a tree. Of the arrays `private` each work-item has its own."""

    nest: Nest
    tree: Node
    private: frozenset[str] = frozenset()

    @cached_property
    def paths(self) -> Mapping[str, Path]:
        return paths(self.tree)

    @cached_property
    def together(self) -> frozenset[str]:
        """The statements that all items of a group run: those of microkernels, and those that write private arrays."""
        micros = (node for node in walk(self.tree) if isinstance(node, Micro))
        kernels = {micro.statement for micro in micros if micro_items(micro) is not None}
        own = {s.name for s in self.nest.statements if s.target.array in self.private and s.name in self.paths}
        return frozenset(kernels | {name for name in own if not item_loops(self.paths[name])})

    @cached_property
    def _counted(self) -> Mapping[str, bool]:
        """For each shared loop whether it surely counts by one."""
        return {band.name: self._counts_by_one(band) for band in bands(self.tree) if band.items}

    @cached_property
    def _numbers(self) -> Mapping[str, isl.PwAff | None]:
        known = {statement.name for statement in self.nest.statements}
        return {name: self._number(name) for name in self.paths if name in known}

    def crossing(self, pairs: isl.Map, source: str, sink: str) -> isl.Map:
        """Those pairs of instances `{ source[…] -> sink[…] }` that different items may run."""
        pairs = pairs.subtract(self._same_iteration(pairs, source, sink))
        first, second = self._numbers[source], self._numbers[sink]
        if first is None or second is None or pairs.is_empty():
            return pairs
        return pairs.subtract(first.eq_map(second))

    def _number(self, statement: str) -> isl.PwAff | None:
        """The item as a function of the instance; None where it is not known, or not one alone.

        The innermost shared loop's item counts fastest.
        """
        shared = item_loops(self.paths[statement])
        if statement in self.together or not all(self._counted[band.name] for band in shared):
            return None
        space = isl.LocalSpace.from_space(self.nest.statement(statement).domain.get_space())
        number = isl.PwAff.zero_on_domain(space)
        for band in shared:
            share = band.function(statement).mod_val(isl.Val(band.items))
            number = number.scale_val(isl.Val(band.items)).add(share)
        return number

    def _same_iteration(self, pairs: isl.Map, source: str, sink: str) -> isl.Map:
        """The pairs in one iteration of all loops that items share; none where the statements are not in the same."""
        shared = item_loops(self.paths[source])
        for before, after in zip(self.paths[source], self.paths[sink], strict=False):
            if not shared or not isinstance(before, Band) or not isinstance(after, Band):
                break
            pairs = pairs.intersect(before.function(source).eq_map(after.function(sink)))
            shared = tuple(band for band in shared if band.name != before.name)
        names = [[band.name for band in item_loops(self.paths[statement])] for statement in (source, sink)]
        apart = shared or names[0] != names[1] or {source, sink} & self.together
        return isl.Map.empty(pairs.get_space()) if apart else pairs

    def _counts_by_one(self, band: Band) -> bool:
        """Whether for some values of the loops around, and some sizes, the loop takes two values next to each other."""
        values = [self._values(band, name) for name in statements(band)]
        taken = reduce(isl.Set.union, values)
        last = taken.dim(isl.dim_type.set) - 1
        shift = isl.MultiAff.identity(isl.Space.map_from_set(taken.get_space()))
        further = shift.set_aff(last, shift.get_aff(last).add_constant_val(isl.Val(1)))
        return not taken.apply(isl.Map.from_multi_aff(further)).intersect(taken).is_empty()

    def _values(self, band: Band, statement: str) -> isl.Set:
        """`{ [values of the loops around, the loop's value] }` for one statement."""
        loops = [around for around in self.paths[statement] if isinstance(around, Band)]
        depth = [around.name for around in loops].index(band.name) + 1
        functions = (around.function(statement) for around in loops[:depth])
        return loop_values(self.nest.statement(statement).domain, functions).range()
