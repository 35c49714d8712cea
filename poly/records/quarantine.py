"""Quarantine: a file that is damaged, or newer than this poly, is renamed and never overwritten."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from poly.errors import RecordWarning, warn
from poly.records.file import inspect, logs, make


@contextmanager
def guarded(path: Path) -> Iterator[None]:
    """Lock out other processes that would create the file or put it in quarantine. Raises OSError."""
    with path.with_suffix(".lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def make_missing(path: Path) -> None:
    """Create the file if there is none. Raises OSError, DatabaseError."""
    if os.path.exists(path):
        return
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with guarded(path):
        if not path.exists():
            make(path)


def quarantine(path: Path) -> None:
    """Rename the file, with a warning, unless it is sound after all, since another process may have replaced it.

    Raises:
        OSError: it cannot be moved.
        DatabaseError: it cannot be opened.
    """
    with guarded(path):
        unsound = inspect(path) if path.exists() else None
        if unsound is None:
            return
        name = _free(path, "newer" if unsound.newer else "damaged")
        for old, new in zip((path, *logs(path)), (name, *logs(name)), strict=True):
            if old.exists():
                old.rename(new)
    kind = "written by a newer poly" if unsound.newer else "damaged"
    warn(
        f"the tuning records {path} are {kind} ({unsound}). They were moved to {name.name}; a new file was begun.",
        RecordWarning,
    )


def _free(path: Path, kind: str) -> Path:
    """The first unused name among `records.sqlite.damaged-1`, `-2`, …"""
    number = 1
    while (name := path.with_name(f"{path.name}.{kind}-{number}")).exists():
        number += 1
    return name
