"""What can go wrong in this layer by a user's doing."""

from __future__ import annotations

from microkernels.errors import PolyError


class ToolchainError(PolyError):
    """No C library came about: no compiler, a compiler that failed, or a cache directory that cannot be used.

    The message holds the command, the compiler's own words and the path of the source, where there are any.
    """


class ArgumentError(PolyError, ValueError):
    """An argument of a call doesn't fit: it names the argument, what was expected, what was got, and the remedy."""


class DeviceError(PolyError):
    """A device has no memory left for a call, refuses it, or is lost: which, why, and what became of the outputs."""
