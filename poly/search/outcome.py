"""What a search found, and what can be seen of it while it runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from poly.search.trial import Trial
from poly.spaces.space import Point


@dataclass(frozen=True)
class Progress:
    """Where a search stands after a trial.

    `best` is the champion, None until a point could be measured, and `seconds` its time a call. `measured` counts the
    trials so far, `failed` those of them without samples; `elapsed` is in seconds since the search began.
    """

    trial: Trial
    best: Point | None
    seconds: float | None
    measured: int
    failed: int
    elapsed: float


@dataclass(frozen=True)
class Outcome:
    """The best point and its seconds a call, the trials that were measured in their order, and why the search ended.

    `interrupted` says that the user stopped it; `best` is then the best so far. Trials known from before the search
    are not among `trials`.
    """

    best: Point
    seconds: float
    trials: tuple[Trial, ...]
    stopped: str
    interrupted: bool = False

    @property
    def failures(self) -> dict[Point, str]:
        """Why points could not be measured, for those that could not."""
        return {trial.point: trial.failure for trial in self.trials if not trial.samples}


def reasons(trials: Iterable[Trial]) -> str:
    """The failures of trials by their first lines, the most frequent first: `12 times: …; once: …`."""
    counts = Counter(_first_line(trial.failure) for trial in trials if not trial.samples)
    return "; ".join(f"{'once' if n == 1 else f'{n} times'}: {reason}" for reason, n in counts.most_common())


def _first_line(text: str) -> str:
    return text.strip().partition("\n")[0] or "no reason given"
