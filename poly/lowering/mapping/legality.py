"""Whether the work-items of a group could share the loops that a tree gives them.

Between two parts of a group's loops there can be a barrier, so dependences between items are kept there. In a shared
loop there can be none, as not every item makes the same number of passes: what depends on each other there must be run
by one item, or be updates of one element that are put together after the loop.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import islpy as isl

from poly.analysis.dependences import Dependence, dependences
from poly.analysis.legality import witness
from poly.ir.nest import Nest
from poly.ir.tree import Band, Node
from poly.lowering.mapping.reductions import Region, obstacle, regions, spread
from poly.lowering.mapping.runners import Runners, plainly_counted


@dataclass(frozen=True)
class Conflict:
    """A dependence between items that share `loop`, cut down to pairs in one run of it; `reason` says more."""

    dependence: Dependence
    loop: str
    reason: str = ""

    def __str__(self) -> str:
        """`S0[1] must run before S0[2] (…), and different work-items run them in loop i`, with what is in the way."""
        more = f": {self.reason}" if self.reason else ", where they cannot wait for each other"
        return f"{witness(self.dependence)}, and different work-items run them in loop {self.loop}{more}"


def conflict(nest: Nest, tree: Node) -> Conflict | None:
    """The first dependence that forbids items to share the loops that they share in a tree."""
    runners = Runners(nest, plainly_counted(nest, tree))
    return next((found for region in regions(runners.tree) for found in _conflicts(runners, region)), None)


def _conflicts(runners: Runners, region: Region) -> Iterator[Conflict]:
    for dependence in dependences(runners.nest).binding:
        if {dependence.source, dependence.sink} <= set(region.statements):
            pairs = runners.crossing(_in_one_run(runners, region, dependence), dependence.source, dependence.sink)
            if not pairs.is_empty():
                yield Conflict(replace(dependence, relation=pairs), region.loop.name)
    for reduction, updates in spread(runners, region):
        reason = obstacle(runners, reduction)
        if reason is not None:
            yield Conflict(updates, region.loop.name, reason)


def _in_one_run(runners: Runners, region: Region, dependence: Dependence) -> isl.Map:
    """The pairs for which all loops around the region stand at the same values."""
    pairs = dependence.relation
    for before in runners.paths[dependence.source]:
        if not isinstance(before, Band):
            continue
        if before.name == region.loop.name:
            break
        pairs = pairs.intersect(before.function(dependence.source).eq_map(before.function(dependence.sink)))
    return pairs
