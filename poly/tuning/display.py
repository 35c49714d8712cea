"""Showing a search while it runs: a live table on a terminal, lines elsewhere, or nothing. All of it on stderr.

What is shown is a status, a value that `poly.tuning.session` makes from the journal after each event.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Protocol

from poly.tuning.outcome import Failure, in_words
from poly.tuning.yardstick import Yardstick, speed_text

PAUSE = 5.0
"""Seconds between two lines that tell of nothing new."""


@dataclass(frozen=True)
class Status:
    """A search under way.

    `best` and `choice` are seconds a call: of the best point so far, and of the model's choice. `reused` of the trials
    `tried` were in the records. `where` is the best point in words, `trying` what is being measured. `trials` and
    `seconds` are the budgets, None if there is none.
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


class Display(Protocol):
    """Shows status. It is entered before the first measurement and left after the last, whatever ends the search."""

    def __enter__(self) -> Display: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def update(self, status: Status) -> None: ...


class Silent:
    """Shows nothing."""

    def __enter__(self) -> Silent:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass

    def update(self, status: Status) -> None:
        pass


class ProgressLines(Silent):
    """A line for each new best, and one now and then between them."""

    def __init__(self) -> None:
        self._best: float | None = None
        self._told = 0.0

    def update(self, status: Status) -> None:
        if status.best == self._best and status.elapsed - self._told < PAUSE:
            return
        self._best, self._told = status.best, status.elapsed
        print(status.line(), file=sys.stderr, flush=True)


class Live(Silent):
    """A table that is drawn over, by rich.

    It draws only when it is updated, between two measurements: no thread of its own disturbs a candidate being timed.
    """

    def __init__(self) -> None:
        from rich.console import Console
        from rich.live import Live as Drawn

        self._drawn = Drawn(console=Console(stderr=True), auto_refresh=False, transient=True)

    def __enter__(self) -> Live:
        self._drawn.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._drawn.stop()

    def update(self, status: Status) -> None:
        self._drawn.update(_table(status), refresh=True)


def display(show: bool | None) -> Display:
    """The display for `show`; None shows where stderr is a terminal."""
    if show is None:
        show = sys.stderr.isatty()
    if not show:
        return Silent()
    if not sys.stderr.isatty():
        return ProgressLines()
    try:
        return Live()
    except ModuleNotFoundError:  # rich is an extra
        return ProgressLines()


def _table(status: Status) -> Any:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, show_header=False, title=Text(status.title, "bold"), title_justify="left")
    table.add_column(no_wrap=True, style="cyan")
    table.add_column(overflow="fold")
    for label, text in status.rows():
        table.add_row(label, Text(text))
    return table
