"""Showing a search while it runs: a live table on a terminal, lines elsewhere, or nothing. All of it on stderr."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import Any, Protocol

from poly.tuning.status import Status

PAUSE = 5.0
"""Seconds between two lines that tell of nothing new."""


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


class Lines(Silent):
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
        return Lines()
    try:
        return Live()
    except ModuleNotFoundError:  # rich is an extra
        return Lines()


def _table(status: Status) -> Any:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, show_header=False, title=Text(status.title, "bold"), title_justify="left")
    table.add_column(no_wrap=True, style="cyan")
    table.add_column(overflow="fold")
    for label, text in status.rows():
        table.add_row(label, Text(text))
    return table
