"""The caches and rates of the machine that this process runs on, in the model's terms."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from microkernels.dot import FLAGS
from microkernels.isa import ISA, ISAS, host_cpu_flags
from microkernels.opencl_isa import DeviceISA
from poly.machine import Machine, machine, measured
from poly.machine.calibration import described_by_name, kept
from poly.model.core import Caches, Target
from poly.model.rates import Rates, from_machine, nominal


@lru_cache
def caches(threads: int | None = None) -> Caches:
    """The share of each cache level of this machine that each of so many busy cores has (None: all cores)."""
    return caches_of(machine(), threads)


def caches_of(here: Machine, threads: int | None = None) -> Caches:
    """The share of each cache level of a machine that each of so many busy cores has; 0 if there is none."""

    def share(level: int) -> int:
        found = here.cache(level)
        return here.share(found, threads) if found else 0

    ways = [found.ways if (found := here.cache(level)) else 8 for level in (1, 2)]
    return Caches(share(1), share(2), share(3), (ways[0], ways[1]))


def here(isa: ISA, threads: int, known: Rates | None = None) -> Target:
    """The target for schedules on this machine, with its rates, by default as far as they are known."""
    known = known or known_rates(isa, threads)
    return Target(isa, caches(threads).within(known), known, threads, features(isa))


def features(isa: ISA) -> tuple[str, ...]:
    """What this CPU has for microkernels beside an instruction set."""
    return tuple(sorted(FLAGS.keys() & host_cpu_flags())) if isa.machine and isa.runs_here() else ()


@lru_cache
def rates(isa: ISA, threads: int) -> Rates:
    """The rates of each of `threads` cores with an instruction set. They are measured once, in seconds, and kept."""
    where = calibrated(isa)
    return _unmeasured(isa, threads) if where is None else from_machine(measured(where), isa, threads)


def known_rates(isa: ISA, threads: int) -> Rates:
    """The rates measured before; if there are none, those of a described CPU of the same name, or nominal ones."""
    try:
        return _kept_rates(isa, threads)
    except LookupError:
        return _unmeasured(isa, threads)


@lru_cache
def _kept_rates(isa: ISA, threads: int) -> Rates:
    """The rates measured before. Raises LookupError if there are none, which is not remembered."""
    where = calibrated(isa)
    known = kept(where) if where is not None else None
    if known is None:
        raise LookupError(isa.name)
    return from_machine(known, isa, threads)


@lru_cache
def _unmeasured(isa: ISA, threads: int) -> Rates:
    where = calibrated(isa)
    known = None if where is None else described_by_name(where.cpu, where.isa.name)
    if known is not None:
        return from_machine(known, isa, threads)
    return nominal(isa, tuple(cache.bytes for cache in machine().caches))


def calibrated(isa: ISA) -> Machine | None:
    """This machine with the instruction set that code for `isa` runs by: a CPU device's is the one of equal width.

    None if nothing of it can be measured here.
    """
    if isinstance(isa, DeviceISA):
        alike = (one for one in ISAS.values() if one.vector_bytes == isa.vector_bytes and one.runs_here())
        own = None if isa.is_gpu else next(alike, None)
    else:
        own = isa if isa.runs_here() else None
    return None if own is None else replace(machine(), isa=own)
