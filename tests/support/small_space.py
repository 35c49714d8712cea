"""A small artificial space with known times, and a measurer that returns them, for tests of code that uses tables."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

import poly
from benchmarks.case import Case
from benchmarks.problems.matmul import Matmul
from benchmarks.search.table import Entry, Origin, Pass, Table, key
from benchmarks.workloads import nests
from microkernels.dtypes import DTYPES
from microkernels.isa import PORTABLE
from poly.autoschedule.spaces.space import Knob, Point, Space, Structure, Values
from poly.model.cost import Cost
from poly.search.events import Ask, Trial

SIZES = {"M": 8, "N": 8, "K": 8}
CASE = Case("gemm", "gemm 8x8x8", DTYPES["f32"], Matmul(8, 8, 8), lambda: nests.make("gemm_nn", DTYPES["f32"]), SIZES)
FACTS = {
    "cpu": "made up", "isa": "portable", "cores": 1, "caches": [{"level": 1, "bytes": 32768, "ways": 8, "line": 64,
    "shared_by": 1}], "peaks": [{"dtype": "f32", "threads": 1, "gflops": 100.0}],
    "bandwidths": [{"level": "memory", "threads": 1, "read": 20.0, "triad": 15.0}],
    "tiles": [{"rows": 1, "vectors": 1, "step": 1.0, "call": 5.0}],
}  # fmt: skip
ORIGIN = Origin(FACTS, "cc 1.0", "0.1.0", "2026-01-01")

BEST = Point(1, (2, 2))
"""The fastest point, and the model's choice."""


def bowl(values: Values, slower: float) -> float:
    """Seconds, with the minimum at rows 4, depth 64."""
    rows, depth = values["rows"] or 0, values["depth"] or 0
    return 1e-3 * slower * (1 + 0.1 * abs(rows - 4) + 0.05 * abs(depth - 64) / 16)


def small_space(blind: bool = False) -> Space:
    """Two structures of 4 x 4 points, the second faster; with `blind` the model predicts the same for every point."""
    nest = nests.make("gemm_nn", DTYPES["f32"]).with_sizes(SIZES)

    def structure(order: str, slower: float) -> Structure:
        return Structure(
            traits=(("order", order), ("left", "in place")),
            knobs=(Knob("rows", (1, 2, 4, 8)), Knob("depth", (16, 32, 64, 128))),
            allows=lambda values: (values["rows"], values["depth"]) != (8, 128),
            schedule=lambda values: poly.schedule(nest),
            predict=lambda values: Cost(1.0 if blind else bowl(values, slower)),
        )

    structures = (structure("rows inside", 1.5), structure("columns inside", 1.0))
    return Space(nest, PORTABLE, 1, structures, BEST)


def seconds(space: Space, point: Point) -> float:
    """The time that the fakes assume for a point."""
    return bowl(space.values(point), 1.5 if point.structure == 0 else 1.0)


@dataclass
class FakeMeasurer:
    """Returns the known times; `asked` collects the measured points, and the n-th call raises KeyboardInterrupt."""

    space: Space
    asked: list[Ask] = field(default_factory=list)
    stop_at: int | None = None
    broken: frozenset[Point] = frozenset()
    speed: float = 1.0

    def measure(self, ask: Ask) -> list[Trial]:
        if self.stop_at is not None and len(self.asked) == self.stop_at:
            raise KeyboardInterrupt
        self.asked.append(ask)
        return [self._trial(point, ask.incumbent) for point in ask.points]

    def _trial(self, point: Point, incumbent: Point | None) -> Trial:
        if point in self.broken:
            return Trial(point, (), failure="crash: it fell over")
        rival = () if incumbent is None else self._samples(incumbent)
        return Trial(point, self._samples(point), rival)

    def _samples(self, point: Point) -> tuple[float, ...]:
        time = seconds(self.space, point) * self.speed
        return tuple(time * factor for factor in (0.99, 1.0, 1.0, 1.0, 1.01))


def full_table(space: Space, name: str = "gemm 8x8x8", noise: float = 0.01, passes: int = 4) -> Table:
    """Every point with so many visits; the noise of a sample is normal, and each round has a speed of its own."""
    random = Random(name)
    speeds = [random.uniform(1, 1.2) for _ in range(passes)]
    entries = {}
    for point in space:
        visits = []
        for speed in speeds:
            times = (seconds(space, point) * speed * (1 + noise * random.gauss(0, 1)) for _ in range(4))
            visits.append(Pass(tuple(times), seconds(space, space.choice) * speed))
        entries[key(space, point)] = Entry(tuple(visits), seconds=0.25)
    return Table(name, "f32", 1, ORIGIN, key(space, space.choice), entries)
