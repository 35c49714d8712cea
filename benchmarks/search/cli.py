"""`poly bench search`: measures the tables, or evaluates the search on them."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

import click

from benchmarks import outputs
from benchmarks.search import live as tuned
from benchmarks.search import making, origins, picture, proof, report, store
from benchmarks.search.problems import chosen
from benchmarks.search.tvm_peer import Tvm
from poly.errors import PolyError
from poly.measure import process

THREADS = 1


@click.command()
@click.argument("problems", nargs=-1, metavar="[PROBLEM]...")
@click.option("--data", default=str(store.DATA), metavar="DIR", help="Where the tables lie. Default: beside the code.")
@click.option("--runs", type=click.IntRange(min=1), default=10, show_default=True, help="Of each strategy, by seed.")
@click.option("--polydl", is_flag=True, help="Judge PolyDL's ranking too: a minute or so for each problem.")
@click.option("--json", "json_file", metavar="FILE", help="Write all figures as JSON; - for standard output.")
@click.option("--plot", "plot_file", metavar="FILE", help="Draw best-so-far of each strategy (png, svg or pdf).")
@click.option("--machine", is_flag=True, help="Show the machine that the tables are from, and nothing else.")
@click.option("--live", is_flag=True, help="Tune one product and one convolution here and now, by several strategies.")
@click.option("--against", type=click.Choice(["tvm"]), help="Tune both with this peer too (with --live).")
@click.option("--trials", type=click.IntRange(min=1), default=64, show_default=True, help="Trials of the peer.")
@click.option("--measure", is_flag=True, help="Measure the tables; goes on where it was stopped.")
@click.option("--passes", type=click.IntRange(min=1), default=4, show_default=True, help="Visits to each point.")
@click.option("--seconds", type=click.FloatRange(min=1), default=300.0, show_default=True, help="Of a problem a visit.")
@click.option("--points", type=click.IntRange(min=2), help="Points of a problem at most, drawn at random.")
def search(
    problems: tuple[str, ...],
    data: str,
    runs: int,
    polydl: bool,
    json_file: str | None,
    plot_file: str | None,
    machine: bool,
    live: bool,
    against: str | None,
    trials: int,
    measure: bool,
    passes: int,
    seconds: float,
    points: int | None,
) -> None:
    """Show how good the search is, on small spaces of which every point was measured.

    PROBLEM is gemm, conv, or the name of one problem ('gemm 256x256x2048', 'conv 03'); all by default. Nothing is
    measured but with --measure and --live: strategies run on the stored tables.
    """
    try:
        if measure:
            _measure(problems, Path(data), making.MeasuringPlan(passes, seconds, points))
        elif live or against:
            _live(trials if against else 0, json_file)
        elif machine:
            _show(report.machine_facts(proof.load(Path(data), chosen(problems)).lands[0].table.origin.machine))
        else:
            _prove(problems, Path(data), range(runs), polydl, json_file, plot_file)
    except PolyError as error:
        raise click.UsageError(str(error)) from error


def _prove(
    problems: tuple[str, ...],
    folder: Path,
    seeds: Sequence[int],
    rival: bool,
    json_file: str | None,
    plot_file: str | None,
) -> None:
    outputs.check(json_file, plot_file)
    tables = proof.load(folder, chosen(problems))
    found = proof.prove(tables, seeds, _tell if sys.stderr.isatty() else lambda _: None, rival)
    _show(report.text(tables, found), err=json_file == "-")
    _write(proof.document(tables, found), json_file)
    if plot_file:
        facts = tables.lands[0].table.origin.machine
        picture.draw(found.scores, Path(plot_file), picture.caption(found.scores, facts))


def _live(trials: int, json_file: str | None) -> None:
    outputs.check(json_file, None)
    cpus = process.allowed()
    entrants = [*tuned.tuners(cpus), *([Tvm(trials, cpus)] if trials else [])]
    results = tuned.run(entrants, THREADS, _tell)
    _show(tuned.text(results, entrants), err=json_file == "-")
    _write(list(tuned.lines(results, entrants)), json_file)


def _write(values: object, json_file: str | None) -> None:
    if json_file is not None:
        outputs.write_json(json.dumps(values, indent=1), json_file)


def _show(lines: Iterable[str], err: bool = False) -> None:
    click.echo("\n".join(lines), err=err)


def _measure(problems: tuple[str, ...], folder: Path, plan: making.MeasuringPlan) -> None:
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
