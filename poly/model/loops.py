"""The seconds of any loop tree, in closed form over the sizes of its blocks.

    traffic    bytes that come into each cache, from what parts of the tree touch    (poly.model.region)
    work       cycles of the statements, their data near                            (poly.model.leaf)

Both come from views of the statements (`poly.model.view`). The seconds combine as in the execution-cache-memory model
(Stengel et al., "Quantifying performance bottlenecks of stencil computations", ICS 2015), with levels overlapping for
the most part.
"""

from __future__ import annotations

from collections.abc import Mapping

from microkernels.isa import ISA
from poly.cost import Cost, Part
from poly.model.choice import LINE, PAGE, Caches
from poly.model.leaf import leaf
from poly.model.rates import CLOCK, Rates
from poly.model.region import Layout, Level, Traffic, region
from poly.model.view import view
from poly.paths import paths
from poly.schedule import Schedule
from poly.tree import Band

OVERLAP = 3.0
"""How resources overlap: the exponent of the norm over their seconds (1: in turn, infinite: all at once)."""

ENTRIES, MISS = 64, 4.0
"""Entries of a first-level TLB, and the cycles of a miss that hits the second, where others overlap with it."""

RUN = 100.0
"""Bytes that a core could fetch from a far level while it waits for the first line of a run."""

FORK = 5e-6
"""Seconds that it takes to start and to join threads."""


class LoopModel:
    """Predicts the schedules that differ from a given one in sizes of blocks only; its nest's sizes are all known.

    `knobs` names, for each of its loops over blocks, the knob that says their size.
    """

    def __init__(
        self, made: Schedule, knobs: Mapping[str, str], isa: ISA, caches: Caches, rates: Rates, threads: int
    ) -> None:
        self.isa, self.rates, self.threads = isa, rates, threads
        nest = made.nest
        views = {
            name: view(nest, nest.statement(name), [band for band in path if isinstance(band, Band)], knobs)
            for name, path in paths(made.tree).items()
        }
        self.layouts = Layout.of(nest)
        self.whole = region(made.tree, 0, views)
        self.leaves = [leaf(made, one) for one in views.values()]
        self.levels = (
            ("L2", Level(caches.l1, LINE), rates.l2),
            ("L3", Level(caches.l2, LINE, start=RUN), rates.l3),
            ("memory", Level(caches.l3 or caches.l2, LINE, written=2, start=RUN), rates.memory),
            ("TLB", Level(ENTRIES * PAGE, PAGE), PAGE * CLOCK / MISS),
        )

    def predict(self, sizes: Mapping[str, int]) -> Cost:
        """The cost of one call with these sizes of blocks, its arrays where the call before has left them."""
        traffic = Traffic(self.layouts, sizes)
        shared = self._sharing(traffic)
        parts = [Part("arithmetic", self._work(traffic))]
        for name, level, rate in self.levels:
            moved = traffic.moved(self.whole, level)
            parts.append(Part(name, moved / rate / shared, 0.0 if name == "TLB" else moved))
        together = sum(part.seconds**OVERLAP for part in parts) ** (1 / OVERLAP)
        forks = sum(one.forks(traffic) for one in self.leaves) * FORK if self.threads > 1 else 0.0
        return Cost(together + forks, (*parts, Part("threads", forks)))

    def _work(self, traffic: Traffic) -> float:
        """Seconds of the statements, their data near."""
        total = 0.0
        for one in self.leaves:
            lanes = self.isa.lanes(one.dtype)
            cycle = 2 * lanes / self.rates.peak(one.dtype)
            total += one.cycles(traffic, lanes, self.rates) * cycle / one.sharing(traffic, self.threads)
        return total

    def _sharing(self, traffic: Traffic) -> float:
        """How many threads work at a time, on average over the instances."""
        alone = sum(one.instances / one.sharing(traffic, self.threads) for one in self.leaves)
        return sum(one.instances for one in self.leaves) / alone if alone else 1.0
