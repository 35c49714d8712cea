"""Tables and facts for people to read: whole words within the width of a terminal, one line a row elsewhere."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from textwrap import TextWrapper
from typing import TextIO

import click

from poly.display import columns

Rows = Sequence[Sequence[str]]

GAP = "  "
"""Between two columns."""

COLUMN = re.compile(r"^\s+|\s{2,}")
"""What precedes the text of a line: its indentation, and gaps behind labels in columns of their own."""


def print_table(head: Sequence[str], rows: Rows, out: TextIO | None = None) -> None:
    """Print rows below their headings; the first column is left-aligned, the others are right-aligned."""
    lines = table_lines(head, rows, terminal_width(out))
    click.echo(heading(next(lines), out), file=out)
    for line in lines:
        click.echo(line, file=out)


def heading(text: str, out: TextIO | None = None) -> str:
    """A heading in bold, where that is possible and wanted."""
    plain = os.environ.get("NO_COLOR") or not (out or sys.stdout).isatty()
    return text if plain else click.style(text, bold=True)


def print_facts(rows: Sequence[tuple[str, str]]) -> None:
    """Print labels with their texts, indented, one below the other."""
    for line in fact_lines(rows, terminal_width(), "  "):
        click.echo(line)


def print_text(text: str) -> None:
    """Print lines, those too long for the terminal continued below their own beginning."""
    for line in text.splitlines():
        click.echo("\n".join(text_lines(line, terminal_width())))


def terminal_width(out: TextIO | None = None) -> int | None:
    """The columns of the terminal that is written to; None for a file or a pipe, whose lines have no limit."""
    return shutil.get_terminal_size().columns if (out or sys.stdout).isatty() else None


def table_lines(head: Sequence[str], rows: Rows, width: int | None) -> Iterator[str]:
    """The lines of a table of at most this width.

    Where it is too wide, its widest cells are continued below, in whole words; where that is not enough either, each
    row is a paragraph of headings and cells. A word longer than the width stays whole.
    """
    table = [head, *rows]
    widths = [max(map(len, cells)) for cells in zip(*table, strict=True)]
    if width is None or _whole(widths) <= width:
        yield from (line.rstrip() for line in columns(table))
        return
    least = [max(len(word) for cell in cells for word in (cell.split() or [""])) for cells in zip(*table, strict=True)]
    if _whole(least) > width:
        yield from _stacked(head, rows, width)
        return
    while _whole(widths) > width:
        widest = max(range(len(widths)), key=lambda n: (widths[n] > least[n], widths[n]))
        widths[widest] -= 1
    for row in table:
        cells = [text_lines(cell, size) for cell, size in zip(row, widths, strict=True)]
        for first, *others in zip_longest(*cells, fillvalue=""):
            parts = (part.rjust(size) for part, size in zip(others, widths[1:], strict=True))
            yield GAP.join((first.ljust(widths[0]), *parts)).rstrip()


def _whole(widths: Sequence[int]) -> int:
    return sum(widths) + len(GAP) * (len(widths) - 1)


def _stacked(head: Sequence[str], rows: Rows, width: int) -> Iterator[str]:
    """Each row as a paragraph: its first cell, and the other cells below, each with its heading."""
    yield from text_lines(", ".join(head), width)
    for first, *others in rows:
        yield from text_lines(first, width)
        yield from fact_lines([pair for pair in zip(head[1:], others, strict=True) if pair[1]], width, GAP)


def fact_lines(rows: Sequence[tuple[str, str]], width: int | None, indent: str = "") -> Iterator[str]:
    """Labels in one column, and their texts beside them, continued below in whole words."""
    column = max((len(label) for label, _ in rows), default=0)
    for label, text in rows:
        start = f"{indent}{label.ljust(column)}{GAP}"
        yield from text_lines(text, width, start)


def text_lines(text: str, width: int | None, start: str = "") -> list[str]:
    """One line of text in whole words; what does not fit in the width is continued below it.

    Where labels precede the text in columns of their own, it is continued below the text.
    """
    if width is None or len(start) + len(text) <= width:
        return [f"{start}{text}".rstrip()]
    ends = (gap.end() for gap in COLUMN.finditer(text.rstrip()))
    first = text[: max((end for end in ends if end < width // 2), default=0)]
    wrapper = TextWrapper(
        width,
        initial_indent=start + first,
        subsequent_indent=" " * len(start + first),
        break_long_words=False,
        break_on_hyphens=False,
    )
    return [line.rstrip() for line in wrapper.wrap(text[len(first) :])] or [start.rstrip()]
