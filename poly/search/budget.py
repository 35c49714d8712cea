"""What a search may cost: trials, seconds, or until going on is not worth it."""

from __future__ import annotations

from dataclasses import dataclass

from poly.errors import SearchError


@dataclass(frozen=True)
class Budget:
    """Limits of a search; whichever is reached first ends it.

    `trials` is the number of measurements, those of the play-off among them; `seconds` is time on the clock; `gain` is
    the expected gain below which going on is not worth it (`poly.search.worth`), 0.01 for 1 %. None is no limit.
    Raises `SearchError` for a limit of zero or less.
    """

    trials: int | None = None
    seconds: float | None = None
    gain: float | None = 0.01

    def __post_init__(self) -> None:
        for name in ("trials", "seconds", "gain"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise SearchError(
                    f"a budget of {name}={value} allows no search: give more than 0, or None for no limit."
                )
