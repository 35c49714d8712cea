"""The play-off: the few points that came out best meet once more, so that luck does not choose among them."""

from __future__ import annotations

from collections.abc import Sequence
from math import log
from statistics import median

from poly.search.standing import Standing
from poly.search.trial import Trial
from poly.spaces.space import Point

FINALISTS = 3
"""How many points at most meet the champion again."""
CLOSE = 0.03
"""How much slower than the champion, in log seconds, they may have looked."""


def reserve(trials: int | None) -> int:
    """How many of so many trials are kept for the play-off: none of a handful, at most `FINALISTS`."""
    return 0 if trials is None else min(FINALISTS, trials // 10)


def finalists(champion: Point, standing: Standing) -> list[Point]:
    """The points that came close to the champion or looked faster, the fastest first."""
    limit = log(standing.seconds(champion)) + CLOSE
    close = [point for point in standing.ranked() if point != champion and log(standing.seconds(point)) <= limit]
    return close[:FINALISTS]


def fresh_seconds(best: Point | None, trials: Sequence[Trial]) -> float | None:
    """The median of what the play-off measured of its winner; None if nothing."""
    own = [seconds for trial in trials if trial.point == best for seconds in trial.samples]
    as_rival = [seconds for trial in trials if trial.against == best for seconds in trial.rival]
    return median(own or as_rival) if own or as_rival else None
