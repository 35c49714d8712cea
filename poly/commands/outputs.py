"""Files that commands write: checked before the work, which would be lost, and written atomically at its end."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import click

from poly.commands.options import Command
from poly.embed.files import write_output
from poly.pictures.files import FORMATS, need

STDOUT = "-"


def check_file(option: str, name: str | Path | None) -> None:
    """Raise UsageError if the file cannot be written: there is no such folder, or no permission."""
    if name is None or str(name) == STDOUT:
        return
    path = Path(name)
    try:
        if path.is_dir():
            raise click.UsageError(f"{option} {name}: this is a folder; name a file in it")
        if not path.parent.is_dir():
            raise click.UsageError(f"{option} {name}: there is no such folder")
        writable = os.access(path if path.exists() else path.parent, os.W_OK)
    except (OSError, ValueError) as error:
        raise click.UsageError(f"{option} {name}: {error}") from error
    if not writable:
        raise click.UsageError(f"{option} {name}: there is no permission to write it")


def check_plot(option: str, name: str | Path | None) -> None:
    """The same for a picture, whose format must be known, and for which matplotlib must be installed."""
    check_file(option, name)
    if name is not None and Path(name).suffix not in FORMATS:
        raise click.UsageError(f"{option} {name}: the name must end in {', '.join(FORMATS)}")
    if name is not None:
        need("matplotlib", option)


def _checked_plot(context: click.Context, option: click.Parameter, path: Path | None) -> Path | None:
    check_plot(option.opts[0], path)
    return path


def plot_option(help: str) -> Callable[[Command], Command]:
    """`--plot FILE`, refused before the command begins if the picture could not be written."""
    of_file = click.Path(path_type=Path)
    return click.option("--plot", metavar="FILE", type=of_file, callback=_checked_plot, help=help)


folder_option = click.option(
    "-o",
    "--output",
    required=True,
    metavar="DIR",
    type=click.Path(path_type=Path, file_okay=False),
    help="The directory to write into; it is created if it does not exist.",
)


def write_json(text: str, name: str) -> None:
    """Write JSON to a file, or to standard output for `-`. Raises FileError."""
    if name == STDOUT:
        click.echo(text)
    else:
        write_output(Path(name), text + "\n")
