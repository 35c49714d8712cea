"""The calibration of a machine: measured once, and kept in the cache directory.

A machine is calibrated for one instruction set and one compiler. Where that has not been done, or cannot be,
`described` is the calibration of the most similar CPU among those in `poly/machine/cpus`, and `cautious` what register
tiles are taken to cost on one that is not among them.

The environment variable POLY_CALIBRATE limits what is kept. With `never`, no calibration starts by itself. With
`unkept`, as in benchmarks, none is stored either: what a measurement finds must not change what is compiled later.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, replace
from functools import cache, lru_cache
from importlib.resources import files
from itertools import count, takewhile
from math import log
from typing import Any

from codegen.errors import ToolchainError
from codegen.system.cache import cache_dir, get, put
from codegen.toolchain.compiler import compiler_name
from microkernels.dtypes import DTYPES
from poly.machine.description import Machine
from poly.machine.measured import COPIES, Bandwidth, LineCost, Measured, Peak, ThreadStarts, TileCosts, parsed
from poly.machine.probes import Probes, probes

logger = logging.getLogger("poly.calibrate")

VERSION = 10
"""Incremented when the probes change, which invalidates older calibrations."""

MEMORY = "memory"

LEAST, STEADY = 4, 0.85
"""Times the second level, of which a footprint lies beyond that in the last one; the part of its rate that larger ones
that still lie there are read by."""

DISTANCES, GAIN = (0, 2048, 4096), 0.05
"""Bytes by which loops may fetch ahead, and the part of the time that it has to gain: without, code is shorter."""

AS_GOOD = 0.97
"""The part of the best rate to which fewer rows have to come that are read at once."""

LARGE = 32 << 20
"""Bytes from which an array counts as large."""

VARIABLE, NEVER, UNKEPT = "POLY_CALIBRATE", "never", "unkept"
"""The environment variable, and its values."""


def kept(machine: Machine) -> Measured | None:
    """The kept calibration; None if there is none, it is damaged, or there is no compiler. Nothing is measured."""
    try:
        return parsed(get(_key(machine)))
    except ToolchainError:
        return None


def measured(machine: Machine, anew: bool = False) -> Measured:
    """The machine's calibration, from the cache directory or else measured now (under five seconds) and kept there.

    A damaged entry is measured again, as is an intact one with `anew`. With `POLY_CALIBRATE=unkept` in the environment
    nothing is kept but in this process. Raises ToolchainError if the probes cannot be built or kept.
    """
    known = None if anew else kept(machine)
    if known is None and os.environ.get(VARIABLE) == UNKEPT:
        return _measured_once(machine)
    if known is None:
        logger.info("%s, %s: the calibration begins; it takes some seconds", machine.cpu, machine.isa.name)
        known = measure(machine)
        logger.info("%s, %s: the calibration is kept in %s", machine.cpu, machine.isa.name, cache_dir())
        keep(machine, known)
    return known


def keep(machine: Machine, known: Measured) -> None:
    """Store a calibration of the machine. Raises ToolchainError if the cache directory cannot be written."""
    put(_key(machine), json.dumps(asdict(known), indent=1))


def at_hand(machine: Machine) -> Measured:
    """The kept calibration, or else peaks and bandwidths measured now, in a second; nothing is kept.

    Raises ToolchainError if the probes cannot be built.
    """
    return kept(machine) or _rates_once(machine)


def measure(machine: Machine) -> Measured:
    """Run the probes. The best of several short samples counts, since other processes can only slow them down."""
    from poly.machine.tiles import tile_costs  # not needed where a calibration is kept

    return replace(measure_rates(machine), tiles=tile_costs(machine))


def measure_rates(machine: Machine) -> Measured:
    """Run the probes of all rates, without those of register tiles."""
    probe, threads = probes(machine.isa), sorted({1, machine.cores})
    asleep = probe.start(machine.cores, asleep=True)
    starts = ThreadStarts(probe.start(machine.cores), asleep) if machine.cores > 1 else None
    probe.peak(DTYPES["f32"], machine.cores, seconds=0.05)  # wakes the cores and raises their clock
    peaks = [
        Peak(dtype, many, max(probe.peak(DTYPES[dtype], many, seconds=0.002) for _ in range(20)))
        for dtype in ("f32", "f64")
        for many in threads
    ]
    bandwidths = tuple(one for many in threads for one in _bandwidths(machine, probe, many))
    size = max(size for level, size in footprints(machine, 1) if level == MEMORY)
    ahead, rows = best_ahead(probe.ahead(size, DISTANCES)), best_rows(probe.rows(size))
    return Measured(tuple(peaks), bandwidths, None, starts, ahead, rows)


def best_ahead(seconds: Mapping[int, float]) -> int:
    """The distance by which loops are the fastest that fetch ahead; 0 unless one gains."""
    best = min(seconds, key=seconds.__getitem__)
    return best if seconds[best] < (1 - GAIN) * seconds[0] else 0


def best_rows(seconds: Mapping[int, float]) -> int:
    """The least number of rows that are read at once about as fast as any: more take registers and longer code."""
    least = min(seconds.values())
    return min(rows for rows, taken in seconds.items() if AS_GOOD * taken <= least)


_measured_once, _rates_once = lru_cache(measure), lru_cache(measure_rates)


def _bandwidths(machine: Machine, probe: Probes, threads: int) -> Iterator[Bandwidth]:
    """The bandwidth of each level.

    Of a last level that many cores share, each keeps less than its size promises: more so in a virtual machine, whose
    neighbours are not to be seen. So its footprint is halved until it is read as fast as a small one.
    """
    near = max(one.bytes // max(1, min(one.shared_by, threads)) for one in machine.caches if one.level < 3)
    for level, footprint in footprints(machine, threads):
        held = 0
        if level == "L3" and footprint > LEAST * near:
            least = STEADY * _most(probe.read, LEAST * near, threads)
            sizes = takewhile(lambda size: size > LEAST * near, (footprint >> n for n in count()))
            kept = next((size for size in sizes if _most(probe.read, size, threads) >= least), LEAST * near)
            footprint, held = kept, 2 * kept * (kept < footprint)
        read, triad = (_most(job, footprint, threads) for job in (probe.read, probe.triad))
        yield Bandwidth(level, threads, read, triad, held)


def _most(job: Callable[..., float], footprint: int, threads: int) -> float:
    """The best of several samples: fewer of large arrays, which take longer to fill than to stream."""
    return max(job(footprint, threads, seconds=0.003) for _ in range(3 if footprint * threads > LARGE else 10))


def footprints(machine: Machine, threads: int) -> Iterator[tuple[str, int]]:
    """Each level with the bytes that each of `threads` threads streams to measure it.

    Half of a cache, or of the thread's share of it, stays in that cache and exceeds the one below it. For memory it is
    four times the last cache, with at least 64 and at most 128 MB over all threads.
    """
    for one in machine.caches:
        yield f"L{one.level}", one.bytes // max(1, min(one.shared_by, threads)) // 2
    last = max(one.bytes for one in machine.caches)
    yield MEMORY, min(max(4 * last, 64 << 20), 128 << 20) // threads


def nearest_level(machine: Machine, rates: Measured, size: int) -> str:
    """The smallest cache of which a core's share holds `size` bytes, or memory."""
    rooms = ((f"L{one.level}", machine.share(one)) for one in machine.caches)
    return next((level for level, share in rooms if size <= rates.room(level, share, machine.cores)), MEMORY)


def _key(machine: Machine) -> str:
    """The key of a calibration: CPU, instruction set, core count, caches, compiler, and version of the probes."""
    where = f"{machine.cpu} {machine.isa.name} {machine.cores} {machine.caches}"
    return f"machine {where} {compiler_name()} {VERSION}"


@lru_cache
def described(isa: str, caches: tuple[int, ...], hidden: str = "") -> Measured:
    """The calibration of the CPU with the most similar caches among those described for an instruction set.

    Of an instruction set without a described CPU, it is that of any other, without the register tiles' speeds. `hidden`
    is the name of a CPU that does not count.
    """
    facts = nearest(isa, caches, _others(hidden))
    found = _read(facts)
    return found if facts["isa"] == isa else replace(found, tiles=replace(_tiles(found), speeds=()))


def described_by_name(cpu: str, isa: str) -> Measured | None:
    """The calibration that comes with poly for a CPU and an instruction set; None if there is none."""
    return next((_read(facts) for facts in cpus() if (facts["cpu"], facts["isa"]) == (cpu, isa)), None)


@lru_cache
def cautious(isa: str, caches: tuple[int, ...], hidden: str = "") -> TileCosts:
    """What register tiles are taken to cost on a CPU that is not described: lines and pages what is the most on any.

    All else is as on the most similar described CPU, copies too: they avoid such lines, and err by less. A cost that is
    low on one CPU and high on another would else be trusted where nobody knows it. `hidden` is as in `described`.
    """
    near = _tiles(described(isa, caches, hidden))
    known = [_tiles(_read(facts)) for facts in _others(hidden)]

    def most(one: LineCost) -> float:
        return max(costs.line(one.operand, one.level, one.rows) for costs in known)

    lines = tuple(one if one.operand in COPIES else replace(one, cost=most(one)) for one in near.lines)
    pages = {name: max(getattr(costs, name) for costs in known) for name in ("crowded", "missed", "walked")}
    return replace(near, lines=lines, **pages)


def _others(hidden: str) -> tuple[dict[str, Any], ...]:
    return tuple(facts for facts in cpus() if facts["cpu"] != hidden)


def _read(facts: dict[str, Any]) -> Measured:
    """The calibration of a described CPU."""
    found = parsed(json.dumps(facts))
    assert found is not None, "every described CPU is a whole calibration"
    return found


def _tiles(found: Measured) -> TileCosts:
    assert found.tiles is not None, "every described CPU is a whole calibration"
    return found.tiles


def nearest(isa: str, caches: tuple[int, ...], among: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """The described CPU with the most similar caches: of those for the instruction set, if there are any."""
    return min(among, key=lambda one: (one["isa"] != isa, _apart([c["bytes"] for c in one["caches"]], caches)))


@cache
def cpus() -> tuple[dict[str, Any], ...]:
    """The CPUs described in this package, by name."""
    folder = files("poly.machine") / "cpus"
    texts = sorted((one.name, one.read_text()) for one in folder.iterdir() if one.name.endswith(".json"))
    return tuple(json.loads(text) for _, text in texts)


def _apart(sizes: list[int], others: tuple[int, ...]) -> float:
    """How far two CPUs' caches differ, level by level; one that a CPU lacks counts as one byte."""
    both = zip(sizes, others, strict=False)
    return sum(abs(log(max(a, 1) / max(b, 1))) for a, b in both) + abs(len(sizes) - len(others))
