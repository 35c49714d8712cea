"""`poly report`: a page about a nest, and its pictures as files."""

from __future__ import annotations

from pathlib import Path

import click

from poly.commands.nestfile import load_nest
from poly.commands.options import (
    STEPS,
    GivenSteps,
    compiler_option,
    flags_option,
    nest_argument,
    nest_at,
    parse_sizes,
    size_option,
    steps_option,
    target_option,
    threads_option,
)
from poly.commands.outputs import check_file
from poly.compilation import compile_nest
from poly.embed.files import make_folder, write_output
from poly.machine import machine
from poly.machine.calibration import kept
from poly.pictures.files import FORMATS, need

KINDS = click.Choice([suffix.removeprefix(".") for suffix in FORMATS])


@click.command("report")
@nest_argument
@size_option
@click.option(
    "--at",
    multiple=True,
    metavar="M=512",
    callback=parse_sizes,
    help="A size that stays open, and the value at which it is explained and measured; may be repeated.",
)
@target_option
@threads_option
@compiler_option
@flags_option
@steps_option("--steps", STEPS)
@click.option("--loops", metavar="I,J", help="Draw iterations along these loops. Default: those that tell most.")
@click.option("--no-measure", is_flag=True, help="Neither time the kernel nor count events.")
@click.option("-o", "--output", metavar="FILE.html", type=click.Path(path_type=Path), help="The page.")
@click.option("--plot", "folder", metavar="FOLDER", type=click.Path(path_type=Path), help="Write the pictures there.")
@click.option("--format", "kind", type=KINDS, default="svg", show_default=True, help="Of the pictures.")
def command(
    nest: str,
    sizes: dict[str, int],
    at: dict[str, int],
    target: str,
    threads: int | None,
    compiler: str | None,
    flags: tuple[str, ...],
    steps: GivenSteps | None,
    loops: str | None,
    no_measure: bool,
    output: Path | None,
    folder: Path | None,
    kind: str,
) -> None:
    """Write one page about a nest: dependences, schedule, order of iterations, bytes, roofline, tuning, C, machine.

    The page has everything in it and needs no network. The kernel is measured for it, in a few seconds; hardware
    counters are read where `perf stat` may do so.
    """
    if output is None and folder is None:
        raise click.UsageError("nothing to write: give -o FILE.html, --plot FOLDER or both.")
    for package in ("matplotlib", *(("jinja2",) if output else ())):
        need(package, "poly report")
    check_file("-o", output)
    from poly.pictures.projection import checked_loops
    from poly.report.content import gathered
    from poly.report.page import page
    from poly.report.pictures import write_pictures

    opened = load_nest(nest)
    names = checked_loops(opened, loops)
    fixed = nest_at(opened.with_sizes(sizes), {}, steps)
    given = None if steps is None else steps.schedule(fixed)
    kernel = compile_nest(fixed, schedule=given, target=target, threads=threads, compiler=compiler, flags=flags)
    if kept(machine()) is None:
        click.echo("Measuring this machine's rates; this is done once.", err=True)
    content = gathered(opened, kernel, at, not no_measure, names)
    if folder is not None:
        make_folder(folder)
        for path in write_pictures(content, folder, kind):
            click.echo(f"wrote {click.format_filename(path)}")
    if output is not None:
        write_output(output, page(content))
        click.echo(f"wrote {click.format_filename(output)}")
