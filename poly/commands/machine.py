"""`poly machine`: this machine's properties and measured rates, and its OpenCL devices."""

from __future__ import annotations

import json
from dataclasses import replace

import click

from codegen.opencl.devices import usable
from codegen.opencl.survey import survey
from microkernels.errors import TargetError
from microkernels.isa import parse_target
from poly.commands.tables import print_text
from poly.machine import facts, machine, measured, table
from poly.machine.description import microarchitecture
from poly.machine.opencl import opencl_facts, opencl_table


@click.command("machine")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option(
    "--calibrate", "--measure", is_flag=True, help="Calibrate and try devices again, even if results are stored."
)
@click.option("--target", default="c", show_default=True, help="Calibrate for this target: c, c:avx2, …")
def command(as_json: bool, calibrate: bool, target: str) -> None:
    """Show the machine: cores, caches, its calibration (measured once and stored), and OpenCL devices.

    The calibration takes a few seconds, and more if the core is disturbed.
    """
    try:
        here = replace(machine(), isa=parse_target(target))
    except TargetError as error:
        raise click.UsageError(str(error)) from error
    rates = measured(here, anew=calibrate)
    findings = survey(anew=calibrate)
    if as_json:
        more = {"microarchitecture": microarchitecture(), "opencl": opencl_facts(findings, usable())}
        click.echo(json.dumps({**facts(here, rates), **more}, indent=1))
        return
    print_text("\n".join([*table(here, rates, microarchitecture()), "", *opencl_table(findings, usable())]))
