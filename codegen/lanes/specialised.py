"""Vector loops whose inner loops are written out, with a version of the loops around for each set of bounds.

for q_tile < 4:                                     for q_tile < 4:
  for c:  # vectorize                                 if q_tile < 1:
    for q in the tile:  # unroll                        for c: S(0, 1, c); S(0, 2, c); S(1, 0, c); …
      for s in range(max(0, 1 - q), 3):  # unroll  ->  else:
        S(q, s, c)                                      for c: S(7*q_tile, 0, c); S(7*q_tile, 1, c); …

Padding then costs nothing inside: only the tiles at the border have other instances. A bound that depends on the
lane becomes a condition in the lane, or the iterations with conditions run before and behind the vectors (Griebl,
Feautrier, Lengauer, "Index set splitting", IJPP 28(6), 2000).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import pairwise, product

from codegen.ir.integer import Compare, Int, Linear, Op, Test, connected, gaps, parts_of
from codegen.ir.loop_ir import Block, Comment, Declare, For, If, Node, Once, inside, mapped, substituted
from codegen.ir.loop_ir import walk as nodes
from codegen.ir.promotion import LARGEST_INDEX
from codegen.ir.ranges import Ranges, simplified
from codegen.lanes.interior import comparisons, middle_apart, with_middle

MOST_ZONES = 8
"""The most versions of one loop's body: each is a text of its own."""
MIXED = 4
"""The most iterations in a row that get a version each."""


def specialised(node: Node, known: Ranges) -> Node:
    """The loops with what is inside vector loops written out, in versions where the bounds there differ."""
    if not isinstance(node, For):
        return mapped(node, lambda child: specialised(child, known))
    if node.mark.vectorize:
        return _vector(node, known)
    inner = known.inside(node)
    zones = _zones(node, inner)
    if len(zones) < 2:
        return with_middle(replace(node, body=specialised(node.body, inner)), inner)
    variable = node.variable
    bodies = [specialised(*_version(node.body, variable, zone, inner)) for zone in zones]
    made = bodies[-1]
    for (_, last), body in zip(reversed(zones[:-1]), reversed(bodies[:-1]), strict=True):
        made = If(Compare(Linear.name(variable), "<=", Linear.of(last)), body, made)
    return replace(node, body=made)


def parted(loop: For, known: Ranges) -> Node | None:
    """A vector loop whose body is written out in parts without conditions on the lane: the longest stays in lanes.

    None if the others have more than a few iterations, or another condition decides what runs there.
    """
    inner = known.inside(loop)
    zones = _parts(loop, inner, ((test, frozenset()) for test in comparisons(loop.body)))
    longest = max(zones, key=lambda zone: zone[1] - zone[0], default=(0, 0))
    rest = sum(last - first + 1 for first, last in zones if (first, last) != longest)
    if loop.step != 1 or loop.start.number is None or loop.span is None or not 0 < rest <= MIXED:
        return None
    found: list[Node] = []
    for first, last in zones:
        body = _written_out(*_version(loop.body, loop.variable, (first, last), inner))
        if body is None or any(isinstance(node, If) for node in nodes(body)):
            return None
        mark = loop.mark if (first, last) == longest else replace(loop.mark, vectorize=False)
        part = For.counted(loop.variable, Linear.of(last + 1), body, Linear.of(first))
        found.append(body if first == last else replace(part, mark=mark))
    return Block(tuple(found))


def _version(body: Node, variable: str, zone: tuple[int, int], known: Ranges) -> tuple[Node, Ranges]:
    """A loop's body for a part of its iterations."""
    first, last = zone
    if first == last:
        return simplified(substituted(body, {variable: Linear.of(first)}), known), known
    narrower = known.having(variable, zone)
    return simplified(body, narrower), narrower


def _vector(loop: For, known: Ranges) -> Node:
    """The vector loop with the loops in it written out; unchanged if one of them has no few known iterations."""
    is_straight = not any(isinstance(node, For) for node in nodes(loop.body))
    body = loop.body if is_straight else _written_out(loop.body, known.inside(loop))
    return loop if body is None else middle_apart(replace(loop, body=body), loop.body)


def _written_out(node: Node, known: Ranges) -> Node | None:
    match node:
        case For():
            values = _values(node, known)
            if values is None:
                return None
            parts = [_where(test, substituted(node.body, {node.variable: at}), known) for at, test in values]
            return _block(_written_out(part, known) for part in parts)
        case If(test, then, other):
            if other is not None and known.fails(test):
                return _written_out(other, known)
            inside = _written_out(then, known.given(test))
            if inside is None or other is None or known.holds(test):
                return None if inside is None else _where([test], inside, known)
            otherwise = _written_out(other, known)
            return None if otherwise is None else If(known.test(test), inside, otherwise)
        case Block(several):
            return _block(_written_out(part, known) for part in several)
        case Declare(_, body) | Comment(_, body):
            inside = _written_out(body, known)
            return None if inside is None else replace(node, body=inside)
        case Once(_, body):
            return _written_out(body, known)
    return node


def _block(parts: Iterator[Node | None]) -> Node | None:
    found: list[Node] = []
    for part in parts:
        if part is None:
            return None
        found += part.nodes if isinstance(part, Block) else (part,)
    return Block(tuple(found))


def _where(tests: list[Test], node: Node, known: Ranges) -> Node:
    """The node under conditions, without those known to hold; nothing if one is known not to."""
    parts = [known.test(part) for test in tests for part in parts_of(test) if not known.holds(part)]
    if any(map(known.fails, parts)):
        return Block(())
    return If(connected("&&", parts), node) if parts else node


def _values(loop: For, known: Ranges) -> list[tuple[Int, list[Test]]] | None:
    """The values that a loop's variable may take, each with the conditions that it does; None if there are too many."""
    if loop.end is None or loop.mark.unroll < 2:
        return None
    starts, ends = _operands(known.value(loop.start), "max"), _operands(known.value(loop.end), "min")
    apart = [(_most(end - start, known), start) for start, end in product(starts, ends)]
    found = [(most, start) for most, start in apart if most is not None and most <= loop.mark.unroll * loop.step]
    if not found:
        return None
    count, first = min(found, key=lambda one: one[0])
    if loop.step != 1 and len(starts) > 1:
        return None
    places = [first + step for step in range(0, count, loop.step)]
    return [
        (at, [*(Compare(low, "<=", at) for low in starts), *(Compare(at, "<", high) for high in ends)]) for at in places
    ]


def _most(span: Int, known: Ranges) -> int | None:
    """The span of a loop: the most that it may be if it may also be empty, as at borders; None if it is not known."""
    if span.number is not None or known.interval(span)[0] > 0:
        return span.number
    return known.most(span)


def _operands(value: Int, name: str) -> tuple[Int, ...]:
    atom = value.atom
    return atom.args if isinstance(atom, Op) and atom.name == name else (value,)


def _zones(loop: For, known: Ranges) -> list[tuple[int, int]]:
    """The parts of a loop's iterations, by first and last value, in each of which the same instances run."""
    return _parts(loop, known, _tests(loop.body, known))


def _parts(loop: For, known: Ranges, tests: Iterable[tuple[Compare, frozenset[str]]]) -> list[tuple[int, int]]:
    """The same where each of some comparisons, given with the lanes' variables, always holds or never; none if many."""
    low, high = known.of[loop.variable]
    if not _is_known(low, high):
        return []
    found = dict.fromkeys(tests)
    cuts = {cut for test, lanes in found for cut in _cuts(test, loop.variable, known, lanes)}
    zones = [
        (first, after - 1) for first, after in pairwise([low, *sorted(c for c in cuts if low < c <= high), high + 1])
    ]
    return zones if len(zones) <= MOST_ZONES else []


def _is_known(low: int, high: int) -> bool:
    """Whether both ends of an interval are known; in `i < N`, i is less than what is not known of N."""
    return low >= -LARGEST_INDEX and high <= LARGEST_INDEX


def _tests(node: Node, known: Ranges) -> Iterator[tuple[Compare, frozenset[str]]]:
    """The comparisons that decide which instances a vector loop runs, each with the loop's variable."""
    if isinstance(node, For) and node.mark.vectorize:
        loops = (loop for loop in nodes(_vector(node, known)) if isinstance(loop, For) and loop.mark.vectorize)
        yield from ((test, frozenset({loop.variable})) for loop in loops for test in comparisons(loop.body))
        return
    known = known.inside(node) if isinstance(node, For) else known
    for child in inside(node):
        yield from _tests(child, known)


def _cuts(test: Compare, variable: str, known: Ranges, lanes: frozenset[str]) -> Iterator[int]:
    """The values of a variable from which on a comparison always holds, or never."""
    for gap in gaps(test):
        factor = gap.coefficient(variable)
        rest = gap - Linear.name(variable) * factor
        if not factor or variable in rest.names or lanes & rest.names:
            continue
        low, high = known.interval(rest)
        if not _is_known(low, high):
            continue
        if factor > 0:
            first, last = (-1 - high) // factor + 1, -(low // factor)
        else:
            first, last = low // -factor + 1, -((-1 - high) // -factor)
        yield from range(first, last + 1) if last - first <= MIXED else (first, last)
