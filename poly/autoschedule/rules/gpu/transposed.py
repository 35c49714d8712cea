"""Transposed accesses go through local memory, so that reads and writes both follow lines of memory.

for i: for j:                 for j_tile: for i_tile:  # groups
  B[j, i] = A[i, j]             pack A: read along j, into rows one element further apart
                        ->      for j:  # 8 items
                                  for i:  # 32 items
                                    B[j, i] = A_box[i, j]
"""

from __future__ import annotations

from microkernels.opencl_isa import DeviceISA
from poly.autoschedule.rules.attempt import attempt
from poly.autoschedule.rules.gpu.fit import fits
from poly.autoschedule.rules.gpu.items import GroupShape
from poly.ir.edits import find_loop
from poly.ir.nest import Statement
from poly.ir.paths import paths
from poly.ir.strides import extent, lines, moved_iterator
from poly.ir.tree import Leaf
from poly.ir.work_groups import MOST_GROUP_LOOPS
from poly.schedules.schedule import Schedule
from poly.schedules.steps import Groups, Items, Order, Pack, Step, Tile


def by_lines(schedule: Schedule, parallel: tuple[str, ...], isa: DeviceISA, shape: GroupShape) -> Schedule | None:
    """The schedule of a single statement in the loops `parallel`, in square tiles transposed in local memory.

    None if all accesses are contiguous along one loop, or the loops are too short or too many.
    """
    leaf = find_loop(schedule.tree, parallel[-1]).body
    if not isinstance(leaf, Leaf) or not 2 <= len(parallel) <= MOST_GROUP_LOOPS:
        return None
    statement, path = schedule.nest.statement(leaf.statement), paths(schedule.tree)[leaf.statement]
    moved = {name: moved_iterator(statement, path, name) for name in parallel}
    written = next((n for n, i in moved.items() if i and lines(schedule.nest, statement.target, i) == 1), None)
    if written is None:
        return None
    for name, iterator in moved.items():
        turned = _read_along(schedule, statement, iterator, moved[written]) if name != written and iterator else ()
        short = any(
            (extent(schedule.nest, find_loop(schedule.tree, n)) or shape.side) < shape.side for n in (name, written)
        )
        if turned and not short:
            return _turned(schedule, parallel, (name, written), turned, isa, shape)
    return None


def _read_along(schedule: Schedule, statement: Statement, along: str, across: str | None) -> tuple[str, ...]:
    """The arrays that the statement reads contiguously along `along`, and strided along `across`."""
    nest = schedule.nest
    found = (
        load.array
        for load in statement.reads
        if lines(nest, load, along) == 1 and across is not None and lines(nest, load, across) > 1
    )
    return tuple(dict.fromkeys(found))


def _turned(
    schedule: Schedule,
    parallel: tuple[str, ...],
    pair: tuple[str, str],
    arrays: tuple[str, ...],
    isa: DeviceISA,
    shape: GroupShape,
) -> Schedule | None:
    read, written = pair
    others = tuple(name for name in parallel if name not in pair)
    ordered = (*others, read, written)
    tiles = (f"{read}_tile", f"{written}_tile")
    steps: list[Step] = [
        *([Order(ordered)] if ordered != parallel else []),
        Tile(((read, shape.side), (written, shape.side))),
        Groups((*others, *tiles)),
        Items(((read, max(1, shape.items // shape.side)), (written, shape.side))),
        *(Pack(array, tiles[-1], memory="local", pad=1) for array in arrays),
    ]
    made = attempt(schedule, steps)
    return made if made is not None and fits(made, isa) else None
