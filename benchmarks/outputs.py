"""Files that a benchmark writes: checked before it runs, as they would fail only at its end, and written atomically."""

from __future__ import annotations

from pathlib import Path

import click

from codegen.errors import ArgumentError
from codegen.files import write_file
from poly.pictures.files import check_plot


def check(json_file: str | None, plot_file: str | None) -> None:
    """Raise UsageError for a folder that does not exist, an unknown format, or a missing package to draw with."""
    if json_file not in (None, "-") and not Path(str(json_file)).parent.is_dir():
        raise click.UsageError(f"--json {json_file}: there is no such folder")
    if plot_file:
        try:
            check_plot(Path(plot_file))
        except ArgumentError as error:
            raise click.UsageError(str(error)) from error


def write_json(text: str, json_file: str) -> None:
    """Write JSON to a file, or to standard output for `-`. Raises click's FileError."""
    if json_file == "-":
        click.echo(text)
        return
    try:
        write_file(json_file, text + "\n")
    except OSError as error:
        raise click.FileError(json_file, error.strerror or str(error)) from error
