"""Files that a user asked for, and errors that say what is wrong with where they should lie."""

from __future__ import annotations

from pathlib import Path

from codegen.files import write_file
from microkernels.errors import shown
from poly.errors import FileError


def write_output(path: Path, text: str) -> None:
    """Write a text file in one step. Raises FileError; then what was there is as it was."""
    try:
        write_file(path, text)
    except OSError as error:
        raise _unwritable(path, error) from error


def make_folder(path: Path) -> None:
    """Make a directory where it is missing, and those above it. Raises FileError."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _unwritable(path, error) from error


def _unwritable(path: Path, error: OSError) -> FileError:
    problem = f"{shown(str(path))} cannot be written: {error.strerror or error}"
    return FileError(f"{problem}. Give a path in a directory that is there and that you may write to.")
