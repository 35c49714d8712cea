"""How right the model is on the machines of the tables: its order of measured schedules, and its first choice.

It predicts by the calibration of the machine that a table is from, by other calibrations of that machine (those of the
next tables), and as it would before any calibration, on a CPU that poly does not describe.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from benchmarks.case import Case
from benchmarks.search import origins, store
from benchmarks.search.figures import Figure, mean
from benchmarks.search.landscape import Landscape, landscape
from benchmarks.search.origins import Host
from benchmarks.search.problems import sampled
from benchmarks.search.scores import top
from benchmarks.search.table import PointKey, Table, Visit, key
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

    `default` is its choice in the whole space. The qualities of its first choice and of the best of its top points are
    among those measured, relative to the best of them. `repeated` is the rank correlation of two halves of the
    measurements, to which no model's can come much closer.
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
    """The model on one machine: by its calibration, by AGAIN others problem by problem, and before any.

    `described` tells whether poly describes the machine: the model was fitted on those. `substitute` is the described
    CPU that the model takes this one for before calibration, which is never this one.
    """

    tables: tuple[Table, ...]
    described: bool
    substitute: Host
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
    substitute = origins.nearest_other(machine)
    unknown = origins.uncalibrated(machine, substitute)

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
        substitute=substitute,
        own=judged(later(0)),
        again=tuple(zip(*(judged(later(by)) for by in range(1, min(AGAIN + 1, len(hosts)))), strict=True)),
        before=judged(lambda n, threads: unknown),
    )


def judge(table: Table, space: Space) -> Judged:
    """The model, as it predicts for a space, judged by its table. Raises SearchError if too few points are measured."""
    land = landscape(table, space)
    points = [point for point in land.space if land.entries[point].passes]
    first, second = ([_least(side.visits[point]) for point in points] for side in land.sides)
    return Judged(
        problem=table.problem,
        default=key(space, space.choice),
        choice=land.qualities[land.space.choice],
        top=top(land, land.ranked),
        repeated=rank_correlation(first, second),
        predictions=tuple(_prediction(land, point) for point in points),
    )


def _prediction(land: Landscape, point: Point) -> Prediction:
    visits = land.table.visits(key(land.space, point))
    traits = dict(land.space.structures[point.structure].traits)
    packed = (traits.get("left", IN_PLACE) != IN_PLACE, traits.get("right", IN_PLACE) != IN_PLACE)
    return Prediction(KINDS[packed], land.space.predict(point).seconds, _least(visits))


def _least(visits: Iterable[Visit]) -> float:
    return min(min(visit) for visit in visits)


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
    pairs = [(own, other) for own, others in zip(found.own, found.again, strict=True) for other in others]
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
        Figure(
            "before calibration, of after",
            before / mean(one.choice for one in found.own),
            0.93,
            note=f"by {found.substitute.machine.cpu}, {found.substitute.machine.isa.name}",
        ),
        Figure("  rank correlation, uncalibrated", median(one.rank for one in found.before), 0.8),
    ]


def by_kind(judged: Sequence[Judged]) -> dict[str, list[list[Prediction]]]:
    """The predictions of each kind of schedules, problem by problem."""
    return {
        kind: [own for one in judged if (own := [p for p in one.predictions if p.kind == kind])]
        for kind in KINDS.values()
    }
