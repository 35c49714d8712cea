"""The record that `poly.compile` follows. A store that cannot be used is a warning here, never an error."""

from __future__ import annotations

import os
import warnings
from typing import TYPE_CHECKING

from codegen.errors import ToolchainError
from microkernels.errors import TargetError
from microkernels.isa import ISA
from poly.errors import RecordError, RecordWarning, ScheduleError
from poly.ir.nest import Nest
from poly.records.location import records_file

if TYPE_CHECKING:
    from codegen.opencl.devices import Device
    from poly.records import Record


USUAL = (ScheduleError, TargetError, ToolchainError)
"""Errors that need no name."""
RECORD_SECONDS = 60.0
"""A compiler that takes longer for a record's kernel is given up, as in a search."""
RECORD_CHARACTERS = 4 << 20
"""A text that is longer is not compiled for a record's sake."""


def recorded(nest: Nest, isa: ISA, threads: int, device: Device | None = None) -> Record | None:
    """The record of a nest on this machine or device, with its compiler and this engine; None if there is none."""
    if not os.path.exists(records_file()):
        return None
    from poly.records import Store, key_for

    try:
        return Store.open().best(key_for(nest, isa, threads, device))
    except RecordError as error:
        warnings.warn(f"{error} The model chooses the schedule.", RecordWarning, stacklevel=2)
    except ToolchainError:
        pass  # there is no compiler: what needs one will say so
    return None


def check_source(text: str) -> None:
    """Raises ScheduleError where a record's kernel is longer than what a compiler is asked to take for it."""
    if len(text) > RECORD_CHARACTERS:
        raise ScheduleError(f"its text has {len(text)} characters, more than {RECORD_CHARACTERS}.")


def refuse(record: Record, problem: Exception) -> None:
    """Warn that a record could not be followed, and put it in quarantine, so that the next compilation need not try."""
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
    warnings.warn(f"{message} {where}. The model chooses the schedule; tune again to replace it.", RecordWarning, 4)
