"""Runs of benchmarks, kept in the store beside the tuning records: rows as `poly bench --json` writes them.

No compilation reads them: they are what somebody measured, not what poly follows.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from poly.errors import RecordWarning, warn
from poly.records.database import read, write
from poly.records.file import has_runs, with_runs
from poly.records.key import MALFORMED, machine_name
from poly.records.record import now
from poly.records.store import Store

if TYPE_CHECKING:
    from sqlite3 import Connection

Row = dict[str, Any]


def keep_rows(store: Store, rows: Iterable[Mapping[str, Any]], machine: str | None = None) -> None:
    """Keep the rows of a run on this machine (or the named one), all of them or none. Raises RecordError."""
    kept = [(machine or machine_name(), row.get("date") or now().isoformat(), json.dumps(row)) for row in rows]

    def work(connection: Connection) -> None:
        with_runs(connection)
        connection.executemany("INSERT INTO runs (machine, made, facts) VALUES (?, ?, ?)", kept)

    write(store.path, work)


def kept_rows(store: Store, machine: str | None = None) -> list[Row]:
    """The kept rows of this machine (or the named one), oldest first; damaged ones are left out with a RecordWarning.

    Raises RecordError if the store cannot be used.
    """

    def work(connection: Connection) -> list[Row]:
        if not has_runs(connection):
            return []
        text = "SELECT facts FROM runs WHERE machine = ? ORDER BY made, id"
        return [row for (facts,) in connection.execute(text, (machine or machine_name(),)) if (row := _row(facts))]

    return read(store.path, work, [])


def drop_rows(store: Store, machine: str | None = None) -> int:
    """Forget the kept rows of this machine (or the named one); how many there were. Raises RecordError."""

    def work(connection: Connection) -> int:
        if not has_runs(connection):
            return 0
        return connection.execute("DELETE FROM runs WHERE machine = ?", (machine or machine_name(),)).rowcount

    return write(store.path, work) if store.exists() else 0


def _row(facts: str) -> Row | None:
    """A kept row, with a name, a time and a date at least; None with a warning if it is damaged."""
    try:
        row: Row = json.loads(facts)
        for name in ("workload", "size", "dtype", "target", "threads"):
            row[name]
        datetime.fromisoformat(row["date"])
        return row
    except MALFORMED as error:
        warn(f"a kept run of a benchmark is damaged and left out: {error!r}", RecordWarning)
        return None
