"""Run several time steps over a part of the arrays that stays in a cache.

    for t:                              for t_tile:
      for i: for j: B[i, j] = …A…         for i:                          i counts 2*t + i
      for i: for j: A[i, j] = …B…   ->      for t in the tile:
                                              for j: B[i - 2*t, j] = …A…
                                              for j: A[i - 2*t - 1, j] = …B…

The loops below the time loop are shifted against each other, fused but for the innermost, and skewed by the time loop
until no dependence points backward along any of them: then they may be tiled (Wolf and Lam, "A loop transformation
theory and an algorithm to maximize parallelism", 1991).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from math import prod

from poly.analysis.legality import lane_conflict
from poly.autoschedule.defaults.attempt import attempt
from poly.autoschedule.defaults.distances import Slope, slope
from poly.autoschedule.defaults.loops import Chain, chain_of, parts
from poly.ir.nest import Nest
from poly.ir.strides import accesses, extent
from poly.ir.tree import Band, bands
from poly.model import Caches
from poly.schedules.schedule import Schedule
from poly.schedules.steps import Distribute, Fuse, Order, Shift, Skew, Split, Step, Tile

BLOCK = 1024
"""The block of the innermost loop where it must be cut: long enough that its two ends cost little."""

ROW_GUESS = {1: 1 << 20, 2: 2048, 3: 256}
"""The extent of a loop that depends on sizes, by the number of loops inside the time loop."""


@dataclass(frozen=True)
class TimeLoops:
    """A time loop over chains of loops of one depth, and the slope of each depth (the innermost too)."""

    time: Band
    chains: tuple[Chain, ...]
    slopes: tuple[Slope, ...]

    @property
    def depth(self) -> int:
        return len(self.slopes)


@dataclass(frozen=True)
class TimeTiles:
    """Time steps in a tile, and the block of each loop tiled with it (None: one value, whose loop is around them)."""

    time: int
    blocks: tuple[int | None, ...]


def tiled_in_time(schedule: Schedule, caches: Caches) -> Schedule:
    """The schedule with each time loop tiled where the arrays exceed the second-level cache."""
    for band in bands(schedule.tree):
        if any(band is still for still in bands(schedule.tree)):
            found = time_loops(schedule, band)
            sizes = found and usual_tiles(schedule.nest, found, caches)
            schedule = (found and sizes and tile_in_time(schedule, found, sizes)) or schedule
    return schedule


def time_loops(schedule: Schedule, time: Band) -> TimeLoops | None:
    """A loop with what is needed to tile it together with those inside; None where these cannot be made permutable."""
    chains = tuple(chain for chain in map(chain_of, parts(time.body)) if chain is not None)
    depths = {len(chain.bands) for chain in chains}
    if len(chains) != len(parts(time.body)) or len(depths) != 1:
        return None
    if any(lane_conflict(schedule.nest, schedule.tree, chain.bands[-1].name) for chain in chains):
        return None
    if lane_conflict(schedule.nest, schedule.tree, time.name) is None:
        return None
    slopes = []
    for level in range(depths.pop()):
        functions = {name: f for chain in chains for name, f in chain.bands[level].functions}
        found = slope(schedule.nest, dict(time.functions), functions)
        if found is None:
            return None
        slopes.append(found)
    return TimeLoops(time, chains, tuple(slopes))


def tile_in_time(schedule: Schedule, steps: TimeLoops, sizes: TimeTiles) -> Schedule | None:
    """The schedule with a time loop tiled; None where the dependences forbid it."""
    fused = attempt(schedule, _joined(steps, len(sizes.blocks)))
    return fused and attempt(fused, _blocked(steps, sizes))


def _joined(steps: TimeLoops, depth: int) -> list[Step]:
    """Shift, fuse and skew the outer `depth` loops."""
    first = steps.chains[0]
    made: list[Step] = []
    for level in range(depth):
        for chain in steps.chains:
            shifts = {name: steps.slopes[level].shifts[name] for name in chain.statements}
            made += [Shift(chain.bands[level].name, by, name) for name, by in shifts.items() if by]
    for before, after in pairwise(steps.chains):
        made.append(Fuse(before.statements[0], after.statements[0], at=first.bands[depth - 1].name))
    for level in range(depth):
        if steps.slopes[level].factor:
            made.append(Skew(first.bands[level].name, steps.time.name, steps.slopes[level].factor))
    return made


def _blocked(steps: TimeLoops, sizes: TimeTiles) -> list[Step]:
    loops = [band.name for band in steps.chains[0].bands[: len(sizes.blocks)]]
    time = steps.time.name
    if sizes.blocks == (None,):
        return [Split(((time, sizes.time),)), Order((f"{time}_tile", loops[0], time))]
    blocks = [(loop, block) for loop, block in zip(loops, sizes.blocks, strict=True) if block is not None]
    made: list[Step] = [Tile(((time, sizes.time), *blocks))]
    if len(sizes.blocks) == steps.depth and len(steps.chains) > 1:
        made.append(Distribute(loops[-1]))
    return made


def usual_tiles(nest: Nest, steps: TimeLoops, caches: Caches) -> TimeTiles | None:
    """The largest tiles whose footprint fits the second-level cache; None where all the arrays do."""
    names = {access.array for c in steps.chains for s in c.statements for access in accesses(nest.statement(s))}
    arrays = [nest.array(name) for name in sorted(names) if nest.array(name).shape]
    known = all(not e.terms for a in arrays for e in a.shape)
    if known and sum(a.dtype.size * prod(e.constant for e in a.shape) for a in arrays) <= caches.l2:
        return None
    guess = ROW_GUESS.get(steps.depth, ROW_GUESS[3])
    extents = [extent(nest, band) or guess for band in steps.chains[0].bands]
    row = sum(a.dtype.size for a in arrays) * extents[-1]
    factors = [s.factor for s in steps.slopes]
    if steps.depth > 1:
        for time in (32, 16, 8):
            if row * prod(extents[1:-1]) * (factors[0] * time + 2) <= caches.l2:
                return TimeTiles(time, (None,))
        for size in (16, 8, 4):
            if row * _rows(size, factors[:-1]) <= caches.l2:
                return TimeTiles(size, (size,) * (steps.depth - 1))
    size = 16 if steps.depth < 3 else 8
    return TimeTiles(size, (size,) * (steps.depth - 1) + (BLOCK,))


def _rows(size: int, factors: list[int]) -> int:
    """Rows that a tile of `size` time steps and blocks of `size` touches: the block, and what it gains in each step."""
    block = prod(size for _ in factors)
    return block + size * (prod(size + factor for factor in factors) - block)
