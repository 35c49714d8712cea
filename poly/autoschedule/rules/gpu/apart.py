"""Sums of few results on a GPU: groups sum blocks of iterations each, which a second launch adds up.

for i:                               for p:  # groups
  s[0] += x[i]                         S0_sums[p] = 0
                      ->               for i in block p:  # items
                                         S0_sums[p] += x[i]
                                     for p:  # items of one group
                                       s[0] += S0_sums[p]

The blocks and the order in which a group adds them up do not depend on the run, so results are the same each time.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil, prod

from codegen.ir.expr import loads
from microkernels.opencl_isa import DeviceISA
from poly.analysis.legality import is_parallel
from poly.autoschedule.rules.attempt import attempt
from poly.autoschedule.rules.gpu.items import LOCKSTEP
from poly.autoschedule.rules.gpu.parallel import parallel_first
from poly.autoschedule.rules.gpu.points import FULL
from poly.autoschedule.rules.isolation import distributed
from poly.ir.paths import loops_around, paths
from poly.ir.strides import extent, moved_iterator, summed_iterator
from poly.ir.tree import Leaf, walk
from poly.model.gpu import RESIDENT
from poly.schedules.schedule import Schedule
from poly.schedules.steps import Fuse, Order, RFactor, Split

LEAST = 1 << 17
"""The least number of terms of a sum that is worth two more launches: what one group adds up meanwhile."""


def summed_apart(made: Schedule, isa: DeviceISA) -> Iterator[Schedule]:
    """The schedules in which sums with too few results to keep the device busy are summed in blocks.

    In the first, the blocks of a sum are enough groups; in the second, enough items that each add up a block.
    """
    done = {added_up(made, step.statement) for step in made.steps if isinstance(step, RFactor)}
    names = [node.statement for node in walk(made.tree) if isinstance(node, Leaf) and node.statement not in done]
    for wanted in (FULL * isa.units, 2 * RESIDENT * isa.units):
        apart = made
        for name in names:
            apart = _in_blocks(apart, name, wanted) or apart
        if apart is not made:
            yield apart


def _in_blocks(made: Schedule, name: str, wanted: int) -> Schedule | None:
    """The schedule with one sum in so many blocks that there are `wanted` sums; None if it has as many, or is none."""
    statement = made.nest.statement(name)
    if statement.op != "+" or any(band.items or band.parallel for band in loops_around(made.tree, name)):
        return None
    alone = distributed(made, statement)
    if alone is None:
        return None
    nest, around, path = alone.nest, loops_around(alone.tree, name), paths(alone.tree)[name]
    lengths = {band.name: extent(nest, band) for band in around}
    results = [band.name for band in around if is_parallel(nest, alone.tree, band.name)]
    if None in lengths.values() or prod(length or 1 for length in lengths.values()) < LEAST:
        return None
    blocks = ceil(wanted / prod(lengths[loop] or 1 for loop in results))
    moved = {band.name: summed_iterator(statement, path, band.name) for band in around if band.name not in results}
    sums = {loop: i for loop, i in moved.items() if i}
    long = next((loop for loop in sums if (lengths[loop] or 1) >= blocks), None)
    loop = long or max(sums, key=lambda one: lengths[one] or 1, default=None)
    if loop is None or blocks < 2:
        return None
    size = ceil((lengths[loop] or 1) / blocks)
    size = size if size < LOCKSTEP else ceil(size / LOCKSTEP) * LOCKSTEP
    cut = attempt(alone, [RFactor(name, sums[loop], size), Split(((loop, size),))])
    first = cut and parallel_first(cut, loops_around(cut.tree, name)[0])
    return begun_together(begun_together(first[0], name), added_up(first[0], name)) if first else None


def begun_together(made: Schedule, name: str) -> Schedule:
    """The schedule in which the elements of a sum are set right before it, in the loops over them, if they are at all.

    Otherwise that takes a launch of its own.
    """
    nest, target = made.nest, made.nest.statement(name).target
    before = nest.statements[: nest.statements.index(nest.statement(name))]
    first = next((s.name for s in reversed(before) if s.target.array == target.array and s.op == "="), None)
    if first is None:
        return made
    pairs = [(a, b) for a, b in zip(_loops_of(made, first), _loops_of(made, name), strict=True) if a and b]
    around = [band.name for band in loops_around(made.tree, name)]
    pairs.sort(key=lambda pair: around.index(pair[1]))
    steps = [
        Order((*own, *(band.name for band in loops_around(made.tree, s) if band.name not in own)))
        for s, own in zip((first, name), zip(*pairs, strict=True), strict=False)
    ]
    return (attempt(made, [*steps, Fuse(name, first, at=pairs[-1][1])]) if pairs else None) or made


def _loops_of(made: Schedule, name: str) -> list[str | None]:
    """For each index of a statement's target the loop that counts it, or the blocks of which it is the number."""
    statement, path = made.nest.statement(name), paths(made.tree)[name]
    moved = {moved_iterator(statement, path, band.name): band.name for band in loops_around(made.tree, name)}
    return [moved.get(str(index) if index.is_affine else None) for index in statement.target.indices]


def added_up(made: Schedule, name: str) -> str:
    """The statement that adds the sums of blocks to the elements that they are sums of."""
    own = made.nest.statement(name).target.array
    return next(
        s.name for s in made.nest.statements if s.op == "+" and any(load.array == own for load in loads(s.expr))
    )
