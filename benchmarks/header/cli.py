"""`poly bench header`: measures a header against its goals."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import click

from benchmarks import outputs, toolchain
from benchmarks.contender import Failed
from benchmarks.header import cost, dispatch, openblas, report, speed
from benchmarks.header.finding import CLANG, GOALS, SPEED, GoalFigure
from benchmarks.header.setting import Setting
from benchmarks.header.workloads import workloads
from benchmarks.runner import Rounds
from poly.errors import PolyError
from poly.machine import facts, machine
from poly.machine.calibration import at_hand
from poly.measure import process

QUICK = Rounds(seconds=0.5, rounds=(5, 40))
FULL = Rounds(seconds=4.0, rounds=(11, 400))


@click.command()
@click.option("--only", metavar="GOAL,…", help=f"The goals to look at, of {', '.join(GOALS)}. Default: all.")
@click.option("--quick", is_flag=True, help="Fewer sizes and rounds: about a minute.")
@click.option("--clang", "clang_name", metavar="NAME", help="The clang to compare with. Default: the newest.")
@click.option("--json", "json_file", metavar="FILE", help="Write what was found as JSON; - for standard output.")
def header(only: str | None, quick: bool, clang_name: str | None, json_file: str | None) -> None:
    """Measure a header to embed: its speed and its cost.

    The header is built by plain `cc -O2 -std=c99` and compared, in turn and on the same arrays, with the kernel that
    Python calls, with itself built by clang, and with OpenBLAS's static library in a C program. Results are checked;
    the exit status is 1 when one is wrong. One thread.
    """
    goals = _goals(only)
    outputs.check(json_file, None)
    process.clear_environment()
    cpus = process.allowed()
    with tempfile.TemporaryDirectory(prefix="poly-header-") as folder:
        host = toolchain.host()
        clang = toolchain.clang(clang_name) if host.family == "gcc" else None
        setting = Setting(host, clang, QUICK if quick else FULL, quick, Path(folder), cpus, _tell)
        try:
            found = list(findings(goals, setting))
        except PolyError as error:
            raise click.ClickException(str(error)) from error
        finally:
            process.release(cpus)
    click.echo("\n".join(report.text(found)), err=json_file == "-")
    if json_file:
        here = machine()
        tools = {compiler.family: compiler.version for compiler in setting.compilers}
        text = json.dumps(report.document(found, GOALS.values(), facts(here, at_hand(here)), tools), indent=1)
        outputs.write_json(text, json_file)
    sys.exit(int(any(finding.wrong for finding in found)))


def findings(goals: set[str], setting: Setting) -> Iterator[GoalFigure]:
    """The figures for these goals, goal by goal."""
    if goals & {SPEED.name, CLANG.name}:
        compared = [one for workload in workloads(setting.quick) for one in speed.compare(workload, setting)]
        yield from (one for one in speed.findings(compared, setting.clang is not None) if one.goal.name in goals)
    parts = (dispatch.cost, cost.compile_time, cost.size, openblas.against, cost.code)
    for goal, part in zip((goal for goal in GOALS.values() if goal not in (SPEED, CLANG)), parts, strict=True):
        if goal.name in goals:
            try:
                yield from part(setting)
            except Failed as error:
                yield GoalFigure(goal, "all", None, note=str(error))


def _goals(only: str | None) -> set[str]:
    names = set(GOALS if only is None else filter(None, only.split(",")))
    unknown = sorted(names - set(GOALS))
    if unknown:
        raise click.UsageError(f"unknown goal {unknown[0]!r}: --only takes {', '.join(GOALS)}")
    return names


def _tell(text: str) -> None:
    """Print the current step, on a terminal."""
    if text and sys.stderr.isatty():
        click.echo(text, err=True)
