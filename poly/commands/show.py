"""`poly show`: a nest, its dependences, its schedule, the C made from it, and the model's explanation."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import click

from poly.analysis.dependences import dependences
from poly.commands.nestfile import load_nest
from poly.commands.options import nest_argument, size_option, target_option, threads_option
from poly.compilation import compile_nest
from poly.errors import SpecError
from poly.ir.nest import Nest
from poly.machine import machine
from poly.machine.calibration import kept
from poly.machine.target import text_of
from poly.pictures.files import check_plot, save
from poly.scheduled import Scheduled
from poly.schedules.schedule import Schedule

PLOTTED = ("dependences", "schedule", "model")
"""The parts of which there is a picture."""


@click.command("show")
@nest_argument
@size_option
@target_option
@threads_option
@click.option("--steps", metavar="JSON", help="Show the schedule with these steps, as Schedule.to_json writes them.")
@click.option("--dependences", "wanted", flag_value="dependences", help="Show only the dependences.")
@click.option("--schedule", "wanted", flag_value="schedule", help="Show only the schedule's loops.")
@click.option("--source", "wanted", flag_value="source", help="Show only the generated C.")
@click.option("--model", "wanted", flag_value="model", help="Show working sets, bytes of each level, roofline, times.")
@click.option("--against", metavar="JSON", help="With --model: compare with a schedule with these steps.")
@click.option("--full", is_flag=True, help="Print the microkernels in the generated C in full.")
@click.option("--json", "as_json", is_flag=True, help="With --model: print one JSON object.")
@click.option(
    "--plot",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Draw what --dependences, --schedule or --model shows (png, svg or pdf).",
)
@click.option("--loops", metavar="I,J", help="With --plot: draw iterations along these loops.")
def command(
    nest: str,
    sizes: dict[str, int],
    target: str,
    threads: int | None,
    steps: str | None,
    wanted: str | None,
    against: str | None,
    full: bool,
    as_json: bool,
    plot: Path | None,
    loops: str | None,
) -> None:
    """Show a nest, its dependences, its schedule, and the C or OpenCL C made from it."""
    if wanted != "model" and (against is not None or as_json):
        raise click.UsageError("--against and --json go with --model.")
    if plot is not None:
        if wanted not in PLOTTED:
            raise click.UsageError(f"--plot goes with one of {', '.join(f'--{part}' for part in PLOTTED)}.")
        check_plot(plot)
    opened = load_nest(nest)
    fixed = opened.with_sizes(sizes)
    given = None if steps is None else Schedule.from_json(fixed, steps)
    kernel = compile_nest(fixed, schedule=given, target=target, threads=threads)
    if wanted == "model":
        _model(kernel, None if against is None else Schedule.from_json(fixed, against), as_json, plot)
        return
    parts: dict[str, Callable[[], str]] = {
        "nest": lambda: str(kernel.nest),
        "dependences": lambda: str(dependences(kernel.nest)),
        "schedule": lambda: str(kernel.schedule),
        "source": lambda: kernel.source if full else _folded(kernel.source, kernel.routines),
    }
    if wanted:
        click.echo(parts[wanted]())
        if plot is not None:
            _draw(opened, kernel, wanted, loops, plot)
        return
    for title, text in parts.items():
        click.echo(f"{click.style(title, bold=True)}\n\n{text().strip()}\n")


def _draw(opened: Nest, kernel: Scheduled, wanted: str, loops: str | None, plot: Path) -> None:
    """Draw the dependences, or the order of the schedule, on a small instance."""
    from poly.pictures.instance import NONE_SMALL, small
    from poly.pictures.projection import checked_loops
    from poly.pictures.scenes import dependences_scene, order_scene

    names = checked_loops(opened, loops)
    instance = small(opened, kernel.schedule.steps)
    if instance is None:
        raise SpecError(f"{opened.name} can't be drawn: {NONE_SMALL}")
    save((dependences_scene if wanted == "dependences" else order_scene)(instance, names), plot)


def _folded(source: str, routines: str) -> str:
    """The source with one line in place of its microkernels."""
    lines = routines.count("\n") + 1
    return source.replace(routines, f"/* {lines} lines of microkernels: --full shows them */") if routines else source


def _model(kernel: Scheduled, other: Schedule | None, as_json: bool, plot: Path | None) -> None:
    """The explanation of a kernel's schedule, or its comparison with another one."""
    from poly.explanation import compare, explain
    from poly.explanation.facts import comparison_facts, facts
    from poly.pictures.levels import levels
    from poly.pictures.roofline import roofline

    if kept(machine()) is None:
        click.echo("Measuring this machine's rates; this is done once.", err=True)
    if other is None:
        explanation = explain(kernel)
        click.echo(json.dumps(facts(explanation), indent=1) if as_json else explanation)
        shown = {explanation.schedule.nest.name: explanation}
    else:
        compared = compare(kernel, other, target=text_of(kernel.isa), threads=kernel.threads)
        click.echo(json.dumps(comparison_facts(compared), indent=1) if as_json else compared)
        shown = {"first": compared.first, "second": compared.second}
    if plot is not None:
        cpu = machine().cpu
        save(roofline(shown, cpu) or levels(next(iter(shown.values())), cpu), plot)
