"""One problem's figures: how close to the best point each way of choosing comes, and at what cost."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, prod, sqrt

from benchmarks.search import polydl
from benchmarks.search.landscape import Landscape
from benchmarks.search.runs import Runs, repeated
from benchmarks.search.table import PointKey, key
from poly.autoschedule.spaces.space import Point
from poly.records import Key
from poly.search.stopping import Budget
from poly.search.strategies import strategies, strategy
from poly.tuning.history import seeded, transferred

FEW = 40
"""The measurements that a search may take."""
TOP = 0.05
"""The fraction of the points at the top of the model's ranking, of which the best counts."""
SHARE = 0.15
"""The fraction of the points that a search from the origin may measure."""
EXHAUSTIVE = "exhaustive"
TRANSFERRED = 5
"""The measurements on a new size, including the model's choice."""


@dataclass(frozen=True)
class FromCorner:
    """Droplet from the space's unoptimised corner.

    `quality` and `share` (of the points measured) are medians; `needed` and `random_needs` are the measurements after
    which the median run, and a random order on average, first reach that quality.
    """

    quality: float
    share: float
    needed: float
    random_needs: float


@dataclass(frozen=True)
class Score:
    """A problem's figures. All qualities are relative to the best of the space; `runs` has those of each strategy.

    `choice` is the quality of the model's first choice, `plain` the same relative to the least time, `top` that of the
    best of the model's top points, `tuned` that of Droplet when it stops by itself, and `transfer` that of five
    measurements from the nearest other sizes (None: there are none). `polydl` has the first choice and the top of
    PolyDL's ranking, if that was asked for.
    """

    problem: str
    points: int
    failed: int
    choice: float
    plain: float
    top: float
    tuned: Runs
    origin: FromCorner
    transfer: float | None
    runs: Mapping[str, Runs]
    polydl: tuple[float, float] | None = None


def score(land: Landscape, others: Iterable[Landscape], seeds: Sequence[int], rival: bool = False) -> Score:
    """All figures of one problem; `others` are the problems from which a transfer may start.

    With `rival`, also those of PolyDL's ranking, which takes a minute or so.
    """
    found = tuple(best_of_nearest(land, others))
    return Score(
        problem=land.problem,
        points=len(land.entries),
        failed=sum(not entry.passes for entry in land.entries.values()),
        choice=land.qualities[land.space.choice],
        plain=land.plain[land.space.choice],
        top=top(land, land.ranked),
        tuned=repeated(land, "droplet", Budget(trials=FEW), seeds),
        origin=from_origin(land, seeds),
        transfer=after_transfer(land, found, seeds) if found else None,
        runs={name: with_few(land, name, seeds) for name in strategies()},
        polydl=ranking(land, polydl.ranked(land)) if rival else None,
    )


def with_few(land: Landscape, name: str, seeds: Sequence[int]) -> Runs:
    """A strategy with the same number of measurements as all others; the exhaustive one measures everything."""
    if name == EXHAUSTIVE:
        return repeated(land, name, Budget(gain=None), seeds[:2])
    return repeated(land, name, Budget(trials=FEW, gain=None), seeds)


def ranking(land: Landscape, order: Sequence[Point]) -> tuple[float, float]:
    """The qualities of a ranking's first point, and of the best of its top points."""
    return land.qualities[order[0]], top(land, order)


def top(land: Landscape, order: Sequence[Point]) -> float:
    """The quality of the best of a ranking's top points."""
    return best_of(land, order[: max(1, ceil(TOP * len(order)))])


def best_of(land: Landscape, points: Sequence[Point]) -> float:
    """The quality of the fastest of some points: found in one half and judged by the other, over both sides."""
    return sqrt(prod(side.qualities[side.fastest(points)] for side in land.sides))


def from_origin(land: Landscape, seeds: Sequence[int]) -> FromCorner:
    """Droplet from the origin, with at most SHARE of the points."""
    limit = max(2, int(SHARE * len(land.entries)))
    runs = repeated(land, "droplet-origin", Budget(trials=limit, gain=None), seeds)
    enough = max(1, land.as_good_as(runs.quality))
    expected = (len(land.entries) + 1) / (enough + 1)  # draws without replacement until the first of `enough`
    return FromCorner(runs.quality, runs.measurements / len(land.entries), runs.reached(runs.quality), expected)


def best_of_nearest(land: Landscape, others: Iterable[Landscape]) -> Iterable[PointKey]:
    """The best points of other problems with the same nest, the nearest sizes first."""
    here = _class(land)
    near = sorted(
        (here.distance(there), other.problem, other)
        for other in others
        if other.problem != land.problem and (there := _class(other)).structure == here.structure
    )
    for _, _, other in near:
        yield key(other.space, min(other.seconds, key=other.seconds.__getitem__))


def _class(land: Landscape) -> Key:
    """The key by which records tell problems apart, as far as one set of tables can vary it."""
    nest, space = land.space.nest, land.space
    return Key(
        nest.structure, tuple(sorted(nest.fixed)), (land.table.dtype,), space.isa.name, space.threads, "", "", ""
    )


def after_transfer(land: Landscape, found: Iterable[PointKey], seeds: Sequence[int]) -> float:
    """The median quality of five measurements: the model's choice, and the best points of other sizes."""
    transferable = [(best.traits, dict(best.values)) for best in found]
    points = transferred(land.space, transferable, TRANSFERRED - 1)
    droplet = strategy("droplet")
    return repeated(land, seeded(droplet, points), Budget(trials=TRANSFERRED, gain=None), seeds).quality
