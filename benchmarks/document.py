"""A run as `--json` writes it: read again, checked, and its rows named."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import click

Row = Mapping[str, Any]

SAME = ("cpu", "isa", "cores", "device")
"""What must agree for two runs to be of one machine."""


class Key(NamedTuple):
    """What identifies a row within a run."""

    workload: str
    size: str
    dtype: str
    target: str
    threads: int

    @staticmethod
    def of(row: Row) -> Key:
        return Key(*(row[name] for name in Key._fields))

    @property
    def title(self) -> str:
        case = " ".join(filter(None, (self.workload, self.size, self.dtype)))
        return f"{case}, {threads_text(self.threads)}"


def threads_text(threads: int) -> str:
    return f"{threads} thread{'s' if threads > 1 else ''}"


def read(path: Path) -> dict[str, Any]:
    """The document in a file. Raises UsageError if it is not one."""
    try:
        made = json.loads(path.read_text())
        rows, machine = made["rows"], made["machine"]
        keys = [Key.of(row) for row in rows]
    except OSError as error:
        raise click.UsageError(f"{path}: {error.strerror or error}") from error
    except (ValueError, LookupError, TypeError) as error:
        raise click.UsageError(f"{path} is not what `poly bench --json` writes: {error!r}") from error
    if not isinstance(machine, dict) or len(set(keys)) < len(keys):
        raise click.UsageError(f"{path} is not what `poly bench --json` writes: a row is there twice, or no machine")
    return {"machine": machine, "rows": rows}


def need_same_machine(old: Mapping[str, Any], new: Mapping[str, Any]) -> None:
    """Raise UsageError unless both descriptions are of one machine: speeds of others are not compared."""
    for name in SAME:
        if old.get(name) != new.get(name):
            raise click.UsageError(f"the runs are of different machines: {name} {old.get(name)} and {new.get(name)}")
