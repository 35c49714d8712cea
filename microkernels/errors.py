"""The error of this floor."""

from __future__ import annotations


class TargetError(Exception):
    """A target, an instruction set or a microkernel that does not exist, or that this CPU cannot run."""
