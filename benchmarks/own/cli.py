"""`poly bench FILE:NAME`: measure a user's own nest."""

from __future__ import annotations

import re
import sys
from textwrap import indent

import click

from benchmarks import outputs, report
from benchmarks.contest import in_c
from benchmarks.ending import Ending, with_ending
from benchmarks.ours import Poly
from benchmarks.own.contenders import contenders
from benchmarks.own.nest import own_case
from benchmarks.own.report import HEAD, NestReport, draw
from benchmarks.programs.compilers import peers
from benchmarks.progress import progress
from benchmarks.runner import Rounds
from poly.analysis.work import work
from poly.commands.options import size_option
from poly.commands.tables import print_table
from poly.machine import facts, machine
from poly.machine.calibration import at_hand
from poly.machine.target import parse
from poly.measure import process

COMMAND = "nest"
REFERENCE = "gcc"
"""What every nest is measured against: its loops as written, by the compiler of this name."""
SECONDS, PATIENCE, PRECISE = 8.0, 4.0, 0.005
"""Seconds for all rounds and for one contender's samples, and the precision at which rounds end."""
ROUNDS = (8, 400)
FORM = re.compile(r".+\.(py|c):\w+|.+\.(py|c)")
"""FILE.py:NAME, by which the command is told from the names of workloads; or the file alone, a mistake to explain."""


def is_own(arguments: list[str]) -> bool:
    """Whether a command's arguments name a nest in a file."""
    return any(FORM.fullmatch(text) for text in arguments)


@click.command(COMMAND)
@click.argument("nest", metavar="FILE:NAME")
@click.argument("others", nargs=-1, metavar="[FILE:NAME]...")
@size_option
@click.option(
    "--against",
    multiple=True,
    metavar="FILE.py:NAME,…",
    help="A function of the same arguments, another nest, or a compiler: gcc, clang, gcc-fast, …; may be repeated.",
)
@click.option("--dtype", type=click.Choice(["f32", "f64"]), help="This floating-point type in place of the nest's.")
@click.option("--threads", type=click.IntRange(min=1), default=1, show_default=True, help="Threads, for everybody.")
@click.option("--target", default="c", show_default=True, help="Poly's target, and the CPU of the compilers.")
@click.option("--no-records", is_flag=True, help="The model's schedule, also where a tuned one is recorded.")
@click.option("--workers", metavar="ADDRESS", help="Measure on each kind of machine of a dask cluster.")
@with_ending
def command(
    nest: str,
    others: tuple[str, ...],
    sizes: dict[str, int],
    against: tuple[str, ...],
    dtype: str | None,
    threads: int,
    target: str,
    no_records: bool,
    workers: str | None,
    ending: Ending,
) -> None:
    """Measure your own nest beside its loops by gcc, functions in Python and other nests.

    `poly bench FILE.py:NAME` does the same. All take turns, on arrays of their own with the same random content. Each
    result is compared with that of the loops as written, in double precision: a wrong one is shown and does not count.

    A function takes the nest's arguments, updates the outputs in place or returns their new values, and gets NumPy
    arrays, or torch tensors where its parameters say so (`A: torch.Tensor`). gcc compiles the loops as written, with
    constant sizes, `restrict`, -O3 and -march=native; names such as clang or gcc-fast (-ffast-math) add others.

    The kernel is the one that poly.compile makes. The exit status is 1 when its result is wrong, else 3 when it is
    slower than a run to compare with, else 0.
    """
    named = [text for given in (*against, *others) for text in given.split(",") if text]
    if workers is not None:
        if ending != Ending():
            raise click.UsageError("--workers prints one table a machine: leave out what is written, kept or compared")
        sys.exit(_elsewhere([nest, *named], sizes, dtype, threads, target, no_records, workers))
    goal = parse(target)
    if goal.device is not None:
        raise click.UsageError(
            f"--target {target}: own nests are measured on the CPU; kernel.benchmark measures devices"
        )
    cpus = process.allowed()
    if threads > len(cpus):
        raise click.UsageError(f"--threads {threads}: this process may use {len(cpus)} CPUs")
    case = own_case(nest, sizes, dtype)
    ours, compilers = Poly(target, records=not no_records), peers(goal.isa)
    solvers = contenders([REFERENCE, *named], compilers, dtype, ours)
    ending = ending.checked({})
    process.clear_environment()
    rates = at_hand(machine())
    budget = Rounds(SECONDS, ROUNDS, always=frozenset(solvers), attempts=1, patience=PATIENCE, precise=PRECISE)
    contest = in_c(target, rates, ours, solvers)
    (line,) = contest.lines([(case, threads)], tuple(solvers), budget, progress)
    found = NestReport(line, work(case.nest().with_sizes(case.sizes)))
    out = sys.stderr if ending.json_file == "-" else sys.stdout
    click.echo(found.title, file=out)
    print_table(HEAD, found.rows(), out)
    outputs.say(("", *found.text()), out)
    made = report.document([line], facts(machine(), rates))
    made["rows"] = [{**row, **found.facts()} for row in made["rows"]]
    status = ending.end(made, draw, out)
    sys.exit(report.exit_status([line]) or status)


def _elsewhere(
    places: list[str],
    sizes: dict[str, int],
    dtype: str | None,
    threads: int,
    target: str,
    no_records: bool,
    workers: str,
) -> int:
    """The benchmark on other machines, one after the other in the output; the highest exit status."""
    from benchmarks.own.elsewhere import errand, everywhere

    options = [f"--size={name}={value}" for name, value in sizes.items()]
    options += [f"--threads={threads}", f"--target={target}"]
    options += [f"--dtype={dtype}"] * (dtype is not None) + ["--no-records"] * no_records
    replies = everywhere(errand(places, options), workers)
    for place, reply in replies.items():
        click.echo(f"on {place}:\n{indent(reply.text.rstrip(), '  ')}\n")
    return max(reply.status for reply in replies.values())
