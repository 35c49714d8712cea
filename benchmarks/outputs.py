"""Files that a benchmark writes: checked before it runs, as they would fail only at its end, and written atomically."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import click

from poly.commands.outputs import check_file, check_plot
from poly.commands.outputs import write_json as write_json
from poly.commands.tables import terminal_width, text_lines


def check(json_file: str | None, plot_file: str | None) -> None:
    """Raise UsageError for a folder that does not exist, an unknown format, or a missing package to draw with."""
    check_file("--json", json_file)
    check_plot("--plot", plot_file)


def say(lines: Iterable[str], out: Any) -> None:
    """Print lines; those that are too long for a terminal are broken between words."""
    for line in lines:
        click.echo("\n".join(text_lines(line, terminal_width(out))), file=out)
