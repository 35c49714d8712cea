"""Where the tuning records lie: known without loading the store, so that they cost nothing where there are none."""

from __future__ import annotations

import os
from pathlib import Path

from codegen.cache import cache_dir


def records_file() -> Path:
    """The file of tuning records, whether it is there or not: POLY_RECORDS, or one in the cache directory."""
    chosen = os.environ.get("POLY_RECORDS")
    return Path(chosen) if chosen else cache_dir() / "records.sqlite"
