"""Bytes that each level of memory delivers to a schedule, from the footprints of its loops.

A cache keeps what one iteration of a loop touches, where that is no more than the cache holds: then the loop fetches
each line that it touches once, however often. Of a loop whose iterations touch more, each iteration fetches its own
lines again. So for each cache the outermost loop whose iterations fit counts (Ferrante, Sarkar, Thrash, "On estimating
and enhancing cache effectiveness", LCPC 1991; Wolf and Lam, PLDI 1991). A line that is written goes back as well.

Footprints are exact sets, in lines. The iterations of a loop that does not fit are not all looked at, but some of them
for all (`Part.parts`): right for boxes, and for triangles whose footprints are quadratic in the loops around them.
Caches are taken as fully associative, with the line that was not used for longest replaced; they are empty at first,
or `warm`: what the call before has left there is there, so that a cache that holds everything fetches nothing.

A call of a microkernel fetches each line once: it reads its operands from first to last and sums in registers.
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
    """What a level delivers in one call: bytes of lines fetched from it, and of lines written back to it.

    For `L1` these are what loads and stores ask for. `fits` says what stays in the cache before that level:
    `everything`, or the outermost loops of which an iteration does.
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
    """What one iteration of a loop touches: that in the middle of it and of the loops around it."""

    loop: str
    depth: int
    """How many loops there are around it."""
    iterations: int
    footprint: TracedFootprint


def levels(caches: Caches) -> list[tuple[str, int]]:
    """Each level behind a cache that there is, with the bytes of that cache."""
    sizes = [size for size in (caches.l1, caches.l2, caches.l3) if size]
    return list(zip([*(f"L{n}" for n in range(2, len(sizes) + 1)), "memory"], sizes, strict=True))


def traffic(
    schedule: Schedule, caches: Caches, sizes: Mapping[str, int] | None = None, warm: bool = False
) -> tuple[LevelTraffic, ...]:
    """The bytes from each level, L1 first, for given values of the sizes that are still open.

    Raises:
        SpecError: no such size, or a value that is none.
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
"""Loaded and stored."""

EVERYTHING = "everything"


def _asked(part: TracedPart) -> Bytes:
    """What loads and stores ask for. What an innermost loop does not move over lies in registers, as in a call."""
    if part.is_innermost:
        return part.asked
    return _sum((times, _asked(inner)) for times, inner in part.parts)


def _fetched(part: TracedPart, capacity: int, name: str, fits: dict[str, None]) -> Bytes:
    """What one run of a part, called `name`, fetches into a cache; `fits` gathers what stays in it."""
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
    """`all of S0, S1`: the statements and copies of a part."""
    return f"{what} of {', '.join(dict.fromkeys(touch.statement for touch in part.touches))}"


def _sum(terms: Iterable[tuple[float, Bytes]]) -> Bytes:
    loaded, stored = 0.0, 0.0
    for times, (read, written) in terms:
        loaded, stored = loaded + times * read, stored + times * written
    return loaded, stored


def footprints(schedule: Schedule, sizes: Mapping[str, int] | None = None) -> tuple[LoopFootprint, ...]:
    """What one iteration of each loop touches, outermost first, in the order of the tree; raises as `traffic`."""
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
