"""Tables for people to read: with rich on a terminal, as plain columns elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import click

from poly.machine.text import columns

Rows = Sequence[Sequence[str]]


def print_table(head: Sequence[str], rows: Rows, out: Any = None) -> None:
    """Print rows below their headings; the first column is left-aligned, the others are right-aligned."""
    file = out or sys.stdout
    if not (file.isatty() and _by_rich(head, rows, file)):
        for line in columns([head, *rows]):
            click.echo(line.rstrip(), file=file)


def _by_rich(head: Sequence[str], rows: Rows, file: Any) -> bool:
    """Print with rich; False if rich is not installed."""
    try:
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text
    except ModuleNotFoundError:
        return False
    table = Table(box=None, header_style="bold", pad_edge=False)
    for number, title in enumerate(head):
        table.add_column(title, justify="right" if number else "left", overflow="fold")
    for row in rows:
        table.add_row(*map(Text, row))
    Console(file=file).print(table)
    return True
