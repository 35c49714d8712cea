"""A record's schedule, for the nest and the machine that it was found for."""

from __future__ import annotations

from poly.errors import RecordError
from poly.ir.nest import Nest
from poly.records.key import machine_name
from poly.records.machines import machines_here
from poly.records.record import Record
from poly.schedules.schedule import Schedule


def schedule_of(record: Record, nest: Nest) -> Schedule:
    """The schedule of a record, on a nest with the same loops, of any sizes; each step is proven again.

    Raises:
        RecordError: the record is of another machine, or of other loops.
        ScheduleError: a step is illegal.
    """
    if record.key.machine not in machines_here([record]):
        message = f"{record} was tuned on another machine ({record.key.machine}; this one is {machine_name()})"
        raise RecordError(f"{message}. Tune {nest.name} here to have one that holds here.")
    if record.key.structure != nest.structure:
        raise RecordError(f"{record} is of other loops than those of {nest.name}.")
    return Schedule.from_json(nest, record.schedule)
