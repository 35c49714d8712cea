"""Tables for people to read: with rich on a terminal, as plain columns elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import click

from poly.machine.text import columns

Rows = Sequence[Sequence[str]]


def print_table(head: Sequence[str], rows: Rows) -> None:
    """Print rows below their headings; the first column is left-aligned, the others are right-aligned."""
    if sys.stdout.isatty():
        _by_rich(head, rows)
    else:
        for line in columns([head, *rows]):
            click.echo(line.rstrip())


def _by_rich(head: Sequence[str], rows: Rows) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, header_style="bold", pad_edge=False)
    for number, title in enumerate(head):
        table.add_column(title, justify="right" if number else "left", overflow="fold")
    for row in rows:
        table.add_row(*map(Text, row))
    Console().print(table)
