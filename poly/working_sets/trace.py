"""The trace of a schedule: everything that it touches, and when.

The time of an instance is a vector as in ir/paths.py, with one more position for each copy: the copy is made at 0, and
its users run at 1. Scalars do not count as memory. Instances that a microkernel takes over, such as those that set its
start value, touch nothing of their own.

The loops absorbed by a microkernel are taken in the order of the tree (rows, columns, reduction). The kernel actually
uses another order, but reuse within a call is in registers and says little about caches.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce

import islpy as isl

from codegen.ir.expr import Load, loads
from poly.errors import ScheduleError
from poly.ir.fixing import fix_tree
from poly.ir.nest import Nest, Statement
from poly.ir.tree import Band, Copy, Leaf, Micro, Node, statements
from poly.ir.tree import Sequence as InOrder
from poly.lowering.calls import absorbed, untaken
from poly.schedules.schedule import Schedule
from poly.working_sets.copies import copy
from poly.working_sets.memory import Memory, Touch, Trace

IN, OUT = isl.dim_type.in_, isl.dim_type.out


def trace(schedule: Schedule, sizes: Mapping[str, int] | None = None) -> Trace:
    """The trace of a schedule, for given values of its open sizes.

    Raises:
        SpecError: an unknown size, or an invalid value.
        ScheduleError: a size is left open.
    """
    nest = schedule.nest.with_sizes(sizes or {})
    if nest.sizes:
        wanted = ", ".join(f"{size}=…" for size in nest.sizes)
        raise ScheduleError(f"the working sets of {nest.name} depend on its sizes: give {wanted}.")
    collector = _Collector(nest, fix_tree(schedule.tree, sizes or {}))
    length = max((touch.elements.dim(IN) for touch in collector.touches), default=0)
    return Trace(tuple(_padded(touch, length) for touch in collector.touches), tuple(collector.memories), length)


def _padded(touch: Touch, length: int) -> Touch:
    """The touch with times padded to a given length."""
    depth = touch.elements.dim(IN)

    def longer(relation: isl.Map) -> isl.Map:
        relation = relation.insert_dims(IN, depth, length - depth)
        for d in range(depth, length):
            relation = relation.fix_val(IN, d, isl.Val(0))
        return relation

    loops = (*touch.loops, *(None,) * (length - depth))
    return replace(touch, elements=longer(touch.elements), instances=longer(touch.instances), loops=loops)


@dataclass(frozen=True)
class _Place:
    """The loops above a node (None: positions in sequences), and the time so far of each statement below it."""

    loops: tuple[str | None, ...]
    times: Mapping[str, isl.Map]

    def loop(self, band: Band) -> _Place:
        """The place inside a loop."""
        times = {
            name: time.flat_range_product(isl.Map.from_pw_aff(band.function(name))) for name, time in self.times.items()
        }
        return _Place((*self.loops, band.name), times)

    def part(self, index: int, node: Node) -> _Place:
        """The place inside a part of a sequence."""
        depth, below = len(self.loops), statements(node)
        times = {
            name: time.insert_dims(OUT, depth, 1).fix_val(OUT, depth, isl.Val(index))
            for name, time in self.times.items()
            if name in below
        }
        return _Place((*self.loops, None), times)


class _Collector:
    """Walks a tree and collects touches and memories."""

    def __init__(self, nest: Nest, tree: Node) -> None:
        self.nest = nest
        self.memories = [
            Memory(array.name, array.dtype.size, tuple(extent.constant for extent in array.shape))
            for array in nest.arrays
            if array.kind != "scalar"
        ]
        below = statements(tree)
        times = {s.name: isl.Map.from_domain(untaken(nest, tree, s.name)) for s in nest.statements if s.name in below}
        self.touches = self._visit(tree, _Place((), times))

    def _visit(self, node: Node, place: _Place) -> list[Touch]:
        match node:
            case Leaf(name):
                return self._statement(self.nest.statement(name), place)
            case Micro(statement=name):
                bands = (band for band in (node.rows, node.columns, *node.reduce) if band is not None)
                inner = reduce(_Place.loop, bands, place)
                return [
                    replace(touch, depth=len(place.loops), is_call=True)
                    for touch in self._statement(self.nest.statement(name), inner, self._roles(node))
                ]
            case Band():
                return self._visit(node.body, place.loop(node))
            case Copy():
                return self._pack(node, place)
            case InOrder(nodes):
                parts = (self._visit(child, place.part(index, child)) for index, child in enumerate(nodes))
                return [touch for part in parts for touch in part]
        raise TypeError(type(node).__name__)

    def _roles(self, node: Micro) -> dict[Load, str]:
        contraction = absorbed(self.nest, node)
        return {contraction.right: "right", contraction.left: "left"}

    def _statement(self, statement: Statement, place: _Place, roles: Mapping[Load, str] | None = None) -> list[Touch]:
        back = place.times[statement.name].reverse()
        if back.is_empty():
            return []
        operands = set(loads(statement.expr))

        def touch(load: Load, writes: bool) -> Touch:
            role = (roles or {}).get(load) if load in operands and not writes else None
            elements = back.apply_range(statement.relation(load))
            return Touch(
                statement.name, str(load), load.array, writes, elements, back, place.loops, len(place.loops), role=role
            )

        memories = {memory.name for memory in self.memories}
        reads = [touch(load, False) for load in dict.fromkeys(statement.reads) if load.array in memories]
        return reads + ([touch(statement.target, True)] if statement.target.array in memories else [])

    def _pack(self, node: Copy, place: _Place) -> list[Touch]:
        """The copy's own touches, and those below, with the reads that it serves redirected to it."""
        below = self._visit(node.body, place.part(1, node.body))
        readers = _readers(node, below)
        if not readers:
            return below
        known = {memory.name: memory for memory in self.memories}
        name = next(n for k in range(len(known) + 1) if (n := f"{node.array}_copy{k + 1 if k else ''}") not in known)
        made = copy(known[node.array], name, readers, place.loops)
        self.memories.append(made.memory)
        redirected = dict(zip(map(id, readers), made.redirected, strict=True))
        return [*made.own, *(redirected.get(id(touch), touch) for touch in below)]


def _readers(node: Copy, below: Sequence[Touch]) -> list[Touch]:
    """The reads that a copy serves: those of the first microkernel that reads the array, else of all statements."""
    reads = [t for t in below if t.array == node.array and not t.writes and node.statement in (None, t.statement)]
    kernels = [t for t in reads if t.role is not None and node.role in (None, t.role)]
    if not kernels:
        return reads
    return [t for t in kernels if (t.statement, t.role) == (kernels[0].statement, kernels[0].role)]
