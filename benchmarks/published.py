"""The runs that the documentation shows: a file for each machine and target, in one folder, without samples."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.case import ALIGNED
from benchmarks.document import Key, Row, read
from benchmarks.workloads import WORKLOADS
from codegen.system.files import write_file
from microkernels.dtypes import DTYPES

DROPPED = ("samples", "peaks", "issues")
"""What comparing needs and the documentation does not."""


def record(document: Mapping[str, Any], folder: Path) -> Path:
    """Merge a run into the machine's file, and return its path: rows that were measured before are replaced.

    Raises UsageError if the file is there and is not one of these.
    """
    path = folder / f"{file_name(document)}.json"
    before = read(path)["rows"] if path.exists() else []
    rows = {Key.of(row): row for row in (*before, *map(without_samples, document["rows"]))}
    ordered = sorted(rows.values(), key=place)
    write_file(path, json.dumps({"machine": document["machine"], "rows": ordered}, indent=1) + "\n")
    return path


def stored(folder: Path) -> list[dict[str, Any]]:
    """All documents of the folder, by the names of their files. Raises UsageError for a damaged one."""
    return [read(path) for path in sorted(folder.glob("*.json"))]


def file_name(document: Mapping[str, Any]) -> str:
    """A name for the machine and the target: the CPU, its instruction set, the cores, and a target that is not `c`."""
    machine = document["machine"]
    targets = sorted({row["target"] for row in document["rows"]} - {"c"})
    words = (machine["cpu"], machine["isa"], f"{machine['cores']} cores", *targets)
    return re.sub(r"[^a-z0-9]+", "-", " ".join(words).lower()).strip("-")


def without_samples(row: Row) -> dict[str, Any]:
    """A row without its samples and those of its peers."""
    peers = {name: _without(peer) for name, peer in row["peers"].items()}
    return {**_without(row), "peers": peers}


def place(row: Row) -> tuple[Any, ...]:
    """Where a row stands among others: by workload, type, threads, and then as the workload lists its cases."""
    key = Key.of(row)
    sizes = [case.size for case in WORKLOADS[key.workload](DTYPES[key.dtype])]
    size = key.size.removesuffix(ALIGNED)
    number = sizes.index(size) if size in sizes else len(sizes)
    return (list(WORKLOADS).index(key.workload), key.dtype, key.threads, number, key.size)


def _without(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if name not in DROPPED}
