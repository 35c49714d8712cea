"""`poly bench search`: measures the tables, or evaluates the search on them."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import click

from benchmarks import outputs
from benchmarks.case import Case
from benchmarks.search import live as tuned
from benchmarks.search import making, model, model_report, origins, picture, proof, report, store
from benchmarks.search.problems import chosen, sampled, whole
from benchmarks.search.tvm_peer import Tvm
from microkernels.isa import ISA, parse_target
from poly.commands.status import INTERRUPTED
from poly.errors import PolyError, SearchError
from poly.machine import machine, text
from poly.measure import process

THREADS = 1


@click.command()
@click.argument("problems", nargs=-1, metavar="[PROBLEM]...")
@click.option("--data", default=str(store.DATA), metavar="DIR", help="Where the tables lie. Default: beside the code.")
@click.option("--runs", type=click.IntRange(min=0), default=10, show_default=True, help="Of each strategy; 0: none.")
@click.option("--polydl", is_flag=True, help="Judge PolyDL's ranking too: a minute or so for each problem.")
@click.option("--json", "json_file", metavar="FILE", help="Write all figures as JSON; - for standard output.")
@click.option("--plot", "plot_file", metavar="FILE", help="Draw best-so-far of each strategy (png, svg or pdf).")
@click.option("--machine", "about", is_flag=True, help="Show the machines that tables are from, and nothing else.")
@click.option("--live", is_flag=True, help="Tune one product and one convolution here and now, by several strategies.")
@click.option("--against", type=click.Choice(["tvm"]), help="Tune both with this peer too (with --live).")
@click.option("--trials", type=click.IntRange(min=1), default=64, show_default=True, help="Trials of the peer.")
@click.option("--measure", is_flag=True, help="Measure this machine's tables; goes on where it was stopped.")
@click.option("--quick", is_flag=True, help="Only random points, by which the model is judged (with --measure).")
@click.option("--target", default="c", show_default=True, help="What to measure: c, or c:avx2, … (with --measure).")
def search(
    problems: tuple[str, ...],
    data: str,
    runs: int,
    polydl: bool,
    json_file: str | None,
    plot_file: str | None,
    about: bool,
    live: bool,
    against: str | None,
    trials: int,
    measure: bool,
    quick: bool,
    target: str,
) -> None:
    """Show how good the model and the search are, on small spaces that were measured on several machines.

    PROBLEM is gemm, conv, einsum, or the name of one problem ('gemm 256x256x2048', 'conv 03'); all by default. Nothing
    is measured but with --measure and --live: the model is judged by random points of each space, with the calibration
    of the machine that they are from, and strategies run on tables of every point. `--measure --quick` makes the
    tables of random points for this machine, in less than half an hour.
    """
    try:
        if measure:
            _measure(problems, Path(data), quick, parse_target(target))
        elif live or against:
            _live(trials if against else 0, json_file)
        elif about:
            _show(_machines(Path(data)))
        else:
            outputs.check(json_file, plot_file)
            _evaluate(chosen(problems, {**whole(), **sampled()}), Path(data), range(runs), polydl, json_file, plot_file)
    except PolyError as error:
        raise click.UsageError(str(error)) from error


def _evaluate(
    cases: Mapping[str, Case], data: Path, seeds: Sequence[int], rival: bool, json_file: str | None, plot: str | None
) -> None:
    """Judge the model on every machine, then replay the strategies if there are seeds."""
    aside = json_file == "-"
    judged = list(model.verdicts(data, cases))
    for one in judged:
        _show((*model_report.text(one), ""), err=aside)
    proofs = []
    for folder in store.folders(data, store.SPACES) if seeds else []:
        if tables := proof.load(folder, cases):
            found = proof.prove(tables, seeds, _tell if sys.stderr.isatty() else lambda _: None, rival)
            _show((*report.text(tables, found), ""), err=aside)
            proofs.append((tables, found))
    if not judged and not proofs:
        raise SearchError(f"no table of these problems lies in {data}: make them with poly bench search --measure.")
    documents = {
        "model": [model_report.document(one) for one in judged],
        "search": [proof.document(*one) for one in proofs],
    }
    _write(documents, json_file)
    if plot:
        picture.draw([score for _, found in proofs for score in found.scores], Path(plot))


def _machines(data: Path) -> Iterator[str]:
    """Every machine that there are tables of, with the calibration of the first of them."""
    for kind in (store.SAMPLES, store.SPACES):
        for folder in store.folders(data, kind):
            table = next(iter(store.tables(folder, {**whole(), **sampled()}).values()))
            host = origins.described(table.origin.machine)
            yield from (f"{kind}, {folder.name}", "", *text.table(host.machine, host.measured), "")


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


def _measure(problems: tuple[str, ...], data: Path, quick: bool, isa: ISA) -> None:
    cases = chosen(problems, sampled() if quick else whole())
    here = replace(machine(), isa=isa)
    origin = origins.origin(here)
    maker = making.Maker(
        store.folder_of(data, store.SAMPLES if quick else store.SPACES, origin.machine),
        origin,
        THREADS,
        partial(origins.calibrated, here),
        lambda origin, case: origins.described(origin.machine).space(case, THREADS),
        making.live,
        _tell,
    )
    try:
        maker.make(cases, making.QUICK if quick else making.WHOLE)
    except KeyboardInterrupt:
        _tell("Stopped; the same call goes on from here.")
        sys.exit(INTERRUPTED)


def _tell(line: str) -> None:
    click.echo(line, err=True)
