"""`poly tune`: search for the fastest schedule of a nest, or of all nests in a file, and record it."""

from __future__ import annotations

import json
from textwrap import indent

import click

from codegen.toolchain.compiler import using
from poly.commands.nestfile import open_nests
from poly.commands.options import (
    chosen_toolchain,
    compiler_option,
    flags_option,
    parse_sizes,
    size_option,
    target_option,
    threads_option,
)
from poly.commands.status import INTERRUPTED
from poly.commands.tables import print_facts
from poly.errors import SearchError
from poly.tuning.elsewhere import Job, tuned_everywhere
from poly.tuning.options import Options, Start
from poly.tuning.problem import problems
from poly.tuning.together import tuned


@click.command("tune")
@click.argument("nest", metavar="FILE[:NAME]")
@size_option
@click.option(
    "--at",
    multiple=True,
    metavar="M=512",
    callback=parse_sizes,
    help="A size that stays open, and the value at which it is measured; may be repeated.",
)
@click.option("--trials", type=int, help="The most schedules to judge, of all nests together.")
@click.option("--seconds", type=float, help="Begin no measurement after this many seconds.")
@click.option("--strategy", default="droplet", show_default=True, help="How to search.")
@click.option(
    "--start",
    type=click.Choice(["model", "origin"]),
    default="model",
    show_default=True,
    help="Begin at the model's choice, or at the smallest sizes.",
)
@target_option
@threads_option
@compiler_option
@flags_option
@click.option("--cold", is_flag=True, help="Flush the caches before each call.")
@click.option("--seed", type=int, default=0, show_default=True, help="The seed of random choices.")
@click.option("--workers", metavar="ADDRESS", help="A dask cluster whose workers build and measure.")
@click.option("--everywhere", is_flag=True, help="Search on each kind of machine of --workers, and merge the records.")
@click.option("--no-records", is_flag=True, help="Neither read nor write the records.")
@click.option("--quiet", is_flag=True, help="Show nothing while the search runs.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object; poly show takes it as --steps.")
@click.pass_context
def command(
    context: click.Context,
    nest: str,
    sizes: dict[str, int],
    at: dict[str, int],
    trials: int | None,
    seconds: float | None,
    strategy: str,
    start: Start,
    target: str,
    threads: int | None,
    compiler: str | None,
    flags: tuple[str, ...],
    cold: bool,
    seed: int,
    workers: str | None,
    everywhere: bool,
    no_records: bool,
    quiet: bool,
    as_json: bool,
) -> None:
    """Search for the fastest schedule of a nest by measuring, and record it for poly.compile.

    All nests of FILE.py share the budget: the next trials go where they are expected to save most time.

    Without --trials or --seconds the search ends when it expects to gain less than 1 %. Ctrl-C ends it with the best
    result so far (status 130); the same command continues it.
    """
    options = Options(
        strategy=strategy,
        trials=trials,
        seconds=seconds,
        start=start,
        cold=cold,
        seed=seed,
        records=not no_records,
        show=not quiet,
    )
    nests = open_nests(nest).nests
    if everywhere:
        if workers is None or as_json or compiler or flags:
            raise click.UsageError("--everywhere needs --workers, and goes without --compiler, --flag and --json.")
        _on_each_kind(Job(nests, options, target, threads, sizes, at), workers)
        return
    with using(chosen_toolchain(compiler, flags)):
        kernels = tuned(problems(nests, target, threads, sizes, at), options, workers=workers)
    found = [kernel.tuning for kernel in kernels if not isinstance(kernel, SearchError)]
    if as_json:
        facts = [tuning.facts() for tuning in found]
        click.echo(json.dumps(facts[0] if len(kernels) == 1 and facts else facts, indent=1))
    else:
        for number, tuning in enumerate(found):
            click.echo("\n" * bool(number) + tuning.title)
            print_facts(tuning.rows())
    for kernel in kernels:
        if isinstance(kernel, SearchError):
            raise kernel
    if any(tuning.interrupted for tuning in found):
        context.exit(INTERRUPTED)


def _on_each_kind(job: Job, workers: str) -> None:
    for machine, every in tuned_everywhere(job, workers).items():
        click.echo(f"on {machine}:")
        for told in every:
            click.echo(indent(told.report, "  "))
