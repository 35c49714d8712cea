"""`poly show`: a nest, its dependences, its schedule, the C made from it, and the model's explanation."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import click

from microkernels.opencl_isa import is_gpu
from poly.analysis.dependences import dependences
from poly.commands.nestfile import load_nest
from poly.commands.options import (
    STEPS,
    GivenSteps,
    compiler_option,
    flags_option,
    nest_argument,
    nest_at,
    size_option,
    steps_option,
    target_option,
    threads_option,
)
from poly.commands.outputs import plot_option
from poly.commands.tables import heading, print_text
from poly.compilation import compile_nest
from poly.errors import SpecError
from poly.ir.nest import Nest
from poly.machine import machine
from poly.machine.calibration import kept
from poly.machine.target import text_of
from poly.model.host import here
from poly.pictures.files import save
from poly.scheduled import Scheduled
from poly.schedules.schedule import Schedule

PLOTTED = ("dependences", "schedule", "model")
"""The parts of which there is a picture."""


@click.command("show")
@nest_argument
@size_option
@target_option
@threads_option
@compiler_option
@flags_option
@steps_option("--steps", STEPS)
@click.option("--dependences", "wanted", flag_value="dependences", help="Show only the dependences.")
@click.option("--schedule", "wanted", flag_value="schedule", help="Show only the schedule's loops.")
@click.option("--why-not", "wanted", flag_value="why not", help="Show only why loops are not parallel or vectorised.")
@click.option("--source", "wanted", flag_value="source", help="Show only the generated C.")
@click.option("--model", "wanted", flag_value="model", help="Show working sets, bytes of each level, roofline, times.")
@steps_option("--against", "With --model: compare with a schedule with these steps.")
@click.option("--full", is_flag=True, help="Print the microkernels in the generated C in full.")
@click.option("--json", "as_json", is_flag=True, help="With --model: print one JSON object.")
@plot_option("Draw what --dependences, --schedule or --model shows (png, svg or pdf).")
@click.option("--loops", metavar="I,J", help="With --plot: draw iterations along these loops.")
def command(
    nest: str,
    sizes: dict[str, int],
    target: str,
    threads: int | None,
    compiler: str | None,
    flags: tuple[str, ...],
    steps: GivenSteps | None,
    wanted: str | None,
    against: GivenSteps | None,
    full: bool,
    as_json: bool,
    plot: Path | None,
    loops: str | None,
) -> None:
    """Show a nest, its dependences, its schedule, why that is not more parallel, and the C or OpenCL C made from it."""
    if wanted != "model" and (against is not None or as_json):
        raise click.UsageError("--against and --json go with --model.")
    if plot is not None and wanted not in PLOTTED:
        raise click.UsageError(f"--plot goes with one of {', '.join(f'--{part}' for part in PLOTTED)}.")
    opened = load_nest(nest)
    fixed = nest_at(opened.with_sizes(sizes), {}, steps)
    given = None if steps is None else steps.schedule(fixed)
    kernel = compile_nest(fixed, schedule=given, target=target, threads=threads, compiler=compiler, flags=flags)
    if wanted == "model":
        _model(kernel, None if against is None else against.schedule(fixed), as_json, plot)
        return
    parts: dict[str, Callable[[], str]] = {
        "nest": lambda: str(kernel.nest),
        "dependences": lambda: str(dependences(kernel.nest)),
        "schedule": lambda: str(kernel.schedule),
        "why not": lambda: _why_not(kernel),
        "source": lambda: kernel.source if full else _folded(kernel.source, kernel.routines),
    }
    if wanted:
        _print(wanted, parts[wanted]())
        if plot is not None:
            _draw(opened, kernel, wanted, loops, plot)
        return
    for title, text in parts.items():
        click.echo(f"{heading(title)}\n")
        _print(title, f"{text().strip()}\n")


def _print(title: str, text: str) -> None:
    """Print a part: reasons are sentences and are continued below, loops and C keep their lines."""
    print_text(text) if title == "why not" else click.echo(text)


def _why_not(kernel: Scheduled) -> str:
    if is_gpu(kernel.isa):
        return "A GPU's loops are mapped to work-groups and work-items."
    from poly.explanation.reasons import reason_lines, reasons

    return (
        "\n".join(reason_lines(reasons(kernel.schedule, here(kernel.isa, kernel.threads))))
        or "There is nothing to add."
    )


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


def _print_explained(what: object) -> None:
    """Print facts as JSON, and an explanation or a comparison as text."""
    if isinstance(what, dict):
        click.echo(json.dumps(what, indent=1))
    else:
        print_text(str(what))


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
        _print_explained(facts(explanation) if as_json else explanation)
        shown = {explanation.schedule.nest.name: explanation}
    else:
        compared = compare(kernel, other, target=text_of(kernel.isa), threads=kernel.threads)
        _print_explained(comparison_facts(compared) if as_json else compared)
        shown = {"first": compared.first, "second": compared.second}
    if plot is not None:
        cpu = machine().cpu
        save(roofline(shown, cpu) or levels(next(iter(shown.values())), cpu), plot)
