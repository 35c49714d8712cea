"""What a user can get wrong in this layer."""

from __future__ import annotations

from microkernels.errors import PolyError as PolyError


class SpecError(PolyError):
    """The loop nest itself is outside of what poly takes, or wrong."""


class ScheduleError(PolyError):
    """A step of a schedule is unknown or illegal."""


class SearchError(PolyError):
    """A search cannot be made: a budget of nothing, an unknown strategy, a space without a legal point."""


class RecordError(PolyError):
    """The store of tuning records, or a file of them, cannot be used."""


class FileError(PolyError, OSError):
    """A file that was asked for cannot be written: which, why; what was there is as it was."""


class RecordWarning(UserWarning):
    """A record, or the whole store, was left out; what was asked for goes on without it."""


class CostWarning(UserWarning):
    """What was asked takes too much work on the loops' sets; a cheaper answer serves, which is as safe."""


class SearchWarning(UserWarning):
    """A search did not come to its end; what it found so far is used."""
