"""Records, keys and trials as rows of the tables."""

from __future__ import annotations

import json
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from poly.errors import RecordWarning, warn
from poly.records.file import Unsound
from poly.records.key import MALFORMED, Key
from poly.records.record import Record, StoredTrial

if TYPE_CHECKING:
    from sqlite3 import Connection, Row

RECORDS = "SELECT * FROM records JOIN keys ON keys.id = records.key"


def key_id(connection: Connection, key: Key) -> int:
    """The number of a key, which is inserted if it is new."""
    connection.execute(
        "INSERT INTO keys (digest, name, structure, sizes, dtypes, target, threads, machine, compiler, engine)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (digest) DO NOTHING",
        (
            key.digest,
            key.name,
            key.structure,
            json.dumps(dict(key.sizes)),
            json.dumps(key.dtypes),
            key.target,
            key.threads,
            key.machine,
            key.compiler,
            key.engine,
        ),
    )
    found = connection.execute("SELECT id FROM keys WHERE digest = ?", (key.digest,)).fetchone()
    if found is None:
        raise Unsound("one of its keys cannot be found")
    return int(found["id"])


def put_record(connection: Connection, record: Record) -> None:
    """Insert a record, or replace the one with the same key."""
    connection.execute(
        "INSERT OR REPLACE INTO records (key, schedule, point, seconds, spread, trials, strategy, finished,"
        " tuning_seconds, gflops, at, made) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            key_id(connection, record.key),
            record.schedule,
            record.point,
            record.seconds,
            record.spread,
            record.trials,
            record.strategy,
            record.finished,
            record.tuning_seconds,
            record.gflops,
            json.dumps(dict(record.at)),
            record.when.isoformat(),
        ),
    )


def put_trial(connection: Connection, key: int, trial: StoredTrial) -> None:
    connection.execute(
        "INSERT INTO trials (key, point, schedule, samples, champion, rival, failure, strategy, made)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            key,
            trial.point,
            trial.schedule,
            json.dumps(trial.samples),
            trial.incumbent,
            json.dumps(trial.rival),
            trial.failure,
            trial.strategy,
            trial.when.isoformat(),
        ),
    )


def records_of(rows: Iterable[Row]) -> list[Record]:
    """The records in rows of RECORDS, without unreadable ones, for each of which there is a warning."""
    found = []
    for row in rows:
        try:
            found.append(_record(row))
        except MALFORMED as error:
            broken = f"record {row['key']} cannot be read ({error}) and is left out."
            warn(f"{broken} Remove it with `poly records clear --id {row['key']}`.", RecordWarning)
    return found


def trials_of(rows: Iterable[Row]) -> list[StoredTrial]:
    """The trials in rows, without unreadable ones, which are measured again."""
    found = []
    for row in rows:
        with suppress(*MALFORMED):
            found.append(_trial(row))
    return found


def _record(row: Row) -> Record:
    facts = dict(row)
    facts |= {name: json.loads(facts[name]) for name in ("sizes", "dtypes", "at")}
    return replace(Record.of({**facts, "key": facts, "when": facts["made"]}), id=int(row["key"]))


def _trial(row: Row) -> StoredTrial:
    facts = dict(row)
    facts |= {name: json.loads(facts[name]) for name in ("samples", "rival")}
    return StoredTrial.of({**facts, "incumbent": facts["champion"], "when": facts["made"]})
