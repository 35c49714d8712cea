"""The time of loops mapped to work-groups and work-items: arithmetic, lines of memory, launches.

lines      one access of items in lockstep: neighbouring elements are coalesced, distant ones take a line each
hiding     the more items wait for memory, the better its latency is hidden
copies     data in local memory come from global memory once for all items that read them
launches   one per kernel and iteration of the host loops around it
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, log2, prod

from codegen.ir.expr import Load
from codegen.ir.integer import straight
from microkernels.opencl_isa import DeviceISA
from poly.analysis.roles import ASSUMED
from poly.ir.instances import iterations
from poly.ir.nest import Nest, Statement
from poly.ir.paths import Path, paths
from poly.ir.strides import accesses, extent, lines, moved_iterator
from poly.ir.tree import Band, Copy, Micro, statements, walk
from poly.ir.work_groups import LaunchedLoops, item_loops, kernels
from poly.model.cost import Cost, CostPart
from poly.model.gpu import BARRIER, CLOCK, LAUNCH, LOCAL, LOCKSTEP, MEMORY, RESIDENT, multiply_adds, together
from poly.model.work import work
from poly.schedules.schedule import Schedule

SECTOR = 32
"""The smallest transfer from memory, in bytes."""

CACHED = 0.1
"""The relative cost of a further access to the same array at a fixed distance from the first: its line is near."""

HIDING = 512
"""Work-items per unit that hide the latency of memory."""

DEPTH = 4
"""Cycles of latency of an arithmetic operation."""


@dataclass(frozen=True)
class Occupancy:
    """How much of the device a statement keeps busy: units on average, and concurrent work-items in each."""

    units: float
    items: float

    @staticmethod
    def of(groups: int, shared: int, isa: DeviceISA) -> Occupancy:
        most = ceil(groups / isa.units)
        return Occupancy(groups / most, min(RESIDENT, most * shared))


def gpu_loop_cost(made: Schedule, isa: DeviceISA) -> Cost:
    """The cost of one call of a nest without open sizes."""
    total = {"arithmetic": 0.0, "memory": 0.0, "local memory": 0.0, "barriers": 0.0, "launches": 0.0}
    seconds = 0.0
    for kernel in kernels(made.tree):
        parts = _kernel_parts(made, kernel, isa)
        overlapping = together(parts["arithmetic"], parts["memory"], parts["local memory"])
        seconds += overlapping + parts["barriers"] + parts["launches"]
        total = {name: total[name] + part for name, part in parts.items()}
    return Cost(seconds, tuple(CostPart(name, part) for name, part in total.items()))


def _kernel_parts(made: Schedule, kernel: LaunchedLoops, isa: DeviceISA) -> dict[str, float]:
    """Seconds of all launches of a kernel, by resource."""
    runs = prod(_extent(made.nest, band) for band in kernel.above)
    groups = prod(_extent(made.nest, band) for band in kernel.groups)
    found = {"arithmetic": 0.0, "memory": 0.0, "local memory": 0.0, "barriers": 0.0, "launches": runs * LAUNCH}
    for name in statements(kernel.body):
        for part, seconds in _statement_parts(made, name, kernel, groups, isa).items():
            found[part] += seconds
    return found


def _statement_parts(made: Schedule, name: str, kernel: LaunchedLoops, groups: int, isa: DeviceISA) -> dict[str, float]:
    nest, statement, path = made.nest, made.nest.statement(name), paths(made.tree)[name]
    dtype, count = nest.array(statement.target.array).dtype, iterations(statement.domain)
    shared = _shared(made, name, path)
    share = Occupancy.of(groups, shared, isa)
    lanes = shared / (ceil(shared / LOCKSTEP) * LOCKSTEP)
    rate = min(multiply_adds(dtype), share.items / DEPTH) * lanes
    hidden = min(1.0, share.items / HIDING)
    packed = {node.array for node in walk(kernel.body) if isinstance(node, Copy) and node.memory == "local"}
    touched = _bytes(nest, statement, path, packed)
    local = sum(nest.array(load.array).dtype.size for load in statement.reads if load.array in packed)
    seconds = count / (share.units * CLOCK)
    return {
        "arithmetic": seconds * work(nest, statement, None).arithmetic / rate,
        "memory": seconds * touched / (MEMORY * hidden),
        "local memory": seconds * local / LOCAL,
        "barriers": seconds * _barriers(nest, statement, path) * max(1.0, HIDING / share.items) / HIDING,
    }


def _shared(made: Schedule, name: str, path: Path) -> int:
    """The number of work-items of a group that share a statement."""
    micro = next((node for node in walk(made.tree) if isinstance(node, Micro) and node.statement == name), None)
    if micro is not None and micro.kernel.by_group:
        return micro.kernel.items
    return prod(band.items for band in item_loops(path))


def _bytes(nest: Nest, statement: Statement, path: Path, packed: set[str]) -> float:
    """The average bytes from global memory per instance."""
    loops = item_loops(path)
    across = moved_iterator(statement, path, loops[-1].name) if loops else None
    seen: set[tuple[str, tuple[tuple[str, int], ...]]] = set()
    total = 0.0
    for access in accesses(statement):
        form = (access.array, tuple(term for index in access.indices for term in straight(index).terms))
        near, size = form in seen, nest.array(access.array).dtype.size
        seen.add(form)
        if access.array in packed and access != statement.target:
            total += 0.0 if near else size / _readers(statement, path, access)
            continue
        apart = None if across is None else lines(nest, access, across)
        bytes = SECTOR if apart is None else SECTOR / LOCKSTEP if apart == 0 else min(SECTOR, apart * size)
        total += bytes * (CACHED if near else 1)
    return total


def _readers(statement: Statement, path: Path, access: Load) -> int:
    """The number of items that read the same element: those along loops that do not index the access."""
    moved = {band: moved_iterator(statement, path, band.name) for band in item_loops(path)}
    used = {name for index in access.indices for name in index.names}
    return prod(band.items for band, iterator in moved.items() if iterator is not None and iterator not in used)


def _barriers(nest: Nest, statement: Statement, path: Path) -> float:
    """Cycles per instance in which a group combines the partial results of a reduction."""
    total = 0.0
    target = {name for index in statement.target.indices for name in index.names}
    for band in item_loops(path):
        iterator = moved_iterator(statement, path, band.name)
        if statement.op != "=" and iterator is not None and iterator not in target:
            total += BARRIER * log2(band.items) / _extent(nest, band)
    return total


def _extent(nest: Nest, band: Band) -> int:
    return extent(nest, band) or ASSUMED
