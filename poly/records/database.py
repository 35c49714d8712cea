"""Read and write the file, which is opened each time, so that no connection survives a fork.

An unsound file is put in quarantine.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from poly.errors import RecordError
from poly.records.file import UNWRITABLE, Unsound, check, connect, explained, unusable, verify
from poly.records.quarantine import make_missing, quarantine

if TYPE_CHECKING:
    from sqlite3 import Connection

T = TypeVar("T")


def read(path: Path, work: Callable[[Connection], T], otherwise: T) -> T:
    """The result of `work` on the file; `otherwise` if there is no file. Raises RecordError."""
    return _sound(path, lambda: _read(path, work) if os.path.exists(path) else otherwise)


def write(path: Path, work: Callable[[Connection], T]) -> T:
    """Do `work` in one transaction; the file is created if there is none. Raises RecordError."""
    return _sound(path, lambda: _write(path, work))


def peek(path: Path, work: Callable[[Connection], T]) -> T:
    """The result of `work` on a file that must be entirely sound, and is never put in quarantine.

    Raises:
        RecordError: it is unsound, or cannot be read.
    """
    if not os.path.isfile(path):
        raise RecordError(f"there are no tuning records {path}.")

    def verified(connection: Connection) -> T:
        verify(connection)
        return work(connection)

    try:
        return _explained(path, lambda: _read(path, verified))
    except Unsound as error:
        raise RecordError(f"the tuning records {path} are not sound: {error}. Nothing was read from them.") from error


def _sound(path: Path, action: Callable[[], T]) -> T:
    """Run an action on the file, and again if the file went into quarantine. Only regular files are ever moved."""
    if os.path.exists(path) and not os.path.isfile(path):
        raise unusable(path, "this is no regular file")
    try:
        return _explained(path, action)
    except Unsound:
        _explained(path, lambda: quarantine(path))
    try:
        return _explained(path, action)
    except Unsound as error:
        raise unusable(path, str(error)) from error


def _explained(path: Path, action: Callable[[], T]) -> T:
    """Run an action; errors of the system become Unsound or RecordError."""
    import sqlite3

    try:
        return action()
    except (sqlite3.Error, UnicodeDecodeError) as error:
        raise explained(path, error) from error
    except OSError as error:
        raise unusable(path, error.strerror or str(error)) from error
    except MemoryError as error:
        raise unusable(path, "memory ran out") from error


def _read(path: Path, work: Callable[[Connection], T]) -> T:
    """Read the file; in a read-only directory, where SQLite cannot keep logs and nobody writes, as an immutable one."""
    import sqlite3

    try:
        return _opened(path, "mode=rw", work)
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode & 0xFF not in UNWRITABLE:
            raise
        return _opened(path, "immutable=1", work)


def _write(path: Path, work: Callable[[Connection], T]) -> T:
    def transaction(connection: Connection) -> T:
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("BEGIN IMMEDIATE")
        result = work(connection)
        connection.execute("COMMIT")
        return result

    make_missing(path)
    return _opened(path, "mode=rw", transaction)


def _opened(path: Path, options: str, work: Callable[[Connection], T]) -> T:
    """Open and check the file, and do `work`; closing rolls back what was not committed."""
    with closing(connect(path, options)) as connection:
        check(connection)
        return work(connection)
