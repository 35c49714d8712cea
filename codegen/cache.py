"""What is kept on disk: the cache directory, and files in it that are known to be whole.

What lies here is run: libraries as they are, texts once they are compiled. So the directory must be one in which nobody
else can put anything, and every file ends with a seal: its length, and a digest of it and of its name. A file whose
seal is broken (by a crash of the machine, a full disk, a failing one) counts as missing, and is made anew.
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
from codegen.files import TEMPORARY, write_file
from microkernels.errors import plain, shown

DAY = 24 * 60 * 60
SEAL = b"\npoly seal %020d %s\n"
SEAL_LENGTH = len(SEAL % (0, b"0" * 64))
OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


def cache_dir() -> Path:
    """The directory of everything that is kept: POLY_CACHE_DIR, or the user's cache directory.

    Raises ToolchainError where its name is no text: libraries cannot be loaded from there.
    """
    chosen = os.environ.get("POLY_CACHE_DIR") or platformdirs.user_cache_dir("poly")
    try:
        chosen.encode()
    except UnicodeEncodeError:
        problem = f"the cache directory {shown(chosen)} has a name that is no UTF-8"
        raise ToolchainError(f"{problem}. Set POLY_CACHE_DIR to another directory.") from None
    return Path(chosen)


def digest(*parts: str) -> str:
    """A short name for some texts: 32 hexadecimal digits of their SHA-256."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]


def private_directory(name: str) -> Path:
    """The folder `name` of the cache, made with mode 0700 where it is missing.

    Raises ToolchainError where it cannot be made, or others could write there.
    """
    path = cache_dir() / name
    try:
        _make(path)
        _refuse_shared(path)
    except OSError as error:
        raise unusable(error) from error
    return path


def _make(path: Path) -> None:
    """Make a directory and those above it that are missing, all of them for this user alone."""
    if not path.parent.exists():
        _make(path.parent)
    path.mkdir(mode=0o700, exist_ok=True)


def unusable(error: OSError) -> ToolchainError:
    """The cache directory cannot be written: which one, why, and what to do."""
    return ToolchainError(
        f"the cache directory {plain(str(cache_dir()))} cannot be used: {error.strerror or error}. "
        "Make room or give write permission there, or set POLY_CACHE_DIR to another directory."
    )


def sweep(directory: Path) -> None:
    """Remove the temporary files of writers that died: those older than a day. What can't be removed stays."""
    with contextlib.suppress(OSError), os.scandir(directory) as entries:
        for entry in entries:
            if entry.name.startswith(TEMPORARY) and time.time() - entry.stat().st_mtime > DAY:
                os.unlink(entry)


def put(key: str, text: str) -> None:
    """Keep a text under `key`. Raises ToolchainError where the directory cannot be used."""
    folder = private_directory("kept")
    sweep(folder)
    put_file(folder / digest(key), text.encode())


def get(key: str) -> str | None:
    """The text kept under `key`; None where there is none, or a damaged one.

    Raises ToolchainError where others could write in the directory.
    """
    content = get_file(cache_dir() / "kept" / digest(key))
    return None if content is None else content.decode()


def put_file(path: Path, content: bytes, *, mode: int = 0o600, sync: bool = True) -> None:
    """Keep a file in a private directory, with its seal. Raises ToolchainError where that cannot be written.

    What follows after their end does no harm to libraries and precompiled headers. Without `sync` a crash of the
    machine may take the file; what is left of it is then found to be damaged.
    """
    try:
        write_file(path, content + _seal(path, content), mode=mode, sync=sync)
    except OSError as error:
        raise unusable(error) from error


def get_file(path: Path) -> bytes | None:
    """The content of a file that `put_file` kept, without its seal; None where it is missing, damaged or unreadable.

    Raises ToolchainError where others could write in its directory.
    """
    try:
        _refuse_shared(path.parent)
        with open(path, "rb") as file:
            if _trusted(os.fstat(file.fileno())):
                found = file.read()
                content = found[:-SEAL_LENGTH]
                return content if found[-SEAL_LENGTH:] == _seal(path, content) else None
    except OSError:
        pass  # who makes it anew finds out what is wrong
    return None


def _seal(path: Path, content: bytes) -> bytes:
    return SEAL % (len(content), hashlib.sha256(path.name.encode() + b"\0" + content).hexdigest().encode())


def _trusted(found: os.stat_result) -> bool:
    """Whether only this user, and the superuser, can have written there."""
    return found.st_uid in (os.geteuid(), 0) and not found.st_mode & OTHERS_WRITE


def _refuse_shared(folder: Path) -> None:
    """Raise ToolchainError where others can write in a folder of the cache, or put another in its place.

    Raises OSError where it is not there.
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
    """The directories above a folder, by its name and by where that leads."""
    return tuple({str(path) for name in (folder, os.path.realpath(folder)) for path in Path(name).parents})


def _shared(why: str, remedy: str = "") -> ToolchainError:
    return ToolchainError(
        f"the cache directory {cache_dir()} is not used: {why}, and what lies in the cache is run. "
        f"{f'Run {remedy}, or set' if remedy else 'Set'} POLY_CACHE_DIR to a directory that is yours alone."
    )
