"""What is kept on disk: the cache directory, and small texts in it by key."""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
import time
from pathlib import Path

import platformdirs

from codegen.errors import ToolchainError

TEMPORARY = ".part-"
"""How the names of files begin that are being written."""
DAY = 24 * 60 * 60


def cache_dir() -> Path:
    """The directory of everything that is kept: POLY_CACHE_DIR, or the user's cache directory."""
    chosen = os.environ.get("POLY_CACHE_DIR")
    return Path(chosen) if chosen else Path(platformdirs.user_cache_dir("poly"))


def digest(*parts: str) -> str:
    """A short name for some texts: 32 hexadecimal digits of their SHA-256."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]


def private_directory(name: str) -> Path:
    """The folder `name` of the cache, made with mode 0700 where it is missing.

    Raises ToolchainError where it cannot be made.
    """
    path = cache_dir() / name
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise unusable(error) from error
    return path


def unusable(error: OSError) -> ToolchainError:
    """The cache directory cannot be written: which one, why, and what to do."""
    return ToolchainError(
        f"the cache directory {cache_dir()} cannot be used: {error.strerror or error}. "
        "Make room or give write permission there, or set POLY_CACHE_DIR to another directory."
    )


def sweep(directory: Path) -> None:
    """Remove the temporary files of writers that died: those older than a day."""
    for path in directory.glob(f"{TEMPORARY}*"):
        with contextlib.suppress(OSError):
            if time.time() - path.stat().st_mtime > DAY:
                path.unlink()


def write_atomically(path: Path, text: str) -> None:
    """Write a text file such that a reader finds the old one, the new one or none, and never a part.

    Raises ToolchainError where the directory is full or read-only.
    """
    try:
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=TEMPORARY)
    except OSError as error:
        raise unusable(error) from error
    try:
        with os.fdopen(handle, "w") as file:
            file.write(text)
        os.replace(temporary, path)
    except OSError as error:
        Path(temporary).unlink(missing_ok=True)
        raise unusable(error) from error


def get(key: str) -> str | None:
    """The text kept under `key`, or None."""
    try:
        return (cache_dir() / "kept" / digest(key)).read_text()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise unusable(error) from error


def put(key: str, text: str) -> None:
    """Keep a text under `key`. Raises ToolchainError where the directory cannot be written."""
    write_atomically(private_directory("kept") / digest(key), text)
