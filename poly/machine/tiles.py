"""What register tiles take on this core: steps and calls from the nearest cache, and operands that are further away.

All times are in vector multiply-adds, measured while a tile multiplies and adds, so that only what its arithmetic does
not hide is counted. Their sum is the time of the execution-cache-memory model (Stengel et al., "Quantifying performance
bottlenecks of stencil computations", ICS 2015), with terms that are measured instead of described.

All jobs are timed in turn, round after round, and the least time of each counts, since other processes can only slow it
down; of those that read from levels shared with other cores, the lower quartile. A busy neighbour on the core's other
hardware thread halves the issue slots and leaves the peak of multiply-adds as it was; so each round also times
instructions that only take issue slots, and a round in which the core issued fewer than it can is done again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from statistics import median
from typing import NamedTuple

import numpy as np

from microkernels.catalogue import fits, gemm, tiles
from microkernels.isa import ISA
from microkernels.kernel import OuterProduct
from poly.machine.description import Machine
from poly.machine.measured import ProductCost, TileCosts, TileSpeed
from poly.machine.operands import Job, Name, Operands
from poly.machine.tile_probes import DTYPE, LONG, SHORT, TileProbes

ROWS = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 16, 20, 24, 28)
"""Rows of the register tiles that are measured."""

ROUNDS, MOST_ROUNDS = 12, 40
"""Rounds that count, and the most that are done where some are disturbed or times differ much."""

STEADY = 0.1
"""The spread up to which times are steady."""

QUIET = 0.85
"""The part of the best issue rate below which a round is disturbed."""

SHARED = ("L3", "memory")
"""Levels of memory that others use, too: of their jobs the lower quartile counts, since that use does not end."""

BRANCHES = 4096
"""The branches of a sample, half of which go each way."""

SAMPLE = 5e4
"""Vector multiply-adds of a sample of a tile in the nearest cache."""


def tile_costs(here: Machine) -> TileCosts:
    """Measure the machine's register tiles in a few seconds, most of them the compiler's.

    Raises ToolchainError if they cannot be built.
    """
    near, usual = measured_tiles(here.isa), tiles(here.isa, DTYPE)[0]
    tall = max(near, key=lambda kernel: kernel.rows)
    probes = TileProbes(here.isa, near, tuple(dict.fromkeys((usual, tall))))
    jobs: dict[Name, Job] = {(k, steps): partial(_near, probes, k, steps) for k in near for steps in (SHORT, LONG)}
    operands = Operands(probes, here, usual, tall)
    jobs |= {("product", name): partial(_product, probes, name) for name in probes.products}
    jobs |= {("branches", order): partial(_branches, probes, order == "any") for order in ("any", "sorted")}
    rounds = _Rounds(probes, {**jobs, **operands.jobs()})
    times = rounds.run()
    found = {k: _speed(k, times[k, SHORT], times[k, LONG]) for k in near}
    speeds = tuple(found.values())
    lines, places, others = operands.costs(times, found[usual])
    products = tuple(ProductCost(name, times["product", name]) for name in probes.products)
    mispredicted = 2 * max(0.0, times["branches", "any"] - times["branches", "sorted"])
    return TileCosts(
        speeds,
        lines,
        places,
        **others,
        disturbed=rounds.disturbed,
        spread=rounds.spread,
        products=products,
        mispredicted=mispredicted,
    )


def _product(probes: TileProbes, name: str, _: int) -> float:
    return probes.product(name)


def _branches(probes: TileProbes, random: bool, number: int) -> float:
    """Of random ones, half are mispredicted: each round has others, since CPUs learn thousands of them."""
    taken = np.random.default_rng(number).permutation(np.arange(BRANCHES, dtype=np.uint16) % 2).astype(np.uint8)
    return probes.branches(taken if random else np.sort(taken))


def measured_tiles(isa: ISA) -> tuple[OuterProduct, ...]:
    """The register tiles that are measured."""
    return tuple(
        gemm(isa, DTYPE, rows, vectors) for vectors in range(1, 5) for rows in ROWS if fits(isa, rows, vectors)
    )


def _near(probes: TileProbes, kernel: OuterProduct, steps: int, _: int) -> float:
    probes.near(kernel, steps, 4)
    return probes.near(kernel, steps, 1 + int(SAMPLE / (kernel.rows * kernel.vectors * steps)))


def _speed(kernel: OuterProduct, short: float, long: float) -> TileSpeed:
    """The time is linear in the steps. No step takes less than its multiply-adds, no call less than nothing."""
    step = max(float(kernel.rows * kernel.vectors), (long - short) / (LONG - SHORT))
    return TileSpeed(kernel.rows, kernel.vectors, step, max(0.0, long - LONG * step))


class Round(NamedTuple):
    """A round: seconds of an instruction (the median of several), of a multiply-add (the least), and of each job."""

    idle: float
    unit: float
    times: dict[Name, float]


class _Rounds:
    """Times jobs in turn, in vector multiply-adds."""

    def __init__(self, probes: TileProbes, jobs: Mapping[Name, Job]) -> None:
        self._probes, self._jobs = probes, jobs
        self.disturbed = self.spread = 0.0

    def run(self) -> dict[Name, float]:
        """The least time of each job over the undisturbed rounds; over all if the core is never quiet."""
        done: list[Round] = []
        while True:
            done.append(self._round(len(done)))
            best = min(one.idle for one in done)
            quiet = [one for one in done if one.idle * QUIET <= best]
            kept = quiet if len(quiet) >= ROUNDS // 2 else done
            times = {name: sorted(one.times[name] for one in kept) for name in self._jobs}
            self.spread = _spread(times.values())
            if len(done) >= MOST_ROUNDS or (len(quiet) >= ROUNDS and self.spread <= STEADY):
                break
        self.disturbed = 1 - len(quiet) / len(done)
        unit = min(one.unit for one in kept)
        return {name: own[len(own) // 4 if name[1] in SHARED else 0] / unit for name, own in times.items()}

    def _round(self, number: int) -> Round:
        idle, units, times = [self._probes.idle()], [], {}
        for at, (name, job) in enumerate(self._jobs.items()):
            times[name] = job(number)
            if at % 16 == 0:
                units.append(self._probes.unit())
                idle.append(self._probes.idle())
        return Round(median(idle), min(units), times)


def _spread(times: Iterable[list[float]]) -> float:
    """The median, over jobs, of the time between the quartiles, relative to the least; the times of each are sorted."""
    return median((own[len(own) * 3 // 4] - own[len(own) // 4]) / own[0] for own in times)
