"""`poly machine`: what this machine is, and how fast it was measured to be."""

from __future__ import annotations

import json

import click

from poly.machine import facts, machine, measured, table


@click.command("machine")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("--measure", is_flag=True, help="Measure anew, though there are figures from before.")
def command(as_json: bool, measure: bool) -> None:
    """Show the machine: cores, caches, FMA peak and bandwidths. They are measured once, and kept."""
    here = machine()
    rates = measured(here, anew=measure)
    click.echo(json.dumps(facts(here, rates), indent=1) if as_json else "\n".join(table(here, rates)))
