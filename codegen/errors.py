"""What can go wrong on this floor by a user's doing."""

from __future__ import annotations


class ToolchainError(Exception):
    """No C library came about: no compiler, a compiler that failed, or a cache directory that cannot be used.

    The message holds the command, the compiler's own words and the path of the source, where there are any.
    """


class ArgumentError(Exception):
    """Arrays that don't fit the kernel: it names the argument, what was expected, what was got, and the remedy."""


class DeviceError(Exception):
    """A device has no memory left for a call, refuses it, or is lost: which, why, and what became of the outputs."""
