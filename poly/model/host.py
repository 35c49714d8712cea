"""The caches and rates of the machine that this process runs on, as the model takes them."""

from __future__ import annotations

from functools import lru_cache

from microkernels.dtypes import DTYPES, DType
from microkernels.isa import ISA
from microkernels.opencl_isa import DeviceISA
from poly.machine import Machine, machine, measured
from poly.machine.measured import kept
from poly.machine.tiles import kept_tiles, tile_speeds
from poly.model.core import Caches, Target
from poly.model.rates import Rates, from_machine, nominal


@lru_cache
def caches() -> Caches:
    """What the model takes the caches to be: one core's share of each."""
    return caches_of(machine())


def caches_of(here: Machine) -> Caches:
    """One core's share of each level of a machine; 0 where there is none."""

    def share(level: int) -> int:
        found = here.cache(level)
        return here.share(found) if found else 0

    return Caches(share(1), share(2), share(3))


MEASURED = ("f32", "f64")
"""The types whose register tiles are measured."""


def here(isa: ISA, threads: int) -> Target:
    """What schedules are made for on this machine, its rates as far as they are known."""
    return Target(isa, caches(), known_rates(isa, threads), threads)


@lru_cache
def rates(threads: int, dtypes: tuple[DType, ...]) -> Rates:
    """What each of so many cores does a second, and their register tiles for these types.

    Measured once, some seconds, and kept.
    """
    here = machine()
    tiles = {dtype.name: tile_speeds(here, dtype) for dtype in dtypes if dtype.name in MEASURED}
    return from_machine(measured(here), threads, tiles)


def alike(isa: ISA, host: ISA) -> bool:
    """Whether code for an instruction set runs at the host's rates: its own does, and a CPU device's of its width."""
    if not isinstance(isa, DeviceISA):
        return isa == host
    return not isa.is_gpu and isa.vector_bytes == host.vector_bytes


@lru_cache
def known_rates(isa: ISA, threads: int) -> Rates:
    """The same as far as it was measured before; as cores usually are where nothing was, or for another target."""
    here = machine()
    known = kept(here) if alike(isa, here.isa) else None
    if known is None:
        return nominal(isa)
    return from_machine(known, threads, {name: kept_tiles(here, DTYPES[name]) for name in MEASURED})
