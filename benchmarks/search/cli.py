"""`poly bench search`: make the tables, or tell from them how good the search is."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from benchmarks.search import making, origins, store
from benchmarks.search.problems import chosen
from poly.errors import PolyError

THREADS = 1


@click.command()
@click.argument("problems", nargs=-1, metavar="[PROBLEM]...")
@click.option("--data", default=str(store.DATA), metavar="DIR", help="Where the tables lie. Default: beside the code.")
@click.option("--measure", is_flag=True, help="Measure the tables; goes on where it was stopped.")
@click.option("--passes", type=click.IntRange(min=1), default=4, show_default=True, help="Visits to each point.")
@click.option("--seconds", type=click.FloatRange(min=1), default=300.0, show_default=True, help="Of a problem a visit.")
@click.option("--points", type=click.IntRange(min=2), help="Points of a problem at most, drawn at random.")
def search(
    problems: tuple[str, ...], data: str, measure: bool, passes: int, seconds: float, points: int | None
) -> None:
    """How good the search is, on small spaces of which every point was measured.

    PROBLEM is gemm, conv, or the name of one problem ('gemm 256x256x2048', 'conv 03'); all by default.
    """
    try:
        if measure:
            _measure(problems, Path(data), making.Plan(passes, seconds, points))
    except PolyError as error:
        raise click.UsageError(str(error)) from error


def _measure(problems: tuple[str, ...], folder: Path, plan: making.Plan) -> None:
    cases = chosen(problems)
    host = origins.this()
    spaces = {name: host.space(case, THREADS) for name, case in cases.items()}
    maker = making.Maker(folder, origins.origin(host), THREADS, spaces, making.live, _tell)
    try:
        maker.make(cases, plan)
    except KeyboardInterrupt:
        sys.exit("stopped; the same call goes on from here")


def _tell(line: str) -> None:
    click.echo(line, err=True)
