"""`poly bench polybench` and `poly bench loops`: whole programs against compilers."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import reduce
from pathlib import Path
from typing import Any

import click

from benchmarks import outputs, report
from benchmarks.case import Case
from benchmarks.contest import Contest, in_c
from benchmarks.ours import Poly
from benchmarks.problems.program import Program
from benchmarks.programs.compilers import FAST, TOOLCHAINS, peers
from benchmarks.programs.line import BASELINE, program_lines
from benchmarks.programs.loops import cases as loop_cases
from benchmarks.programs.polybench import SIZES, gemm_case
from benchmarks.programs.polybench import cases as kernel_cases
from benchmarks.programs.report import text
from benchmarks.progress import progress
from benchmarks.runner import Rounds
from poly.machine import facts, machine
from poly.machine.calibration import at_hand
from poly.machine.target import parse
from poly.measure import process

CLOSE = 1.5
"""Peers that take more than this multiple of the fastest one's time in their first run are not run again."""

QUICK = Rounds(seconds=0.5, rounds=(5, 30), close=CLOSE, always=frozenset({BASELINE}))
FULL = Rounds(seconds=2.0, rounds=(3, 100), close=CLOSE, always=frozenset({BASELINE}))

FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)
Command = Callable[..., None]


def _options(compilers: Iterable[str]) -> Callable[[Command], Command]:
    """The options of both commands; `compilers` are the peers, without and with fast-math, if none are chosen."""
    usual = [name + fast for name in compilers for fast in ("", FAST)]
    known = f"The peers, of {', '.join(TOOLCHAINS)}, each also with {FAST}."
    options = (
        click.option("--size", type=click.Choice(SIZES), help="The data set. Default: large."),
        click.option("--quick", is_flag=True, help="The data set medium and fewer rounds: some minutes."),
        click.option("--only", metavar="NAME,…", help="Only these programs."),
        click.option("--against", metavar="PEER,…", default=",".join(usual), show_default=", ".join(usual), help=known),
        click.option("--threads", type=click.IntRange(min=1), multiple=True, help="Default: 1. Several take turns."),
        click.option("--target", default="c", show_default=True, help="Poly's target, and the CPU of its peers."),
        click.option("--json", "json_file", metavar="FILE", help="Write the rows as JSON; - for standard output."),
    )
    return lambda command: reduce(lambda made, option: option(made), reversed(options), command)


@click.command()
@_options(TOOLCHAINS)
@click.option("--suite", "folder", metavar="DIR", type=FOLDER, help="Read the loops from a copy of the suite in C.")
def polybench(folder: Path | None, **options: Any) -> None:
    """Measure the 30 kernels of PolyBench 4.2.1 against C compilers.

    Each compiler gets the loops as written in C, with constant sizes and `restrict`: gcc, gcc with Graphite, clang,
    clang with Polly, and Pluto, each also with -ffast-math. Every call starts from the same data, all results are
    checked, and a peer whose result is wrong is shown and does not count. Data are such that a wrong order shows: of
    full rank, and far from a steady state. The exit status is 1 when one of poly's results is wrong or missing.
    """
    _run(lambda size: kernel_cases(size, folder), **options)


@click.command()
@_options(("gcc", "clang"))
def loops(**options: Any) -> None:
    """Measure loops with the usual idioms against C compilers.

    Lattice-Boltzmann steps (D2Q9, D3Q19), alignments of sequences, passes of fast Fourier transforms, and loops like
    those of Livermore and TSVC: recurrences, reductions, conditions, strides, reversed and triangular loops. Checks and
    columns are those of `poly bench polybench`.
    """
    _run(loop_cases, **options)


def _run(
    cases: Callable[[str], Iterator[Case]],
    size: str | None,
    quick: bool,
    only: str | None,
    against: str,
    threads: Sequence[int],
    target: str,
    json_file: str | None,
) -> None:
    size = size or ("medium" if quick else "large")
    cpus = process.allowed()
    threads = threads or (1,)
    if max(threads) > len(cpus):
        raise click.UsageError(f"--threads {max(threads)}: this process may use {len(cpus)} CPUs")
    isa = parse(target).isa
    known = peers(isa)
    names = _chosen("peer", "--against", against, list(known))
    chosen = _wanted(list(cases(size)), only)
    if not chosen:
        raise click.UsageError("no program is left to measure: --suite takes a folder with the suite's C files")
    outputs.check(json_file, None)
    process.clear_environment()
    rates = at_hand(machine())
    contest = in_c(target, rates, Poly(target, anew=True), known)
    budget = QUICK if quick else FULL
    gemm = {count: _gemm_fraction(contest, chosen, size, count, budget) for count in threads}
    plan = [(case, count) for case in chosen for count in threads]
    lines = list(contest.lines(plan, names, budget, progress))
    click.echo("\n".join(text(program_lines(lines, gemm))), err=json_file == "-")
    if json_file:
        made = report.document(lines, facts(machine(), rates))
        outputs.write_json(json.dumps(made, indent=1), json_file)
    sys.exit(report.exit_status(lines))


def _gemm_fraction(contest: Contest, chosen: Sequence[Case], size: str, threads: int, budget: Rounds) -> float | None:
    """The part of the peak that our plain GEMM reaches, if a program is judged by it."""
    if all(isinstance(case.problem, Program) and case.problem.operations is None for case in chosen):
        return None
    return next(contest.lines([(gemm_case(size), threads)], (), budget, progress)).peak_fraction


def _wanted(cases: Sequence[Case], only: str | None) -> list[Case]:
    names = _chosen("program", "--only", only, [case.size for case in cases])
    return [case for case in cases if case.size in names]


def _chosen(what: str, option: str, given: str | None, known: Sequence[str]) -> tuple[str, ...]:
    """The names after an option, checked; all by default."""
    names = tuple(known) if given is None else tuple(filter(None, given.split(",")))
    unknown = [name for name in names if name not in known]
    if unknown:
        raise click.UsageError(f"unknown {what} {unknown[0]!r}: {option} takes {', '.join(known)}")
    return names
