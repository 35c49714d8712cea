"""The caches and rates of the machine that this process runs on, in the model's terms."""

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
    """One core's share of each cache level of this machine."""
    return caches_of(machine())


def caches_of(here: Machine) -> Caches:
    """One core's share of each cache level of a machine; 0 if there is none."""

    def share(level: int) -> int:
        found = here.cache(level)
        return here.share(found) if found else 0

    return Caches(share(1), share(2), share(3))


MEASURED = ("f32", "f64")
"""The types whose register tiles are measured."""


def here(isa: ISA, threads: int) -> Target:
    """The target for schedules on this machine, with its rates as far as they are known."""
    return Target(isa, caches(), known_rates(isa, threads), threads)


@lru_cache
def rates(threads: int, dtypes: tuple[DType, ...]) -> Rates:
    """The rates of each of `threads` cores, with their register tiles for these types.

    They are measured once, which takes a few seconds, and kept.
    """
    here = machine()
    tiles = {dtype.name: tile_speeds(here, dtype) for dtype in dtypes if dtype.name in MEASURED}
    return from_machine(measured(here), threads, tiles)


def alike(isa: ISA, host: ISA) -> bool:
    """Whether code for an instruction set runs at the host's rates: the host's own, or a CPU device of equal width."""
    if not isinstance(isa, DeviceISA):
        return isa == host
    return not isa.is_gpu and isa.vector_bytes == host.vector_bytes


@lru_cache
def known_rates(isa: ISA, threads: int) -> Rates:
    """The rates measured before; nominal ones if there are none, or for another target."""
    here = machine()
    known = kept(here) if alike(isa, here.isa) else None
    if known is None:
        return nominal(isa)
    return from_machine(known, threads, {name: kept_tiles(here, DTYPES[name]) for name in MEASURED})
