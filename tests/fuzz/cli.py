"""`poly fuzz`: try random nests under random schedules until something is wrong or the time is over."""

from __future__ import annotations

import random
import sys

import click

from fuzz.cases import SHARES
from fuzz.report import HEAD
from fuzz.run import Plan, Total, run, shrink

REDUCING = 30.0
"""Seconds for each fault."""
MOST = 6
"""The most faults that are reduced and printed."""


@click.command("fuzz")
@click.option("--seconds", type=click.FloatRange(min=0), help="How long to try. Default: a minute, without --pairs.")
@click.option("--pairs", type=click.IntRange(min=1), help="How many pairs of a nest and a schedule to try.")
@click.option("--seed", type=int, help="Default: a fresh one, which is printed.")
@click.option("--case", type=click.IntRange(min=0), help="One case of the seed alone.")
@click.option("--first", type=click.IntRange(min=0), default=0, help="The number of the first case.")
@click.option(
    "--routes", metavar="ROUTE,…", default=",".join(SHARES), show_default=True, help="Ways to compile and run."
)
@click.option("--workers", type=click.IntRange(min=1), default=2, show_default=True, help="Processes.")
@click.option("--no-reduce", is_flag=True, help="Print what was found as it is.")
def command(
    seconds: float | None,
    pairs: int | None,
    seed: int | None,
    case: int | None,
    first: int,
    routes: str,
    workers: int,
    no_reduce: bool,
) -> None:
    """Try random nests under random schedules against an interpreter that shares nothing with poly.

    What fails is reduced to a small case and printed as a test; the exit status is then 1. A seed and the number of a
    case make it again.
    """
    chosen = tuple(routes.split(","))
    unknown = [route for route in chosen if route not in SHARES]
    if unknown:
        raise click.UsageError(f"unknown route {unknown[0]!r}: --routes takes {', '.join(SHARES)}")
    if seconds is None and pairs is None:
        seconds = 60.0
    seed = random.SystemRandom().randrange(10**6) if seed is None else seed
    click.echo(f"seed {seed}", err=True)
    total = _watched(Plan(seed, seconds, pairs, case, chosen, workers, first))
    for number, found in enumerate(list(total.found.values())[:MOST]):
        test = shrink(found, seed, 0.0 if no_reduce else REDUCING)
        click.echo(test if number else f"{HEAD}\n\n{test}")
    for name, found in total.found.items():
        where = f"first in case {found.case} of seed {seed}"
        click.echo(f"fault: {name}, {found.times} times, {where}: {found.failure}"[:400], err=True)
    parts = ", ".join(f"{what} {seconds:.0f}" for what, seconds in total.seconds.most_common())
    click.echo(f"seconds of processors: {parts}", err=True)
    click.echo(total.line())
    sys.exit(1 if total.found else 0)


def _watched(plan: Plan) -> Total:
    """The run, with a line that shows how far it is where somebody watches; else with each fault as it is found."""
    if not sys.stderr.isatty():
        told: set[str] = set()

        def tell(total: Total) -> None:
            for name in total.found.keys() - told:
                told.add(name)
                click.echo(f"found after {total.pairs} pairs, case {total.found[name].case}: {name}"[:400], err=True)

        return run(plan, tell)
    from rich.console import Console

    with Console(stderr=True).status("starting") as status:
        return run(plan, lambda total: status.update(total.line()))
