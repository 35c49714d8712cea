"""What a user can get wrong on this floor."""

from __future__ import annotations


class PolyError(Exception):
    """The base of the errors that poly raises for a nest or a schedule."""


class SpecError(PolyError):
    """The loop nest itself is outside of what poly takes, or wrong."""


class ScheduleError(PolyError):
    """A step of a schedule is unknown or illegal."""
