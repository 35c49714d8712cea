"""An explanation of a schedule, as a value."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from poly.display import Displayed, time_text
from poly.explanation.reasons import Reason, reason_lines
from poly.explanation.text import loops, placements, roofline, working_sets
from poly.explanation.values import ARITHMETIC, Level, Measurement
from poly.model import Caches
from poly.model.cost import Cost
from poly.schedules.schedule import Schedule
from poly.working_sets import LoopFootprint, Placement, Reuse

ESTIMATED = "Some sets were too large or too irregular to count: their bounding boxes were counted instead."

UNCONDITIONAL = "The sets are too irregular: all figures are for the loops without the conditions of their statements."


@dataclass(frozen=True, repr=False)
class Explanation(Displayed):
    """Where the time of a schedule goes.

    `flop` is the number of operations of a call, and `peak` the most operations per second of all cores. `levels` go
    from L1, which serves loads and stores, to memory. `caches` are the bytes of each cache that a working set may fill.
    """

    schedule: Schedule
    target: str
    threads: int
    flop: int
    peak: float
    levels: tuple[Level, ...]
    footprints: tuple[LoopFootprint, ...]
    reuses: tuple[Reuse, ...]
    caches: Caches
    pessimistic: Placement
    optimistic: Placement
    prediction: Cost | None = None
    measurement: Measurement | None = None
    reasons: tuple[Reason, ...] = ()
    """Why loops are not parallel or not vectorised, and why statements have no microkernel."""
    rough: bool = False
    """Whether conditions of statements were left out of all sets."""

    @property
    def arithmetic(self) -> float:
        """Seconds that the operations take at peak speed."""
        return self.flop / self.peak

    @property
    def times(self) -> dict[str, float]:
        """Seconds that each resource takes alone, at its measured rate."""
        return {ARITHMETIC: self.arithmetic, **{level.name: level.seconds for level in self.levels}}

    @property
    def bound(self) -> str:
        """The resource that takes the longest."""
        return max(self.times, key=lambda name: self.times[name])

    @property
    def expected(self) -> float:
        """Seconds of a call, from the model's prediction or else from the roofline."""
        return self.prediction.seconds if self.prediction else self.times[self.bound]

    @property
    def exact(self) -> bool:
        """Whether all sets were counted exactly; otherwise some numbers are estimates."""
        sets = [found for reuse in self.reuses for found in (reuse.least, reuse.most)]
        return not self.rough and all(found.exact for found in sets) and all(f.footprint.exact for f in self.footprints)

    def __str__(self) -> str:
        """The whole explanation as text: times, roofline, footprints, working sets."""
        placed = {"pessimistic": self.pessimistic, "optimistic": self.optimistic}
        sections = (
            self._times(),
            roofline(self.flop, self.peak, self.levels),
            loops(self.footprints, self.caches),
            working_sets(self.reuses, self.caches),
            placements(placed),
            ("why not", *reason_lines(self.reasons)) if self.reasons else (),
        )
        return "\n\n".join(filter(None, map("\n".join, sections))) + self._note()

    def _title(self) -> str:
        return f"explanation of {self.schedule.nest.name} on {self.target}: bound by {self.bound}"

    def _note(self) -> str:
        return "" if self.exact else f"\n\n{UNCONDITIONAL if self.rough else ESTIMATED}"

    def _times(self) -> Iterator[str]:
        """The subject, then the predicted, the measured and the roofline's time, each with its source."""
        nest = self.schedule.nest
        sizes = "".join(f", {name} = {value}" for name, value in nest.fixed)
        yield f"{nest.name}{sizes}, {self.threads} thread{'s' if self.threads > 1 else ''}, {self.target}"
        for name, seconds, source in self.sources():
            rate = f"{self.flop / seconds / 1e9:.4g} GFLOP/s" if self.flop else ""
            yield f"{name:10} {time_text(seconds):>9}  {rate:>14}  {source}"

    def sources(self) -> Iterator[tuple[str, float, str]]:
        """The predicted, the measured and the roofline's seconds, as far as there are such, each with its source."""
        if self.prediction is not None:
            cost = self.prediction
            yield "predicted", cost.seconds, cost.shares
        if self.measurement is not None:
            yield "measured", self.measurement.seconds, self.measurement.source
        yield "roofline", self.times[self.bound], f"bound by {self.bound}: its time alone, at its measured rate"
