"""What C code prints to standard output: libraries tell there which kernels they chose."""

from __future__ import annotations

import ctypes
import os
import sys
import tempfile
from collections.abc import Callable


def printed(work: Callable[[], object]) -> str:
    """What this process writes to its standard output while it works, which does not appear there."""
    _flush()
    kept = os.dup(1)
    with tempfile.TemporaryFile() as file:
        os.dup2(file.fileno(), 1)
        try:
            work()
            _flush()
        finally:
            os.dup2(kept, 1)
            os.close(kept)
        file.seek(0)
        return file.read().decode(errors="replace")


def _flush() -> None:
    sys.stdout.flush()
    ctypes.CDLL(None).fflush(None)
