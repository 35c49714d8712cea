"""`poly bench`: measure, show, save."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import click

from benchmarks import outputs, report
from benchmarks.case import Case
from benchmarks.contender import Solver
from benchmarks.header.cli import header
from benchmarks.ours import NAME, Poly
from benchmarks.peers import PEERS, Library
from benchmarks.probe import PeakProbe
from benchmarks.remote import Remote
from benchmarks.roofline import bound
from benchmarks.runner import Budget, measure
from benchmarks.search.cli import search
from benchmarks.workloads import WORKLOADS
from microkernels.dtypes import DTYPES
from poly.machine import facts, machine, measured
from poly.measure import process

QUICK = Budget(seconds=0.5, rounds=(3, 30))
FULL = Budget(seconds=3.0, rounds=(7, 200))
QUICK_THREADED = {"512", "1024", "2048"}
"""Products that the short run measures on all cores too."""

LIBRARIES = "libraries"
"""The command that is meant where none is named."""

Plan = list[tuple[Case, int]]


class Bench(click.Group):
    """Measures the libraries, unless a command is named."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, args if args and args[0] in self.commands else [LIBRARIES, *args])


@click.group(cls=Bench)
def bench() -> None:
    """Measure poly's kernels against the libraries installed here, its search against tables, headers against goals."""


@bench.command(LIBRARIES)
@click.argument("workloads", nargs=-1, type=click.Choice(list(WORKLOADS)))
@click.option("--against", metavar="PEER,…", help=f"The peers, of {', '.join(PEERS)}. Default: all that are installed.")
@click.option("--dtype", type=click.Choice(["f32", "f64"]), help="One scalar type alone.")
@click.option("--threads", type=click.IntRange(min=1), help="Threads, for everybody alike. Default: 1.")
@click.option("--target", default="c", show_default=True, help="Poly's target, as for poly.compile.")
@click.option("--only", metavar="TEXT", help="Only cases whose size contains this text.")
@click.option("--quick", is_flag=True, help="The main shapes alone, and fewer rounds: under three minutes.")
@click.option("--json", "json_file", metavar="FILE", help="Write the rows as JSON; - for standard output.")
@click.option("--plot", "plot_file", metavar="FILE", help="Draw the results (png, svg or pdf).")
def libraries(
    workloads: tuple[str, ...],
    against: str | None,
    dtype: str | None,
    threads: int | None,
    target: str,
    only: str | None,
    quick: bool,
    json_file: str | None,
    plot_file: str | None,
) -> None:
    """Measure poly's kernels against the libraries installed here.

    WORKLOADS are gemm, einsum, conv2d and stencil; all of them by default. Every result is checked against float64;
    the exit status is 1 when one of poly's is wrong. `poly bench search` and `poly bench header` are other benchmarks:
    those of the search, and of headers to embed.
    """
    cpus = process.allowed()
    names = _peers(against)
    plan = list(_plan(workloads or tuple(WORKLOADS), dtype, threads, quick, only or "", len(cpus)))
    if not plan:
        raise click.UsageError("no case is left to measure: loosen --only, --dtype or --quick")
    outputs.check(json_file, plot_file)
    process.clear_environment()
    lines = _run(plan, names, target, cpus, QUICK if quick else FULL)
    _show(lines, sys.stderr if json_file == "-" else sys.stdout)
    if json_file:
        _write_json(lines, json_file)
    if plot_file:
        from benchmarks.plot import plot

        here = machine()
        plot([line.row() for line in lines], Path(plot_file), f"{here.cpu}, {here.isa.name}")
    sys.exit(report.exit_status(lines))


bench.add_command(header)
bench.add_command(search)


def _peers(against: str | None) -> tuple[str, ...]:
    """The names after `--against`, checked; all peers by default."""
    names = tuple(PEERS) if against is None else tuple(filter(None, against.split(",")))
    unknown = [name for name in names if name not in PEERS]
    if unknown:
        raise click.UsageError(f"unknown peer {unknown[0]!r}: --against takes {', '.join(PEERS)}")
    return names


def _plan(
    workloads: Sequence[str], dtype: str | None, threads: int | None, quick: bool, only: str, cpus: int
) -> Iterator[tuple[Case, int]]:
    """What to measure, on how many threads. The short run adds the large products on all cores."""
    if threads is not None and threads > cpus:
        raise click.UsageError(f"--threads {threads}: this process may use {cpus} CPUs")
    for workload in workloads:
        cases = [
            case
            for name in ([dtype] if dtype else ["f32", "f64"])
            for case in WORKLOADS[workload](DTYPES[name])
            if only in case.size and (case.quick or not quick)
        ]
        yield from ((case, threads or 1) for case in cases)
        if threads is None and quick and cpus > 1 and workload == "gemm":
            yield from ((case, cpus) for case in cases if case.size in QUICK_THREADED and case.dtype.name == "f32")


def _run(plan: Plan, names: Sequence[str], target: str, cpus: tuple[int, ...], budget: Budget) -> list[report.Line]:
    rates = measured(machine(), anew=True)
    with ExitStack() as stack:
        solvers: dict[str, Solver] = {NAME: Poly(target), **{name: Library(name) for name in names}}
        entrants = [stack.enter_context(Remote(name, solver, cpus)) for name, solver in solvers.items()]
        announce = stack.enter_context(_progress(len(plan)))
        lines = []
        for case, threads in plan:
            probe = PeakProbe(cpus, case.dtype, threads)
            result = measure(case, threads, entrants, probe, budget, announce)
            roof = bound(case, threads, result.peak.median, machine(), rates)
            lines.append(report.Line(result, roof, NAME, target))
            announce("")
    process.release(cpus)
    return lines


@contextmanager
def _progress(total: int) -> Iterator[Callable[[str], None]]:
    """A live line on a terminal: a case is done when "" is announced. Nothing where standard error is a file."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (BarColumn(20), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.description}", markup=False))
    with Progress(*columns, console=Console(stderr=True), transient=True, auto_refresh=False) as progress:
        task = progress.add_task("", total=total)

        def announce(text: str) -> None:
            if text:
                progress.update(task, description=text, refresh=True)
            else:
                progress.advance(task)

        yield announce


def _show(lines: Sequence[report.Line], file: Any) -> None:
    if file.isatty():
        from rich.console import Console

        Console(file=file).print(report.rich_table(lines))
    else:
        click.echo("\n".join(report.plain(lines)), file=file)
    for part in (report.means(lines), report.notes(lines)):
        click.echo("", file=file)
        click.echo("\n".join(part), file=file)


def _write_json(lines: Sequence[report.Line], name: str) -> None:
    here = machine()
    text = json.dumps(report.document(lines, facts(here, measured(here))), indent=1)
    if name == "-":
        click.echo(text)
    else:
        Path(name).write_text(text + "\n")
