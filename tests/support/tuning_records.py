"""Keys and records for the tests of the store, made without a search."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from poly.records import Key, Record, StoredTrial
from poly.records.key import machine_name

POINT = '{"traits": {"order": "rows inside"}, "values": {"depth": 256, "columns": null}}'
SCHEDULE = '[{"step": "split", "args": [], "kwargs": {"m": 6}}]'
OTHER_SCHEDULE = '[{"step": "split", "args": [], "kwargs": {"m": 8}}]'
NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)


def key(name: str = "matmul", **changes: Any) -> Key:
    """A key of this machine: `key(M=512)` has that size, `key(threads=2)` that field."""
    fields = {field: changes.pop(field) for field in list(changes) if field in Key.__dataclass_fields__}
    made = Key(
        structure="5" * 32,
        sizes=tuple(sorted(changes.items())),
        dtypes=("f32", "f32", "f32"),
        target="avx2",
        threads=1,
        machine=machine_name(),
        compiler="gcc 12.2.0",
        engine="0.1.0",
        name=name,
    )
    return replace(made, **fields)


def record(of: Key | None = None, minutes: int = 0, **changes: Any) -> Record:
    """A record, dated this many minutes after noon."""
    made = Record(
        key=of or key(M=512),
        schedule=SCHEDULE,
        point=POINT,
        seconds=1e-3,
        spread=1e-5,
        trials=12,
        strategy="droplet",
        finished=True,
        tuning_seconds=3.25,
        gflops=107.5,
        when=NOON + timedelta(minutes=minutes),
    )
    return replace(made, **changes)


def trial(number: int, **changes: Any) -> StoredTrial:
    return replace(StoredTrial(POINT, SCHEDULE, (number + 0.25, number + 1.0), when=NOON), **changes)
