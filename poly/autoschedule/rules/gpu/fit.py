"""Whether a device can run a schedule: local memory holds its copies, and barriers can go where work-items wait."""

from __future__ import annotations

from microkernels.opencl_isa import DeviceISA
from poly.errors import ScheduleError
from poly.lowering.box_copy import with_boxes
from poly.lowering.mapping.items import with_items
from poly.schedules.schedule import Schedule


def fits(schedule: Schedule, isa: DeviceISA) -> bool:
    """Whether the schedule can be lowered."""
    try:
        with_items(with_boxes(schedule.nest, schedule.tree, isa), isa)
    except ScheduleError:
        return False
    return True


def fits_local(made: Schedule, isa: DeviceISA) -> bool:
    """Whether local memory holds the copies of a schedule."""
    try:
        with_boxes(made.nest, made.tree, isa)
    except ScheduleError:
        return False
    return True
