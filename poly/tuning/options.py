"""How to search: the user's options that do not change the problem, checked before anything is done."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, Literal

from microkernels.errors import shown
from poly.checks import checked_flag
from poly.errors import SearchError
from poly.search.events import Strategy
from poly.search.stopping import Budget
from poly.search.strategies import strategy
from poly.tuning.report import TrialReport

Start = Literal["model", "origin"]

INSTANT = 1e-3
"""The least seconds for a search, since the preparation may have used up the budget."""

MOST = 128
"""The most trials of a search without a budget: on a busy machine, noise may promise gains for ever."""


@dataclass(frozen=True)
class Options:
    """The options of `poly.tune`.

    The search is limited by `trials` and `seconds`; without either, it runs as long as it is worthwhile, for at most
    `MOST` trials. Raises SearchError for a budget of zero or less or an invalid strategy, start or seed, and
    ArgumentError for a flag that is not a bool.
    """

    strategy: str | Strategy = "droplet"
    trials: int | None = None
    seconds: float | None = None
    start: Start = "model"
    cold: bool = False
    seed: int = 0
    records: bool = True
    show: bool | None = None
    on_trial: Callable[[TrialReport], object] | None = None

    def __post_init__(self) -> None:
        _check_budget("trials", self.trials, Integral, "a whole number")
        _check_budget("seconds", self.seconds, Real, "a number")
        strategy(self.strategy)
        if not isinstance(self.start, str) or self.start not in ("model", "origin"):
            raise SearchError(f"a search starts at the 'model' choice or at the 'origin', not at {shown(self.start)}.")
        for name in ("cold", "records", *(("show",) if self.show is not None else ())):
            checked_flag(name, getattr(self, name))
        if isinstance(self.seed, bool) or not isinstance(self.seed, int):
            raise SearchError(f"seed must be an integer, not {shown(self.seed)}.")
        if self.on_trial is not None and not callable(self.on_trial):
            raise SearchError(f"on_trial must be a function of a TrialReport, not {shown(self.on_trial)}.")

    @property
    def name(self) -> str:
        """The strategy's name."""
        if isinstance(self.strategy, str):
            return self.strategy
        return str(getattr(self.strategy, "__name__", type(self.strategy).__name__))

    @property
    def most(self) -> int | None:
        """The limit of trials; `MOST` without any budget."""
        return MOST if self.seconds is None and self.trials is None else self.trials

    def budget(self, tried: int, elapsed: float) -> Budget | None:
        """The budget that is left after these trials and seconds; None if no trials are left."""
        if self.most is not None and tried >= self.most:
            return None
        given = self.trials is not None or self.seconds is not None  # an explicit budget is used up
        return Budget(
            trials=None if self.most is None else self.most - tried,
            seconds=None if self.seconds is None else max(INSTANT, self.seconds - elapsed),
            gain=None if given else Budget.gain,
        )


def _check_budget(name: str, value: Any, kind: type[Any], wanted: str) -> None:
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, kind):
        raise SearchError(f"{name} must be {wanted}, not {shown(value)}.")
    if not value > 0:
        raise SearchError(f"a budget of {name}={shown(value)} allows no search: give more than 0, or leave it out.")
