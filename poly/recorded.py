"""The record that `poly.compile` follows. A store that cannot be used is a warning here, never an error."""

from __future__ import annotations

import os
import warnings
from typing import TYPE_CHECKING

from codegen.errors import ToolchainError
from microkernels.isa import ISA
from poly.errors import RecordError, RecordWarning
from poly.nest import Nest
from poly.records_file import records_file

if TYPE_CHECKING:
    from codegen.opencl.devices import Device
    from poly.records import Record


def recorded(nest: Nest, isa: ISA, threads: int, device: Device | None = None) -> Record | None:
    """The record of a nest on this machine or device, with its compiler and this engine; None where there is none."""
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
