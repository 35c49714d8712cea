"""Rebuild a record's schedule for the nest and the machine that it was found for."""

from __future__ import annotations

from poly.errors import RecordError
from poly.ir.nest import Nest
from poly.records.key import machine_name
from poly.records.machines import machines_here
from poly.records.record import Record
from poly.schedules.schedule import Schedule


def schedule_of(record: Record, nest: Nest) -> Schedule:
    """The schedule of a record for a nest with the same loops and any sizes; each step is proven again.

    Raises:
        RecordError: the record is for another machine, or for other loops.
        ScheduleError: a step is illegal.
    """
    if record.key.machine not in machines_here([record]):
        message = f"{record} was tuned on another machine ({record.key.machine}; this one is {machine_name()})"
        raise RecordError(f"{message}. Tune {nest.name} here to get a record for this machine.")
    if record.key.structure != nest.structure:
        raise RecordError(f"{record} is for other loops than those of {nest.name}.")
    return Schedule.from_json(nest, record.schedule)
