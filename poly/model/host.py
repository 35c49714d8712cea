"""The caches and rates of the machine that this process runs on, as the model takes them."""

from __future__ import annotations

from functools import lru_cache

from microkernels.dtypes import DType
from poly.machine import machine, measured
from poly.machine.tiles import tile_speeds
from poly.model.choice import Caches
from poly.model.rates import Rates, from_machine


@lru_cache
def caches() -> Caches:
    """What the model takes the caches to be: one core's share of each."""
    here = machine()

    def share(level: int) -> int:
        found = here.cache(level)
        return here.share(found) if found else 0

    return Caches(share(1), share(2), share(3))


@lru_cache
def rates(threads: int, dtypes: tuple[DType, ...]) -> Rates:
    """What each of so many cores does a second, and their register tiles for these types.

    Measured once, some seconds, and kept.
    """
    here = machine()
    tiles = {dtype.name: tile_speeds(here, dtype) for dtype in dtypes if dtype.name in ("f32", "f64")}
    return from_machine(measured(here), threads, tiles)
