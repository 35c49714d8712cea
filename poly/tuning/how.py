"""How to search: what a user may choose that does not change the problem."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from microkernels.errors import shown
from poly.checks import checked_flag
from poly.errors import SearchError
from poly.search.strategies import strategy
from poly.search.trial import Strategy
from poly.tuning.limits import Limits

Start = Literal["model", "origin"]


@dataclass(frozen=True)
class How:
    """The choices of `poly.tune`, checked. Raises SearchError for an unknown strategy, start or seed, ArgumentError."""

    strategy: str | Strategy = "droplet"
    limits: Limits = field(default_factory=Limits)
    start: Start = "model"
    cold: bool = False
    seed: int = 0
    records: bool = True
    show: bool | None = None

    def __post_init__(self) -> None:
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
