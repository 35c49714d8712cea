"""A command: `poly count FILE.py:NAME --size M=64` says how many points the nest's space has."""

from __future__ import annotations

import click

import poly
from poly.commands.nestfile import load_nest
from poly.commands.options import nest_argument, size_option


@click.command("count")
@nest_argument
@size_option
def count(nest: str, sizes: dict[str, int]) -> None:
    """Count the schedules that a search chooses from."""
    click.echo(sum(1 for _ in poly.space(load_nest(nest), sizes=sizes)))
