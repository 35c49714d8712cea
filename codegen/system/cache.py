"""The cache on disk: its directory, and files in it that are known to be complete.

What the cache holds is run: libraries directly, texts once they are compiled. So nobody else may be able to write to
the directory, and every file ends with a seal: its length, and a digest of its content and its name. A file whose seal
is broken (by a crash of the machine, or a full or failing disk) counts as missing, and is made again.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import stat
import time
from pathlib import Path

import platformdirs

from codegen.errors import ToolchainError
from codegen.system.files import TEMPORARY, write_file
from microkernels.errors import plain, shown

DAY = 24 * 60 * 60
SEAL = b"\npoly seal %020d %s\n"
SEAL_LENGTH = len(SEAL % (0, b"0" * 64))
OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


def cache_dir() -> Path:
    """The cache directory: POLY_CACHE_DIR, or `poly` in the user's cache directory.

    Raises ToolchainError if its name is not UTF-8: libraries cannot be loaded from there.
    """
    chosen = os.environ.get("POLY_CACHE_DIR") or platformdirs.user_cache_dir("poly")
    try:
        chosen.encode()
    except UnicodeEncodeError:
        problem = f"the cache directory {shown(chosen)} has a name that is not UTF-8"
        raise ToolchainError(f"{problem}. Set POLY_CACHE_DIR to another directory.") from None
    return Path(chosen)


def digest(*parts: str) -> str:
    """A short name for some texts: 32 hexadecimal digits of their SHA-256."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]


def private_directory(name: str) -> Path:
    """The folder `name` of the cache, created with mode 0700 if it is missing.

    Raises ToolchainError if it cannot be created, or if others could write there.
    """
    path = cache_dir() / name
    try:
        _make(path)
        _refuse_shared(path)
    except OSError as error:
        raise unusable(error) from error
    return path


def _make(path: Path) -> None:
    """Create a directory and its missing parents, all of them for this user alone."""
    if not path.parent.exists():
        _make(path.parent)
    path.mkdir(mode=0o700, exist_ok=True)


def unusable(error: OSError) -> ToolchainError:
    """The error for a cache directory that cannot be written: which one, why, and what to do."""
    return ToolchainError(
        f"the cache directory {plain(str(cache_dir()))} cannot be used: {error.strerror or error}. "
        "Make room or give write permission there, or set POLY_CACHE_DIR to another directory."
    )


def sweep(directory: Path) -> None:
    """Remove temporary files older than a day, whose writers have died. What can't be removed stays."""
    with contextlib.suppress(OSError), os.scandir(directory) as entries:
        for entry in entries:
            if entry.name.startswith(TEMPORARY) and time.time() - entry.stat().st_mtime > DAY:
                os.unlink(entry)


def put(key: str, text: str) -> None:
    """Keep a text under `key`. Raises ToolchainError if the directory cannot be used."""
    folder = private_directory("kept")
    sweep(folder)
    put_file(folder / digest(key), text.encode())


def get(key: str) -> str | None:
    """The text kept under `key`; None if it is missing or damaged.

    Raises ToolchainError if others could write to the directory.
    """
    content = get_file(cache_dir() / "kept" / digest(key))
    return None if content is None else content.decode()


def put_file(path: Path, content: bytes, *, mode: int = 0o600, sync: bool = True) -> None:
    """Keep a file in a private directory, with its seal. Raises ToolchainError if it cannot be written.

    Libraries and precompiled headers tolerate the bytes that the seal appends. Without `sync` a crash of the machine
    may lose or truncate the file, which the seal then shows.
    """
    try:
        write_file(path, content + _seal(path, content), mode=mode, sync=sync)
    except OSError as error:
        raise unusable(error) from error


def get_file(path: Path) -> bytes | None:
    """The content of a file that `put_file` kept, without its seal; None if it is missing, damaged or unreadable.

    Raises ToolchainError if others could write to its directory.
    """
    try:
        _refuse_shared(path.parent)
        with open(path, "rb") as file:
            if _trusted(os.fstat(file.fileno())):
                found = file.read()
                content = found[:-SEAL_LENGTH]
                return content if found[-SEAL_LENGTH:] == _seal(path, content) else None
    except OSError:
        pass  # the attempt to make it again reports what is wrong
    return None


def _seal(path: Path, content: bytes) -> bytes:
    return SEAL % (len(content), hashlib.sha256(path.name.encode() + b"\0" + content).hexdigest().encode())


def _trusted(found: os.stat_result) -> bool:
    """Whether only this user and the superuser can have written the file."""
    return found.st_uid in (os.geteuid(), 0) and not found.st_mode & OTHERS_WRITE


def _refuse_shared(folder: Path) -> None:
    """Raise ToolchainError if others can write to a folder of the cache, or replace it.

    Raises OSError if it does not exist.
    """
    for path in (folder, folder.parent):
        found = os.stat(path)
        if found.st_uid not in (os.geteuid(), 0):
            raise _shared(f"{path} belongs to another user (number {found.st_uid}; this process is {os.geteuid()}'s)")
        if found.st_mode & OTHERS_WRITE:
            raise _shared(f"others can write to {path}", f"`chmod go-w {path}`")
    for above in _above(str(folder.absolute())):
        mode = os.stat(above).st_mode
        if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
            raise _shared(f"everyone can replace what lies in {above}", f"`chmod o-w {above}`")


@functools.lru_cache(maxsize=64)
def _above(folder: str) -> tuple[str, ...]:
    """The directories above a folder, both as named and with symbolic links resolved."""
    return tuple({str(path) for name in (folder, os.path.realpath(folder)) for path in Path(name).parents})


def _shared(why: str, remedy: str = "") -> ToolchainError:
    return ToolchainError(
        f"the cache directory {cache_dir()} is not used: {why}, and what lies in the cache is run. "
        f"{f'Run {remedy}, or set' if remedy else 'Set'} POLY_CACHE_DIR to a directory that is yours alone."
    )
