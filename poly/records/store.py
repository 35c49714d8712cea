"""The store of tuning records: one SQLite file in the cache directory, for all nests and all processes."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from poly.errors import RecordError
from poly.records.choice import RecordFilter
from poly.records.database import peek, read, write
from poly.records.key import Key, Sizes
from poly.records.location import records_file
from poly.records.record import Record, StoredTrial
from poly.records.rows import RECORDS, key_id, put_record, put_trial, records_of, trials_of

if TYPE_CHECKING:
    from sqlite3 import Connection


@dataclass(frozen=True)
class StoreCounts:
    """The number of tuned problems, of those with a record, and of trials."""

    problems: int
    records: int
    trials: int

    def __str__(self) -> str:
        records = f"{self.records} record{'s' if self.records != 1 else ''}"
        return f"{records} and {self.trials} trial{'s' if self.trials != 1 else ''}"


@dataclass(frozen=True)
class Store:
    """The records in a file. A store is a plain value that may be copied to other threads and processes.

    Every method raises RecordError if the file or its directory cannot be used. A file that is damaged, or written by a
    newer poly, is put in quarantine (renamed) with a RecordWarning, and the method continues with an empty store.
    """

    path: Path

    @staticmethod
    def open(path: str | Path | None = None) -> Store:
        """The user's store, or the one at `path`; the first write creates the file."""
        return Store(Path(path) if path is not None else records_file())

    def exists(self) -> bool:
        """Whether the file exists."""
        return os.path.exists(self.path)

    def best(self, key: Key) -> Record | None:
        """The record with a key; None if there is none."""
        found = self._select("keys.digest = ?", (key.digest,))
        return found[0] if found else None

    def records(self, choice: RecordFilter | None = None) -> list[Record]:
        """The selected records, oldest first."""
        return self._select(*(choice or RecordFilter()).where())

    def record(self, number: int) -> Record:
        """The record with a number. Raises RecordError if there is none."""
        found = self._select("keys.id = ?", (number,))
        if not found:
            raise RecordError(f"there is no record {number}. `poly records list --all-machines` shows all.")
        return found[0]

    def save(self, record: Record, *, replace: bool = False) -> bool:
        """Store a record if it beats the one with its key, or always with `replace`; return whether it was stored."""
        return self.offer([record], replace=replace)[0]

    def offer(self, records: Iterable[Record], *, replace: bool = False) -> list[bool]:
        """`save` for several records, all of them or none; return for each whether it is stored."""
        offered = list(records)

        def work(connection: Connection) -> list[bool]:
            return [_offered(connection, record, replace) for record in offered]

        return write(self.path, work)

    def trials(self, key: Key) -> list[StoredTrial]:
        """The trials of a key, in order."""
        text = "SELECT trials.* FROM trials JOIN keys ON keys.id = trials.key WHERE keys.digest = ? ORDER BY trials.id"
        return read(self.path, lambda connection: trials_of(connection.execute(text, (key.digest,))), [])

    def add_trials(self, key: Key, trials: Iterable[StoredTrial]) -> None:
        """Store trials, all of them or none; once this returns, killing the process does not lose them."""
        added = list(trials)

        def work(connection: Connection) -> None:
            number = key_id(connection, key)
            for trial in added:
                put_trial(connection, number, trial)

        write(self.path, work)

    def drop_trials(self, key: Key) -> None:
        """Forget the trials of a key so that they are measured again; the record stays."""
        text = "DELETE FROM trials WHERE key = (SELECT id FROM keys WHERE digest = ?)"
        if self.exists():
            write(self.path, lambda connection: connection.execute(text, (key.digest,)))

    def neighbours(self, key: Key, count: int, at: Sizes = ()) -> list[Record]:
        """Up to `count` records of the same loops, dtypes, target and machine with other keys, the nearest first.

        `at` gives the sizes at which the nest will be measured if the key leaves them open.
        """
        same = "keys.structure = ? AND keys.target = ? AND keys.machine = ? AND keys.digest <> ?"
        found = self._select(same, (key.structure, key.target, key.machine, key.digest))
        alike = [record for record in found if record.key.dtypes == key.dtypes]
        return sorted(alike, key=lambda record: key.distance(record.key, at, record.at))[:count]

    def count(self, choice: RecordFilter | None = None) -> StoreCounts:
        """The counts for the selected keys."""
        return read(
            self.path,
            lambda connection: _counted(connection, *(choice or RecordFilter()).where()),
            StoreCounts(0, 0, 0),
        )

    def clear(self, choice: RecordFilter | None = None) -> StoreCounts:
        """Remove the selected keys with their records and trials, and return the counts of what was removed."""
        condition, values = (choice or RecordFilter()).where()

        def work(connection: Connection) -> StoreCounts:
            counted = _counted(connection, condition, values)
            connection.execute(f"DELETE FROM keys WHERE {condition}", values)
            return counted

        return write(self.path, work) if self.exists() else StoreCounts(0, 0, 0)

    def remove(self, record: Record) -> None:
        """Remove a record, unless another one has replaced it; the trials of its key stay."""
        text = "DELETE FROM records WHERE key = (SELECT id FROM keys WHERE digest = ?) AND schedule = ?"
        write(self.path, lambda connection: connection.execute(text, (record.key.digest, record.schedule)))

    def sound_records(self, choice: RecordFilter | None = None) -> list[Record]:
        """`records` after verifying the whole file. Raises RecordError if there is none or it is unsound."""
        return peek(self.path, lambda connection: _selected(connection, *(choice or RecordFilter()).where()))

    def _select(self, condition: str, values: tuple[str | int, ...]) -> list[Record]:
        return read(self.path, lambda connection: _selected(connection, condition, values), [])


def _selected(connection: Connection, condition: str, values: tuple[str | int, ...]) -> list[Record]:
    return records_of(connection.execute(f"{RECORDS} WHERE {condition} ORDER BY keys.id", values))


def _counted(connection: Connection, condition: str, values: tuple[str | int, ...]) -> StoreCounts:
    text = f"""
        SELECT COUNT(*), SUM(EXISTS (SELECT 1 FROM records WHERE key = keys.id)),
               SUM((SELECT COUNT(*) FROM trials WHERE key = keys.id)) FROM keys WHERE {condition}
    """
    return StoreCounts(*(number or 0 for number in connection.execute(text, values).fetchone()))


def _offered(connection: Connection, record: Record, replace: bool) -> bool:
    known = _selected(connection, "keys.digest = ?", (record.key.digest,))
    kept = replace or not known or record.beats(known[0])
    if kept:
        put_record(connection, record)
    return kept
