"""Insert the barriers that the work-items of a group need between conflicting accesses.

for t:                                for t:
  for i:  # 32 items                    for i:  # 32 items
    B[i] = A[i - 1] + A[i]      ->        B[i] = A[i - 1] + A[i]
  for i:  # 32 items                    barrier
    A[i] = B[i - 1] + B[i]              for i:  # 32 items
                                          A[i] = B[i - 1] + B[i]
                                        barrier

Only loops over groups and serial loops surround a barrier, so that all items of a group reach it. A barrier is placed
between two children of a sequence, or at the end of a serial loop's body, if conflicting accesses by different items
(at least one of them a write) have no barrier between them yet.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator
from dataclasses import dataclass, field, replace
from functools import reduce

import islpy as isl

from codegen.ir.instructions import MEMORIES, Barrier, Memory
from codegen.ir.program import Instructions, PrintedStatement
from poly.errors import ScheduleError
from poly.ir.edits import sequence
from poly.ir.instances import loop_values
from poly.ir.nest import Statement
from poly.ir.sets import own_names, set_space
from poly.ir.strides import accesses
from poly.ir.tree import Band, Copy, Leaf, Node, Sequence, children, statements
from poly.ir.work_groups import LaunchedLoops, change_kernels, width
from poly.lowering.mapping.partials import Shared, completed, passes
from poly.lowering.mapping.runners import Runners

Compare = Callable[[isl.PwAff, isl.PwAff], isl.Map]


@dataclass(frozen=True)
class Clash:
    """Pairs of instances of two statements that access the same element, at least one of which writes it."""

    source: str
    sink: str
    array: str
    pairs: isl.Map


def with_barriers(shared: Shared) -> Shared:
    """The tree with barriers as leaves.

    Raises:
        ScheduleError: items would have to wait for each other inside a loop that they share.
    """
    private = frozenset(w.name for w in shared.workspaces if w.space == "private")
    placing = _Placing(shared, Runners(shared.nest, shared.tree, private))
    tree = change_kernels(shared.tree, placing.kernel)
    texts = {name: (where, placing.text(name)) for name, where in placing.barriers.items()}
    marked = replace(shared, texts={**shared.texts, **texts})
    return replace(marked, tree=completed(marked, tree, 0))


@dataclass
class _Placing:
    """Collects the barriers: the domain of each, and the memories that it must make visible."""

    shared: Shared
    runners: Runners
    barriers: dict[str, isl.Set] = field(default_factory=dict)
    fences: dict[str, set[Memory]] = field(default_factory=dict)

    def kernel(self, kernel: LaunchedLoops) -> Node:
        """The body of a kernel with barriers."""
        if width(kernel.body) == 1:
            return kernel.body
        around = (*kernel.above, *kernel.groups)
        return self._placed(kernel.body, around, self._clashes(kernel.body, around))

    def text(self, barrier: str) -> PrintedStatement:
        memories = tuple(memory for memory in MEMORIES if memory in self.fences[barrier])
        iterators = own_names(barrier, self.barriers[barrier].dim(isl.dim_type.set))
        return PrintedStatement(iterators, Instructions((Barrier(memories),), items=0))

    def _clashes(self, body: Node, around: tuple[Band, ...]) -> list[Clash]:
        """All clashes within one group."""
        known = {statement.name: statement for statement in self.shared.nest.statements}
        found = [known[name] for name in statements(body) if name in known]
        clashes = [clash for source in found for sink in found for clash in self._between(source, sink)]
        for band in around:
            clashes = _at(band, isl.PwAff.eq_map, clashes)
        return [clash for clash in clashes if not clash.pairs.is_empty()]

    def _between(self, source: Statement, sink: Statement) -> Iterator[Clash]:
        skipped = self.runners.private | self.shared.synchronised
        for array in {load.array for load in accesses(source)} & {load.array for load in accesses(sink)} - skipped:
            pairs = [
                source.relation(first).apply_range(sink.relation(second).reverse())
                for first in accesses(source)
                for second in accesses(sink)
                if first.array == second.array == array and (first == source.target or second == sink.target)
            ]
            if pairs:
                yield Clash(source.name, sink.name, array, reduce(isl.Map.union, pairs))

    def _placed(self, node: Node, around: tuple[Band, ...], clashes: list[Clash]) -> Node:
        """The node with the barriers for clashes within one iteration of the loops around it."""
        match node:
            case Band(items=0):
                return self._loop(node, around, clashes)
            case Band():
                self._check(node, clashes)
            case Sequence():
                return self._sequence(node, around, clashes)
            case Copy(body=body):
                return replace(node, body=self._placed(body, around, clashes))
        return node

    def _loop(self, band: Band, around: tuple[Band, ...], clashes: list[Clash]) -> Node:
        inside = (*around, band)
        body = self._placed(band.body, inside, _at(band, isl.PwAff.eq_map, clashes))
        open_ends = [c for c in _at(band, isl.PwAff.lt_map, clashes) if self._crosses(c)]
        uncovered = [c for c in open_ends if not self._is_covered(c, body, body) and not self._is_met(c, body, inside)]
        if uncovered:
            body = sequence([body, self._barrier(band.body, inside, uncovered)])
        return replace(band, body=body)

    def _sequence(self, node: Sequence, around: tuple[Band, ...], clashes: list[Clash]) -> Node:
        places = {name: p for p, child in enumerate(node.children) for name in statements(child)}
        placed = [
            self._placed(child, around, [c for c in clashes if places[c.source] == places[c.sink] == p])
            for p, child in enumerate(node.children)
        ]
        apart = [c for c in clashes if places[c.source] < places[c.sink] and self._crosses(c)]
        pending = [c for c in apart if not self._is_covered(c, placed[places[c.source]], placed[places[c.sink]])]
        stops: dict[int, list[Clash]] = {}
        for clash in sorted(pending, key=lambda clash: places[clash.sink]):
            first, last = places[clash.source], places[clash.sink]
            stops.setdefault(next((stop for stop in stops if first < stop <= last), last), []).append(clash)
        nodes: list[Node] = []
        for p, child in enumerate(placed):
            nodes += [*([self._barrier(node, around, stops[p])] if p in stops else []), child]
        return sequence(nodes)

    def _crosses(self, clash: Clash) -> bool:
        return not self.runners.crossing(clash.pairs, clash.source, clash.sink).is_empty()

    def _barrier(self, node: Node, around: tuple[Band, ...], clashes: list[Clash]) -> Leaf:
        """A new barrier that is reached whenever a statement in `node` runs."""
        name = f"barrier_{len(self.barriers) + 1}" if self.barriers else "barrier"
        self.barriers[name] = passes(self.shared, node, around).set_tuple_name(name)
        self.fences[name] = {self._memory(clash.array) for clash in clashes}
        return Leaf(name)

    def _is_covered(self, clash: Clash, first: Node, second: Node) -> bool:
        """Whether a barrier comes after the source in `first`, or before the sink in `second`."""
        found = [*_after(first, clash.source, self.barriers), *_before(second, clash.sink, self.barriers)]
        return self._used(found, clash)

    def _is_met(self, clash: Clash, body: Node, inside: tuple[Band, ...]) -> bool:
        """Whether an iteration of the innermost loop between those of source and sink always reaches a barrier."""
        later = _later(len(inside))
        source, sink = (self._values(statement, inside) for statement in (clash.source, clash.sink))
        for name in _direct(children(body), self.barriers):
            met = later.intersect_range(self.barriers[name].reset_tuple_id()).apply_range(later)
            if clash.pairs.is_subset(source.apply_range(met).apply_range(sink.reverse())):
                return self._used([name], clash)
        return False

    def _values(self, statement: str, loops: tuple[Band, ...]) -> isl.Map:
        domain = self.shared.nest.statement(statement).domain
        return loop_values(domain, (band.function(statement) for band in loops))

    def _used(self, barriers: list[str], clash: Clash) -> bool:
        """Whether there are barriers; if so, one of them is made to fence the clash's memory."""
        memory = self._memory(clash.array)
        if barriers and not any(memory in self.fences[name] for name in barriers):
            self.fences[barriers[0]].add(memory)
        return bool(barriers)

    def _memory(self, array: str) -> Memory:
        return "local" if any(w.name == array and w.space == "local" for w in self.shared.workspaces) else "global"

    def _check(self, loop: Band, clashes: list[Clash]) -> None:
        for clash in clashes:
            if self._crosses(clash):
                raise ScheduleError(
                    f"work-items would have to wait for each other inside loop {loop.name}, which they share: "
                    f"{clash.source} and {clash.sink} use the same elements of {clash.array}."
                )


def _at(band: Band, compare: Compare, clashes: list[Clash]) -> list[Clash]:
    """The clashes between instances whose values of a loop compare like this."""
    cut = [
        replace(c, pairs=c.pairs.intersect(compare(band.function(c.source), band.function(c.sink)))) for c in clashes
    ]
    return [clash for clash in cut if not clash.pairs.is_empty()]


def _after(node: Node, statement: str, barriers: Container[str]) -> list[str]:
    """The barriers in the node that are always reached after the statement."""
    match node:
        case Band(items=0, body=body) | Copy(body=body):
            return _after(body, statement, barriers)
        case Sequence(nodes):
            place = _place(nodes, statement)
            return [*_after(nodes[place], statement, barriers), *_direct(nodes[place + 1 :], barriers)]
    return []


def _before(node: Node, statement: str, barriers: Container[str]) -> list[str]:
    """The barriers in the node that are always reached before the statement."""
    match node:
        case Band(items=0, body=body) | Copy(body=body):
            return _before(body, statement, barriers)
        case Sequence(nodes):
            place = _place(nodes, statement)
            return [*_direct(nodes[:place], barriers), *_before(nodes[place], statement, barriers)]
    return []


def _place(nodes: tuple[Node, ...], statement: str) -> int:
    return next(p for p, node in enumerate(nodes) if statement in statements(node))


def _direct(nodes: tuple[Node, ...], barriers: Container[str]) -> list[str]:
    return [node.statement for node in nodes if isinstance(node, Leaf) and node.statement in barriers]


def _later(count: int) -> isl.Map:
    """The relation `{ [o, v] -> [o, w] : v < w }` on `count` loops."""
    space = set_space((), count)
    relation = isl.Map.universe(isl.Space.map_from_set(space))
    for at in range(count - 1):
        relation = relation.equate(isl.dim_type.in_, at, isl.dim_type.out, at)
    return relation.order_lt(isl.dim_type.in_, count - 1, isl.dim_type.out, count - 1)
