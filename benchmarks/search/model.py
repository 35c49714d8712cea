"""How right the model is on the machines of the tables: its order of measured schedules, and its first choice.

It predicts by the calibration of the machine that a table is from, by other calibrations of that machine (those of the
next tables), and as it would before any calibration, on a CPU that poly does not describe.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from statistics import median

from benchmarks.case import Case
from benchmarks.search import origins, store
from benchmarks.search.figures import Figure, mean
from benchmarks.search.landscape import Landscape, landscape
from benchmarks.search.problems import sampled
from benchmarks.search.scores import TOP
from benchmarks.search.table import PointKey, Table, key
from poly.autoschedule.spaces.space import Point, Space
from poly.model.rates import Rates

KINDS = {
    (False, False): "nothing packed",
    (True, False): "left packed",
    (False, True): "right packed",
    (True, True): "both packed",
}
"""Kinds of schedules, by the operands that they pack."""
IN_PLACE = "in place"
AGAIN = 3
"""Other calibrations of the machine with which each choice is made again."""


@dataclass(frozen=True)
class Prediction:
    """A point's kind, the model's seconds, and the least that were measured."""

    kind: str
    predicted: float
    least: float


@dataclass(frozen=True)
class Judged:
    """The model on one problem.

    `default` is its choice in the whole space. `choice` and `top` are the speeds of its first choice and of the best of
    its top points among those measured, relative to the best of them, by least times: points are timed in turn, round
    after round, so each has the same chances of an undisturbed moment. `repeated` is the rank correlation of two halves
    of the measurements: no model's can be much higher.
    """

    problem: str
    default: PointKey
    choice: float
    top: float
    repeated: float
    predictions: tuple[Prediction, ...]

    @property
    def rank(self) -> float:
        """The rank correlation of the predicted and the least measured seconds."""
        return rank_of(self.predictions)


@dataclass(frozen=True)
class Verdict:
    """The model on one machine: by its calibration, by up to AGAIN others, and before any, as if nobody described it.

    `described` tells whether poly describes the machine: the model was fitted on those.
    """

    tables: tuple[Table, ...]
    described: bool
    own: tuple[Judged, ...]
    again: tuple[tuple[Judged, ...], ...]
    before: tuple[Judged, ...]


def verdicts(data: Path, cases: Mapping[str, Case]) -> Iterator[Verdict]:
    """The verdict of each machine with tables of sampled points of some of these problems."""
    for folder in store.folders(data, store.SAMPLES):
        if tables := store.tables(folder, [name for name in sampled() if name in cases]):
            yield verdict(tables, cases)


def verdict(tables: Mapping[str, Table], cases: Mapping[str, Case]) -> Verdict:
    """The model judged by one machine's tables."""
    hosts = [origins.described(table.origin.machine) for table in tables.values()]
    machine = hosts[0].machine
    unknown = origins.uncalibrated(machine)

    def judged(rates: Callable[[int, int], Rates]) -> tuple[Judged, ...]:
        found = enumerate(zip(tables.items(), hosts, strict=True))
        return tuple(
            judge(table, host.space(cases[name], table.threads, rates(n, table.threads)))
            for n, ((name, table), host) in found
        )

    def later(by: int) -> Callable[[int, int], Rates]:
        return lambda n, threads: hosts[(n + by) % len(hosts)].rates(threads)

    return Verdict(
        tables=tuple(tables.values()),
        described=any(origins.alike(one.machine, machine) for one in origins.cpus()),
        own=judged(later(0)),
        again=tuple(judged(later(by)) for by in range(1, min(AGAIN + 1, len(hosts)))),
        before=judged(lambda n, threads: unknown),
    )


def judge(table: Table, space: Space) -> Judged:
    """The model, as it predicts for a space, judged by its table. Raises SearchError if too few points are measured."""
    land = landscape(table, space)
    ranked = [point for point in land.ranked if land.entries[point].passes]
    times = {point: [min(visit.samples) for visit in land.entries[point].passes] for point in ranked}
    least = {point: min(times[point]) for point in ranked}
    best = min(least.values())
    first, second = ([min(times[p][n::2] or times[p]) for p in ranked] for n in (0, 1))
    return Judged(
        problem=table.problem,
        default=key(space, space.choice),
        choice=best / least[land.space.choice],
        top=best / min(least[point] for point in ranked[: ceil(TOP * len(ranked))]),
        repeated=rank_correlation(first, second),
        predictions=tuple(Prediction(_kind(land, p), land.space.predict(p).seconds, least[p]) for p in ranked),
    )


def _kind(land: Landscape, point: Point) -> str:
    traits = dict(land.space.structures[point.structure].traits)
    return KINDS[traits.get("left", IN_PLACE) != IN_PLACE, traits.get("right", IN_PLACE) != IN_PLACE]


def rank_of(predictions: Sequence[Prediction]) -> float:
    """The rank correlation of the predicted and the least measured seconds."""
    return rank_correlation([one.predicted for one in predictions], [one.least for one in predictions])


def rank_correlation(some: Sequence[float], others: Sequence[float]) -> float:
    """Spearman's rank correlation; 0 if it is undefined, because all values of one side are equal."""
    from scipy.stats import spearmanr

    if len(set(some)) < 2 or len(set(others)) < 2:
        return 0.0
    return float(spearmanr(some, others).statistic)


def figures(found: Verdict) -> list[Figure]:
    """A machine's figures, over all problems."""
    worst = min(found.own, key=lambda one: one.choice)
    last = min(found.own, key=lambda one: one.rank)
    before = mean(one.choice for one in found.before)
    pairs = [pair for others in found.again for pair in zip(found.own, others, strict=True)]
    same = 1 - sum(own.default != other.default for own, other in pairs) / len(pairs) if pairs else 1.0
    apart = [abs(other.choice / own.choice - 1) for own, other in pairs if own.default != other.default]
    return [
        Figure("first choice", mean(one.choice for one in found.own), 0.98 if found.described else 0.97),
        Figure("  of the worst problem", worst.choice, 0.94, note=worst.problem),
        Figure("best of the top 5 %", mean(one.top for one in found.own), 0.99),
        Figure("rank correlation, median", median(one.rank for one in found.own), 0.9),
        Figure("  least of a problem", last.rank, 0.9, note=last.problem),
        Figure(
            "  two halves of the measurements",
            median(one.repeated for one in found.own),
            0.9,
            note="the most to expect",
        ),
        Figure("the same default by another calibration", same, 0.95),
        Figure("  speed of the others, differs by at most", max(apart, default=0.0), 0.01, at_least=False),
        Figure("before calibration, of after", before / mean(one.choice for one in found.own), 0.93),
        Figure("  rank correlation, uncalibrated", median(one.rank for one in found.before), 0.8),
    ]


def by_kind(judged: Sequence[Judged]) -> dict[str, list[list[Prediction]]]:
    """The predictions of each kind of schedules, problem by problem."""
    return {
        kind: [own for one in judged if (own := [p for p in one.predictions if p.kind == kind])]
        for kind in KINDS.values()
    }
