"""`poly optimize`: a C file with its scops replaced by calls of optimised kernels."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import click

from codegen.ir.program import Threading
from microkernels.errors import shown
from microkernels.isa import ISAS
from poly.commands.header import parse_isas
from poly.commands.outputs import check_file
from poly.commands.style import warn
from poly.embed.files import write_output
from poly.errors import FileError
from poly.rewriting import Rewritten, report, rewrite


def parse_macros(context: click.Context, option: click.Parameter, texts: tuple[str, ...]) -> dict[str, str]:
    """The macros and their values in each `N=100`, or `N`, as a compiler takes them."""
    found = {}
    for text in texts:
        name, sign, value = text.partition("=")
        if not re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII) or not value.isprintable():
            raise click.BadParameter(f"{shown(text)} is not of the form NAME=VALUE", context, option)
        found[name] = value if sign else "1"
    return found


@click.command("optimize")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("-o", "--output", metavar="FILE", type=click.Path(path_type=Path), help="The file to write.")
@click.option("--in-place", is_flag=True, help="Write to FILE itself.")
@click.option("-I", "include", multiple=True, type=click.Path(path_type=Path), help="A folder of headers.")
@click.option("-D", "define", multiple=True, metavar="NAME=VALUE", callback=parse_macros, help="A macro.")
@click.option(
    "--isa",
    "isas",
    callback=parse_isas,
    metavar="NAME,…",
    help=f"Instruction sets, of {', '.join(ISAS)} (this CPU's family).",
)
@click.option(
    "--threads",
    type=click.Choice(["openmp", "none"]),
    default="none",
    show_default=True,
    help="How parallel loops run.",
)
@click.option("--cores", type=click.IntRange(min=1), help="Threads that the schedules assume (this machine's).")
@click.option("--no-reassociate", is_flag=True, help="Keep the order in which sums are added up.")
@click.option("--check", is_flag=True, help="Compare each kernel with the loops that it replaces.")
@click.option("--report", "wanted", is_flag=True, help="Print what was found, what was done, and why not more.")
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
def command(
    file: Path,
    output: Path | None,
    in_place: bool,
    include: Sequence[Path],
    define: Mapping[str, str],
    isas: Sequence[str] | None,
    threads: Threading,
    cores: int | None,
    no_reassociate: bool,
    check: bool,
    wanted: bool,
    as_json: bool,
) -> None:
    """Replace the loops between #pragma scop and #pragma endscop in a C file by optimised code.

    The new file is built as the old one: it needs no library and no flags. All other text stays as it is, and so do
    scops that are no loop nests; why is printed, with file, line and column.

    \b
    poly optimize gemm.c -o gemm_fast.c -I utilities -D N=1000
    poly optimize gemm.c -o gemm_fast.c --check --report
    """
    target = _target(file, output, in_place)
    made = rewrite(
        file,
        include,
        define,
        isas=isas,
        threads=threads,
        cores=cores,
        reassociate=not no_reassociate,
        check=check,
    )
    for problem in made.problems:
        warn(problem)
    _show(made, wanted, as_json)
    failed = {place: one for place, one in made.checks.items() if not one.passed}
    wrong = ", ".join(place for place, one in failed.items() if not one.obstacle)
    if wrong:
        raise click.ClickException(f"{wrong}: the kernel is wrong. Nothing was written.")
    if failed:
        remedy = "Check at smaller sizes (-D N=…), or leave out --check."
        raise click.ClickException(f"{', '.join(failed)}: not compared. Nothing was written. {remedy}")
    if target is not None:
        write_output(target, made.text.encode(errors="surrogateescape"))


def _target(file: Path, output: Path | None, in_place: bool) -> Path | None:
    """The file to write. Raises UsageError, and FileError for the file itself where that was not asked for."""
    if in_place:
        if output is not None:
            raise click.UsageError("--in-place writes FILE: leave out -o.")
        return file
    check_file("-o", output)
    if output is None:
        raise click.UsageError("give the file to write by -o, or --in-place.")
    if output.exists() and file.exists() and os.path.samefile(file, output):
        raise FileError(f"{shown(str(output))} is the file itself. Give another name, or --in-place.")
    return output


def _show(made: Rewritten, wanted: bool, as_json: bool) -> None:
    """Print the report, or without one what came of checks."""
    if as_json:
        click.echo(json.dumps(report.facts(made), indent=1))
    elif wanted:
        click.echo(report.text(made))
    else:
        for place, check in made.checks.items():
            click.echo(f"{place}: {report.checked(check)}")
