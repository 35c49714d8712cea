"""Export records to a file of JSON lines, and merge such a file or another store into ours."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from codegen.system.files import write_file
from poly.errors import RecordError
from poly.records.choice import RecordFilter
from poly.records.key import MALFORMED
from poly.records.machines import machines_here
from poly.records.quarantine import guarded
from poly.records.record import Record
from poly.records.store import Store

KIND = "poly tuning records"
FORMAT = 1
"""Incremented when the lines change."""
SQLITE = b"SQLite format 3\0"
"""The first bytes of every SQLite file."""

MOST_BYTES = 256 << 20
"""The largest file of records that is read: a device file may be endless."""


@dataclass(frozen=True)
class Merged:
    """The fate of the records offered to a store.

    `new` have a new key, `better` replaced a record (`Record.beats`), `left` did not. `elsewhere` counts those among
    all three that are for another machine or device; they are kept, but used only there.
    """

    new: int
    better: int
    left: int
    elsewhere: int


def export(store: Store, path: Path, choice: RecordFilter | None = None) -> int:
    """Write the selected records to a file, one per line, and return their number. Trials are not exported.

    Raises RecordError if there is no store, it is damaged, or the file cannot be written.
    """
    records = store.sound_records(choice)
    try:
        write_file(path, "".join(f"{line}\n" for line in lines(records)))
    except OSError as error:
        raise RecordError(f"the records cannot be written to {path}: {error.strerror}.") from error
    return len(records)


def lines(records: Iterable[Record]) -> Iterator[str]:
    """The lines of a file of records: a header, then the records."""
    yield json.dumps({"kind": KIND, "format": FORMAT})
    for record in records:
        yield json.dumps(record.facts())


def quarantine_record(store: Store, record: Record, why: str) -> Path:
    """Move a record of the store to a file beside it, which `merge` can read, and return the path of that file.

    Raises RecordError.
    """
    path = store.path.with_name(f"{store.path.name}.refused.jsonl")
    line = json.dumps({**record.facts(), "refused": why})
    try:
        with guarded(store.path):
            before = path.read_text() if path.exists() else "".join(f"{line}\n" for line in lines(()))
            write_file(path, f"{before}{line}\n")
    except OSError as error:
        raise RecordError(f"{path} cannot be written: {error.strerror}.") from error
    store.remove(record)
    return path


def merge(store: Store, path: Path) -> Merged:
    """Merge the records of a file written by `export`, or of another store; all of them or none.

    Of two records with the same key, the one that beats the other (`Record.beats`) is kept: of the same schedule the
    newer one, of different schedules the faster one.

    Raises RecordError if either cannot be used, or a record in the file cannot be read.
    """
    offered = load(path)
    known = {record.key: record for record in store.records()}
    kept = store.offer(record for record in offered if known.get(record.key) != record)
    new = len({record.key for record in offered} - known.keys())
    here = machines_here(offered)
    return Merged(
        new=new,
        better=sum(kept) - new,
        left=len(offered) - sum(kept),
        elsewhere=sum(record.key.machine not in here for record in offered),
    )


def load(path: Path) -> list[Record]:
    """The records in a file written by `export`, or in another store. Raises RecordError."""
    try:
        with path.open("rb") as file:
            content = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise RecordError(f"the records {path} cannot be read: {error.strerror}.") from error
    if len(content) > MOST_BYTES:
        raise RecordError(f"the records {path} are more than {MOST_BYTES >> 20} MiB: no export of records is so large.")
    if content.startswith(SQLITE):
        return Store(path).sound_records()
    return _parsed(path, content.splitlines())


def _parsed(path: Path, found: list[bytes]) -> list[Record]:
    _check_head(path, found[0] if found else b"")
    records = []
    for number, line in enumerate(found[1:], 2):
        try:
            records.append(Record.of(json.loads(line)))
        except MALFORMED as error:
            message = f"{path}, line {number}: this is no tuning record ({type(error).__name__}: {error})"
            raise RecordError(f"{message}. Nothing was taken in.") from error
    return records


def _check_head(path: Path, line: bytes) -> None:
    try:
        head = json.loads(line)
        kind, version = head["kind"], int(head["format"])
    except MALFORMED:
        kind, version = None, 0
    if kind != KIND:
        raise RecordError(f"{path} holds no tuning records: neither `poly records export` nor a store's file wrote it.")
    if version != FORMAT:
        raise RecordError(f"{path} has format {version} of tuning records, and this poly reads format {FORMAT}.")
