"""The location of the tuning records, in a module without the store, so that a check for records costs little."""

from __future__ import annotations

import os
from pathlib import Path

from codegen.system.cache import cache_dir


def records_file() -> Path:
    """The path of the tuning records, whether the file exists or not: POLY_RECORDS, or one in the cache directory."""
    chosen = os.environ.get("POLY_RECORDS")
    return Path(chosen) if chosen else cache_dir() / "records.sqlite"
