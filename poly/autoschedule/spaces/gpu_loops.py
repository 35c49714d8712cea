"""The space of loops on a GPU: the work-items of a group, what lies in local memory, and in how many boxes.

copies    none, tiles, or slabs    (gpu_copies.py)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property

from microkernels.opencl_isa import DeviceISA
from poly.autoschedule.rules.form import located
from poly.autoschedule.rules.gpu import gpu_schedule
from poly.autoschedule.rules.gpu.items import USUAL, GroupShape
from poly.autoschedule.spaces.gpu_copies import slabs, tiles
from poly.autoschedule.spaces.space import Knob, Structure, Value, Values
from poly.errors import ScheduleError
from poly.ir.nest import Nest
from poly.lowering.box_copy import with_boxes
from poly.model.cost import Cost
from poly.model.gpu_loops import gpu_loop_cost
from poly.schedules.schedule import Schedule, schedule

ITEMS, ACROSS = (32, 64, 128, 256, 512, 1024), (8, 16, 32, 64, 128)
"""Work-items of a group, and along its contiguous loop."""

FEW_ITEMS, FEW_ACROSS = (64, 128, 256, 512), (16, 32, 64)
"""The same where there are more knobs beside them."""

SLABS = (8, 16, 32)
"""Iterations of a loop for which a group copies at a time."""

PADS, BUFFERS = (0, 1), (1, 2)
"""Elements unused behind each row of a box, and boxes in turn."""


def gpu_loop_structures(nest: Nest, isa: DeviceISA, sizes: Mapping[str, int]) -> Iterator[tuple[Structure, Values]]:
    """The structures, the one without copies first, each with its usual values."""
    pad, slab, buffers = Knob("pad", PADS), Knob("slab", SLABS), Knob("buffers", BUFFERS)
    few = tuple(_shape_knobs(nest, isa, FEW_ITEMS, FEW_ACROSS))

    def mapped(values: Values) -> Schedule:
        return _mapped(nest, isa, values)

    def tiled(values: Values) -> Schedule | None:
        return tiles(mapped(values), values["pad"] or 0)

    def slabbed(values: Values) -> Schedule | None:
        return slabs(mapped(values), values["slab"] or 1, values["pad"] or 0, values["buffers"] or 1)

    plain = _Mapping(tuple(_shape_knobs(nest, isa, ITEMS, ACROSS)), mapped, isa, sizes)
    yield plain.structure("none", _ordered), plain.usual
    for copies, more, make in (("tiles", (pad,), tiled), ("slabs", (slab, pad, buffers), slabbed)):
        mapping = _Mapping((*few, *more), make, isa, sizes)
        if mapping.holds(mapping.usual):
            yield mapping.structure(copies, mapping.holds), mapping.usual


def _mapped(nest: Nest, isa: DeviceISA, values: Values) -> Schedule:
    """The loops shared by groups of such a shape."""
    items = values["items"] or USUAL.items
    shape = GroupShape(items, min(USUAL.long, items), values.get("across") or USUAL.across)
    return gpu_schedule(schedule(nest), isa, shape)


def _shape_knobs(nest: Nest, isa: DeviceISA, items: Sequence[int], across: Sequence[int]) -> Iterator[Knob]:
    """How many items, and where some kernel's items have two dimensions how many along one of them."""
    most = USUAL.on(isa).items
    yield Knob("items", tuple(sorted({number for number in items if number <= isa.max_items} | {most})))
    narrow, wide = (_mapped(nest, isa, {"items": most, "across": number}) for number in (across[0], USUAL.across))
    if narrow.steps != wide.steps:
        yield Knob("across", tuple(number for number in across if number <= isa.max_items))


def _ordered(values: Values) -> bool:
    """Whether there are as many items as lie side by side."""
    return (values.get("across") or 1) <= (values["items"] or 1)


@dataclass(frozen=True)
class _Mapping:
    """Schedules by their knobs. Whether they are legal does not depend on sizes, only whether their copies fit."""

    knobs: tuple[Knob, ...]
    make: Callable[[Values], Schedule | None]
    isa: DeviceISA
    sizes: Mapping[str, int]

    @property
    def usual(self) -> Values:
        """The values that the default has, or the first ones."""
        shape = USUAL.on(self.isa)
        usual = {"items": shape.items, "across": shape.across}
        return {knob.name: usual.get(knob.name, knob.values[0]) for knob in self.knobs}

    def structure(self, copies: str, allows: Callable[[Values], bool]) -> Structure:
        return Structure((("copies", copies),), self.knobs, allows, self.schedule, self.predict)

    def schedule(self, values: Values) -> Schedule:
        """Raises ScheduleError where the values are no legal schedule."""
        made = self.make(values)
        if made is None:
            raise ScheduleError(f"the sizes {dict(values)} are illegal for this structure of the space.")
        return made

    def predict(self, values: Values) -> Cost:
        return gpu_loop_cost(located(self.schedule(values), self.sizes), self.isa)

    def holds(self, values: Values) -> bool:
        """Whether the copies fit, even with pads and two boxes."""
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


def fits_local(made: Schedule, isa: DeviceISA) -> bool:
    """Whether local memory holds the copies of a schedule."""
    try:
        with_boxes(made.nest, made.tree, isa)
    except ScheduleError:
        return False
    return True
