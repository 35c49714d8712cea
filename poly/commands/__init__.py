"""The commands of `poly`: its own, and those that other packages add through the entry point group `poly.commands`.

Each module here defines one command as its variable `command`. It is imported when the command runs, so that
`poly --help` takes no time: the line that it shows there stands here, short enough for 80 columns.
"""

from __future__ import annotations

import errno
import warnings
from importlib import import_module
from typing import Any

import click

from microkernels.errors import PluginError
from microkernels.plugins import load, names
from poly.commands.status import INTERRUPTED, REFUSED
from poly.commands.style import styled, warn
from poly.errors import PolyError
from poly.siblings import HOME, hidden
from poly.version import __version__

GROUP = "poly.commands"
NO_BENCH = "the benchmarks are not installed: pip install 'poly-loops[bench]', or pip install '.[bench]' in a checkout"


class UserError(click.ClickException):
    """An error that the user can correct, shown as `Error: …` without a traceback."""

    exit_code = REFUSED


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
        return styled(found)

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
    Deferred("build", "Write nests as a Python package that needs no compiler."),
    Deferred("doctor", "Try what poly needs and can use, and say what to do."),
    Deferred("fuzz", "Try random nests under random schedules (from a checkout)."),
    Deferred("header", "Write nests as a single C header without dependencies."),
    Deferred("machine", "Show cores, caches, their calibration, and OpenCL devices."),
    Deferred("opencl", "Write nests as OpenCL kernels with a C library."),
    Deferred("optimize", "Replace the loops in a C file by optimised code."),
    Deferred("records", "Tuning records: what searches found, for poly.compile."),
    Deferred("report", "Write one page about a nest, with pictures."),
    Deferred("show", "Show a nest, its dependences, its schedule, and its C."),
    Deferred("tune", "Search for the fastest schedule by measuring; record it."),
)


class Commands(click.Group):
    """A group that also finds the commands of entry points, and shows poly's errors as plain messages."""

    def list_commands(self, context: click.Context) -> list[str]:
        return sorted({*super().list_commands(context), *names(GROUP)})

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        own = super().get_command(context, name)
        if own is not None:
            return own
        try:
            offered: click.Command | None = load(GROUP, name, lambda one: isinstance(one, click.Command), "command")
        except PluginError as error:
            return _broken(name, error)
        return None if offered is None else styled(offered)

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


def _broken(name: str, error: PluginError) -> click.Command:
    """A command in place of one that cannot be loaded, so that the others still work."""

    def fail(**_: Any) -> None:
        raise error

    settings = {"ignore_unknown_options": True, "allow_extra_args": True}
    return click.Command(name, context_settings=settings, callback=fail, short_help="(cannot be loaded)")


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
