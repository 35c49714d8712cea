"""`poly bench`: measure, show, save, compare."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterator, Sequence
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import Any

import click

from benchmarks import history, outputs, report
from benchmarks.case import Case
from benchmarks.contest import Plan, in_c
from benchmarks.document import Row, need_same_machine, read
from benchmarks.ending import FAIL_IF, PATH, Ending, show_changes, with_ending
from benchmarks.environment import environment
from benchmarks.header.cli import header
from benchmarks.opencl import contest as devices
from benchmarks.opencl.cli import opencl
from benchmarks.own import cli as own
from benchmarks.peers import PEERS
from benchmarks.peers.package import missing, notice
from benchmarks.programs.cli import loops, polybench
from benchmarks.progress import progress
from benchmarks.published import record, stored
from benchmarks.runner import Rounds
from benchmarks.search.cli import search
from benchmarks.workloads import WORKLOADS, selected
from poly.machine import facts, machine
from poly.machine.calibration import UNKEPT, VARIABLE, at_hand
from poly.measure import process

QUICK = Rounds(seconds=0.5, rounds=(7, 30))
FULL = Rounds(seconds=3.0, rounds=(7, 200))
QUICK_THREADED = {"512", "1024", "2048"}
"""Products that `--quick` also measures on all cores."""

LIBRARIES = "libraries"
"""The default command."""

COLD = "cold"
"""A workload for the threads of C alone: the clock of a device starts when its threads are awake."""

FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)


class BenchGroup(click.Group):
    """A group whose default command measures the libraries, or the nest that its arguments name."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args and (args[0] in self.commands or args == ["--help"]):
            return super().parse_args(ctx, args)
        return super().parse_args(ctx, [own.COMMAND if own.is_own(args) else LIBRARIES, *args])


@click.group(cls=BenchGroup)
@click.pass_context
def bench(context: click.Context) -> None:
    """Measure your own nests, and poly's kernels against the libraries installed here.

    `poly bench FILE.py:NAME --size M=512` measures a nest (`poly bench nest`), `poly bench [WORKLOAD]...` the libraries
    (`poly bench libraries`), the others poly's search, headers, whole programs and OpenCL code. No benchmark changes
    what is compiled afterwards: neither the machine's calibration nor tuning records.
    """
    context.with_resource(environment({VARIABLE: UNKEPT}))


@bench.command(LIBRARIES)
@click.argument("workloads", nargs=-1, type=click.Choice(list(WORKLOADS)))
@click.option("--against", metavar="PEER,…", help=f"The peers, of {', '.join(PEERS)}. Default: all that are installed.")
@click.option("--dtype", type=click.Choice(["f32", "f64"]), help="One scalar type alone.")
@click.option("--threads", type=click.IntRange(min=1), help="Threads, for everybody alike. Default: 1.")
@click.option("--target", default="c", show_default=True, help="Poly's target, as for poly.compile.")
@click.option("--only", metavar="SIZE,…", help="Only the cases of exactly these sizes, as the table names them.")
@click.option("--quick", is_flag=True, help="The main shapes alone, and fewer rounds: some three minutes.")
@click.option("--aligned", is_flag=True, help="Each case also on arrays that start on cache lines.")
@click.option(
    "--record", "folder", metavar="FOLDER", type=FOLDER, help="Merge the rows into this machine's file there."
)
@with_ending
def libraries(
    workloads: tuple[str, ...],
    against: str | None,
    dtype: str | None,
    threads: int | None,
    target: str,
    only: str | None,
    quick: bool,
    aligned: bool,
    folder: Path | None,
    ending: Ending,
) -> None:
    """Measure poly's kernels against the libraries installed here.

    WORKLOADS are gemm, mixed (of i8 and bf16), einsum, conv2d, stencil, bandwidth, reductions, fusion, attention and
    cold (single calls by threads that slept); all of them by default. Every result is checked against float64; the exit
    status is 1 when one of poly's is wrong or missing, else 3 when `--compare` finds a case that is slower than before,
    else 0.
    `poly bench compare` compares two stored runs.

    With `--target c:avx2` on a CPU with AVX-512, all of them use AVX2 alone, as on a CPU without it.

    With `--target opencl` the kernels run on an OpenCL device, on arrays in its memory and on all of its compute units;
    the peers are our C target, CLBlast, naive OpenCL, and PyTorch on a CUDA GPU (c, clblast, naive, cuda). `poly bench
    search`, `poly bench header` and `poly bench opencl` are other benchmarks: of the search, of headers to embed, and
    of the goals for OpenCL.
    """
    device = devices.device_of(target)
    names = _peers(against, devices.PEERS if device else tuple(PEERS))
    cpus = process.allowed()
    chosen = workloads or tuple(name for name in WORKLOADS if not device or name != COLD)
    wanted = (chosen, dtype, quick, _sizes(only, chosen, dtype, quick))
    plan = list(devices.plan(device, threads, *wanted) if device else _plan(threads, len(cpus), *wanted))
    if not plan:
        raise click.UsageError("no case is left to measure: loosen --only, --dtype or --quick")
    about = devices.facts(device) if device else {}
    ending = ending.checked(about)
    if folder:
        stored(folder)  # a damaged file would fail only at the end
    out = sys.stderr if ending.json_file == "-" else sys.stdout
    if not device:
        _tell_missing(names, out)
    process.clear_environment()
    rates = at_hand(machine())
    contest = devices.on_device(device, rates) if device else in_c(target, rates)
    lines = list(contest.lines(list(_with_aligned(plan, aligned)), names, QUICK if quick else FULL, progress))
    _show(lines, out)
    made = report.document(lines, {**facts(machine(), rates), **about})
    if folder:
        click.echo(f"recorded in {record(made, folder)}", file=out)
    here = machine()
    caption = device.name if device else f"{here.cpu}, {here.isa.name}"
    status = ending.end(made, partial(_draw, caption), out)
    sys.exit(report.exit_status(lines) or status)


def _draw(caption: str, rows: Sequence[Row], path: Path) -> None:
    from benchmarks.plot import plot

    plot(rows, path, caption)


@bench.command("compare")
@click.argument("old", type=PATH)
@click.argument("new", type=PATH)
@FAIL_IF
def stored_runs(old: Path, new: Path, limit: float | None) -> None:
    """Tell what changed from one run to another, both written by `poly bench --json` on one machine.

    A row has changed if its samples pass the Mann-Whitney U test after Holm's correction for the number of rows, if the
    quartiles of both runs are apart, and if it changed by more than the unchanged peers seem to. The exit status is 3
    when a row is slower than before (with `--fail-if`, by more than that), else 0.
    """
    before, after = read(old), read(new)
    need_same_machine(before["machine"], after["machine"])
    sys.exit(show_changes(before["rows"], after["rows"], str(old), limit, False, sys.stdout))


bench.add_command(history.command)
bench.add_command(own.command)
bench.add_command(header)
bench.add_command(loops)
bench.add_command(opencl)
bench.add_command(polybench)
bench.add_command(search)


def _peers(against: str | None, known: Sequence[str]) -> tuple[str, ...]:
    """The names after `--against`, checked; all peers by default."""
    names = tuple(known) if against is None else tuple(filter(None, against.split(",")))
    unknown = [name for name in names if name not in known]
    if unknown:
        raise click.UsageError(f"unknown peer {unknown[0]!r}: --against takes {', '.join(known)}")
    return names


def _sizes(only: str | None, workloads: Sequence[str], dtype: str | None, quick: bool) -> frozenset[str] | None:
    """The sizes after `--only`, checked; None for all."""
    if only is None:
        return None
    known = dict.fromkeys(case.size for name in workloads for case in selected(name, dtype, quick))
    names = [name.strip() for name in only.split(",") if name.strip()]
    for name in names:
        if name not in known:
            close = get_close_matches(name, known, n=3, cutoff=0.4) or list(known)[:3]
            raise click.UsageError(f"--only {name!r} is the size of no case here. Some are: {', '.join(close)}")
    return frozenset(names)


def _plan(
    threads: int | None,
    cpus: int,
    workloads: Sequence[str],
    dtype: str | None,
    quick: bool,
    only: Collection[str] | None,
) -> Iterator[tuple[Case, int]]:
    """What to measure, on how many threads: one, but cold cases on all cores, and with `--quick` large products too."""
    if threads is not None and threads > cpus:
        raise click.UsageError(f"--threads {threads}: this process may use {cpus} CPUs")
    for workload in workloads:
        cases = list(selected(workload, dtype, quick, only))
        yield from ((case, threads or (cpus if case.cold else 1)) for case in cases)
        if threads is None and quick and cpus > 1 and workload == "gemm":
            yield from ((case, cpus) for case in cases if case.size in QUICK_THREADED and case.dtype.name == "f32")


def _show(lines: Sequence[report.ResultLine], file: Any) -> None:
    if file.isatty():
        from rich.console import Console

        Console(file=file).print(report.rich_table(lines))
    else:
        click.echo("\n".join(report.plain(lines)), file=file)
    for part in (report.means(lines), report.notes(lines)):
        outputs.say(("", *part), file)


def _with_aligned(plan: Plan, aligned: bool) -> Iterator[tuple[Case, int]]:
    """The plan, with each case followed by the same one on aligned arrays if that is wanted."""
    for case, threads in plan:
        yield case, threads
        if aligned:
            yield case.on_cache_lines(), threads


def _tell_missing(names: Sequence[str], file: Any) -> None:
    told = list(notice(missing([PEERS[name] for name in names])))
    if told:
        click.echo("\n".join((*told, "")), file=file)
