"""The errors and warnings of this layer."""

from __future__ import annotations

from microkernels.errors import PolyError as PolyError


class SpecError(PolyError):
    """The loop nest is wrong, or outside the class of nests that poly reads."""


class ScheduleError(PolyError):
    """A step of a schedule is unknown or illegal."""


class SearchError(PolyError):
    """A search cannot run: an empty budget, an unknown strategy, or a space without a legal point."""


class RecordError(PolyError):
    """The store of tuning records, or a file of them, cannot be used."""


class FileError(PolyError, OSError):
    """A requested file cannot be written. The message says which and why; an existing file is left unchanged."""


class RecordWarning(UserWarning):
    """A record, or the whole store, was ignored; the call goes on without it."""


class CostWarning(UserWarning):
    """An analysis of the loops' sets takes too much work; a cheaper answer, which is as safe, is used instead."""


class SearchWarning(UserWarning):
    """A search ended early; the best result so far is used."""
