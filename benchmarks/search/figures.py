"""The figures by which the search is judged, each with its goal."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import median
from time import process_time

from benchmarks.search.scores import FEW, SHARE, Score
from poly.autoschedule.spaces.space import Space
from poly.timing.summary import geometric_mean


@dataclass(frozen=True)
class Figure:
    """A figure, its goal, and whether it was met; `note` adds details."""

    name: str
    value: float
    goal: float
    at_least: bool = True
    note: str = ""
    digits: int = 3

    @property
    def met(self) -> bool:
        return self.value >= self.goal if self.at_least else self.value <= self.goal


def figures(scores: Sequence[Score], rank_seconds: float) -> list[Figure]:
    """All figures, over all problems; `rank_seconds` is the time to rank 1000 points."""
    origins = [score.origin for score in scores]
    transfers = [score for score in scores if score.transfer is not None]
    worst = min(scores, key=lambda score: score.choice)
    found = [
        Figure(
            "model's first choice",
            mean(s.choice for s in scores),
            0.97,
            note=f"{mean(s.plain for s in scores):.3f} of the least times in the tables, which were lucky too",
        ),
        Figure("  worst problem", worst.choice, 0.90, note=worst.problem),
        Figure("best of the model's top 5 %", mean(s.top for s in scores), 0.99, note=_spread(scores, lambda s: s.top)),
        Figure(
            "droplet from the model's choice",
            mean(score.tuned.quality for score in scores),
            0.985,
            note=_spread(scores, lambda s: s.tuned.quality),
        ),
        Figure(
            "  measurements, most of any problem",
            max(score.tuned.measurements for score in scores),
            FEW,
            at_least=False,
            note=f"median {median(score.tuned.measurements for score in scores):.0f}",
            digits=0,
        ),
        Figure(
            "droplet from the origin",
            mean(origin.quality for origin in origins),
            0.95,
            note=_spread(scores, lambda s: s.origin.quality),
        ),
        Figure(
            "  part of the points measured",
            median(origin.share for origin in origins),
            SHARE,
            at_least=False,
            note="median of the problems",
        ),
        Figure(
            "  measurements to its level, of random's",
            mean(origin.needed / origin.random_needs for origin in origins),
            0.5,
            at_least=False,
            note=f"medians {median(o.needed for o in origins):.0f} and {median(o.random_needs for o in origins):.0f}",
        ),
        Figure("seconds to rank 1000 points", rank_seconds, 2.0, at_least=False, digits=2),
    ]
    if transfers:
        found.append(
            Figure(
                "5 measurements after transfer, of full tuning",
                mean((s.transfer or 0.0) / s.tuned.quality for s in transfers),
                0.97,
                note=_spread(transfers, lambda s: (s.transfer or 0.0) / s.tuned.quality),
            )
        )
    return found


def mean(values: Iterable[float]) -> float:
    """The geometric mean; 0 if a value is."""
    known = list(values)
    return 0.0 if min(known) <= 0 else geometric_mean(known) or 0.0


def _spread(scores: Sequence[Score], of: Callable[[Score], float]) -> str:
    """The worst problem, if there are several."""
    worst = min(scores, key=of)
    return f"worst {of(worst):.3f}, {worst.problem}" if len(scores) > 1 else ""


def seconds_to_rank(spaces: Iterable[Space]) -> float:
    """The model's CPU seconds on this machine to rank 1000 points: the mean over all spaces."""
    start = process_time()
    points = sum(len(space.ranked()) for space in spaces)
    return (process_time() - start) * 1000 / max(1, points)
