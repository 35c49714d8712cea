"""The commands of `poly`: its own, and those that other packages add through the entry point group `poly.commands`.

Each module here defines one command as its variable `command`. It is imported when the command runs, so that
`poly --help` takes no time: the line that it shows there stands here, short enough for 80 columns.
"""

from __future__ import annotations

import warnings
from importlib import import_module
from typing import Any

import click

from poly.errors import FileError, PolyError
from poly.siblings import HOME, hidden
from poly.version import __version__

GROUP = "poly.commands"
NO_BENCH = "the benchmarks are not installed: pip install 'poly-loops[bench]', or pip install '.[bench]' in a checkout"


class UserError(click.ClickException):
    """An error that the user can correct, shown as one message without a traceback."""

    exit_code = 2

    def show(self, file: Any = None) -> None:
        click.echo(f"poly: {self.format_message()}", err=True)


class UserFileError(UserError):
    """The same for a file that can't be read or written."""

    exit_code = 1


class Deferred(click.Command):
    """A command that is imported when it runs: the variable `command` of a module, unless another is named."""

    def __init__(self, name: str, help: str, module: str | None = None, variable: str = "command") -> None:
        super().__init__(name, help=help)
        self._module = module or f"poly.commands.{name}"
        self._variable = variable

    def load(self) -> click.Command:
        """The command itself."""
        found = getattr(import_module(self._module), self._variable)
        assert isinstance(found, click.Command), f"{self._module}:{self._variable} must be a click command"
        return found

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        return self.load().make_context(info_name, args, parent, **extra)


class BenchCommand(Deferred):
    """`poly bench`, from the package `benchmarks`, which is beside `poly` or installed by the extra `bench`."""

    def load(self) -> click.Command:
        """The command itself. Raises UserError if the package is not installed, or if something hides it."""
        try:
            return super().load()
        except ModuleNotFoundError as error:
            if str(error.name).partition(".")[0] != "benchmarks":
                raise
            raise UserError((hidden("benchmarks") if (HOME / "benchmarks").is_dir() else None) or NO_BENCH) from error


OWN = (
    BenchCommand("bench", "Measure poly beside the libraries that are installed here.", "benchmarks.cli", "bench"),
    Deferred("doctor", "Try what poly needs and can use, and say what to do."),
    Deferred("fuzz", "Try random nests under random schedules (from a checkout)."),
    Deferred("header", "Write nests as a single C header without dependencies."),
    Deferred("machine", "Show cores, caches, their calibration, and OpenCL devices."),
    Deferred("opencl", "Write nests as OpenCL kernels with a C library."),
    Deferred("optimize", "Replace the loops in a C file by optimised code."),
    Deferred("records", "Tuning records: what searches found, for poly.compile."),
    Deferred("show", "Show a nest, its dependences, its schedule, and its C."),
    Deferred("tune", "Search for the fastest schedule by measuring; record it."),
)


class Commands(click.Group):
    """A group that also finds the commands of entry points, and shows poly's errors as plain messages."""

    def list_commands(self, context: click.Context) -> list[str]:
        from importlib.metadata import entry_points

        return sorted({*super().list_commands(context), *(entry.name for entry in entry_points(group=GROUP))})

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        own = super().get_command(context, name)
        if own is not None:
            return own
        from importlib.metadata import entry_points

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
