"""The errors of this layer that a user can cause."""

from __future__ import annotations

from microkernels.errors import PUBLIC, PolyError


class ToolchainError(PolyError):
    """No C library could be built: there is no compiler, it failed, or the cache directory cannot be used.

    The message holds the command, the compiler's output and the path of the source, if there are any.
    """

    __module__ = PUBLIC


class ArgumentError(PolyError, ValueError, TypeError):
    """An argument of a call doesn't fit: the message names it, what was expected, what was passed, and the remedy."""

    __module__ = PUBLIC


class DeviceError(PolyError):
    """A device has no memory left for a call, refuses it, or is lost: which, why, and the state of the outputs."""

    __module__ = PUBLIC
