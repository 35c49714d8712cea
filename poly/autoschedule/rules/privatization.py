"""Private copies of arrays that each iteration of a loop writes anew, where nothing else keeps its iterations in order.

for r: for q:                                  for r: for q:
  for p: for s: sum[p] += A[r, q, s]*B[s, p]     for p: for s: sum_private[r, q, p] += A[r, q, s]*B[s, p]
  for p: A[r, q, p] = sum[p]              ->     for p: A[r, q, p] = sum_private[r, q, p]
                                                 if r == NR-1 and q == NQ-1: for p: sum[p] = sum_private[r, q, p]

The loops then have threads, and the product is one over r, q and p.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from itertools import takewhile

from poly.analysis.dependences import Dependence, dependences
from poly.analysis.legality import carried
from poly.autoschedule.rules.attempt import attempt, with_free_name
from poly.ir.budget import QUESTION, TooCostly, limited
from poly.ir.nest import Nest
from poly.ir.strides import accesses
from poly.ir.tree import Band, Node, bands, parts, statements
from poly.schedules.schedule import Schedule, schedule
from poly.schedules.steps import Privatize


def privatized(nest: Nest) -> Schedule | None:
    """The schedule with such copies; None if there are none, or it takes too much work to find out."""
    rewritten = {d.array for d in dependences(nest).binding if d.kind == "output"}
    if not rewritten:
        return None
    made = schedule(nest)
    with suppress(TooCostly), limited(QUESTION):
        for part in parts(made.tree):
            for array, loops in _copied(nest, made.tree, part, rewritten).items():
                made = attempt(made, [with_free_name(made.nest, Privatize(array, loops))]) or made
        return made if made.steps else None
    return None


def _copied(nest: Nest, tree: Node, part: Node, rewritten: set[str]) -> dict[str, tuple[str, ...]]:
    """The arrays to copy in consecutive loops, and the loops of which each iteration has its own."""
    inside = frozenset(statements(part))
    users = {array: _users(nest, array) & inside for array in rewritten}
    around = {array: _around(part, used) for array, used in users.items() if used}
    order = {band.name: carried(nest, tree, band.name) for bands_ in around.values() for band in bands_}
    turns = {array: {b.name for b in found if _takes_turns(array, order[b.name])} for array, found in around.items()}
    free = {loop for loop, found in order.items() if found and all(loop in turns.get(d.array, ()) for d in found)}
    loops = {array: _run([band.name for band in found], turns[array] & free) for array, found in around.items()}
    return {array: run for array, run in loops.items() if run}


def _users(nest: Nest, array: str) -> frozenset[str]:
    return frozenset(s.name for s in nest.statements if any(load.array == array for load in accesses(s)))


def _around(part: Node, used: frozenset[str]) -> tuple[Band, ...]:
    """The loops around all of some statements."""
    return tuple(band for band in bands(part) if used <= frozenset(statements(band)))


def _takes_turns(array: str, order: Sequence[Dependence]) -> bool:
    """Whether a loop carries dependences on an array, but no values."""
    own = [d.kind for d in order if d.array == array]
    return bool(own) and "flow" not in own


def _run(loops: Sequence[str], wanted: set[str]) -> tuple[str, ...]:
    """The first loops in a row among those wanted."""
    first = next((at for at, loop in enumerate(loops) if loop in wanted), len(loops))
    return tuple(takewhile(lambda loop: loop in wanted, loops[first:]))
