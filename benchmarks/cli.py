"""`poly bench`: measure, show, save."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from benchmarks import outputs, report
from benchmarks.case import Case
from benchmarks.contest import in_c
from benchmarks.header.cli import header
from benchmarks.opencl import contest as devices
from benchmarks.opencl.cli import opencl
from benchmarks.peers import PEERS
from benchmarks.progress import progress
from benchmarks.runner import Rounds
from benchmarks.search.cli import search
from benchmarks.workloads import WORKLOADS, selected
from poly.machine import facts, machine, measured
from poly.measure import process

QUICK = Rounds(seconds=0.5, rounds=(3, 30))
FULL = Rounds(seconds=3.0, rounds=(7, 200))
QUICK_THREADED = {"512", "1024", "2048"}
"""Products that `--quick` also measures on all cores."""

LIBRARIES = "libraries"
"""The default command."""


class BenchGroup(click.Group):
    """A group whose default command measures the libraries."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, args if args and args[0] in self.commands else [LIBRARIES, *args])


@click.group(cls=BenchGroup)
def bench() -> None:
    """Measure poly's kernels against the libraries installed here, and its search, headers and OpenCL code."""


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

    WORKLOADS are gemm, einsum, conv2d, stencil and bandwidth; all of them by default. Every result is checked against
    float64; the exit status is 1 when one of poly's is wrong. With `--target opencl` the kernels run on an OpenCL
    device, on arrays in its memory and on all of its compute units; the peers are our C target, CLBlast, naive OpenCL,
    and PyTorch on a CUDA GPU (c, clblast, naive, cuda). `poly bench search`, `poly bench header` and `poly bench
    opencl` are other benchmarks: of the search, of headers to embed, and of the goals for OpenCL.
    """
    device = devices.device_of(target)
    names = _peers(against, devices.PEERS if device else tuple(PEERS))
    cpus = process.allowed()
    wanted = (workloads or tuple(WORKLOADS), dtype, quick, only or "")
    plan = list(devices.plan(device, threads, *wanted) if device else _plan(threads, len(cpus), *wanted))
    if not plan:
        raise click.UsageError("no case is left to measure: loosen --only, --dtype or --quick")
    outputs.check(json_file, plot_file)
    process.clear_environment()
    rates = measured(machine(), anew=True)
    contest = devices.on_device(device, rates) if device else in_c(target, rates)
    lines = list(contest.lines(plan, names, QUICK if quick else FULL, progress))
    _show(lines, sys.stderr if json_file == "-" else sys.stdout)
    if json_file:
        _write_json(lines, json_file, devices.facts(device) if device else {})
    if plot_file:
        from benchmarks.plot import plot

        here = machine()
        name = device.name if device else f"{here.cpu}, {here.isa.name}"
        plot([line.row() for line in lines], Path(plot_file), name)
    sys.exit(report.exit_status(lines))


bench.add_command(header)
bench.add_command(opencl)
bench.add_command(search)


def _peers(against: str | None, known: Sequence[str]) -> tuple[str, ...]:
    """The names after `--against`, checked; all peers by default."""
    names = tuple(known) if against is None else tuple(filter(None, against.split(",")))
    unknown = [name for name in names if name not in known]
    if unknown:
        raise click.UsageError(f"unknown peer {unknown[0]!r}: --against takes {', '.join(known)}")
    return names


def _plan(
    threads: int | None, cpus: int, workloads: Sequence[str], dtype: str | None, quick: bool, only: str
) -> Iterator[tuple[Case, int]]:
    """What to measure, on how many threads. With `--quick`, large products are also measured on all cores."""
    if threads is not None and threads > cpus:
        raise click.UsageError(f"--threads {threads}: this process may use {cpus} CPUs")
    for workload in workloads:
        cases = list(selected(workload, dtype, quick, only))
        yield from ((case, threads or 1) for case in cases)
        if threads is None and quick and cpus > 1 and workload == "gemm":
            yield from ((case, cpus) for case in cases if case.size in QUICK_THREADED and case.dtype.name == "f32")


def _show(lines: Sequence[report.ResultLine], file: Any) -> None:
    if file.isatty():
        from rich.console import Console

        Console(file=file).print(report.rich_table(lines))
    else:
        click.echo("\n".join(report.plain(lines)), file=file)
    for part in (report.means(lines), report.notes(lines)):
        click.echo("", file=file)
        click.echo("\n".join(part), file=file)


def _write_json(lines: Sequence[report.ResultLine], name: str, more: Mapping[str, str]) -> None:
    here = machine()
    text = json.dumps(report.document(lines, {**facts(here, measured(here)), **more}), indent=1)
    outputs.write_json(text, name)
