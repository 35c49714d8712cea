"""The SQLite file of the records: its tables, how it is created and opened, and how it is checked.

It is in WAL mode: readers never wait, writers wait for each other, and a killed process leaves the file as it was after
its last transaction.
"""

from __future__ import annotations

from contextlib import closing, suppress
from glob import escape
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from codegen.system.files import TEMPORARY, sync_directory, temporary_name
from poly.errors import RecordError

if TYPE_CHECKING:
    from sqlite3 import Connection, Error

APPLICATION = 0x706F6C79
"""`poly` in ASCII, which distinguishes our files from other SQLite files."""
FORMAT, WITH_RUNS = 1, 2
"""Incremented when the tables change. A file has the first format until it first keeps a benchmark's runs."""
PATIENCE = 30.0
"""Seconds that a writer waits for other writers."""

TABLES = """
CREATE TABLE keys (
    id INTEGER PRIMARY KEY AUTOINCREMENT, digest TEXT NOT NULL UNIQUE, name TEXT NOT NULL, structure TEXT NOT NULL,
    sizes TEXT NOT NULL, dtypes TEXT NOT NULL, target TEXT NOT NULL, threads INTEGER NOT NULL, machine TEXT NOT NULL,
    compiler TEXT NOT NULL, engine TEXT NOT NULL
);
CREATE INDEX keys_by_structure ON keys (structure);
CREATE TABLE records (
    key INTEGER PRIMARY KEY REFERENCES keys (id) ON DELETE CASCADE, schedule TEXT NOT NULL, point TEXT NOT NULL,
    seconds REAL NOT NULL, spread REAL NOT NULL, trials INTEGER NOT NULL, strategy TEXT NOT NULL,
    finished INTEGER NOT NULL, tuning_seconds REAL NOT NULL, gflops REAL, at TEXT NOT NULL, made TEXT NOT NULL
);
CREATE TABLE trials (
    id INTEGER PRIMARY KEY, key INTEGER NOT NULL REFERENCES keys (id) ON DELETE CASCADE, point TEXT NOT NULL,
    schedule TEXT NOT NULL, samples TEXT NOT NULL, champion TEXT NOT NULL, rival TEXT NOT NULL, failure TEXT NOT NULL,
    strategy TEXT NOT NULL, made TEXT NOT NULL
);
CREATE INDEX trials_by_key ON trials (key);
"""
RUNS = "CREATE TABLE runs (id INTEGER PRIMARY KEY, machine TEXT NOT NULL, made TEXT NOT NULL, facts TEXT NOT NULL);"
"""The table that the second format adds: rows of benchmarks as JSON, which no compilation reads."""
FIRST = {" ".join(f"{sql}".split()) for sql in (*TABLES.split(";")[:-1], "CREATE TABLE sqlite_sequence(name,seq)")}
SCHEMAS = {FORMAT: FIRST, WITH_RUNS: FIRST | {RUNS.rstrip(";")}}
"""The schema that SQLite reports for the tables of each format, and for the one that counts keys."""

# SQLite's primary result codes (sqlite.org/rescode.html).
UNSOUND = {1, 11, 18, 19, 20, 24, 25, 26}
"""Codes of an unsound file: SQL errors, hence wrong tables; malformed files; values that are too long, violate a
constraint, or have the wrong type; wrong formats or column numbers; not a database."""
BUSY = {5, 6}
UNWRITABLE = {8, 14}
"""A read-only file, or a file (such as a log) that cannot be opened."""


class Unsound(Exception):
    """This poly cannot use the file: it is damaged, another program's, or of a newer format."""

    def __init__(self, reason: str, newer: bool = False) -> None:
        super().__init__(reason)
        self.newer = newer


def connect(path: Path, options: str = "mode=rw") -> Connection:
    """Open the file without checking it; transactions are up to the caller."""
    import sqlite3

    connection = sqlite3.connect(f"file:{quote(str(path))}?{options}", timeout=PATIENCE, isolation_level=None, uri=True)
    connection.row_factory = sqlite3.Row
    connection.text_factory = _text
    return connection


def _text(stored: bytes) -> str:
    """Decode a text; one damaged on disk is detected later, when it is read as a record."""
    return stored.decode(errors="replace")


def make(path: Path) -> None:
    """Create a file without records atomically: others see either no file or the complete one.

    Only one process at a time may do this; remains of a killed one are removed. Raises OSError, DatabaseError.
    """
    with suppress(OSError):
        _remove(*path.parent.glob(f"{TEMPORARY}{escape(path.name)}*"))
    part = Path(temporary_name(path.parent, path.name))
    try:
        part.touch(mode=0o600, exist_ok=False)
        with closing(connect(part)) as connection:
            numbers = f"PRAGMA application_id = {APPLICATION}; PRAGMA user_version = {FORMAT};"
            connection.executescript(f"PRAGMA journal_mode = MEMORY; BEGIN; {TABLES} {numbers} COMMIT;")
            connection.execute("PRAGMA journal_mode = WAL")
        _remove(*logs(path))  # logs of a deleted file, whose pages SQLite would apply
        part.replace(path)
    finally:
        with suppress(OSError):
            _remove(part, *logs(part))
    sync_directory(path.parent)


def _remove(*paths: Path) -> None:
    for path in paths:
        path.unlink(missing_ok=True)


def logs(path: Path) -> tuple[Path, ...]:
    """The files that SQLite keeps beside a file, in WAL mode and otherwise."""
    return tuple(path.with_name(f"{path.name}-{kind}") for kind in ("wal", "shm", "journal"))


def check(connection: Connection) -> None:
    """Raise Unsound if the file is another program's, of another format, or has other tables than ours."""
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if application != APPLICATION:
        raise Unsound("it is not a store of poly's")
    if version not in SCHEMAS:
        raise Unsound(f"it has format {version}, and this poly reads format {WITH_RUNS}", newer=version > WITH_RUNS)
    found = {_words(sql) for (sql,) in connection.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL")}
    if found != SCHEMAS[version]:
        odd = " and ".join(sorted(f"{sql[:60]!r}" for sql in found ^ SCHEMAS[version])[:2])
        raise Unsound(f"its tables are not those of format {version}: see {odd}")


def with_runs(connection: Connection) -> None:
    """Give a file the table of a benchmark's runs, if it has none; part of a transaction."""
    if has_runs(connection):
        return
    connection.execute(RUNS)
    connection.execute(f"PRAGMA user_version = {WITH_RUNS}")


def has_runs(connection: Connection) -> bool:
    """Whether a file of ours has the table of a benchmark's runs."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    return bool(version == WITH_RUNS)


def _words(sql: str) -> str:
    return " ".join(str(sql).split())


def verify(connection: Connection) -> None:
    """Read the whole file. Raises Unsound or DatabaseError if anything is wrong with it."""
    check(connection)
    (verdict,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
    if verdict != "ok":
        raise Unsound(" ".join(verdict.split()))


def inspect(path: Path) -> Unsound | None:
    """The problem with a file, if any; all of it is read. Raises DatabaseError if it cannot be opened."""
    import sqlite3

    try:
        with closing(connect(path)) as connection:
            verify(connection)
    except Unsound as unsound:
        return unsound
    except (sqlite3.Error, UnicodeDecodeError) as error:
        explanation = explained(path, error)
        if isinstance(explanation, Unsound):
            return explanation
        raise
    return None


def explained(path: Path, error: Error | UnicodeDecodeError) -> Unsound | RecordError:
    """SQLite's error as one of ours. Its message may quote a damaged table and thus not be valid UTF-8."""
    if isinstance(error, UnicodeDecodeError):
        return Unsound("a name in it is not valid text")
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF  # errors of the Python module itself have none
    if code in UNSOUND:
        return Unsound(str(error))
    if code in BUSY:
        return RecordError(f"the tuning records {path} are locked by another process for over {PATIENCE:.0f} s.")
    return unusable(path, str(error))


def unusable(path: Path, why: str) -> RecordError:
    """The error for a file or directory that cannot be read or written, with the cause and a remedy."""
    return RecordError(
        f"the tuning records {path} cannot be used: {why}. "
        "Make room or give permission there, or set POLY_RECORDS to another file."
    )
