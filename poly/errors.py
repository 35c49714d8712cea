"""The errors and warnings of this layer."""

from __future__ import annotations

from microkernels.errors import PUBLIC
from microkernels.errors import PolyError as PolyError


class SpecError(PolyError, ValueError, TypeError):
    """The loop nest is wrong, or outside the class of nests that poly reads."""

    __module__ = PUBLIC


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
