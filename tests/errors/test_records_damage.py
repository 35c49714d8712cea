"""A file that is damaged, foreign or newer goes aside with a warning; what cannot be read or written says so."""

from __future__ import annotations

import ctypes
import os
import sqlite3
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from tuning_records import key, record, trial

from codegen.system.cache import TEMPORARY
from poly.errors import RecordError, RecordWarning
from poly.records import Store
from poly.records.exchange import export, merge

PR_CAPBSET_DROP = 24
CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH = 1, 2


@pytest.fixture
def store(tmp_path: Path) -> Store:
    store = Store.open(tmp_path / "records.sqlite")
    store.offer(record(key(M=m)) for m in range(200))
    return store


def cut_short(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def overwrite_pages(path: Path) -> None:
    """Rubbish in place of every page but the first."""
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xa5" * (size - 4096))


def empty(path: Path) -> None:
    os.truncate(path, 0)


def text(path: Path) -> None:
    path.write_text("these are my records\n" * 1000)


def other_database(path: Path) -> None:
    path.unlink()
    execute(path, "CREATE TABLE recipes (name TEXT)")


def without_a_table(path: Path) -> None:
    execute(path, "DROP TABLE trials", "DROP TABLE records")


def newer(path: Path) -> None:
    execute(path, "PRAGMA user_version = 3")


def execute(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path)) as connection:
        for statement in statements:
            connection.execute(statement)


HARM = [cut_short, overwrite_pages, empty, text, other_database, without_a_table]


@pytest.mark.parametrize("harm", HARM)
def test_a_damaged_file_is_moved_aside_by_a_reader(store: Store, harm: Callable[[Path], None]) -> None:
    harm(store.path)
    harmed = store.path.read_bytes()
    with pytest.warns(RecordWarning, match=r"are damaged .*moved to records\.sqlite\.damaged-1; a new file was begun"):
        assert store.best(key(M=199)) is None
    assert store.path.with_name("records.sqlite.damaged-1").read_bytes() == harmed
    assert not store.exists()
    with warnings.catch_warnings(action="error"):
        assert store.best(key(M=199)) is None
        store.save(record())
        assert store.records() == [record()]


@pytest.mark.parametrize("harm", HARM)
def test_a_damaged_file_is_moved_aside_by_a_writer(store: Store, harm: Callable[[Path], None]) -> None:
    harm(store.path)
    with pytest.warns(RecordWarning, match=r"damaged-1"):
        store.add_trials(key(), [trial(1)])
    assert store.trials(key()) == [trial(1)]
    assert store.records() == []


def test_a_newer_file_is_moved_aside(store: Store) -> None:
    newer(store.path)
    told = r"by a newer poly \(it has format 3, and this poly reads format 2\)\. They were moved to .*\.newer-1"
    with pytest.warns(RecordWarning, match=told):
        store.save(record())
    assert store.records() == [record()]
    aside = store.path.with_name("records.sqlite.newer-1")
    execute(aside, "PRAGMA user_version = 1")
    assert len(Store.open(aside).records()) == 200


def test_nothing_that_was_moved_aside_is_overwritten(store: Store) -> None:
    for number in (1, 2, 3):
        store.save(record())
        store.path.write_text(f"damage {number}" * 1000)
        with pytest.warns(RecordWarning, match=rf"damaged-{number}"):
            store.records()
    for number in (1, 2, 3):
        assert store.path.with_name(f"records.sqlite.damaged-{number}").read_text().startswith(f"damage {number}")


def test_the_logs_go_aside_with_their_file(store: Store) -> None:
    """A new file must not take over the pages that a damaged one's log holds."""
    wal = store.path.with_name("records.sqlite-wal")
    with closing(sqlite3.connect(store.path)) as open_elsewhere:
        open_elsewhere.execute("UPDATE records SET strategy = 'in the log'")
        open_elsewhere.commit()
        log = wal.read_bytes()
    assert log
    wal.write_bytes(log)
    text(store.path)
    with pytest.warns(RecordWarning):
        store.save(record())
    assert store.records() == [record()]


def test_a_log_without_its_file_is_not_taken_over(store: Store) -> None:
    wal = store.path.with_name("records.sqlite-wal")
    with closing(sqlite3.connect(store.path)) as open_elsewhere:
        open_elsewhere.execute("UPDATE records SET strategy = 'in the log'")
        open_elsewhere.commit()
        log = wal.read_bytes()
    store.path.unlink()
    wal.write_bytes(log)
    store.save(record())
    assert store.records() == [record()]


def test_a_half_made_file_is_never_seen(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    store.path.unlink()

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("poly.records.file.Path.replace", interrupted)
        with pytest.raises(KeyboardInterrupt):
            store.save(record())
    assert not store.exists()
    assert [p.name for p in store.path.parent.iterdir() if p.is_file()] == ["records.lock"]
    store.save(record())
    assert store.records() == [record()]


def test_what_a_killed_maker_left_is_removed(store: Store) -> None:
    store.path.unlink()
    for kind in ("", "-wal", "-shm", "-journal"):
        store.path.with_name(f"{TEMPORARY}records.sqlite{kind}").write_text("half")
    store.save(record())
    assert store.records() == [record()]
    assert not list(store.path.parent.glob(f"{TEMPORARY}*"))


@pytest.mark.parametrize("harm", [*HARM, newer])
def test_a_damaged_file_is_neither_exported_nor_merged(
    store: Store, harm: Callable[[Path], None], tmp_path: Path
) -> None:
    harm(store.path)
    with pytest.raises(RecordError, match=r"records\.sqlite are not sound: .*Nothing was read from them"):
        export(store, tmp_path / "out.jsonl")
    mine = Store.open(tmp_path / "mine" / "records.sqlite")
    with pytest.raises(RecordError, match=r"(are not sound|holds no tuning records)"):
        merge(mine, store.path)
    assert store.exists()
    assert not (tmp_path / "out.jsonl").exists()
    assert not mine.exists()


def without_privileges() -> None:
    """Let file permissions bind this process and its children, also where it is root's (capabilities(7))."""
    prctl = ctypes.CDLL(None).prctl
    for capability in (CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH):
        prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)


def run(project: Path, script: str) -> subprocess.CompletedProcess[str]:
    paths = f"{project}:{project / 'tests' / 'support'}"
    environment = {**os.environ, "PYTHONPATH": paths, "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-c", script]
    return subprocess.run(command, env=environment, preexec_fn=without_privileges, capture_output=True, text=True)


@pytest.fixture
def locked(store: Store, project: Path) -> Iterator[Path]:
    """The store in a folder that may be read but not written."""
    folder = store.path.parent
    folder.chmod(0o555)
    tried = run(project, f"open({str(folder / 'new')!r}, 'w')")
    if "PermissionError" not in tried.stderr:
        pytest.skip("permissions do not bind this user")
    yield store.path
    folder.chmod(0o755)


def test_reading_in_a_read_only_directory(locked: Path, project: Path) -> None:
    script = f"""
from poly.errors import RecordError
from poly.records import Store
from poly.records.exchange import load
from tuning_records import key, record
store = Store.open({str(locked)!r})
print(store.best(key(M=199)) == record(key(M=199)), len(store.records()), len(load(store.path)))
try:
    store.save(record())
except RecordError as error:
    print(error)
"""
    done = run(project, script)
    first, _, second = done.stdout.partition("\n")
    assert first == "True 200 200", done.stderr
    assert second.startswith(f"the tuning records {locked} cannot be used: ")
    assert "give permission there, or set POLY_RECORDS" in second
    assert sorted(p.name for p in locked.parent.iterdir() if p.is_file()) == ["records.lock", "records.sqlite"]


def test_a_file_that_may_not_be_read(locked: Path, project: Path) -> None:
    locked.chmod(0o000)
    script = f"""
import warnings
warnings.simplefilter("error")
from poly.errors import RecordError
from poly.records import Store
try:
    Store.open({str(locked)!r}).records()
except RecordError as error:
    print(error)
"""
    done = run(project, script)
    assert done.stdout.startswith(f"the tuning records {locked} cannot be used: "), done.stderr


@pytest.mark.parametrize("place", ["file", "/proc/poly"])
def test_a_directory_that_cannot_be_made(place: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    store = Store.open(tmp_path / place / "below" / "records.sqlite")
    assert store.records() == []
    with pytest.raises(RecordError, match=r"cannot be used: .*set POLY_RECORDS to another file"):
        store.save(record())


def device(path: Path) -> None:
    path.symlink_to(os.devnull)


@pytest.mark.parametrize("make", [device, os.mkfifo, os.mkdir])
def test_what_is_no_regular_file_stays_where_it_is(make: Callable[[Path], None], tmp_path: Path) -> None:
    """A device is no damaged store: with POLY_RECORDS=/dev/null the superuser would have moved the machine's away."""
    store = Store.open(tmp_path / "records.sqlite")
    make(store.path)
    before = os.lstat(store.path)
    for use in (store.records, store.count, lambda: store.save(record()), store.clear):
        with pytest.raises(RecordError, match=r"cannot be used: this is no regular file.*set POLY_RECORDS"):
            use()
    assert os.lstat(store.path) == before
    assert list(tmp_path.iterdir()) == [store.path]


@pytest.mark.parametrize("begun", [False, True])
def test_a_full_disk(store: Store, project: Path, begun: bool) -> None:
    """No file may grow: the error says so, and what was there stays."""
    if not begun:
        store.path.unlink()
    script = f"""
import resource, signal
from poly.errors import RecordError
from poly.records import Store
from tuning_records import key, record
store = Store.open({str(store.path)!r})
size = {store.path.stat().st_size if begun else 0}
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
try:
    store.offer(record(key(N=n)) for n in range(1000))
except RecordError as error:
    print(error)
"""
    done = run(project, script)
    assert f"the tuning records {store.path} cannot be used: " in done.stdout, done.stderr
    assert "Make room" in done.stdout
    assert len(store.records()) == (200 if begun else 0)


def test_a_locked_file(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("poly.records.file.PATIENCE", 0.1)
    with closing(sqlite3.connect(store.path, isolation_level=None)) as elsewhere:
        elsewhere.execute("BEGIN IMMEDIATE")
        assert len(store.records()) == 200
        with pytest.raises(RecordError, match="are locked by another process"):
            store.save(record())
    assert store.save(record())
