"""`poly bench opencl`: all goals of the OpenCL target, in one run."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence

import click

from benchmarks import outputs
from benchmarks.case import Case
from benchmarks.header import report
from benchmarks.opencl.contest import device_of, on_device
from benchmarks.opencl.contest import facts as about
from benchmarks.opencl.goals import GOALS, findings
from benchmarks.progress import progress
from benchmarks.report import ResultLine
from benchmarks.runner import Rounds
from poly.machine import facts, machine
from poly.machine.calibration import at_hand
from poly.measure import process

QUICK = Rounds(seconds=0.5, rounds=(5, 40))
FULL = Rounds(seconds=4.0, rounds=(11, 200))


@click.command()
@click.option("--only", metavar="GOAL,…", help=f"The goals to look at, of {', '.join(GOALS)}. Default: all.")
@click.option("--target", default="opencl", show_default=True, help="The device, as for poly.compile.")
@click.option("--quick", is_flag=True, help="Fewer sizes and rounds: about a minute.")
@click.option("--json", "json_file", metavar="FILE", help="Write what was found as JSON; - for standard output.")
def opencl(only: str | None, target: str, quick: bool, json_file: str | None) -> None:
    """Measure kernels on an OpenCL device against the goals.

    Products against the FMA peak, CLBlast and our C target; the layers of ResNet-50 against C; memory-bound kernels;
    the cost of a call; on a GPU, cuBLAS. All run in turn, by the device's clock, on arrays in its memory. Results are
    checked; the exit status is 1 when one of ours is wrong. The first run tunes CLBlast, which takes some minutes more.
    """
    names = _goals(only)
    device = device_of(target)
    if device is None:
        raise click.UsageError(f"--target {target}: expected 'opencl', or 'opencl:' and a device's name")
    outputs.check(json_file, None)
    process.clear_environment()
    rates = at_hand(machine())

    def measure(cases: Sequence[Case], peers: Sequence[str]) -> Iterator[ResultLine]:
        plan = [(case, device.isa.units) for case in cases]
        return on_device(device, rates).lines(plan, peers, QUICK if quick else FULL, progress)

    found = list(findings(names, device, quick, measure))
    click.echo("\n".join(report.text(found)), err=json_file == "-")
    if json_file:
        known = [goal for goal in GOALS.values() if goal.name in names]
        text = json.dumps(report.document(found, known, facts(machine(), rates), about(device)), indent=1)
        outputs.write_json(text, json_file)
    sys.exit(int(any(finding.wrong for finding in found)))


def _goals(only: str | None) -> set[str]:
    names = set(GOALS if only is None else filter(None, only.split(",")))
    unknown = sorted(names - set(GOALS))
    if unknown:
        raise click.UsageError(f"unknown goal {unknown[0]!r}: --only takes {', '.join(GOALS)}")
    return names
