"""Checks of callers' arguments: each error names the argument and says what was expected.

A public function checks its arguments first; the code behind it trusts them.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping
from numbers import Integral
from pathlib import Path
from typing import Any, TypeGuard

import numpy as np

from codegen.errors import ArgumentError
from codegen.ir.promotion import LARGEST_INDEX
from microkernels.errors import PolyError, shown
from poly.errors import SpecError


def checked_text(name: str, value: Any, such_as: str, error: type[PolyError] = ArgumentError) -> str:
    """The string, unchanged. Raises `error` for anything else."""
    if not isinstance(value, str):
        raise error(f"{name} must be a text such as {such_as}, not {shown(value)}.")
    return value


def checked_flag(name: str, value: Any) -> bool:
    """A boolean of Python or NumPy, as a `bool`. Raises ArgumentError for anything else."""
    if not isinstance(value, bool | np.bool_):
        raise ArgumentError(f"{name} must be True or False, not {shown(value)}.")
    return bool(value)


def checked_choice(name: str, value: Any, choices: Collection[str]) -> str:
    """The string, which must be one of `choices`. Raises ArgumentError for anything else."""
    if not isinstance(value, str) or value not in choices:
        raise ArgumentError(f"{name} must be one of {', '.join(map(repr, choices))}, not {shown(value)}.")
    return value


def is_collection(value: Any) -> TypeGuard[Iterable[Any]]:
    """Whether a value is a collection of values; a string counts as a single value."""
    return isinstance(value, Iterable) and not isinstance(value, str)


def checked_path(name: str, value: Any) -> Path:
    """A path. Raises ArgumentError for anything else, and for a string that cannot be the name of a file."""
    if not isinstance(value, str | os.PathLike):
        raise ArgumentError(f"{name} must be a path, as a text or a pathlib.Path, not {shown(value)}.")
    path = Path(value)
    try:
        possible = b"\0" not in os.fsencode(path)
    except UnicodeEncodeError:
        possible = False
    if not possible:
        raise ArgumentError(f"{name}: no file can be called {shown(str(path))}. Leave out what is not text.")
    return path


def checked_sizes(sizes: Any, more: Mapping[str, Any], what: str = "sizes") -> dict[str, Any]:
    """Sizes from a dictionary and from keywords, as one dictionary; `with_sizes` checks the names and the values.

    Raises:
        SpecError: `sizes` is not a dictionary.
    """
    if sizes is not None and not isinstance(sizes, Mapping):
        raise SpecError(f"{what} must be a dictionary such as {{'M': 512}}, not {shown(sizes)}.")
    return {**(sizes or {}), **more}


def checked_size(what: str, value: Any, error: type[PolyError] = SpecError) -> int:
    """The value of a size: an integer of Python or NumPy, from 0 to 2**48. Raises `error` for anything else."""
    if isinstance(value, bool) or not isinstance(value, Integral) or int(value) < 0:
        raise error(f"{what} must be an integer from 0 up, not {shown(value)}.")
    if int(value) > LARGEST_INDEX:
        raise error(f"{what} must be an integer up to 2**48, not {shown(value)}.")
    return int(value)
