"""Where candidates are built: beside the kernels that are kept, since not every system runs what lies in /tmp."""

from __future__ import annotations

import shutil
import time
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from codegen.cache import DAY, private_directory, unusable


def workplace() -> Path:
    """A folder for the folders of searches; what one left there that was killed a day ago is removed.

    Raises ToolchainError where it cannot be made.
    """
    place = private_directory("trials")
    with suppress(OSError):
        for left in place.iterdir():
            if time.time() - left.stat().st_mtime > DAY:
                shutil.rmtree(left, ignore_errors=True)
    return place


def own_workplace() -> TemporaryDirectory[str]:
    """A new folder for one search in the `workplace`. Raises ToolchainError where it cannot be made."""
    try:
        return TemporaryDirectory(dir=workplace(), ignore_cleanup_errors=True)
    except OSError as error:
        raise unusable(error) from error
