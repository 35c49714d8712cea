"""The record that `poly.compile` follows. An unusable store causes a warning here, never an error."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from codegen.errors import ToolchainError
from microkernels.errors import TargetError
from microkernels.isa import ISA
from poly.errors import RecordError, RecordWarning, ScheduleError, warn
from poly.ir.nest import Nest
from poly.records.location import records_file

if TYPE_CHECKING:
    from codegen.opencl.devices import Device
    from poly.records import Record


USUAL = (ScheduleError, TargetError, ToolchainError)
"""Errors whose message is clear without the name of their class."""
RECORD_SECONDS = 60.0
"""The time limit for compiling a record's kernel, as in a search."""
RECORD_CHARACTERS = 4 << 20
"""The longest source text that is compiled for a record."""


def recorded(nest: Nest, isa: ISA, threads: int, device: Device | None = None) -> Record | None:
    """The record of a nest for this machine or device, its compiler and this engine; None if there is none."""
    if not os.path.exists(records_file()):
        return None
    from poly.records import Store, key_for

    try:
        return Store.open().best(key_for(nest, isa, threads, device))
    except RecordError as error:
        warn(f"{error} The model chooses the schedule.", RecordWarning)
    except ToolchainError:
        pass  # there is no compiler, which is reported where one is needed
    return None


def check_source(text: str) -> None:
    """Raise ScheduleError if the source of a record's kernel is too long to compile."""
    if len(text) > RECORD_CHARACTERS:
        raise ScheduleError(f"its text has {len(text)} characters, more than {RECORD_CHARACTERS}.")


def refuse(record: Record, problem: Exception) -> None:
    """Warn that a record could not be followed, and put it in quarantine to save later compilations the attempt."""
    from poly.records import Store
    from poly.records.exchange import quarantine_record

    reason = f"{problem}".partition("\n")[0] or type(problem).__name__
    if not isinstance(problem, USUAL):
        reason = f"{type(problem).__name__}: {reason}"
    message = f"{record} does not fit this poly: {reason[:300]}"
    try:
        file = quarantine_record(Store.open(), record, reason)
        where = f"It was moved to {file.name}, beside the store"
    except RecordError as error:
        where = f"It stays where it is, since {error}"
    warn(f"{message} {where}. The model chooses the schedule; tune again to replace it.", RecordWarning)
