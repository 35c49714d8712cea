"""A description of the machine: plain values for JSON, and a table for people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from poly.display import columns
from poly.machine.description import Machine
from poly.machine.measured import Measured, TileCosts


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
    cpu, *others = str(machine).splitlines()
    yield f"{cpu}{f', {design}' if design else ''}"
    yield from others
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


def _tiles(costs: TileCosts) -> Iterator[str]:
    """What operands of register tiles take beside their multiply-adds."""
    levels = tuple(dict.fromkeys(line.level for line in costs.lines))
    known = {(line.operand, line.rows, line.level): f"{line.cost:.1f}" for line in costs.lines}
    heads = ("multiply-adds a line, from", *levels)
    operands = dict.fromkeys((line.operand, line.rows) for line in costs.lines)
    named = ((f"{name}, {rows} rows" if rows else name, name, rows) for name, rows in operands)
    yield from columns([heads, *((text, *(known[name, rows, at] for at in levels)) for text, name, rows in named)])
    yield ""
    classes = tuple(dict.fromkeys(place.classes for place in costs.places))
    placed = {(place.steps, place.classes): f"{place.cost:.1f}" for place in costs.places}
    heads = ("a vector in place, by lines of a page", *map(str, classes))
    steps = dict.fromkeys(place.steps for place in costs.places)
    yield from columns([heads, *((f"{n} steps", *(placed[n, one] for one in classes)) for n in steps)])
    yield ""
    if costs.products:
        told = ", ".join(f"{one.name} {one.cost:.2f}" for one in costs.products)
        yield f"products    in multiply-adds of floats: {told}"
        yield ""
    yield f"spread      {costs.spread:.1%} between quartiles; {costs.disturbed:.0%} of the rounds were disturbed"


def _peaks(rates: Measured, threads: Sequence[int]) -> list[tuple[str, ...]]:
    dtypes = dict.fromkeys(peak.dtype for peak in rates.peaks)
    return [(dtype, *(f"{rates.peak(dtype, count):.1f}" for count in threads)) for dtype in dtypes]


def _bandwidths(rates: Measured, threads: Mapping[int, str]) -> list[tuple[str, ...]]:
    """A row for each level and number of threads, which have names."""
    levels = dict.fromkeys(bandwidth.level for bandwidth in rates.bandwidths)
    found = [(f"{level}, {name}", rates.bandwidth(level, count)) for level in levels for count, name in threads.items()]
    return [(name, f"{bandwidth.read:.1f}", f"{bandwidth.triad:.1f}") for name, bandwidth in found]
