"""The space of a nest that is no contraction over a box: orders, fusion, blocks, time tiles, parallel loops, kernels.

    base        the order of the loops, fused or apart            (orders.py)
    share       which loop the threads share
    blocks      none, of loops, of cache lines, of time steps     (tiles.py, time_tiles.py)
    or          a microkernel for a ragged contraction, a matrix-vector product, a solve    (kernels.py)

What `poly.compile` takes without a measurement is a point of the space.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace

from microkernels.isa import ISA
from microkernels.opencl_isa import DeviceISA
from poly.autoschedule.default import AFFORDABLE, default_schedule
from poly.autoschedule.defaults.grain import grained
from poly.autoschedule.spaces.form import Form, SpaceTarget
from poly.autoschedule.spaces.kernels import kernel_forms
from poly.autoschedule.spaces.orders import Base, bases, shares
from poly.autoschedule.spaces.space import Family, Point, Values
from poly.autoschedule.spaces.tiles import blocks, lines, plain, side_by_side, written_out
from poly.autoschedule.spaces.time_tiles import time_tiles
from poly.ir.budget import TooCostly, limited
from poly.ir.nest import Nest
from poly.model import Caches
from poly.model.rates import Rates
from poly.schedules.schedule import Schedule


def loop_structures(
    nest: Nest, isa: ISA, caches: Caches, rates: Rates, threads: int, sizes: Mapping[str, int] | None = None
) -> Family:
    """The structures of a nest's loops; the choice is the default schedule.

    `sizes` are values of the nest's open sizes, at which costs are predicted. What takes isl too long is left out.
    """
    target = SpaceTarget(isa, caches, rates, threads, sizes or {})
    default = default_schedule(nest, isa, caches, threads, rates)
    found: list[tuple[Form, Schedule]] = []
    with suppress(TooCostly), limited(AFFORDABLE):
        for form in _forms(nest, target):
            tried = form.tried()
            if tried is not None and all(form.traits != other.traits for other, _ in found):
                found.append((form, tried))
    chosen = next((n for n, (form, tried) in enumerate(found) if form.default and tried == default), None)
    if chosen is None:
        chosen = len(found)
        found.append((Form((("order", "by default"),), lambda values: default), default))
    structures = tuple(form.structure(tried, target) for form, tried in found)
    return Family(structures, Point(chosen, found[chosen][0].at()))


def _forms(nest: Nest, target: SpaceTarget) -> Iterator[Form]:
    """All forms, legal or not, the loops as written first."""
    for base in bases(nest):
        for shared in shares(base, target.threads):
            yield from _of_base(shared, target)
    yield from kernel_forms(nest, target)


def _of_base(base: Base, target: SpaceTarget) -> Iterator[Form]:
    """The forms of an order of loops; the first of the rules that apply to the usual one makes the default."""
    timed = [] if base.shared else list(time_tiles(base, target.caches))
    special = [form for form in (lines(base), side_by_side(base)) if form is not None]
    simple = plain(base)
    others = [form for form in (written_out(base), blocks(base)) if form is not None]
    rule = next((form for form in timed if form.default), special[0] if special else simple)
    for form in (simple, *special, *timed, *others):
        yield replace(_in_groups(form, target.isa), default=base.usual and form is rule)


def _in_groups(form: Form, isa: ISA) -> Form:
    """The form with blocks of its parallel loops for an OpenCL device's work-groups, where it is for one."""
    if not isinstance(isa, DeviceISA):
        return form

    def make(values: Values) -> Schedule | None:
        made = form.make(values)
        return made and grained(made, isa.units)

    return replace(form, make=make)
