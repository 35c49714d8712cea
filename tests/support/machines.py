"""Machines with caches of known sizes, and the spaces that nests have there."""

from __future__ import annotations

from functools import lru_cache

import poly
from microkernels.isa import host
from poly.autoschedule.derive import loop_structures
from poly.autoschedule.spaces.space import Space
from poly.model import Caches
from poly.model.core import Target

HOST = host()
LARGE = Caches(32 << 10, 1 << 20, 32 << 20)
TINY = Caches(256, 1 << 10, 1 << 12)
"""Caches so small that small arrays exceed them."""


@lru_cache(64)
def derived(nest: poly.Nest, threads: int = 1, caches: Caches = LARGE) -> Space:
    """The space for a machine with these caches."""
    family = loop_structures(nest, Target.nominal(HOST, caches, threads))
    return Space(nest, HOST, threads, family.structures, family.choice)
