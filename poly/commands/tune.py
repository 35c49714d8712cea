"""`poly tune`: search for the fastest schedule of a nest, and record it."""

from __future__ import annotations

import json

import click

from codegen.compiler import using
from poly.commands.nestfile import load_nest
from poly.commands.options import (
    chosen_toolchain,
    compiler_option,
    flags_option,
    nest_argument,
    parse_sizes,
    size_option,
    target_option,
    threads_option,
)
from poly.commands.status import INTERRUPTED
from poly.commands.tables import print_facts
from poly.tuning.options import Options, Start
from poly.tuning.session import tuned


@click.command("tune")
@nest_argument
@size_option
@click.option(
    "--at",
    multiple=True,
    metavar="M=512",
    callback=parse_sizes,
    help="A size that stays open, and the value at which it is measured; may be repeated.",
)
@click.option("--trials", type=int, help="The most schedules to judge.")
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
    no_records: bool,
    quiet: bool,
    as_json: bool,
) -> None:
    """Search for the fastest schedule of a nest by measuring, and record it for poly.compile.

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
    with using(chosen_toolchain(compiler, flags)):
        tuning = tuned(load_nest(nest), options, target=target, threads=threads, sizes=sizes, at=at).tuning
    if as_json:
        click.echo(json.dumps(tuning.facts(), indent=1))
    else:
        click.echo(tuning.title)
        print_facts(tuning.rows(), indent="  ")
    if tuning.interrupted:
        context.exit(INTERRUPTED)
