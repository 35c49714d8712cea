"""Output files, and errors that say why a path cannot be written."""

from __future__ import annotations

from pathlib import Path

from codegen.system.files import write_file
from microkernels.errors import shown
from poly.errors import FileError


def write_output(path: Path, text: str | bytes) -> None:
    """Write a text file atomically. Raises FileError, and then leaves an existing file unchanged."""
    try:
        write_file(path, text)
    except OSError as error:
        raise _unwritable(path, error) from error


def make_folder(path: Path) -> None:
    """Create a directory and its parents if they do not exist. Raises FileError."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _unwritable(path, error) from error


def _unwritable(path: Path, error: OSError) -> FileError:
    problem = f"{shown(str(path))} cannot be written: {error.strerror or error}"
    return FileError(f"{problem}. Give a path in an existing directory that you may write to.")
