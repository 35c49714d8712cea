"""The errors and warnings of this layer."""

from __future__ import annotations

import sys
import warnings
from types import FrameType

from microkernels.errors import PUBLIC
from microkernels.errors import PolyError as PolyError
from microkernels.errors import SpecError as SpecError


class ScheduleError(PolyError, ValueError):
    """A step of a schedule is unknown or illegal."""

    __module__ = PUBLIC


class SearchError(PolyError, ValueError):
    """A search cannot run: an empty budget, an unknown strategy, or a space without a legal point."""

    __module__ = PUBLIC


class RecordError(PolyError):
    """The store of tuning records, or a file of them, cannot be used."""

    __module__ = PUBLIC


class FileError(PolyError, OSError):
    """A requested file cannot be written. The message says which and why; an existing file is left unchanged."""

    __module__ = PUBLIC


class RecordWarning(UserWarning):
    """A record, or the whole store, was ignored; the call goes on without it."""

    __module__ = PUBLIC


class CostWarning(UserWarning):
    """An analysis of the loops' sets takes too much work; a cheaper answer, which is as safe, is used instead."""

    __module__ = PUBLIC


class SearchWarning(UserWarning):
    """A search ended early; the best result so far is used."""

    __module__ = PUBLIC


PACKAGES = frozenset({"poly", "codegen", "microkernels", "benchmarks"})
DECORATORS = frozenset({"contextlib", "functools"})
"""Modules whose functions stand around those of poly."""


def warn(text: str, kind: type[Warning]) -> None:
    """Warn at the line that called poly, however far up that is."""
    names: list[str] = []
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        names.append(frame.f_globals.get("__name__", ""))
        frame = frame.f_back
    called = 1 + max(at for at, name in enumerate(names) if name.partition(".")[0] in PACKAGES)
    while called < len(names) and names[called] in DECORATORS:
        called += 1
    warnings.warn(text, kind, stacklevel=called + 1)
