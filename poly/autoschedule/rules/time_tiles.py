"""Time tiling: run several time steps over a part of the arrays that stays in a cache.

    for t:                              for t_tile:
      for i: for j: B[i, j] = …A…         for i:                          i counts 2*t + i
      for i: for j: A[i, j] = …B…   ->      for t in the tile:
                                              for j: B[i - 2*t, j] = …A…
                                              for j: A[i - 2*t - 1, j] = …B…

The loops below the time loop are shifted, fused except for the innermost, and skewed by the time loop until no
dependence has a negative distance along any of them. The band is then fully permutable and may be tiled (Wolf and Lam,
"A loop transformation theory and an algorithm to maximize parallelism", 1991).

A statement with fewer loops, such as a boundary B[0, j] = …, first gets a loop of one iteration for each that it lacks:
the one whose iterations access the same elements.

one row    a tile of time steps runs row by row through the whole space
rows       all loops inside the time loop except the innermost are tiled too
all        the innermost is tiled too

The default has the way and the sizes that the model expects to take least, or no tiles. Small tiles save the bandwidth
of the second-level cache, too, but their loops are short.

Threads share the diagonals of tiles: no dependence goes back along any loop over tiles, so that none connects two tiles
whose numbers along time and along the first loop have the same sum (Wolf and Lam, section 4: a wavefront).

    for t_tile:                         for t_tile:                    t_tile counts t_tile + i_tile
      for i_tile: tile          ->        for i_tile: tile             # parallel
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import prod

from poly.analysis.legality import lane_conflict
from poly.analysis.temporaries import groups
from poly.autoschedule.rules.attempt import applied, attempt
from poly.autoschedule.rules.distances import Slope, slope
from poly.autoschedule.rules.form import Form
from poly.autoschedule.rules.shapes import Chain, chain_of
from poly.autoschedule.rules.sharing import parallel_loops
from poly.autoschedule.spaces.grids import middle, sizes
from poly.autoschedule.spaces.space import Knob, Value, Values
from poly.ir.edits import find_loop, fresh
from poly.ir.nest import Nest
from poly.ir.paths import paths
from poly.ir.strides import accesses, extent, moved_iterator
from poly.ir.tree import Band, bands, parts, statements
from poly.model.core import Caches, Target
from poly.schedules.schedule import Schedule
from poly.schedules.steps import Distribute, Enclose, Fuse, Order, Parallel, Shift, Skew, Split, Step, Tile
from poly.schedules.steps.formulas import Formula

EXTENTS = {1: 1 << 20, 2: 2048, 3: 256}
"""The assumed value of an open size, by the number of loops inside the time loop: arrays that exceed the caches."""

STEPS, ROWS, INNER = (2, 64), (4, 128), (128, 4096)
"""Bounds for a search: time steps per tile, rows per tile, and the block of the innermost loop."""

Finish = Callable[[Form], Form]
"""Applies the rules for what is inside tiles."""


@dataclass(frozen=True)
class TimeLoops:
    """A time loop over chains of loops of equal depth, and the slopes of the outer ones, as far as these exist.

    An inner loop has none if dependences go back along it in the same time step, as in Gauss and Seidel's method.
    """

    time: Band
    chains: tuple[Chain, ...]
    slopes: tuple[Slope, ...]

    @property
    def depth(self) -> int:
        return len(self.chains[0].bands)


@dataclass(frozen=True)
class TimeTiles:
    """Time steps per tile, and the block of each loop tiled with it (None: one value, with its loop around them).

    If `shared`, threads share the diagonals of tiles along time and the first loop.
    """

    time: int
    blocks: tuple[int | None, ...]
    shared: bool = False


def time_tiles(form: Form, target: Target) -> Iterator[Form]:
    """The forms of the first time loop."""
    for loop in _time_loops(form):
        ways = [(shared, *_found(form, loop, shared)) for shared in ((False, True) if target.threads > 1 else (False,))]
        yield from (one for shared, levelled, found in ways if found for one in _forms(levelled, found, shared))
        if any(found for _, _, found in ways):
            return


def usual_time_tiles(form: Form, target: Target, finish: Finish, shared: bool = False) -> Form:
    """The form with every time loop tiled as the model expects to take least; unchanged where that is without tiles.

    Loops whose arrays fit the first-level cache have no tiles. `finish` completes the forms that are compared. If
    `shared`, all have tiles, whose diagonals threads share.
    """
    sizes, inside = form.tried.nest.sizes, set[str]()
    for name in [time.name for time in _time_loops(form)]:
        time = None if name in inside else find_loop(form.tried.tree, name)
        levelled, found = _found(form, time, shared) if time else (form, None)
        if time is None or found is None or _is_near(form.tried.nest, found, target.caches):
            continue
        assumed = dict.fromkeys(sizes, EXTENTS.get(found.depth, EXTENTS[3]))
        plain = [] if shared else [_Priced.of(form, form.knobs, assumed, target, finish)]
        tiled = (_Priced.of(one, form.knobs, assumed, target, finish) for one in _forms(levelled, found, shared))
        best = min((*plain, *tiled), key=lambda one: one.seconds, default=None)
        if best is not None and best.form is not form:
            form, inside = best.settled(), inside.union(band.name for band in bands(time))
    return form


@dataclass(frozen=True)
class _Priced:
    """A form with those values of its tiles for which the model expects the least time."""

    seconds: float
    form: Form
    values: dict[str, Value]

    @staticmethod
    def of(form: Form, settled: Sequence[Knob], sizes: Mapping[str, int], target: Target, finish: Finish) -> _Priced:
        """The best values of all knobs but those that are settled, found one after the other until none improves."""
        whole = finish(form)
        predict, values = whole.structure(target, sizes).predict, dict(whole.usual)

        def seconds(change: Mapping[str, Value]) -> float:
            return predict({**values, **change}).seconds

        best, before = dict(form.usual), None
        while best != before:
            before = best
            for knob in form.knobs:
                if knob not in settled:
                    best = min(({**best, knob.name: value} for value in knob.values), key=seconds)
        return _Priced(seconds(best), form, best)

    def settled(self) -> Form:
        """The form with these values as the usual ones."""
        made = self.form.tried if self.values == dict(self.form.usual) else self.form.make(self.values)
        return replace(self.form, tried=made, usual=tuple(self.values.items())) if made else self.form


def _found(form: Form, time: Band, shared: bool) -> tuple[Form, TimeLoops | None]:
    """The form with equally deep loops inside a loop, and that as a time loop if it is one.

    Without lanes a core computes for longer than it waits for memory: tiles are then for threads alone.
    """
    levelled = _levelled(form, time)
    return levelled, time_loops(levelled.tried, find_loop(levelled.tried.tree, time.name), lanes=not shared)


def _forms(form: Form, found: TimeLoops, shared: bool) -> Iterator[Form]:
    """The legal ways of tiling a time loop; threads share diagonals only if the first loop is cut."""
    depths = {0, found.depth - 1, found.depth} if found.depth > 1 else {found.depth}
    cut = (depth for depth in sorted(depths) if depth <= len(found.slopes) and (depth or not shared))
    tiled = (_tiled(form, found, depth, shared) for depth in cut)
    return (one for one in tiled if one is not None)


def _time_loops(form: Form) -> tuple[Band, ...]:
    """The loops that may be time loops: none if there is a parallel loop."""
    return () if parallel_loops(form.tried) else bands(form.tried.tree)


def _levelled(form: Form, time: Band) -> Form:
    """The form with loops of one iteration around statements of a time loop that have fewer loops than others."""
    chains = [chain for chain in map(chain_of, parts(time.body)) if chain is not None]
    deepest = max(chains, key=lambda chain: len(chain.bands), default=None)
    if deepest is None or len(chains) < len(parts(time.body)):
        return form
    made = form.tried
    for chain in chains:
        missing = _lacking(made, deepest, chain) if len(chain.bands) < len(deepest.bands) else {}
        inside, present = time.name, iter(chain.bands)
        for level, band in enumerate(deepest.bands):
            if level in missing:
                inside, around = fresh(made.tree, f"{band.name}_at"), inside
                made = applied(made, [Enclose(inside, tuple(missing[level].items()), around)])
            else:
                inside = next(present, band).name
    if made is form.tried:
        return form
    steps = made.steps[len(form.tried.steps) :]
    return form.then(lambda made, values: applied(made, steps), made)


def _lacking(made: Schedule, deepest: Chain, chain: Chain) -> dict[int, dict[str, Formula]]:
    """The loops of the deepest chain that another lacks, by level: the iteration in which each statement belongs there.

    Empty if the others don't correspond.
    """
    found: dict[int, dict[str, Formula]] = {}
    for name in chain.statements:
        target = made.nest.statement(name).target
        own = [_counted(made, name, band) for band in chain.bands]
        indices = [target.indices[place] for place in _places(made, deepest, target.array)]
        kept = [next((at for at in own if at in index.names), None) for index in indices]
        known = all(
            index.is_affine and (at or index.names <= {*made.nest.sizes})
            for index, at in zip(indices, kept, strict=True)
        )
        if not indices or not known or [at for at in kept if at is not None] != own:
            return {}
        for level in (level for level, at in enumerate(kept) if at is None):
            found.setdefault(level, {})[name] = Formula(str(indices[level]))
    return found if all(len(values) == len(chain.statements) for values in found.values()) else {}


def _places(made: Schedule, chain: Chain, array: str) -> list[int]:
    """The index of an array that counts each loop of a chain; empty if none does, or the chain doesn't access it."""
    for name in chain.statements:
        counted = [_counted(made, name, band) for band in chain.bands]
        for access in accesses(made.nest.statement(name)):
            if access.array == array:
                every = [[at for at, index in enumerate(access.indices) if one in index.names] for one in counted]
                return [at for (at,) in every] if all(len(one) == 1 for one in every) else []
    return []


def _counted(made: Schedule, statement: str, band: Band) -> str | None:
    """The iterator that a loop advances."""
    return moved_iterator(made.nest.statement(statement), paths(made.tree)[statement], band.name)


def _tiled(form: Form, found: TimeLoops, depth: int, shared: bool) -> Form | None:
    """The form with the outer `depth` loops cut; at depth 0 the first loop runs value by value.

    Its usual sizes are in the middle of their grids. Diagonals are shared only if all sizes are known: their bounds for
    any size take isl too much work.
    """
    nest, inside = form.tried.nest, found.chains[0].bands[:depth]
    if shared and nest.sizes:
        return None
    names = {band.name: form.free(band.name) for band in (found.time, *inside)}
    last = found.chains[0].bands[-1]
    grids = {found.time.name: sizes(extent(nest, found.time), *STEPS)}
    extents = [_most(nest, [chain.bands[level] for chain in found.chains]) for level in range(depth)]
    bounds = ((band.name, whole, INNER if band is last else ROWS) for band, whole in zip(inside, extents, strict=True))
    grids |= {name: sizes(whole, *ends) for name, whole, ends in bounds}
    if not all(grids.values()):
        return None

    def tile(made: Schedule, values: Values) -> Schedule | None:
        blocks = tuple(values[names[band.name]] for band in inside) or (None,)
        return tile_in_time(made, found, TimeTiles(values[names[found.time.name]] or 1, blocks, shared))

    values = tuple((names[loop], middle(grid)) for loop, grid in grids.items())
    tried = tile(form.tried, dict(values))
    if tried is None:
        return None
    knobs = tuple(Knob(names[loop], grid) for loop, grid in grids.items())
    cuts = {f"{loop}_tile": name for loop, name in names.items()}
    kind = f"{_kind(found, depth)}, diagonals shared" if shared else _kind(found, depth)
    return form.then(tile, tried, ((_trait(form, found), kind),), knobs, values, cuts)


def _most(nest: Nest, loops: Sequence[Band]) -> int | None:
    """The extent of the longest of some loops; None if one depends on sizes."""
    extents = [extent(nest, band) for band in loops]
    known = [whole for whole in extents if whole is not None]
    return max(known) if len(known) == len(extents) else None


def _trait(form: Form, found: TimeLoops) -> str:
    """The name of the trait: the first tiled time loop of a nest needs none of its own."""
    return f"time tiles of {found.time.name}" if "time tiles" in dict(form.traits) else "time tiles"


def _kind(found: TimeLoops, depth: int) -> str:
    return "one row" if depth == 0 else "all" if depth == found.depth else "rows"


def time_loops(schedule: Schedule, time: Band, lanes: bool) -> TimeLoops | None:
    """A time loop with the chains and slopes needed to tile it; None if the band cannot be made permutable.

    None also if there must be `lanes`, and the innermost loops may have none.
    """
    chains = tuple(chain for chain in map(chain_of, parts(time.body)) if chain is not None)
    depths = {len(chain.bands) for chain in chains}
    if len(chains) != len(parts(time.body)) or len(depths) != 1:
        return None
    if lanes and any(lane_conflict(schedule.nest, schedule.tree, chain.bands[-1].name) for chain in chains):
        return None
    if lane_conflict(schedule.nest, schedule.tree, time.name) is None:
        return None
    slopes = []
    for level in range(depths.pop()):
        functions = {name: f for chain in chains for name, f in chain.bands[level].functions}
        found = slope(schedule.nest, dict(time.functions), functions)
        if found is None:
            break
        slopes.append(found)
    return TimeLoops(time, chains, tuple(slopes)) if slopes else None


def tile_in_time(schedule: Schedule, steps: TimeLoops, tiles: TimeTiles) -> Schedule | None:
    """The schedule with a time loop tiled; None if the dependences forbid it."""
    fused = attempt(schedule, _joined(steps, len(tiles.blocks)))
    blocked = fused and attempt(fused, _blocked(steps, tiles))
    return blocked and _rejoined(blocked)


def _rejoined(schedule: Schedule) -> Schedule:
    """The schedule with neighbours that share temporaries in one loop again, where distribution has parted them."""
    together = groups(schedule.nest)
    for before, after in pairwise(statements(schedule.tree)):
        loops = [band for band in bands(schedule.tree) if before in statements(band)]
        if any({before, after} <= group for group in together) and loops and after not in statements(loops[-1]):
            schedule = attempt(schedule, [Fuse(before, after, at=loops[-1].name)]) or schedule
    return schedule


def _joined(steps: TimeLoops, depth: int) -> list[Step]:
    """The steps that shift, fuse and skew the outer `depth` loops."""
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


def _blocked(steps: TimeLoops, tiles: TimeTiles) -> list[Step]:
    loops = [band.name for band in steps.chains[0].bands[: len(tiles.blocks)]]
    time = steps.time.name
    if tiles.blocks == (None,):
        return [Split(((time, tiles.time),)), Order((f"{time}_tile", loops[0], time))]
    blocks = [(loop, block) for loop, block in zip(loops, tiles.blocks, strict=True) if block is not None]
    made: list[Step] = [Tile(((time, tiles.time), *blocks))]
    if tiles.shared:
        made += [Skew(f"{time}_tile", f"{loops[0]}_tile"), Parallel(f"{loops[0]}_tile")]
    if len(tiles.blocks) == steps.depth and len(steps.chains) > 1:
        made.append(Distribute(loops[-1]))
    return made


def _is_near(nest: Nest, steps: TimeLoops, caches: Caches) -> bool:
    """Whether the arrays of a time loop are known to fit the first-level cache."""
    names = {access.array for c in steps.chains for s in c.statements for access in accesses(nest.statement(s))}
    arrays = [nest.array(name) for name in names - nest.temporaries]
    known = all(not e.terms for a in arrays for e in a.shape)
    return known and sum(a.dtype.size * prod(e.constant for e in a.shape) for a in arrays) <= caches.l1
