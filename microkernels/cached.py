"""Attributes that are computed at their first use, as by Python from 3.12 on: without a lock.

Python 3.11 holds a lock of the class meanwhile, so that threads may wait for each other: one computes an attribute and
asks isl, and the other, which is asking isl, needs this attribute of another object. Here two threads may both compute
an attribute; they get the same value.
"""

from __future__ import annotations

import functools
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING or sys.version_info >= (3, 12):
    from functools import cached_property
else:

    class cached_property(functools.cached_property):
        """Python's `cached_property` without its lock."""

        def __get__(self, instance: Any, owner: Any = None) -> Any:
            if instance is None:
                return self
            kept = instance.__dict__
            return kept[self.attrname] if self.attrname in kept else kept.setdefault(self.attrname, self.func(instance))


__all__ = ["cached_property"]
