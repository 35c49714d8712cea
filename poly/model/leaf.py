"""The cycles that a statement takes inside its loops, its data near: vectors, recurrences, calls of a microkernel."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import ceil, prod

from microkernels.dtypes import DType
from poly.legality import lane_conflict
from poly.model.choice import LATENCY, PER_CYCLE, STREAM
from poly.model.rates import Rates
from poly.model.region import Traffic
from poly.model.view import View
from poly.model.work import Work, work
from poly.paths import paths
from poly.schedule import Schedule
from poly.tree import Band, Micro, Node, children

START = 5.0
"""Cycles that an innermost loop takes beside its iterations: its bounds, and the branch out that is not foreseen."""

CALL = 30.0
"""Cycles that a call of a register tile takes beside its multiply-adds, where that wasn't measured."""


@dataclass(frozen=True)
class Leaf:
    """A statement with its loops. `carried` is the position of the loop whose iterations wait for each other."""

    view: View
    dtype: DType
    work: Work
    bands: tuple[Band, ...]
    carried: int | None
    micro: Micro | None

    @property
    def instances(self) -> int:
        return prod(self.view.extents.values())

    def cycles(self, traffic: Traffic, lanes: int, rates: Rates) -> float:
        """Of all instances on one core; in each it could start one multiply-add of whole vectors."""
        if self.micro is not None:
            return self._calls(self.micro, traffic, lanes, rates)
        if not self.bands:
            return self.work.scalar()
        last = len(self.bands) - 1
        trips = max(1.0, traffic.widths(self.view, last)[last])
        starts = self.instances / trips
        if self.bands[last].vectorize:
            return starts * (ceil(trips / lanes) * self.work.vector(lanes) + START)
        starting = starts * START / max(1, self.bands[last].unroll)
        return self.instances * max(self.work.scalar(), self._waiting(traffic)) + starting

    def _waiting(self, traffic: Traffic) -> float:
        """Cycles that an instance waits for another; those of loops inside the one that waits do so together."""
        if self.carried is None:
            return 0.0
        inside = self.carried + 1
        return self.work.chain / prod(traffic.widths(self.view, inside)[inside:])

    def _calls(self, micro: Micro, traffic: Traffic, lanes: int, rates: Rates) -> float:
        """Of the calls of a microkernel, whose loops are rows, columns and reduction."""
        inside = [band for band in (micro.rows, micro.columns, *micro.reduce) if band is not None]
        first = len(self.bands) - len(inside)
        widths = dict(zip((band.name for band in inside), traffic.widths(self.view, first)[first:], strict=True))
        rows = widths[micro.rows.name] if micro.rows else 1.0
        columns = widths[micro.columns.name] if micro.columns else 1.0
        steps = prod(widths[band.name] for band in micro.reduce)
        calls = self.instances / (rows * columns * steps)
        if micro.kernel.in_place:
            return calls * (rows * columns * steps / lanes * PER_CYCLE + CALL)
        return calls * tile_cycles(rates, self.dtype, rows, ceil(columns / lanes), steps)

    @cached_property
    def parallel(self) -> int | None:
        """The position of the loop that threads share."""
        return next((position for position, band in enumerate(self.bands) if band.parallel), None)

    def sharing(self, traffic: Traffic, threads: int) -> float:
        """How many threads work on the statement at a time, on average."""
        if threads == 1 or self.parallel is None:
            return 1.0
        trips = max(1, ceil(traffic.widths(self.view, self.parallel)[self.parallel]))
        return trips / ceil(trips / threads)

    def forks(self, traffic: Traffic) -> float:
        """How often threads are started."""
        if self.parallel is None:
            return 0.0
        return prod(traffic.widths(self.view, depth)[depth] for depth in range(self.parallel))


def tile_cycles(rates: Rates, dtype: DType, rows: float, vectors: int, steps: float) -> float:
    """Of a call of a register tile: as measured of the one nearest to it, or by a formula."""
    known = {speed.rows: speed for name, speed in rates.tiles if name == dtype.name and speed.vectors == vectors}
    near = min(known, key=lambda r: abs(r - rows), default=None)
    if near is None:
        return steps * max(rows * vectors, LATENCY * PER_CYCLE, rows + vectors) + CALL
    return (steps * known[near].step + known[near].call) * rows / near * (1 + STREAM * rows)


def leaf(made: Schedule, view: View) -> Leaf:
    """The leaf of a statement in a schedule."""
    name = view.statement.name
    bands = tuple(band for band in paths(made.tree)[name] if isinstance(band, Band))
    micro = next((node for node in _micros(made.tree) if node.statement == name), None)
    carried = None
    if micro is None and bands and not bands[-1].vectorize:
        inner = range(len(bands) - 1, max(-1, len(bands) - 3), -1)
        carried = next((p for p in inner if lane_conflict(made.nest, made.tree, bands[p].name) is not None), None)
    dtype = made.nest.array(view.statement.target.array).dtype
    return Leaf(view, dtype, work(made.nest, view.statement, view.brought.get(len(bands) - 1)), bands, carried, micro)


def _micros(node: Node) -> list[Micro]:
    return [node] if isinstance(node, Micro) else [found for child in children(node) for found in _micros(child)]
