"""Where the tuning records lie: known without loading the store, so that they cost nothing where there are none."""

from __future__ import annotations

from pathlib import Path

from codegen.cache import cache_dir


def records_file() -> Path:
    """The user's file of tuning records, whether it is there or not."""
    return cache_dir() / "records.sqlite"
