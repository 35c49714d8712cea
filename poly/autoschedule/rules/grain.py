"""Block parallel loops so that each work-group on an OpenCL CPU device has enough work.

    for i:  # parallel                   for i_tile:  # parallel
      y[i] += a*x[i]           ->          for i in the tile:  # vectorize
                                             y[i] += a*x[i]

Each iteration of a parallel loop becomes a work-group, and starting a group takes as long as dozens of iterations. In
C, the threads divide such a loop into blocks by themselves.
"""

from __future__ import annotations

from microkernels.isa import ISA
from microkernels.opencl_isa import DeviceISA
from poly.autoschedule.rules.attempt import applied
from poly.autoschedule.rules.form import Form
from poly.autoschedule.rules.shapes import INNER_GUESS, instances
from poly.ir.nest import Nest
from poly.ir.strides import extent
from poly.ir.tree import Band, bands, has_kernel
from poly.schedules.schedule import Schedule
from poly.schedules.steps import Split

GRAIN = 4096
"""Statement instances per group: enough to hide the cost of starting it."""

SHARES = 4
"""The least number of groups per compute unit, so that all units finish at about the same time."""


def in_groups(form: Form, isa: ISA) -> Form:
    """The form with parallel loops blocked for an OpenCL device's work-groups; unchanged for C."""
    if not isinstance(isa, DeviceISA):
        return form
    units = isa.units
    return form.then(lambda made, values: grained(made, units), grained(form.tried, units))


def grained(schedule: Schedule, units: int) -> Schedule:
    """The schedule with parallel loops of short iterations in blocks, one per work-group."""
    for band in bands(schedule.tree):
        if band.parallel and not has_kernel(band):
            block = _block(schedule.nest, band, units)
            schedule = applied(schedule, [Split(((band.name, block),))] if block > 1 else [])
    return schedule


def _block(nest: Nest, band: Band, units: int) -> int:
    """The iterations that are enough work for a group but leave groups for all compute units."""
    work = instances(nest, band.body, INNER_GUESS)
    known = extent(nest, band)
    most = GRAIN if known is None else max(1, known // (SHARES * units))
    return min(most, GRAIN // max(1, work))
