"""The commands of `poly`: its own, and those that other packages add through the entry point group `poly.commands`.

Each module here defines one command as its variable `command`; the name that users type is part of the command.
"""

from __future__ import annotations

import errno
import warnings
from importlib.metadata import entry_points
from typing import Any

import click

from poly.commands import fuzz, header, machine, opencl, optimize, records, show, tune
from poly.commands.status import INTERRUPTED, REFUSED
from poly.commands.style import styled, warn
from poly.errors import PolyError
from poly.version import __version__

GROUP = "poly.commands"
OWN = (
    fuzz.command,
    header.command,
    machine.command,
    opencl.command,
    optimize.command,
    records.command,
    show.command,
    tune.command,
)


class UserError(click.ClickException):
    """An error that the user can correct, shown as `Error: …` without a traceback."""

    exit_code = REFUSED


class Commands(click.Group):
    """A group that also finds the commands of entry points, and shows poly's errors as plain messages."""

    def list_commands(self, context: click.Context) -> list[str]:
        return sorted({*super().list_commands(context), *(entry.name for entry in entry_points(group=GROUP))})

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        own = super().get_command(context, name)
        if own is not None:
            return styled(own)
        for entry in entry_points(group=GROUP, name=name):
            command = entry.load()
            assert isinstance(command, click.Command), f"{entry.value} must be a click command"
            return styled(command)
        return None

    def invoke(self, context: click.Context) -> Any:
        with warnings.catch_warnings():
            warnings.showwarning = _say
            try:
                return super().invoke(context)
            except PolyError as error:
                raise UserError(str(error)) from error
            except OSError as error:
                if error.errno == errno.EPIPE:  # click ends quietly where the reader of the output has ended
                    raise
                raise UserError(
                    f"{error.strerror or error}{f': {error.filename}' if error.filename else ''}"
                ) from error
            except KeyboardInterrupt:
                click.echo("Interrupted.", err=True)
                context.exit(INTERRUPTED)


def _say(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:
    """Show a warning as a plain message, without the line of code that raised it."""
    warn(message)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__)
def poly() -> None:
    """Compile loop nests in plain Python to fast kernels."""


styled(poly)
for own in OWN:
    poly.add_command(own)
