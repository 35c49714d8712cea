"""Which of several searches that spend one budget advances next.

The time of a program is the sum of its nests' times, each times how often it is called. So the next second goes to the
search that is expected to take most of that sum away per second,

    weight * seconds * gain / cost

where `gain` is the share of its nest's time that the next trials are expected to save (`ExpectedGain`), and `cost` the
seconds that such trials take. Ansor's task scheduler does the same by gradients (Zheng et al., "Ansor: Generating
High-Performance Tensor Programs for Deep Learning", OSDI 2020, section 6). It extrapolates the last gains and bounds
them by the speed of similar tasks; here the surrogate of the search itself says what it still expects, with the trust
that its promises have earned.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import mean

UNKNOWN = 1.0
"""The gain, as a share of a nest's time, that a search without a success may expect, divided among its trials."""


@dataclass(frozen=True)
class Standing:
    """What is known of a search: its nest's seconds per call times the number of calls, measured or predicted, the
    expected gain as a share of that, the seconds of a trial (None if not known), and its trials so far."""

    seconds: float
    gain: float
    cost: float | None
    trials: int


Allocation = Callable[[Sequence[Standing]], int]
"""Chooses the search that measures the next batch, by its place in the list."""


def most_gain(standings: Sequence[Standing]) -> int:
    """The search that is expected to save most time per second; each has one batch first, in the list's order."""
    known = [standing.cost for standing in standings if standing.cost is not None]
    usual = mean(known) if known else 1.0

    def worth(standing: Standing) -> float:
        if not standing.trials:
            return float("inf")
        gain = min(standing.gain, UNKNOWN / standing.trials) if standing.gain == float("inf") else standing.gain
        return standing.seconds * gain / (usual if standing.cost is None else max(standing.cost, 1e-6))

    return max(range(len(standings)), key=lambda place: worth(standings[place]))
