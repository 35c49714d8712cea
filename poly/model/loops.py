"""The seconds of any loop tree, in closed form over its sizes: bytes of each level, and work of its statements.

    body fits in a cache           what one run of the loop touches is fetched once
    it doesn't                     each iteration fetches its own again

What a part of the loops touches follows from the views of its statements (`poly.model.view`); accesses that differ by
constants only are one group, whose lines count once. The seconds combine as in the execution-cache-memory model
(Stengel et al., "Quantifying performance bottlenecks of stencil computations", ICS 2015), with levels overlapping in
part.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil, prod

from microkernels.isa import ISA
from poly.cost import Cost, Part
from poly.legality import lane_conflict
from poly.model.choice import LATENCY, LINE, PER_CYCLE, Caches
from poly.model.rates import Rates
from poly.model.view import Dimension, Group, View, view
from poly.model.work import Work, work
from poly.nest import Nest
from poly.paths import paths
from poly.schedule import Schedule
from poly.tree import Band, Micro, Node, children, statements

FULL = 0.75
"""The part of a cache that a working set may fill before lines are lost: replacement is not perfect."""

OVERLAP = 2.0
"""How resources overlap: the exponent of the norm over their seconds (1: in turn, infinite: all at once)."""

START = 20.0
"""Cycles that an innermost loop takes beside its iterations: its bounds, and the branch out that is not foreseen."""

CALL = 30.0
"""Cycles that a call of a register tile takes beside its multiply-adds."""

FORK = 5e-6
"""Seconds that it takes to start and to join threads."""

Sizes = Mapping[str, int]


@dataclass(frozen=True)
class _Part:
    """A node of the tree as the model sees it: how often it runs inside its parent, and what one run touches."""

    node: Node
    depth: int
    """The loops around it."""
    views: tuple[View, ...]
    """Of the statements below."""
    groups: tuple[tuple[View, Group], ...]
    """What they access, each group once, with a statement that does."""
    below: tuple[_Part, ...]


class LoopModel:
    """Predicts schedules that differ from a given one in sizes of blocks only.

    `knobs` names, for each of its loops over blocks, the knob that says their size. `sizes` are those of the nest that
    are still open.
    """

    def __init__(
        self,
        made: Schedule,
        knobs: Mapping[str, str],
        isa: ISA,
        caches: Caches,
        rates: Rates,
        threads: int,
    ) -> None:
        self.nest, self.isa, self.caches, self.rates, self.threads = made.nest, isa, caches, rates, threads
        found = {
            name: view(made.nest, made.nest.statement(name), [b for b in path if isinstance(b, Band)], knobs)
            for name, path in paths(made.tree).items()
        }
        self.root = self._part(made.tree, 0, found)
        self.leaves = [_leaf(made, self.nest, found[name], isa) for name in statements(made.tree)]
        self.lengths = {array.name: tuple(e.constant for e in array.shape) for array in made.nest.arrays}
        self.bytes = {array.name: array.dtype.size for array in made.nest.arrays}

    def _part(self, node: Node, depth: int, found: Mapping[str, View]) -> _Part:
        inner = depth + isinstance(node, Band)
        views = tuple(found[name] for name in statements(node))
        below = () if isinstance(node, Micro) else tuple(self._part(child, inner, found) for child in children(node))
        joined: dict[tuple[object, ...], tuple[View, Group]] = {}
        for one in views:
            for group in one.groups:
                known = joined.get(group.key)
                joined[group.key] = (known[0], known[1].joined(group)) if known else (one, group)
        return _Part(node, depth, views, tuple(joined.values()), below)

    def predict(self, sizes: Sizes) -> Cost:
        """The cost with these sizes of blocks, by knob."""
        seconds = {"multiply-adds": self._work(sizes)}
        moved = {}
        levels = (("L2", self.caches.l1, self.rates.l2), ("L3", self.caches.l2, self.rates.l3))
        for name, capacity, rate in (*levels, ("memory", self.caches.l3, self.rates.memory)):
            moved[name] = self._traffic(self.root, capacity * FULL, sizes)
            seconds[name] = moved[name] / rate / self._sharing(sizes)
        total = sum(s**OVERLAP for s in seconds.values()) ** (1 / OVERLAP)
        forks = self._forks(sizes) * FORK
        parts = tuple(Part(name, s, moved.get(name, 0.0)) for name, s in seconds.items())
        return Cost(total + forks, (*parts, Part("threads", forks)) if forks else parts)

    def _traffic(self, part: _Part, capacity: float, sizes: Sizes) -> float:
        """Bytes that one run of a part brings into a cache that holds nothing of it yet; what it writes goes back too."""
        touched = self._touched(part, sizes, written=2)
        if not part.below or self._touched(part, sizes) <= capacity:
            return touched
        if not isinstance(part.node, Band):
            return sum(self._traffic(child, capacity, sizes) for child in part.below)
        (body,) = part.below
        if self._touched(body, sizes) <= capacity:
            return touched
        trips = max(one.widths(part.depth, sizes)[part.depth] for one in part.views)
        return max(touched, trips * self._traffic(body, capacity, sizes))

    def _touched(self, part: _Part, sizes: Sizes, written: int = 1) -> float:
        """Bytes of the lines that one run of a part touches; those that it writes count `written` times."""
        widths = {id(one): one.widths(part.depth, sizes) for one in part.views}
        return sum((written if g.written else 1) * self._lines(g, widths[id(one)]) for one, g in part.groups)

    def _lines(self, group: Group, widths: Sequence[int]) -> float:
        """Bytes of the lines of a group of accesses."""
        shape, size = self.lengths[group.array], self.bytes[group.array]
        reach = [min(length, _reach(d, widths)) for d, length in zip(group.dimensions, shape, strict=True)]
        points = prod(widths[at] for at in {at for d in group.dimensions for at, _ in d.terms})
        row = reach[-1] * size
        lines = row / LINE if reach[-1] >= shape[-1] - 2 else 1 + (row - size) / LINE
        spans = prod(d.high - d.low + 1 for d in group.dimensions)
        return min(prod(reach[:-1]) * lines, points * spans) * LINE

    def _sharing(self, sizes: Sizes) -> float:
        """How many threads work at a time, on average."""
        if self.threads == 1:
            return 1.0
        instances = [prod(leaf.view.extents.values()) for leaf in self.leaves]
        alone = sum(n / leaf.sharing(self.threads, sizes) for n, leaf in zip(instances, self.leaves, strict=True))
        return sum(instances) / alone

    def _forks(self, sizes: Sizes) -> float:
        """How often threads are started."""
        return sum(leaf.forks(sizes) for leaf in self.leaves) if self.threads > 1 else 0.0

    def _work(self, sizes: Sizes) -> float:
        """Seconds of the statements, their data in the first level."""
        total = 0.0
        for leaf in self.leaves:
            lanes = self.isa.lanes(self.nest.array(leaf.view.statement.target.array).dtype)
            peak = self.rates.peak(self.nest.array(leaf.view.statement.target.array).dtype)
            total += leaf.cycles(lanes, sizes) * 2 * lanes / peak / leaf.sharing(self.threads, sizes)
        return total


def _reach(dimension: Dimension, widths: Sequence[int]) -> int:
    """How far an index reaches, in elements."""
    return 1 + dimension.high - dimension.low + sum(abs(c) * (widths[at] - 1) for at, c in dimension.terms)


@dataclass(frozen=True)
class _Leaf:
    """A statement with its loops and its work."""

    view: View
    work: Work
    bands: tuple[Band, ...]
    carried: int | None
    """The loop, by position, whose iterations wait for each other; None where none of the inner two does."""
    micro: Micro | None

    def runs(self, depth: int, sizes: Sizes) -> float:
        """How often the loops inside of the outer `depth` are started."""
        return prod(self.view.widths(d, sizes)[d] for d in range(depth))

    def cycles(self, lanes: int, sizes: Sizes) -> float:
        """Of all instances, on one core, in cycles that start one multiply-add of a vector."""
        if self.micro is not None:
            return self._calls(lanes, sizes)
        if not self.bands:
            return self.work.scalar()
        instances = prod(self.view.extents.values())
        trips = self.view.widths(len(self.bands) - 1, sizes)[-1]
        starts = instances / trips
        if self.bands[-1].vectorize:
            return starts * (ceil(trips / lanes) * self.work.vector(lanes) + START)
        beside = 1
        if self.carried is not None:
            beside = prod(self.view.widths(self.carried + 1, sizes)[self.carried + 1 :])
        waiting = self.work.chain / beside if self.carried is not None else 0.0
        return instances * max(self.work.scalar(), waiting) + starts * START / max(1, self.bands[-1].unroll)

    def _calls(self, lanes: int, sizes: Sizes) -> float:
        """Of the calls of a microkernel: its inner loops are rows, columns and reduction."""
        assert self.micro is not None, "asked for statements of microkernels only"
        inside = [band for band in (self.micro.rows, self.micro.columns, *self.micro.reduce) if band is not None]
        first = len(self.bands) - len(inside)
        widths = self.view.widths(first, sizes)
        by_name = {band.name: widths[first + at] for at, band in enumerate(inside)}
        rows = by_name[self.micro.rows.name] if self.micro.rows else 1
        vectors = ceil(by_name[self.micro.columns.name] / lanes) if self.micro.columns else 1
        depth = prod(by_name[band.name] for band in self.micro.reduce)
        step = max(rows * vectors / PER_CYCLE, LATENCY, (rows + vectors) / PER_CYCLE) + 0.25
        return self.runs(first, sizes) * (depth * step + CALL) * PER_CYCLE / 2

    def sharing(self, threads: int, sizes: Sizes) -> float:
        """How many threads work on the statement at a time, on average."""
        at = self._parallel()
        if threads == 1 or at is None:
            return 1.0
        trips = self.view.widths(at, sizes)[at]
        return trips / ceil(trips / threads)

    def forks(self, sizes: Sizes) -> float:
        at = self._parallel()
        return 0.0 if at is None else self.runs(at, sizes)

    def _parallel(self) -> int | None:
        return next((position for position, band in enumerate(self.bands) if band.parallel), None)


def _leaf(made: Schedule, nest: Nest, seen: View, isa: ISA) -> _Leaf:
    name = seen.statement.name
    bands = tuple(band for band in paths(made.tree)[name] if isinstance(band, Band))
    micro = next((n for n in _micros(made.tree) if n.statement == name), None)
    carried = None
    if micro is None and bands and not bands[-1].vectorize:
        inner = range(len(bands) - 1, max(-1, len(bands) - 3), -1)
        carried = next((p for p in inner if lane_conflict(nest, made.tree, bands[p].name) is not None), None)
    last = len(bands) - 1
    return _Leaf(seen, work(nest, seen, seen.brought.get(last)), bands, carried, micro)


def _micros(node: Node) -> list[Micro]:
    return [node] if isinstance(node, Micro) else [found for child in children(node) for found in _micros(child)]
