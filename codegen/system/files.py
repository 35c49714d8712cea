"""Files written whole or not at all."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path

TEMPORARY = ".part-"
"""The prefix of the names of files that are being written."""
NEW = 0o666
"""The permissions of a new file, before the process's umask."""


def write_file(path: str | Path, content: str | bytes, *, mode: int | None = None, sync: bool = True) -> None:
    """Write a file atomically: a reader, even after a crash, finds the previous content or all of `content`.

    A symbolic link stays, and the file that it points to is replaced. An existing file keeps its permissions unless
    `mode` is given. Anything but a regular file (a pipe, a terminal) is simply written to. Without `sync` a crash of
    the machine, though not of the process, may leave an incomplete file.

    Raises OSError; the previous file is then unchanged.
    """
    data = content.encode() if isinstance(content, str) else content
    found = _status(path)
    if found is not None and not stat.S_ISREG(found.st_mode):
        with open(path, "wb") as file:
            file.write(data)
        return
    target = os.path.realpath(path, strict=found is not None)
    temporary = temporary_name(os.path.dirname(target))
    wanted = mode if mode is not None or found is None else found.st_mode & 0o777
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, NEW if wanted is None else wanted)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            if wanted is not None:
                _permit(handle, wanted, found)
            if sync:
                file.flush()
                os.fsync(handle)
        os.replace(temporary, target)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise
    if sync:
        sync_directory(os.path.dirname(target))


def temporary_name(directory: str | Path, label: str = "") -> str:
    """An unpredictable name in a directory, for a file that is renamed once it is complete."""
    return os.path.join(directory, f"{TEMPORARY}{label}{os.urandom(8).hex()}")


def _status(path: str | Path) -> os.stat_result | None:
    try:
        return os.stat(path)
    except FileNotFoundError:
        return None


def _permit(handle: int, mode: int, found: os.stat_result | None) -> None:
    """Give a file these permissions and, if allowed, the owner of the file that it replaces."""
    if found is not None and (found.st_uid, found.st_gid) != (os.geteuid(), os.getegid()):
        with suppress(OSError):
            os.fchown(handle, found.st_uid, found.st_gid)
    os.fchmod(handle, mode)


def sync_directory(directory: str | Path) -> None:
    """Make a rename survive a crash of the machine. The file is already in place, so failing is no error."""
    with suppress(OSError):
        handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
