"""How to search: what a user may choose that does not change the problem, checked before anything is done."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, Literal

from microkernels.errors import shown
from poly.checks import checked_flag
from poly.errors import SearchError
from poly.search.events import Strategy
from poly.search.stopping import Budget
from poly.search.strategies import strategy

Start = Literal["model", "origin"]

INSTANT = 1e-3
"""Seconds that a search is given at least: getting ready may have taken all that there were."""

MOST = 128
"""Trials of a search without a budget: on a busy machine noise may promise gains for ever."""


@dataclass(frozen=True)
class Options:
    """The choices of `poly.tune`.

    At most `trials` and `seconds`; without either, as long as it is worth it, and no more than `MOST` trials. Raises
    SearchError for a budget of zero or less, an unknown strategy, start or seed, and ArgumentError.
    """

    strategy: str | Strategy = "droplet"
    trials: int | None = None
    seconds: float | None = None
    start: Start = "model"
    cold: bool = False
    seed: int = 0
    records: bool = True
    show: bool | None = None

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

    @property
    def name(self) -> str:
        """The strategy's name."""
        if isinstance(self.strategy, str):
            return self.strategy
        return str(getattr(self.strategy, "__name__", type(self.strategy).__name__))

    @property
    def most(self) -> int | None:
        """The most trials that are made; `MOST` without any budget."""
        return MOST if self.seconds is None and self.trials is None else self.trials

    def budget(self, tried: int, elapsed: float) -> Budget | None:
        """What is left after so many trials and seconds; None if all trials have been made."""
        if self.most is not None and tried >= self.most:
            return None
        given = self.trials is not None or self.seconds is not None  # and is used up then
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
