"""The progress display of a search, on stderr: a live table on a terminal, lines elsewhere, or nothing.

It shows a status, a value that `poly.tuning.session` derives from the journal after each event.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Protocol

from poly.timing.yardstick import Yardstick, speed_text
from poly.tuning.outcome import Failure, in_words

PAUSE = 5.0
"""Seconds between two lines without a new best."""


@dataclass(frozen=True)
class Status:
    """The state of a running search.

    `best` and `choice` are the seconds per call of the best point so far and of the model's choice. Of the `tried`
    trials, `reused` came from the records. `where` describes the best point, `trying` what is being measured. `trials`
    and `seconds` are the budgets, None if there is none.
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
        """The rows of the table: labels and texts."""
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
        """The status in one line, for output that cannot be redrawn."""
        failed = f", {self.failed} failed" if self.failures else ""
        return f"{self.title}: {self.tried_text()} tried{failed}, {self.time_text()}; best {self.best_text()}"


class Display(Protocol):
    """Shows a status. It is entered before the first measurement and exited after the last, however the search ends."""

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
    """Prints a line for each new best, and occasionally one in between."""

    def __init__(self) -> None:
        self._best: float | None = None
        self._shown_at = 0.0

    def update(self, status: Status) -> None:
        if status.best == self._best and status.elapsed - self._shown_at < PAUSE:
            return
        self._best, self._shown_at = status.best, status.elapsed
        print(status.line(), file=sys.stderr, flush=True)


class Live(Silent):
    """A table redrawn in place by rich.

    It is drawn only on updates, between measurements: no background thread disturbs a candidate being timed.
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
    """The display for `show`; None means only if stderr is a terminal."""
    if show is None:
        show = sys.stderr.isatty()
    if not show:
        return Silent()
    return Live() if sys.stderr.isatty() else ProgressLines()


def _table(status: Status) -> Any:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, show_header=False, title=Text(status.title, "bold"), title_justify="left")
    table.add_column(no_wrap=True, style="cyan")
    table.add_column(overflow="fold")
    for label, text in status.rows():
        table.add_row(label, Text(text))
    return table
