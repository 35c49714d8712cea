"""`poly machine`: this machine's properties and measured rates, and its OpenCL devices."""

from __future__ import annotations

import json

import click

from codegen.opencl.devices import usable
from codegen.opencl.survey import survey
from poly.machine import facts, machine, measured, table
from poly.machine.opencl import opencl_facts, opencl_table


@click.command("machine")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("--measure", is_flag=True, help="Measure rates and try devices again, even if results are stored.")
def command(as_json: bool, measure: bool) -> None:
    """Show the machine: cores, caches, FMA peak and bandwidths (measured once and stored), and OpenCL devices."""
    here = machine()
    rates = measured(here, anew=measure)
    findings = survey(anew=measure)
    if as_json:
        click.echo(json.dumps({**facts(here, rates), "opencl": opencl_facts(findings, usable())}, indent=1))
        return
    click.echo("\n".join([*table(here, rates), "", *opencl_table(findings, usable())]))
