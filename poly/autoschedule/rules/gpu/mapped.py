"""Loops on a GPU without microkernels: map them to work-groups and work-items by dependences and strides.

    for t:                            for t:                    a host loop: each sweep is a launch
      for i: for j: B = f(A)    ->      for i_tile: for j_tile:  # groups
      for i: for j: A = f(B)              for i:  # 8 items
                                            for j:  # 32 items …

Loops without a parallel loop around enough work run in one work-group, whose items share the loops inside; those that
cannot be shared at all, not even as a wavefront, in one work-item. By default only transpositions go through local
memory; a space also has copies of tiles and slabs (copies.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from math import prod

from microkernels.cached import cached_property
from microkernels.opencl_isa import DeviceISA
from poly.analysis.legality import is_parallel
from poly.autoschedule.rules.attempt import attempt
from poly.autoschedule.rules.distances import STEEPEST
from poly.autoschedule.rules.form import Traits, legal, with_known_sizes
from poly.autoschedule.rules.fusion import fused
from poly.autoschedule.rules.gpu.apart import summed_apart
from poly.autoschedule.rules.gpu.copies import slabs, tiles
from poly.autoschedule.rules.gpu.fit import fits, fits_local
from poly.autoschedule.rules.gpu.items import LOCKSTEP, USUAL, GroupShape
from poly.autoschedule.rules.gpu.parallel import chain_names, parallel_first
from poly.autoschedule.rules.gpu.points import by_points, contiguous_loop, is_strided
from poly.autoschedule.rules.gpu.rows import by_rows, in_one_group, shared_loops
from poly.autoschedule.rules.gpu.transposed import by_lines
from poly.autoschedule.rules.shapes import instances
from poly.autoschedule.spaces.space import Knob, Structure, Value, Values
from poly.ir.edits import find_loop
from poly.ir.nest import Nest
from poly.ir.strides import extent
from poly.ir.tree import Band, Leaf, Micro, Node, Sequence, bands, parts, statements, walk
from poly.model.cost import Cost
from poly.model.gpu import RESIDENT
from poly.model.gpu_loops import gpu_loop_cost
from poly.schedules.schedule import Schedule, schedule
from poly.schedules.steps import Fuse, Interchange, Items, Skew, Step

WORTH = 16_384
"""Statement instances for which a launch pays off: the work of one work-group while a kernel starts."""

GUESS = 1024
"""The assumed extent of a loop of unknown size."""


SHORT_SUM = 128
"""Terms of a sum that a work-item adds up by itself, of neighbours in memory: a unit begins a group in the time of some
hundred instructions, and lines of memory stay in its cache while its items read them."""

ITEMS, ACROSS = (32, 64, 128, 256, 512, 1024), (8, 16, 32, 64, 128)
"""Work-items per group, and along its contiguous loop."""

FEW_ITEMS, FEW_ACROSS = (64, 128, 256, 512), (16, 32, 64)
"""The same if there are further knobs."""

SLABS = (8, 16, 32)
"""Iterations of a loop whose data a group copies at a time."""

PADS, BUFFERS = (0, 1), (1, 2)
"""Padding elements per row of a box, and the number of buffers used in turn."""

PLAIN = (("copies", "none"),)
"""The traits of the structure whose usual point is the default for loops without microkernels."""


def gpu_schedule(before: Schedule, isa: DeviceISA, shape: GroupShape = USUAL) -> Schedule:
    """The schedule with all legal loops mapped to groups and items, except those mapped by a step or a microkernel.

    Sums with too few results to keep the device busy are summed in blocks where the model expects that to pay off.
    """
    return _cheapest(tuple(_all_mapped(one, isa, shape) for one in (before, *summed_apart(before, isa))), isa)


def _cheapest(made: tuple[Schedule, ...], isa: DeviceISA) -> Schedule:
    """The schedule of the least expected time; the first of equal ones."""
    seconds = [gpu_loop_cost(with_known_sizes(one, {}), isa).seconds for one in made] if len(made) > 1 else [0.0]
    return made[seconds.index(min(seconds))]


def _all_mapped(before: Schedule, isa: DeviceISA, shape: GroupShape) -> Schedule:
    made = fused(before)
    return _mapped_at(made, made.tree, isa, shape.on(isa))


def _mapped_at(schedule: Schedule, node: Node, isa: DeviceISA, shape: GroupShape) -> Schedule:
    if isinstance(node, Sequence):
        for child in node.children:
            schedule = _mapped_at(schedule, child, isa, shape)
        return schedule
    if not isinstance(node, Band) or _is_mapped(node):
        return schedule
    made = _kernel(schedule, node, isa, shape)
    if made is None and _is_wide(schedule, node.body):
        return _mapped_at(schedule, node.body, isa, shape)
    made = made or in_one_group(schedule, node, shape) or _in_waves(schedule, node, shape)
    return made if made is not None and fits(made, isa) else schedule


def _kernel(schedule: Schedule, band: Band, isa: DeviceISA, shape: GroupShape) -> Schedule | None:
    """The schedule with a loop and those inside it as one kernel; None if none of them can be work-groups."""
    first = parallel_first(schedule, band) or _columns_first(schedule, band)
    if first is None:
        return None
    made, parallel = first
    inside = find_loop(made.tree, parallel[-1]).body
    shares, rows_cost = shared_loops(made, inside, shape.rows)
    _, points_cost = contiguous_loop(made, parallel)
    rows = by_rows(made, parallel, shares, shape) if shares else None
    lengths = [extent(made.nest, find_loop(made.tree, name)) for name in parallel]
    results = None if None in lengths else prod(length or 1 for length in lengths)
    if rows is not None and rows_cost < points_cost and is_strided(made, parallel):
        by_itself = (results or 0) >= isa.units * RESIDENT and _is_short_sum(made, inside)
        return (by_points(made, parallel, isa, shape) if by_itself else None) or rows
    points = by_lines(made, parallel, isa, shape) or by_points(made, parallel, isa, shape)
    few = results is not None and results < isa.units * LOCKSTEP
    return _cheapest((points, rows), isa) if points and rows and few else points


def _is_short_sum(schedule: Schedule, inside: Node) -> bool:
    """Whether each element is one short sum: a group that shares it takes longer to begin than an item to run it."""
    if not isinstance(inside, Band) or not isinstance(inside.body, Leaf):
        return False
    return (extent(schedule.nest, inside) or GUESS) <= SHORT_SUM


def _columns_first(schedule: Schedule, band: Band) -> tuple[Schedule, tuple[str, ...]] | None:
    """The schedule with one parallel loop around `band`, fused from one in each part of its body, and its name.

    for i:                                  for k:  (parallel)
      for j < i: for k:                       for i:
        X[i, k] -= L[i, j]*X[j, k]    ->        for j < i:
      for k:                                      X[i, k] -= L[i, j]*X[j, k]
        X[i, k] /= L[i, i]                      X[i, k] /= L[i, i]

    None if a part has no such loop, or the loops cannot be fused or moved outside.
    """
    first: list[str] = []
    for part in parts(band.body):
        found = parallel_first(schedule, part) if isinstance(part, Band) else None
        if found is None:
            return None
        schedule, names = found
        first.append(names[0])
    leaders = [statements(find_loop(schedule.tree, name))[0] for name in first]
    fusions = [Fuse(one, other, at=first[0]) for one, other in pairwise(leaders)]
    made = attempt(schedule, [*fusions, Interchange(band.name, first[0])])
    if made is None or not is_parallel(made.nest, made.tree, first[0]):
        return None
    return made, (first[0],)


def _is_mapped(band: Band) -> bool:
    return any(isinstance(n, Micro) or (isinstance(n, Band) and (n.parallel or n.items > 0)) for n in walk(band))


def _is_wide(schedule: Schedule, node: Node) -> bool:
    """Whether a parallel loop below contains enough work for a launch."""
    found = (band for band in bands(node) if instances(schedule.nest, band, GUESS) >= WORTH)
    return any(is_parallel(schedule.nest, schedule.tree, band.name) for band in found)


def _in_waves(schedule: Schedule, band: Band, shape: GroupShape) -> Schedule | None:
    """The schedule with the two innermost loops of a chain skewed as little as needed and interchanged, in one group.

    for i: for j:                                    for j:                     j counts 2*i + j
      A[i, j] = f(A[i, j-1], A[i-1, j+1])    ->        for i:  # 256 items
                                                         A[i, j - 2*i] = …

    None if no skew makes the iterations of a wave independent.
    """
    chain = chain_names(band)
    if len(chain) < 2:
        return None
    outer, inner = chain[-2:]
    for factor in range(STEEPEST + 1):
        skewed: list[Step] = [Skew(inner, outer, factor)] if factor else []
        made = attempt(schedule, [*skewed, Interchange(outer, inner), Items(((outer, shape.rows // 2),))])
        if made is not None:
            return made
    return None


def gpu_loop_structures(nest: Nest, isa: DeviceISA) -> Iterator[tuple[Structure, Values]]:
    """The structures, each with its usual values, the one without copies first."""
    pad, slab, buffers = Knob("pad", PADS), Knob("slab", SLABS), Knob("buffers", BUFFERS)
    few = tuple(_shape_knobs(nest, isa, FEW_ITEMS, FEW_ACROSS))

    def mapped(values: Values) -> Schedule:
        return _mapped(nest, isa, values)

    def tiled(values: Values) -> Schedule | None:
        return tiles(mapped(values), values["pad"] or 0)

    def slabbed(values: Values) -> Schedule | None:
        return slabs(mapped(values), values["slab"] or 1, values["pad"] or 0, values["buffers"] or 1)

    plain = _Mapping(tuple(_shape_knobs(nest, isa, ITEMS, ACROSS)), mapped, isa)
    yield plain.structure(PLAIN, _ordered), plain.usual
    for copies, more, make in (("tiles", (pad,), tiled), ("slabs", (slab, pad, buffers), slabbed)):
        mapping = _Mapping((*few, *more), make, isa)
        if mapping.holds(mapping.usual):
            yield mapping.structure((("copies", copies),), mapping.holds), mapping.usual


def _mapped(nest: Nest, isa: DeviceISA, values: Values) -> Schedule:
    """The loops mapped to groups of the shape that the values give."""
    items = values["items"] or USUAL.items
    across = values.get("across") or USUAL.across
    side = USUAL.side if across == USUAL.across else min(across, items)
    shape = GroupShape(items, min(USUAL.long, items), across, USUAL.each, side, max(items, USUAL.rows))
    return gpu_schedule(schedule(nest), isa, shape)


def _shape_knobs(nest: Nest, isa: DeviceISA, items: tuple[int, ...], across: tuple[int, ...]) -> Iterator[Knob]:
    """The number of items and, if some kernel has two-dimensional groups, the number along one dimension."""
    most = USUAL.on(isa).items
    yield Knob("items", tuple(sorted({number for number in items if number <= isa.max_items} | {most})))
    narrow, wide = (_mapped(nest, isa, {"items": most, "across": number}) for number in (across[0], USUAL.across))
    if narrow.steps != wide.steps:
        yield Knob("across", tuple(number for number in across if number <= isa.max_items))


def _ordered(values: Values) -> bool:
    """Whether a group has at least as many items as lie along its contiguous loop."""
    return (values.get("across") or 1) <= (values["items"] or 1)


@dataclass(frozen=True)
class _Mapping:
    """Schedules by their knobs. Their legality does not depend on sizes; only whether their copies fit does."""

    knobs: tuple[Knob, ...]
    make: Callable[[Values], Schedule | None]
    isa: DeviceISA

    @property
    def usual(self) -> Values:
        """The default's values; the first one for knobs that the default does not have."""
        shape = USUAL.on(self.isa)
        usual = {"items": shape.items, "across": shape.across}
        return {knob.name: usual.get(knob.name, knob.values[0]) for knob in self.knobs}

    def structure(self, traits: Traits, allows: Callable[[Values], bool]) -> Structure:
        return Structure(traits, self.knobs, allows, self.schedule, self.predict)

    def schedule(self, values: Values) -> Schedule:
        """The schedule at given values. Raises ScheduleError if it is illegal."""
        return legal(self.make(values), values)

    def predict(self, values: Values) -> Cost:
        return gpu_loop_cost(with_known_sizes(self.schedule(values), {}), self.isa)

    def holds(self, values: Values) -> bool:
        """Whether the copies fit, even with padding and two buffers."""
        full = {"pad": PADS[-1], "buffers": BUFFERS[-1]}
        most = {**values, **{name: value for name, value in full.items() if name in values}}
        return _ordered(values) and self._fits(tuple(most.items()))

    @cached_property
    def _fits(self) -> Callable[[tuple[tuple[str, Value], ...]], bool]:
        @cache
        def fits(values: tuple[tuple[str, Value], ...]) -> bool:
            made = self.make(dict(values))
            return made is not None and fits_local(made, self.isa)

        return fits
