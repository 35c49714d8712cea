"""Which iterations of a loop threads get: runs of them, or where late ones take longer than early ones, some of each.

for (i = 0; i < N; i += 1)            // the last half of i has three quarters of the work
  for (j = 0; j <= i; j += 1) …
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from codegen.integer import Int, Linear, lookups, maximum, quotient
from codegen.loop_ir import For, Node, Run, inside

SIZE = 4096
"""What a name stands for of which no value is known."""
UNEVEN = 1.25
"""The ratio of two iterations' work from which they are told apart."""
PARTS = 8
"""The chunks that a thread gets: their work differs by less than a tenth of its share, and neighbours stay together."""


def shares(loop: For, end: Int) -> str:
    """OpenMP's schedule of a parallel loop."""
    if not _is_uneven(loop, end):
        return "static"
    trips = quotient(end - loop.start + (loop.step - 1), loop.step)
    return f"static, {maximum(1, quotient(trips, PARTS * Linear.name('threads')))}"


def _is_uneven(loop: For, end: Int) -> bool:
    """Whether iterations in the first and in the last quarter run different numbers of statements."""
    if lookups(loop.start) or lookups(end):
        return False
    values: Mapping[str, int] = defaultdict(lambda: SIZE)
    start = loop.start.evaluate(values)
    quarter = (end.evaluate(values) - start) // (4 * loop.step) * loop.step
    work = [_runs(loop.body, {loop.variable: start + number * quarter}) for number in (1, 3)]
    return max(work) > UNEVEN * min(work)


def _runs(node: Node, known: Mapping[str, int]) -> int:
    """How many statements run, about: inner loops count as often as in the middle of those around them."""
    if isinstance(node, Run):
        return 1
    if not isinstance(node, For) or node.end is None or lookups(node.start) or lookups(node.end):
        return sum(_runs(part, known) for part in inside(node))
    values = defaultdict(lambda: SIZE, known)
    start = node.start.evaluate(values)
    trips = max(0, -((start - node.end.evaluate(values)) // node.step))
    return trips * _runs(node.body, {**known, node.variable: start + trips // 2 * node.step})
