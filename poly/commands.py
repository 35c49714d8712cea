"""The commands of `poly`: its own, and those that other packages add by the entry point group `poly.commands`."""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib.metadata import entry_points
from typing import Any

import click

from codegen.errors import ArgumentError, ToolchainError
from microkernels.errors import TargetError
from poly.dependences import dependences
from poly.errors import PolyError
from poly.kernel import compile_nest
from poly.machine import facts, machine, measured, table
from poly.nestfile import load_nest

GROUP = "poly.commands"
USER_ERRORS = (PolyError, ArgumentError, TargetError, ToolchainError)


class UserError(click.ClickException):
    """Something that the user can put right: one message, no traceback."""

    exit_code = 2

    def show(self, file: Any = None) -> None:
        click.echo(f"poly: {self.format_message()}", err=True)


class Commands(click.Group):
    """A group that looks up entry points when it is asked for a command, and says poly's errors in plain words."""

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
        try:
            return super().invoke(context)
        except USER_ERRORS as error:
            raise UserError(str(error)) from error


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="poly-loops")
def poly() -> None:
    """Plain Python loop nests to kernels at the machine's speed."""


@poly.command("machine")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("--measure", is_flag=True, help="Measure anew, though there are figures from before.")
def show_machine(as_json: bool, measure: bool) -> None:
    """Show the machine: cores, caches, FMA peak and bandwidths. They are measured once, and kept."""
    here = machine()
    rates = measured(here, anew=measure)
    click.echo(json.dumps(facts(here, rates), indent=1) if as_json else "\n".join(table(here, rates)))


@poly.command()
@click.argument("nest", metavar="FILE.py:NAME")
@click.option("--size", "sizes", multiple=True, metavar="M=512", help="Fix a size; may be repeated.")
@click.option("--target", default="c", show_default=True, help="Instruction set, as for poly.compile.")
@click.option("--threads", type=click.IntRange(min=1), help="Threads of a call.")
@click.option("--dependences", "wanted", flag_value="dependences", help="The dependences alone.")
@click.option("--schedule", "wanted", flag_value="schedule", help="The default schedule's loops alone.")
@click.option("--source", "wanted", flag_value="source", help="The generated C alone.")
def show(nest: str, sizes: tuple[str, ...], target: str, threads: int | None, wanted: str | None) -> None:
    """Show a nest, its dependences, its default schedule, and the C made from it."""
    loops = load_nest(nest)
    kernel = compile_nest(loops, sizes=_sizes(sizes), target=target, threads=threads)
    parts: dict[str, Callable[[], str]] = {
        "nest": lambda: str(kernel.nest),
        "dependences": lambda: str(dependences(kernel.nest)),
        "schedule": lambda: str(kernel.schedule),
        "source": lambda: kernel.source,
    }
    if wanted:
        click.echo(parts[wanted]())
        return
    for title, text in parts.items():
        click.echo(f"{click.style(title, bold=True)}\n\n{text().strip()}\n")


def _sizes(texts: tuple[str, ...]) -> dict[str, int]:
    """`M=512` as a size and its value."""
    sizes = {}
    for text in texts:
        name, _, value = text.partition("=")
        if not name.isidentifier() or not value.isdigit():
            raise click.BadParameter(f"{text!r} is not of the form M=512", param_hint="--size")
        sizes[name] = int(value)
    return sizes
