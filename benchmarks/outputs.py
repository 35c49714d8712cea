"""Files that a benchmark writes: checked before it runs, as they would fail only at its end, and written atomically."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click

from codegen.files import write_file

FORMATS = (".png", ".svg", ".pdf")


def check(json_file: str | None, plot_file: str | None) -> None:
    """Raise UsageError for a folder that does not exist, an unknown format, or a missing package to draw with."""
    for option, name in (("--json", json_file), ("--plot", plot_file)):
        if name not in (None, "-") and not Path(str(name)).parent.is_dir():
            raise click.UsageError(f"{option} {name}: there is no such folder")
    if plot_file and Path(plot_file).suffix not in FORMATS:
        raise click.UsageError(f"--plot {plot_file}: the name must end in {', '.join(FORMATS)}")
    if plot_file and find_spec("matplotlib") is None:
        raise click.UsageError("--plot needs the package matplotlib: pip install 'poly-loops[bench]'")


def say(lines: Iterable[str], out: Any) -> None:
    """Print lines; those that are too long for a terminal are broken between words."""
    width = shutil.get_terminal_size().columns if out.isatty() else 0
    for line in lines:
        indent = " " * (len(line) - len(line.lstrip()) + 2)
        click.echo(textwrap.fill(line, width, subsequent_indent=indent) if width and line.strip() else line, file=out)


def write_json(text: str, json_file: str) -> None:
    """Write JSON to a file, or to standard output for `-`. Raises click's FileError."""
    if json_file == "-":
        click.echo(text)
        return
    try:
        write_file(json_file, text + "\n")
    except OSError as error:
        raise click.FileError(json_file, error.strerror or str(error)) from error
