"""How values show themselves: as text, in a notebook as HTML, and at IPython's prompt.

A value that is `Displayed` has a text, its `__str__`. In HTML the text is monospaced and everything in it is escaped.
A value whose text is a table, or has a long part, says so by its `_parts`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from microkernels.errors import PolyError

FONT = "font-family: ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace; font-size: 0.92em; line-height: 1.35"
FRAME = "border-left: 3px solid rgba(128, 128, 128, 0.35); padding-left: 0.8em"
LINE = "1px solid rgba(128, 128, 128, 0.35)"
"""Colours are the notebook's own, so that they suit its theme; only lines and shades are a half-transparent grey."""
BLOCK = f"{FONT}; margin: 0.3em 0; padding: 0; background: transparent; color: inherit; overflow: auto"
CELL = f"{FONT}; text-align: left; vertical-align: top; white-space: pre-wrap; padding: 0.15em 0.8em 0.15em 0"


@dataclass(frozen=True)
class Text:
    """Lines that are shown as they are, or as prose, which `wraps`.

    With a `title`, HTML shows them only when the title is clicked.
    """

    text: str
    title: str = ""
    wraps: bool = False

    def html(self) -> str:
        style = f"{BLOCK}; white-space: {'pre-wrap' if self.wraps else 'pre'}"
        block = f'<pre style="{style}">{escape(self.text)}</pre>'
        if not self.title:
            return block
        return f'<details><summary style="{FONT}; cursor: pointer">{escape(self.title)}</summary>{block}</details>'


@dataclass(frozen=True)
class Cells:
    """Rows of cells, the first of which has the `heads`, if there are any."""

    rows: Sequence[Sequence[str]]
    heads: Sequence[str] = ()

    def html(self) -> str:
        head = _row("th", self.heads, f"border-bottom: {LINE}") if self.heads else ""
        rows = "".join(_row("td", row) for row in self.rows)
        return f'<table style="border-collapse: collapse; margin: 0.3em 0; color: inherit">{head}{rows}</table>'


Block = Text | Cells


def _row(tag: str, cells: Iterable[str], style: str = "border: 0") -> str:
    made = (f'<{tag} style="{CELL}; {style}">{escape(cell)}</{tag}>' for cell in cells)
    return f'<tr style="background: transparent">{"".join(made)}</tr>'


class Displayed:
    """A value that notebooks and IPython show readably; its `__str__` is the text that `print` shows.

    `_title` says in a line what the value is: it is the `repr`, in `<…>`, and the heading in a notebook.
    """

    def _title(self) -> str:
        raise NotImplementedError

    def _parts(self) -> Iterable[Block]:
        """What HTML shows below the title."""
        return (Text(str(self)),)

    def __repr__(self) -> str:
        return f"<{self._title()}>"

    def _repr_html_(self) -> str | None:
        """The value in a notebook; None, for its `repr`, if its text takes too much work."""
        try:
            parts = [part.html() for part in self._parts()]
        except PolyError:
            return None
        title = f'<div style="{FONT}; font-weight: bold; margin: 0.3em 0">{escape(self._title())}</div>'
        return f'<div style="{FRAME}">{title}{"".join(parts)}</div>'

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """The value at IPython's prompt: its text, or its `repr` if the text takes too much work."""
        try:
            text = repr(self) if cycle else str(self)
        except PolyError:
            text = repr(self)
        for number, line in enumerate(text.split("\n")):
            if number:
                printer.break_()
            printer.text(line)


def columns(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Rows of equal length as lines: the first column left-aligned, the others right-aligned."""
    widths = [max(len(row[n]) for row in rows) for n in range(len(rows[0]))]
    for first, *others in rows:
        cells = [first.ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(others, widths[1:], strict=True))]
        yield "  ".join(cells)


def time_text(seconds: float) -> str:
    """Seconds in the unit that gives one to three digits before the decimal point."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"
