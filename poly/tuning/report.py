"""What `on_trial` gets: one trial of a running search as a value."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median

from microkernels.cached import cached_property
from poly.autoschedule.spaces.space import Space, Value
from poly.display import Displayed
from poly.schedules.schedule import Schedule
from poly.search.events import Trial
from poly.timing.yardstick import Yardstick, speed_text
from poly.tuning.outcome import point_words


@dataclass(frozen=True, repr=False)
class TrialReport(Displayed):
    """One trial of `poly.tune`: which schedule was tried, and how fast it was.

    `number` counts the trials from 1, those from the records included. `best` is the seconds of a call of the best
    schedule so far, this trial's batch not yet decided; None before the first one. `elapsed` is how many seconds the
    tuning has taken.
    """

    title: str
    number: int
    trial: Trial
    space: Space
    best: float | None
    elapsed: float
    yardstick: Yardstick | None = None

    @property
    def seconds(self) -> float | None:
        """The median seconds of a call; None if the trial failed."""
        return median(self.trial.samples) if self.trial.samples else None

    @property
    def failure(self) -> str:
        """Why the trial failed: the compiler's message, a crash, a wrong result; empty if it did not."""
        return self.trial.failure

    @property
    def structure(self) -> dict[str, str]:
        """The schedule's traits by name; `order`, for example, may be `rows inside`."""
        return dict(self.space.structures[self.trial.point.structure].traits)

    @property
    def sizes(self) -> dict[str, Value]:
        """The sizes in the schedule by name, such as `rows`; None leaves a loop uncut."""
        return self.space.values(self.trial.point)

    @cached_property
    def schedule(self) -> Schedule:
        """The schedule that was tried; its steps are applied when it is first asked for."""
        return self.space.schedule(self.trial.point)

    def __str__(self) -> str:
        result = f"failed: {self.failure.strip().partition(chr(10))[0]}"
        if self.seconds is not None:
            result = speed_text(self.seconds, self.yardstick)
        return f"trial {self.number}: {result}   ({point_words(self.space, self.trial.point)})"

    def _title(self) -> str:
        return f"trial {self.number} of {self.title}"
