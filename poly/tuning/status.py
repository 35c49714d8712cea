"""How far a search is: what is told while it runs, as a value, and the lines that say it."""

from __future__ import annotations

from dataclasses import dataclass

from poly.spaces.space import Point, Space
from poly.tuning.failures import Failure, in_words
from poly.tuning.work import Yardstick


@dataclass(frozen=True)
class Status:
    """A search under way.

    `best` and `choice` are seconds a call: of the best point so far, and of the model's choice. `reused` of the trials
    `tried` were in the records. `where` is the best point in words, `trying` what is being measured. `trials` and
    `seconds` are the budgets, None where there is none.
    """

    title: str
    tried: int = 0
    reused: int = 0
    failures: tuple[Failure, ...] = ()
    best: float | None = None
    choice: float | None = None
    where: str = ""
    trying: str = ""
    elapsed: float = 0.0
    trials: int | None = None
    seconds: float | None = None
    yardstick: Yardstick | None = None

    @property
    def failed(self) -> int:
        return sum(failure.count for failure in self.failures)

    def rows(self) -> list[tuple[str, str]]:
        """What to show, as labels and texts."""
        rows = [("best so far", self.best_text()), ("schedule", self.where or "-"), ("tried", self.tried_text())]
        if self.failures:
            rows.append(("failed", f"{self.failed}: {in_words(self.failures)}"))
        if self.trying:
            rows.append(("trying", self.trying))
        return [*rows, ("time", self.time_text())]

    def best_text(self) -> str:
        if self.best is None:
            return "none yet"
        gain = f", {self.choice / self.best:.2f} times the model's choice" if self.choice else ""
        return speed_text(self.best, self.yardstick) + gain

    def tried_text(self) -> str:
        limit = f" of {self.trials}" if self.trials is not None else ""
        return f"{self.tried}{limit}" + (f" ({self.reused} from the records)" if self.reused else "")

    def time_text(self) -> str:
        if self.seconds is None:
            return f"{self.elapsed:.1f} s"
        return f"{self.elapsed:.1f} s of {self.seconds:g} s, {max(0.0, self.seconds - self.elapsed):.1f} s left"

    def line(self) -> str:
        """The whole in one line, for where nothing can be drawn over."""
        failed = f", {self.failed} failed" if self.failures else ""
        return f"{self.title}: {self.tried_text()} tried{failed}, {self.time_text()}; best {self.best_text()}"


def speed_text(seconds: float, yardstick: Yardstick | None) -> str:
    """`107 GFLOP/s (91 % of peak)`, or the time where the work of a call is not known."""
    return yardstick.text(seconds) if yardstick else time_text(seconds)


def time_text(seconds: float) -> str:
    """Seconds in the unit that leaves one to three digits before the point."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"


def point_words(space: Space, point: Point) -> str:
    """A point for people: `order rows inside, left in place; rows 6, depth 256, columns uncut`."""
    sizes = ", ".join(f"{knob} {'uncut' if size is None else size}" for knob, size in space.values(point).items())
    return "; ".join(filter(None, (str(space.structures[point.structure]), sizes)))
