"""The progress display of searches, on stderr: a live table on a terminal, lines elsewhere, or nothing.

It shows statuses, values that `poly.tuning.session` derives from its journal after each event: all about a single nest,
a row for each of several.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Protocol

from poly.timing.yardstick import Yardstick, speed_text
from poly.tuning.outcome import Failure, in_words

PAUSE = 5.0
"""Seconds between two lines without a new best."""


@dataclass(frozen=True)
class Status:
    """The state of a running search, which has a `place` among those of one call.

    `best` and `choice` are the seconds per call of the best point so far and of the model's choice. Of the `tried`
    trials, `reused` came from the records. `where` describes the best point, `trying` what is being measured. `trials`
    and `seconds` are the budgets, None if there is none, of which other nests spent `others` trials. `weight` is the
    number of calls by which this nest counts among several.
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
    place: int = 0
    weight: float = 1.0
    others: int = 0

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

    @property
    def ratio(self) -> float | None:
        """The speedup over the model's choice."""
        return self.choice / self.best if self.choice and self.best else None

    def best_text(self) -> str:
        if self.best is None:
            return "none yet"
        gain = f", {self.ratio:.2f} times the model's choice" if self.ratio else ""
        return speed_text(self.best, self.yardstick) + gain

    def tried_text(self) -> str:
        limit = f" of {self.trials}" if self.trials is not None else ""
        total = f"{self.tried + self.others}{limit} with the others: {self.tried}" if self.others else ""
        return (total or f"{self.tried}{limit}") + (f" ({self.reused} from the records)" if self.reused else "")

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
        self._best: dict[int, float | None] = {}
        self._shown_at = 0.0

    def update(self, status: Status) -> None:
        if status.best == self._best.get(status.place) and status.elapsed - self._shown_at < PAUSE:
            return
        self._best[status.place], self._shown_at = status.best, status.elapsed
        print(status.line(), file=sys.stderr, flush=True)


class Live(Silent):
    """A table redrawn in place by rich.

    It is drawn only on updates, between measurements: no background thread disturbs a candidate being timed.
    """

    def __init__(self) -> None:
        from rich.console import Console
        from rich.live import Live as Drawn

        self._drawn = Drawn(console=Console(stderr=True), auto_refresh=False, transient=True)
        self._statuses: dict[int, Status] = {}

    def __enter__(self) -> Live:
        self._drawn.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._drawn.stop()

    def update(self, status: Status) -> None:
        self._statuses[status.place] = status
        one = len(self._statuses) == 1
        self._drawn.update(_table(status) if one else _overview(self._statuses.values(), status), refresh=True)


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


def _overview(statuses: Collection[Status], newest: Status) -> Any:
    """A row for each nest, and below what is common to all; the newest one is marked."""
    from rich.table import Table
    from rich.text import Text

    title = f"{len(statuses)} nests{newest.title.partition(',')[1]}{newest.title.partition(',')[2]}"
    table = Table(
        box=None, title=Text(title, "bold"), title_justify="left", caption_justify="left", header_style="cyan"
    )
    table.add_column("nest", overflow="fold")
    table.add_column("best", overflow="fold")
    for name in ("ratio", "tried", "failed"):
        table.add_column(name, justify="right", no_wrap=True)
    for status in statuses:
        ratio = f"{status.ratio:.2f}" if status.ratio else "-"
        best = "-" if status.best is None else speed_text(status.best, status.yardstick)
        nest = Text(status.title.partition(",")[0], "bold" if status is newest else "")
        table.add_row(nest, Text(best), ratio, str(status.tried), str(status.failed or "-"))
    table.caption = Text("\n".join(_common(statuses, newest)))
    return table


def _common(statuses: Collection[Status], newest: Status) -> Iterator[str]:
    """The lines below the rows: the time of all nests together, the budget, and what is measured."""
    if all(status.ratio for status in statuses):
        before = sum(status.weight * (status.choice or 0.0) for status in statuses)
        now = sum(status.weight * (status.best or 0.0) for status in statuses)
        yield f"together {before / now:.2f} times as fast as the model's choices"
    limit = f" of {newest.trials}" if newest.trials is not None else ""
    yield f"{newest.tried + newest.others}{limit} tried, {newest.time_text()}"
    if newest.trying:
        yield f"trying {newest.trying}"
