"""The commands of `poly`: its own, and those that other packages add through the entry point group `poly.commands`.

Each module here defines one command as its variable `command`; the name that users type is part of the command.
"""

from __future__ import annotations

import warnings
from importlib.metadata import entry_points
from typing import Any

import click

from poly.commands import fuzz, header, machine, opencl, optimize, records, report, show, tune
from poly.errors import FileError, PolyError
from poly.version import __version__

GROUP = "poly.commands"
OWN = (
    fuzz.command,
    header.command,
    machine.command,
    opencl.command,
    optimize.command,
    records.command,
    report.command,
    show.command,
    tune.command,
)


class UserError(click.ClickException):
    """An error that the user can correct, shown as one message without a traceback."""

    exit_code = 2

    def show(self, file: Any = None) -> None:
        click.echo(f"poly: {self.format_message()}", err=True)


class UserFileError(UserError):
    """The same for a file that can't be read or written."""

    exit_code = 1


class Commands(click.Group):
    """A group that also finds the commands of entry points, and shows poly's errors as plain messages."""

    def list_commands(self, context: click.Context) -> list[str]:
        return sorted({*super().list_commands(context), *(entry.name for entry in entry_points(group=GROUP))})

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        own = super().get_command(context, name)
        if own is not None:
            return own
        for entry in entry_points(group=GROUP, name=name):
            command = entry.load()
            assert isinstance(command, click.Command), f"{entry.value} must be a click command"
            return command
        return None

    def invoke(self, context: click.Context) -> Any:
        with warnings.catch_warnings():
            warnings.showwarning = _say
            try:
                return super().invoke(context)
            except PolyError as error:
                kind = UserFileError if isinstance(error, FileError) else UserError
                raise kind(str(error)) from error


def _say(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:
    """Show a warning as a plain message, without the line of code that raised it."""
    click.echo(f"poly: {message}", err=True)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__)
def poly() -> None:
    """Compile loop nests in plain Python to fast kernels."""


for own in OWN:
    poly.add_command(own)
