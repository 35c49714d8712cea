"""Lanes for some statements of a loop whose others wait for one another: each in a loop of its own over a section.

for i:                                    for i_tile:
  a[i] += c[i]*d[i]                         for i in the section: a[i] += c[i]*d[i]  # vectorize
  b[i] = b[i-1]*a[i]              ->        for i_2 in the section: b[i_2] = b[i_2-1]*a[i_2]

Statements that depend on one another in a cycle stay together. The others run in the order of their dependences, which
may be another one than as written (Allen and Kennedy, "Automatic translation of Fortran programs to vector form",
TOPLAS 9(4), 1987). What one loop of a section writes is still in the nearest cache when the next one reads it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from poly.analysis.legality import coupled, lane_conflict, reachable
from poly.autoschedule.rules.attempt import applied, attempt
from poly.autoschedule.rules.form import Form
from poly.autoschedule.rules.lanes import is_short, unpaid
from poly.autoschedule.rules.shapes import innermost
from poly.ir.edits import find_loop
from poly.ir.strides import accesses, extent
from poly.ir.tree import Band, Leaf, bands, parts, statements
from poly.model.core import Caches
from poly.schedules.schedule import Schedule
from poly.schedules.steps import Distribute, Fuse, Split, Step

LEAST, MOST = 64, 1024
"""The iterations of a section: enough for whole vectors, and no more than pays off."""

MANY = 12
"""Loops with more statements are left alone, since their dependences take long to ask for."""


def sectioned(form: Form, caches: Caches) -> Form | None:
    """The form with loops in sections where that gives some of their statements lanes; None if there are none."""
    first = cut(form.tried, caches)
    if first is form.tried:
        return None
    return form.then(lambda made, values: cut(made, caches), first, (("bodies", "in sections"),))


def cut(made: Schedule, caches: Caches) -> Schedule:
    """The schedule with such loops in sections."""
    for band in innermost(made.tree):
        made = (_cut(made, band, caches) if _is_candidate(made, band) else None) or made
    return made


def _is_candidate(made: Schedule, band: Band) -> bool:
    """Whether a loop holds several statements and has no lanes."""
    plain = 1 < len(parts(band.body)) <= MANY and all(isinstance(part, Leaf) for part in parts(band.body))
    marked = band.unroll > 1 or band.parallel or band.vectorize
    if not plain or marked or is_short(made.nest, band):
        return False
    return lane_conflict(made.nest, made.tree, band.name) is not None


def _cut(made: Schedule, band: Band, caches: Caches) -> Schedule | None:
    """The schedule with a loop in sections; None if no statement gets lanes by that."""
    groups = _groups(statements(band), coupled(made.nest, made.tree, band.name))
    if len(groups) < 2:
        return None
    size, whole = _section(made, band, caches), extent(made.nest, band)
    steps: list[Step] = [Split(((band.name, size),))] if whole is None or whole > size else []
    order = [name for group in groups for name in group.statements]
    steps += [Distribute(band.name, last=name) for name in reversed(order[1:])]
    loops = _loops(applied(made, steps))
    pairs = [(group.statements[0], name) for group in groups for name in group.statements[1:]]
    found = attempt(made, [*steps, *(Fuse(first, name, at=loops[first]) for first, name in pairs)])
    if found is None:
        return None
    free = (loops[group.statements[0]] for group in groups if group.free)
    return found if any(_has_lanes(found, loop) for loop in free) else None


def _has_lanes(made: Schedule, loop: str) -> bool:
    conflict = lane_conflict(made.nest, made.tree, loop)
    return conflict is None and unpaid(made, find_loop(made.tree, loop)) is None


def _loops(made: Schedule) -> dict[str, str]:
    """The innermost loop around each statement."""
    return {name: band.name for band in bands(made.tree) for name in statements(band)}


def _section(made: Schedule, band: Band, caches: Caches) -> int:
    """The iterations of which all elements fill half of the nearest cache: a power of two."""
    touched = {access for name in statements(band) for access in accesses(made.nest.statement(name))}
    bytes = sum(made.nest.array(access.array).dtype.size for access in touched)
    fitting = caches.l1 // 2 // max(1, bytes)
    return max(LEAST, min(MOST, 1 << max(0, fitting.bit_length() - 1)))


@dataclass(frozen=True)
class LoopBody:
    """Statements that share a loop; `free` if no iteration of it waits for another."""

    statements: tuple[str, ...]
    free: bool


def _groups(names: Sequence[str], pairs: Mapping[tuple[str, str], bool]) -> list[LoopBody]:
    """The statements in groups in an order that keeps their dependences, free ones apart from others.

    The next to go are, if possible, statements that may join those before.
    """
    left = _cycles(names, pairs)
    found: list[LoopBody] = []
    while left:
        ready = [one for one in left if not any(_leads(pairs, other, one) for other in left if other is not one)]
        joining = next((one for one in ready if found and _may_join(pairs, found[-1], one)), None)
        chosen = joining or ready[0]
        left.remove(chosen)
        if joining is not None:
            found[-1] = LoopBody((*found[-1].statements, *chosen.statements), chosen.free)
        else:
            found.append(chosen)
    return found


def _cycles(names: Sequence[str], pairs: Mapping[tuple[str, str], bool]) -> list[LoopBody]:
    """The statements that depend on one another in a cycle together, all others alone."""
    after = reachable([*pairs, *((name, name) for name in names)])
    cycles = dict.fromkeys(tuple(b for b in names if b in after[a] and a in after[b]) for a in names)
    return [LoopBody(cycle, not any(pairs.get((a, b)) for a in cycle for b in cycle)) for cycle in cycles]


def _leads(pairs: Mapping[tuple[str, str], bool], first: LoopBody, second: LoopBody) -> bool:
    """Whether a statement of the second group needs one of the first."""
    return any((a, b) in pairs for a, b in _between(first, second))


def _may_join(pairs: Mapping[tuple[str, str], bool], group: LoopBody, other: LoopBody) -> bool:
    """Whether two groups may share a loop: of iterations that wait, or if none would wait then."""
    if group.free != other.free:
        return False
    return not group.free or not any(pairs.get(ends) for ends in _between(group, other))


def _between(first: LoopBody, second: LoopBody) -> Iterable[tuple[str, str]]:
    return ((a, b) for a in first.statements for b in second.statements)
