"""Tuning records as text."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from poly.display import time_text
from poly.records import Record, StoredTrial, read_point


def record_rows(records: Iterable[Record], machines: bool) -> tuple[list[str], list[list[str]]]:
    """The headings and rows of a table of records; with `machines`, or if one is of a device, it has their machines.

    A target `avx2 x 4` means 4 threads.
    """
    records = list(records)
    machines = machines or any(record.key.of_device for record in records)
    head = ["nest", "id", "sizes", "dtype", "target", "time", "GFLOP/s", "trials", "search", "tuned, UTC"]
    rows = [[*_cells(record), *([record.key.machine.partition(", L1")[0]] if machines else [])] for record in records]
    return [*head, *(["machine"] if machines else [])], rows


def _cells(record: Record) -> list[str]:
    key = record.key
    return [
        key.name,
        str(record.id),
        sizes_text(record),
        " ".join(dict.fromkeys(key.dtypes)),
        key.target if key.threads == 1 else f"{key.target} x {key.threads}",
        time_text(record.seconds),
        rate_text(record),
        str(record.trials),
        record.strategy + ("" if record.finished else " (unfinished)"),
        f"{record.when:%Y-%m-%d %H:%M}",
    ]


def record_text(record: Record, trials: Sequence[StoredTrial]) -> str:
    """A whole record, one fact per line, and the steps of its schedule."""
    key = record.key
    traits, values = read_point(record.point)
    failed = sum(bool(trial.failure) for trial in trials)
    unit = "compute unit" if key.of_device else "thread"
    facts = {
        "nest": f"{key.name} ({', '.join(key.dtypes)}), structure {key.structure}",
        "sizes": sizes_text(record),
        "target": f"{key.target}, {key.threads} {unit}{'s' if key.threads != 1 else ''}",
        "device" if key.of_device else "machine": key.machine,
        "driver" if key.of_device else "compiler": key.compiler,
        "engine": f"poly {key.engine}",
        "time": f"{time_text(record.seconds)} ± {time_text(record.spread)}, {rate_text(record)} GFLOP/s",
        "search": f"{record.strategy}, {record.trials} trials in {record.tuning_seconds:.1f} s"
        + ("" if record.finished else ", not finished"),
        "tuned": f"{record.when:%Y-%m-%d %H:%M:%S} UTC",
        "kept": f"{len(trials)} trials, {failed} of them failed",
        "structure": ", ".join(f"{name} {value}" for name, value in traits) or "as written",
        "knobs": ", ".join(f"{name} {'uncut' if value is None else value}" for name, value in values.items()) or "none",
    }
    lines = [f"{name:10} {value}" for name, value in facts.items()]
    return "\n".join(
        (f"record {record.id}", *lines, "schedule", *(f"  .{step}" for step in step_texts(record.schedule)))
    )


def step_texts(schedule: str) -> list[str]:
    """The steps in a schedule's JSON as calls: `tile(i=6, j=64)`."""
    return [
        f"{step['step']}({', '.join((*map(repr, step['args']), *(f'{n}={v!r}' for n, v in step['kwargs'].items())))})"
        for step in json.loads(schedule)
    ]


def sizes_text(record: Record) -> str:
    """`K=512 M=512`; or `any (K=512 M=512)` for open sizes, with the values at which they were measured."""
    fixed = " ".join(f"{name}={value}" for name, value in record.key.sizes)
    at = " ".join(f"{name}={value}" for name, value in record.at)
    return " ".join(filter(None, (fixed, f"any ({at})" if at else ""))) or "none"


def rate_text(record: Record) -> str:
    return "-" if record.gflops is None else f"{record.gflops:.1f}"
