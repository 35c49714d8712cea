"""`poly fuzz`: the differential fuzzer, which is part of the tests and needs a checkout."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import click

import poly

TESTS = Path(poly.__file__).resolve().parent.parent / "tests"


class FromCheckout(click.Command):
    """The command of `tests/fuzz`, which is imported when it runs: it is not part of the installed package."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: object
    ) -> click.Context:
        return _found().make_context(info_name, args, parent, **extra)


def _found() -> click.Command:
    if not (TESTS / "fuzz" / "cli.py").is_file():
        raise click.UsageError(
            "the fuzzer is part of poly's tests, which are not installed: "
            "run it in a checkout, after pip install -e '.[dev]'"
        )
    sys.path.insert(0, str(TESTS))
    found = importlib.import_module("fuzz.cli").command
    assert isinstance(found, click.Command)
    return found


command = FromCheckout("fuzz", help="Try random nests under random schedules (from a checkout).")
