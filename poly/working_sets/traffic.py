"""The bytes that each level of memory delivers to a schedule, from the footprints of its loops.

If the footprint of one iteration of a loop fits in a cache, the loop fetches each line that it touches only once.
Otherwise, each iteration fetches its own lines again. So the outermost loop whose iterations fit determines the traffic
of a cache (Ferrante, Sarkar, Thrash, "On estimating and enhancing cache effectiveness", LCPC 1991; Wolf and Lam, PLDI
1991). Lines that are written also go back.

Footprints are exact sets, in lines. For a loop that does not fit, a sample of the iterations stands for all
(`TracedPart.parts`), which is exact for boxes, and for triangles whose footprints are quadratic in the outer loops.
Caches are modelled as fully associative with LRU replacement. They start empty or, if `warm`, with the data that the
previous call has left, so that a cache that holds everything fetches nothing.

A call of a microkernel fetches each line once: it streams its operands and accumulates in registers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from poly.model import Caches
from poly.schedules.schedule import Schedule
from poly.working_sets.footprints import TracedFootprint, TracedPart
from poly.working_sets.trace import trace


@dataclass(frozen=True)
class LevelTraffic:
    """The traffic of a level in one call: bytes of lines fetched from it, and of lines written back to it.

    For `L1` these are the bytes that loads and stores request. `fits` tells what stays in the cache before that level:
    `everything`, or the outermost loops whose iterations fit.
    """

    level: str
    loaded: float
    stored: float
    fits: tuple[str, ...]

    @property
    def bytes(self) -> float:
        return self.loaded + self.stored


@dataclass(frozen=True)
class LoopFootprint:
    """The footprint of one iteration of a loop: the middle one, also of the loops around it."""

    loop: str
    depth: int
    """The number of loops around it."""
    iterations: int
    footprint: TracedFootprint


def levels(caches: Caches) -> list[tuple[str, int]]:
    """Each level behind an existing cache, with the bytes of that cache."""
    sizes = [size for size in (caches.l1, caches.l2, caches.l3) if size]
    return list(zip([*(f"L{n}" for n in range(2, len(sizes) + 1)), "memory"], sizes, strict=True))


def traffic(
    schedule: Schedule, caches: Caches, sizes: Mapping[str, int] | None = None, warm: bool = False
) -> tuple[LevelTraffic, ...]:
    """The bytes from each level, L1 first, for given values of the open sizes.

    Raises:
        SpecError: an unknown size, or an invalid value.
        ScheduleError: a size is left open.
    """
    whole = TracedPart.whole(trace(schedule, sizes))
    if not whole.touches:
        return ()
    result = [LevelTraffic("L1", *_asked(whole), ())]
    for level, capacity in levels(caches):
        fits: dict[str, None] = {}
        moved = _fetched(whole, capacity, EVERYTHING, fits)
        loaded, stored = (0.0, 0.0) if warm and EVERYTHING in fits else moved
        result.append(LevelTraffic(level, loaded, stored, tuple(fits)))
    return tuple(result)


Bytes = tuple[float, float]
"""Bytes loaded and stored."""

EVERYTHING = "everything"


def _asked(part: TracedPart) -> Bytes:
    """The bytes that loads and stores request. Data invariant in an innermost loop stay in registers, as in a call."""
    if part.is_innermost:
        return part.asked
    return _sum((times, _asked(inner)) for times, inner in part.parts)


def _fetched(part: TracedPart, capacity: int, name: str, fits: dict[str, None]) -> Bytes:
    """The bytes that one run of a part, called `name`, fetches into a cache; `fits` collects what stays in it."""
    if part.is_unit or part.footprint.loaded <= capacity:
        fits[name if part.footprint.loaded <= capacity else _unit(part)] = None
        return part.footprint.loaded, part.footprint.stored
    if part.loop is None:
        return _sum((1, _fetched(inner, capacity, _called("all", inner), fits)) for _, inner in part.parts)
    if part.middle.footprint.loaded <= capacity:
        fits[f"an iteration of {part.loop}"] = None
        return part.footprint.loaded, part.footprint.stored
    name = f"an iteration of {part.loop}"
    return _sum((times, _fetched(inner, capacity, name, fits)) for times, inner in part.parts)


def _unit(part: TracedPart) -> str:
    return _called("one call" if part.touches[0].is_call else "one instance", part)


def _called(what: str, part: TracedPart) -> str:
    """A name for the statements and copies of a part, such as `all of S0, S1`."""
    return f"{what} of {', '.join(dict.fromkeys(touch.statement for touch in part.touches))}"


def _sum(terms: Iterable[tuple[float, Bytes]]) -> Bytes:
    loaded, stored = 0.0, 0.0
    for times, (read, written) in terms:
        loaded, stored = loaded + times * read, stored + times * written
    return loaded, stored


def footprints(schedule: Schedule, sizes: Mapping[str, int] | None = None) -> tuple[LoopFootprint, ...]:
    """The footprint of one iteration of each loop, outermost first, in the order of the tree. Raises like `traffic`."""
    whole = TracedPart.whole(trace(schedule, sizes))
    return tuple(_footprints(whole, 0)) if whole.touches else ()


def _footprints(part: TracedPart, depth: int) -> Iterator[LoopFootprint]:
    if part.is_unit:
        return
    if part.loop is None:
        for _, inner in part.parts:
            yield from _footprints(inner, depth)
    else:
        yield LoopFootprint(part.loop, depth, part.iterations, part.middle.footprint)
        yield from _footprints(part.middle, depth + 1)
