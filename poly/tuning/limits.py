"""Budgets as the user gives them, checked before anything is done."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

from microkernels.errors import shown
from poly.errors import SearchError
from poly.search.budget import Budget

INSTANT = 1e-3
"""Seconds that a search is given at least: getting ready may have taken all that there were."""

MOST = 128
"""Trials of a search without a budget: on a busy machine noise may promise gains for ever."""


@dataclass(frozen=True)
class Limits:
    """At most so many trials and seconds; without either, as long as it is worth it, and no more than `MOST` trials."""

    trials: int | None = None
    seconds: float | None = None

    def __post_init__(self) -> None:
        _check("trials", self.trials, Integral, "a whole number")
        _check("seconds", self.seconds, Real, "a number")

    @property
    def most(self) -> int | None:
        """The most trials that are made; `MOST` without any budget."""
        return MOST if self.seconds is None and self.trials is None else self.trials

    def left(self, tried: int, elapsed: float) -> Budget | None:
        """What is left of them; None where all trials have been made."""
        if self.most is not None and tried >= self.most:
            return None
        given = self.trials is not None or self.seconds is not None  # and is used up then
        return Budget(
            trials=None if self.most is None else self.most - tried,
            seconds=None if self.seconds is None else max(INSTANT, self.seconds - elapsed),
            gain=None if given else Budget.gain,
        )


def _check(name: str, value: Any, kind: type[Any], wanted: str) -> None:
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, kind):
        raise SearchError(f"{name} must be {wanted}, not {shown(value)}.")
    if not value > 0:
        raise SearchError(f"a budget of {name}={shown(value)} allows no search: give more than 0, or leave it out.")
