"""`poly doctor`: what works here, what does not, and what to do about it."""

from __future__ import annotations

import json
import shutil
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import asdict
from importlib import import_module

import click

from poly.diagnosis import Diagnosis, diagnoses

PEERS = "benchmarks.doctor"
"""The module that tells about the benchmarks' peers, where they are installed."""

INDENT = " " * 21


@click.command("doctor")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(as_json: bool) -> None:
    """Try what poly needs and what it can use, and say what to do about what does not work.

    The C compiler, OpenMP, the cache directory, the tuning records, the calibration, OpenCL's devices, the peers of
    the benchmarks, and files that hide a package of poly. The exit status is 1 if something that poly needs is broken.
    """
    found = list((*diagnoses(), *peers()) if as_json else _told())
    broken = [one for one in found if one.state == "broken"]
    if as_json:
        click.echo(json.dumps({"ok": not broken, "checks": [asdict(one) for one in found]}, indent=1))
    else:
        what = ", ".join(dict.fromkeys(one.name for one in broken))
        click.echo(f"\nbroken: {what}" if broken else "\neverything that poly needs works")
    sys.exit(1 if broken else 0)


def peers() -> Iterator[Diagnosis]:
    """The libraries that `poly bench` compares with."""
    try:
        module = import_module(PEERS)
    except ModuleNotFoundError:
        text = "the benchmarks are not installed"
        yield Diagnosis("peers", "note", text, "pip install 'poly-loops[bench]', or '.[bench]' in a checkout")
        return
    yield from module.peers()


def _told() -> Iterator[Diagnosis]:
    """Each diagnosis, after it was printed."""
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else 120
    for checks in (diagnoses(), peers()):
        for one in checks:
            click.echo("\n".join(lines(one, width)))
            yield one


def lines(one: Diagnosis, width: int) -> Iterator[str]:
    """A diagnosis as lines of at most `width` columns, if its words allow: no path or command is broken."""
    yield from _wrapped(one.text, f"{one.state:8}{one.name:13}", width)
    if one.remedy:
        yield from _wrapped(one.remedy, f"{INDENT}-> ", width)


def _wrapped(text: str, head: str, width: int) -> Iterator[str]:
    for number, line in enumerate(text.splitlines()):
        yield from textwrap.wrap(
            line,
            width,
            initial_indent=INDENT if number else head,
            subsequent_indent=INDENT if not head.endswith("-> ") else f"{INDENT}   ",
            break_long_words=False,
            break_on_hyphens=False,
        )
