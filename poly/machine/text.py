"""A description of the machine: plain values for JSON, and a table for people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from poly.machine.description import Machine
from poly.machine.measured import Measured, TileCosts
from poly.machine.topology import KIB, cpu_list


def facts(machine: Machine, rates: Measured) -> dict[str, Any]:
    """The machine and its rates as plain values: sizes in bytes, GFLOP/s, GB/s."""
    return {
        "cpu": machine.cpu,
        "isa": machine.isa.name,
        "cores": machine.cores,
        "caches": [asdict(cache) for cache in machine.caches],
        "kinds": [asdict(kind) for kind in machine.kinds],
        "nodes": [asdict(node) for node in machine.nodes],
        **asdict(rates),
    }


def table(machine: Machine, rates: Measured, design: str | None = None) -> Iterator[str]:
    """The machine and its rates as lines of text with aligned columns; `design` is the name of the cores' design."""
    yield f"CPU         {machine.cpu}{f', {design}' if design else ''}"
    yield f"ISA         {machine.isa.name}: {machine.isa.registers} vectors of {machine.isa.vector_bytes} bytes"
    yield f"cores       {machine.cores} that this process may use"
    yield from layout(machine)
    yield ""
    yield from columns([("cache", "size", "ways", "line", "shared by"), *_caches(machine)])
    yield ""
    threads = sorted({peak.threads for peak in rates.peaks})
    heads = [f"{count} thread{'s' if count > 1 else ''}" for count in threads]
    yield from columns([("FMA peak, GFLOP/s", *heads), *_peaks(rates, threads)])
    yield ""
    named = dict(zip(threads, heads, strict=True))
    yield from columns([("bandwidth, GB/s", "read", "triad"), *_bandwidths(rates, named)])
    if rates.tiles is not None:
        yield ""
        yield from _tiles(rates.tiles)
    if rates.starts is not None:
        awake, asleep = (f"{seconds * 1e6:.1f} us" for seconds in (rates.starts.awake, rates.starts.asleep))
        yield ""
        yield f"threads     start and join in {awake} if they are awake, in {asleep} after a sleep"


def layout(machine: Machine) -> Iterator[str]:
    """A line for each kind of core and each memory node, where there are several."""
    for kind in machine.kinds if len(machine.kinds) > 1 else ():
        speed = f", {kind.capacity / 1024:.0%} as fast as the fastest" if kind.capacity else ""
        caches = ", ".join(f"L{cache.level} {size_text(cache.bytes)}" for cache in kind.caches)
        yield f"            CPUs {cpu_list(kind.cpus)}: {caches}{speed}"
    for node in machine.nodes if len(machine.nodes) > 1 else ():
        yield f"            CPUs {cpu_list(node.cpus)} next to memory node {node.number}"


def _tiles(costs: TileCosts) -> Iterator[str]:
    """What operands of register tiles take beside their multiply-adds."""
    levels = tuple(dict.fromkeys(line.level for line in costs.lines))
    known = {(line.operand, line.level): f"{line.cost:.1f}" for line in costs.lines}
    heads = ("multiply-adds a line, from", *levels)
    operands = dict.fromkeys(line.operand for line in costs.lines)
    yield from columns([heads, *((name, *(known[name, level] for level in levels)) for name in operands)])
    yield ""
    classes = tuple(dict.fromkeys(place.classes for place in costs.places))
    placed = {(place.steps, place.classes): f"{place.cost:.1f}" for place in costs.places}
    heads = ("a vector in place, by lines of a page", *map(str, classes))
    steps = dict.fromkeys(place.steps for place in costs.places)
    yield from columns([heads, *((f"{n} steps", *(placed[n, one] for one in classes)) for n in steps)])
    yield ""
    yield f"spread      {costs.spread:.1%} between quartiles; {costs.disturbed:.0%} of the rounds were disturbed"


def columns(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Rows of equal length as lines: the first column left-aligned, the others right-aligned."""
    widths = [max(len(row[n]) for row in rows) for n in range(len(rows[0]))]
    for first, *others in rows:
        cells = [first.ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(others, widths[1:], strict=True))]
        yield "  ".join(cells)


def size_text(size: int) -> str:
    """A number of bytes in the largest binary unit that divides it."""
    for unit, name in ((KIB**2, "MiB"), (KIB, "KiB")):
        if size % unit == 0:
            return f"{size // unit} {name}"
    return f"{size} B"


def _caches(machine: Machine) -> list[tuple[str, ...]]:
    return [
        (
            f"L{c.level}",
            size_text(c.bytes),
            str(c.ways),
            str(c.line),
            f"{c.shared_by} CPU{'s' if c.shared_by > 1 else ''}",
        )
        for c in machine.caches
    ]


def _peaks(rates: Measured, threads: Sequence[int]) -> list[tuple[str, ...]]:
    dtypes = dict.fromkeys(peak.dtype for peak in rates.peaks)
    return [(dtype, *(f"{rates.peak(dtype, count):.1f}" for count in threads)) for dtype in dtypes]


def _bandwidths(rates: Measured, threads: Mapping[int, str]) -> list[tuple[str, ...]]:
    """A row for each level and number of threads, which have names."""
    levels = dict.fromkeys(bandwidth.level for bandwidth in rates.bandwidths)
    found = [(f"{level}, {name}", rates.bandwidth(level, count)) for level in levels for count, name in threads.items()]
    return [(name, f"{bandwidth.read:.1f}", f"{bandwidth.triad:.1f}") for name, bandwidth in found]
