"""Parts of an explanation as lines of text for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from poly.display import columns, time_text
from poly.explanation.values import ARITHMETIC, Level
from poly.model import Caches
from poly.working_sets import LoopFootprint, Placement, Reuse

BAR = 24
"""Characters of the longest bar."""

KIB = 1024


def bytes_text(count: float) -> str:
    """`1.2 MB`: decimal units, as for bandwidths."""
    for unit, name in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if count >= unit:
            return f"{count / unit:.4g} {name}"
    return f"{count:.0f} B"


def size_text(count: int) -> str:
    """`1.25 MiB`: binary units, as for caches."""
    for unit, name in ((KIB**3, "GiB"), (KIB**2, "MiB"), (KIB, "KiB")):
        if count >= unit:
            return f"{count / unit:.4g} {name}"
    return f"{count} B"


def roofline(flop: int, peak: float, levels: Sequence[Level]) -> Iterator[str]:
    """A line for each resource, with the operations per second that it permits, and a bar of the time it takes."""
    rows = [("roofline", "bytes", "flop/byte", "GB/s", "GFLOP/s", "time")]
    seconds = [flop / peak, *(level.seconds for level in levels)]
    rows.append((ARITHMETIC, "", "", "", f"{peak / 1e9:.4g}", time_text(seconds[0])))
    for level in levels:
        intensity = f"{level.intensity(flop):.3g}" if flop and level.bytes else "-"
        roof = f"{level.roof(flop, peak) / 1e9:.4g}" if flop else "-"
        figures = (bytes_text(level.bytes), intensity, f"{level.rate / 1e9:.4g}", roof)
        rows.append((level.name, *figures, time_text(level.seconds)))
    bars = ["", *(_bar(taken / max(*seconds, 1e-12)) for taken in seconds)]
    for line, bar in zip(columns(rows), bars, strict=True):
        yield f"{line}  {bar}".rstrip()


def _bar(share: float) -> str:
    eighths = round(share * BAR * 8)
    return "█" * (eighths // 8) + " ▏▎▍▌▋▊▉"[eighths % 8].strip()


def loops(footprints: Sequence[LoopFootprint], caches: Caches) -> Iterator[str]:
    """A line for each loop: the bytes that one iteration touches, and the cache in which they fit."""
    rows = [("loops", "iterations", "one touches", "stays in")]
    for found in footprints:
        name = "  " * found.depth + found.loop
        size = found.footprint.loaded
        rows.append((name, str(found.iterations), size_text(size), _place(size, caches)))
    yield from columns(rows)


def _place(size: int, caches: Caches) -> str:
    """The first cache in which this many bytes fit."""
    levels = (("L1", caches.l1), ("L2", caches.l2), ("L3", caches.l3))
    return next((name for name, room in levels if size <= room), "memory")


def working_sets(reuses: Sequence[Reuse], caches: Caches) -> Iterator[str]:
    """A line for each array and loop that carries its reuse, with the working sets and the caches in which they fit."""
    groups: dict[tuple[str, str], list[Reuse]] = {}
    for reuse in reuses:
        groups.setdefault((reuse.array, reuse.loop or "statements"), []).append(reuse)
    rows = [("working sets", "carried by", "least", "in", "most", "in")]
    kinds = ["reuse"]
    for (array, loop), members in groups.items():
        least, most = min(r.least.bytes for r in members), max(r.most.bytes for r in members)
        places = (size_text(least), _place(least, caches), size_text(most), _place(most, caches))
        rows.append((array, loop, *places))
        kinds.append(", ".join(dict.fromkeys(reuse.kind for reuse in members)))
    for line, kind in zip(columns(rows), kinds, strict=True):
        yield f"{line}  {kind}"


def placements(named: Mapping[str, Placement]) -> Iterator[str]:
    """The bytes of working sets in each cache, one line for each placement rule."""
    rows: list[tuple[str, ...]] = [("working sets in", "L1", "L2", "L3", "memory")]
    for name, placed in named.items():
        rows.append((name, *map(size_text, (placed.l1, placed.l2, placed.l3, placed.memory))))
    yield from columns(rows)
