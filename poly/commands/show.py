"""`poly show`: a nest, its dependences, its schedule and the C made from it."""

from __future__ import annotations

from collections.abc import Callable

import click

from poly.commands.options import nest_argument, size_option, target_option, threads_option
from poly.dependences import dependences
from poly.kernel import compile_nest
from poly.nestfile import load_nest


@click.command("show")
@nest_argument
@size_option
@target_option
@threads_option
@click.option("--dependences", "wanted", flag_value="dependences", help="The dependences alone.")
@click.option("--schedule", "wanted", flag_value="schedule", help="The default schedule's loops alone.")
@click.option("--source", "wanted", flag_value="source", help="The generated C alone.")
def command(nest: str, sizes: dict[str, int], target: str, threads: int | None, wanted: str | None) -> None:
    """Show a nest, its dependences, its default schedule, and the C made from it."""
    loops = load_nest(nest)
    kernel = compile_nest(loops, sizes=sizes, target=target, threads=threads)
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
