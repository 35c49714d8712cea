"""Checks of what callers pass: each names the argument and says what was expected.

A public function checks its arguments before anything is done with them; what is behind it trusts them.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping
from numbers import Integral
from pathlib import Path
from typing import Any, TypeGuard

import numpy as np

from codegen.errors import ArgumentError
from codegen.promotion import LARGEST_INDEX
from microkernels.errors import PolyError, shown
from poly.errors import SpecError


def checked_text(name: str, value: Any, such_as: str, error: type[PolyError] = ArgumentError) -> str:
    """A text as it is. Raises `error` for anything else."""
    if not isinstance(value, str):
        raise error(f"{name} must be a text such as {such_as}, not {shown(value)}.")
    return value


def checked_flag(name: str, value: Any) -> bool:
    """True or False, of Python or of NumPy. Raises ArgumentError."""
    if not isinstance(value, bool | np.bool_):
        raise ArgumentError(f"{name} must be True or False, not {shown(value)}.")
    return bool(value)


def checked_choice(name: str, value: Any, choices: Collection[str]) -> str:
    """One of some texts. Raises ArgumentError."""
    if not isinstance(value, str) or value not in choices:
        raise ArgumentError(f"{name} must be one of {', '.join(map(repr, choices))}, not {shown(value)}.")
    return value


def is_several(value: Any) -> TypeGuard[Iterable[Any]]:
    """Whether a value is to be taken one by one; a text is one thing."""
    return isinstance(value, Iterable) and not isinstance(value, str)


def checked_path(name: str, value: Any) -> Path:
    """A path. Raises ArgumentError for what is none, and for a text that no file can be called."""
    if not isinstance(value, str | os.PathLike):
        raise ArgumentError(f"{name} must be a path, as a text or a pathlib.Path, not {shown(value)}.")
    path = Path(value)
    try:
        possible = b"\0" not in os.fsencode(path)
    except UnicodeEncodeError:
        possible = False
    if not possible:
        raise ArgumentError(f"{name}: no file can be called {shown(str(path))}. Leave out what is no text.")
    return path


def checked_sizes(sizes: Any, more: Mapping[str, Any], what: str = "sizes") -> dict[str, Any]:
    """Sizes from a dictionary and from keywords, as one dictionary; `with_sizes` checks the names and the values.

    Raises:
        SpecError: no dictionary.
    """
    if sizes is not None and not isinstance(sizes, Mapping):
        raise SpecError(f"{what} must be a dictionary such as {{'M': 512}}, not {shown(sizes)}.")
    return {**(sizes or {}), **more}


def checked_size(what: str, value: Any, error: type[PolyError] = SpecError) -> int:
    """The value of a size, an integer of Python or NumPy. Raises `error`."""
    if isinstance(value, bool) or not isinstance(value, Integral) or int(value) < 0:
        raise error(f"{what} must be an integer from 0 up, not {shown(value)}.")
    if int(value) > LARGEST_INDEX:
        raise error(f"{what} must be an integer up to 2**48, not {shown(value)}.")
    return int(value)
