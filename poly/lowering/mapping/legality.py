"""The legality of sharing loops among the work-items of a group.

Dependences between items are kept by barriers between the parts of a group's loops. There can be no barrier inside a
shared loop, since items run different numbers of its iterations: dependent instances in it must be run by one item, or
be updates of one element that are combined after the loop.
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
    """A dependence between items that share `loop`, restricted to pairs within one run of it; `reason` adds details."""

    dependence: Dependence
    loop: str
    reason: str = ""

    def __str__(self) -> str:
        """`S0[1] must run before S0[2] (…), and different work-items run them in loop i`, with the reason."""
        more = f": {self.reason}" if self.reason else ", where they cannot wait for each other"
        return f"{witness(self.dependence)}, and different work-items run them in loop {self.loop}{more}"


def conflict(nest: Nest, tree: Node) -> Conflict | None:
    """The first dependence that makes the sharing of loops in a tree illegal; None if it is legal."""
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
    """The dependent pairs within the same iteration of all loops around the region."""
    pairs = dependence.relation
    for before in runners.paths[dependence.source]:
        if not isinstance(before, Band):
            continue
        if before.name == region.loop.name:
            break
        pairs = pairs.intersect(before.function(dependence.source).eq_map(before.function(dependence.sink)))
    return pairs
