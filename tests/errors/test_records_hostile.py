"""Records are no way to break anything: whatever the store holds, the model serves, and what can't be used goes aside.

A store may be damaged in any byte, have other tables, hold texts that are no records or records that no compiler takes.
"""

from __future__ import annotations

import json
import random
import sqlite3
import time
import warnings
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from shared_nests import matmul
from tuning_fakes import Table, grid_space
from tuning_records import POINT, key, record, trial

import poly
from codegen.toolchain.compiler import find_compiler
from microkernels.isa import parse_target
from poly import Kernel
from poly.errors import PolyError, RecordError, RecordWarning
from poly.records import RecordFilter, Store, key_for
from poly.records.exchange import export, merge
from poly.records.record import MOST_STEPS, Record, StoredTrial
from poly.tuning import session

M, N, K = poly.sizes("M N K")
TARGET = "c:portable"
SIZES = {"M": 6, "N": 5, "K": 7}


NEST = matmul.with_sizes(SIZES)


@pytest.fixture(autouse=True)
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    """An empty store of its own; the cache directory is that of all tests."""
    monkeypatch.setenv("POLY_RECORDS", str(tmp_path / "records.sqlite"))
    return Store.open()


def own(**changes: Any) -> Record:
    """A record for the nest."""
    return replace(record(), key=key_for(NEST, parse_target(TARGET), 1), **changes)


def steps(*told: tuple[str, list[Any], dict[str, Any]]) -> str:
    return json.dumps([{"step": step, "args": args, "kwargs": named} for step, args, named in told])


def check(kernel: Kernel) -> None:
    a, b, c = np.ones((6, 7), np.float32), np.ones((7, 5), np.float32), np.zeros((6, 5), np.float32)
    kernel(a, b, c)
    assert (c == 7).all()
    kernel(np.ones((12, 7), np.float32)[::2], b, c)
    assert (c == 14).all()


def compiled() -> Any:
    return poly.compile(NEST, target=TARGET, threads=1)


BILLION = 10**9
USELESS = {
    "unroll by a billion": steps(("unroll", [], {"k": BILLION})),
    "a loop that is not there": steps(("unroll", [], {"z": 2})),
    "an illegal step": steps(("parallel", ["k"], {})),
    "an unknown step": steps(("teleport", [], {})),
    "a factor of 2**63": steps(("tile", [], {"i": 1 << 63})),
    "a factor of 10**400": steps(("tile", [], {"i": 10**400})),
    "a factor of -1": steps(("tile", [], {"i": -1})),
    "a text for a factor": steps(("tile", [], {"i": "6; rm"})),
    "a name with C in it": steps(("order", ["i j k; int x"], {})),
    "a microkernel that is none": steps(("microkernel", ["../../gemm"], {})),
    "a null step": "[null]",
    "a step without arguments": '[{"step": "tile"}]',
    "deep brackets": "[" * 30_000 + "]" * 30_000,
    "deep arguments": steps(("order", [[[]]], {})).replace("[[]]", "[" * 900 + "]" * 900),
    "more steps than any search makes": steps(*[("split", [], {"k": 2})] * (MOST_STEPS + 1)),
    "a long text": steps(("order", ["i " * 100_000], {})),
    "no list": "7",
    "no JSON": "{",
}


@pytest.mark.parametrize("schedule", USELESS.values(), ids=USELESS)
def test_a_record_that_cannot_be_followed_is_left_out_once(schedule: str, store: Store) -> None:
    """The kernel is the model's and right; the next compilation does not even try, or says so again."""
    store.save(own(schedule=schedule))
    with pytest.warns(RecordWarning):
        kernel = compiled()
    assert kernel.origin == "model"
    check(kernel)
    with warnings.catch_warnings(record=True) as told_again:
        warnings.simplefilter("always")
        check(compiled())
    again = [str(told.message) for told in told_again if told.category is not ResourceWarning]  # garbage of other tests
    readable = not any("cannot be read" in message for message in again)
    assert again == [] if readable else len(again) == 1
    kept = store.path.with_name("records.sqlite.refused.jsonl")
    assert kept.exists() == readable
    if readable:
        told = [json.loads(line) for line in kept.read_text().splitlines()]
        assert told[1]["schedule"] == schedule and told[1]["refused"]


@pytest.mark.parametrize("size", [64, 1 << 20, 1 << 40, 1 << 61])
def test_more_than_sensible(size: int, store: Store) -> None:
    """It is followed or left out: the result is right."""
    store.save(own(schedule=steps(("tile", [], {"i": size, "k": size}), ("pack", ["A"], {"at": "k_tile"}))))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RecordWarning)
        check(compiled())


def test_what_was_put_aside_can_be_taken_in_again(store: Store) -> None:
    refused = own(schedule=USELESS["unroll by a billion"])
    store.save(refused)
    store.save(record(key("another", M=1)))
    with pytest.warns(RecordWarning, match="It was moved to records.sqlite.refused.jsonl"):
        compiled()
    assert [found.key.name for found in store.records()] == ["another"]
    assert merge(store, store.path.with_name("records.sqlite.refused.jsonl")).new == 1
    assert store.best(refused.key) == refused
    with pytest.warns(RecordWarning):
        compiled()
    assert len(store.path.with_name("records.sqlite.refused.jsonl").read_text().splitlines()) == 3


def test_a_compiler_that_takes_too_long(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is stopped, with its helpers, and the model's kernel is built."""
    slow = tmp_path / "slow-cc"
    real = find_compiler()[0]
    mark = tmp_path / "helper"
    slow.write_text(
        f'#!/bin/sh\nfor w in "$@"; do case "$w" in *.c) grep -qx " *#pragma GCC unroll 5" "$w" && '
        f'{{ sleep 1000 & echo $! > {mark}; wait; }};; esac; done\nexec {real} "$@"\n'
    )
    slow.chmod(0o755)
    monkeypatch.setenv("POLY_CC", str(slow))
    monkeypatch.setattr("poly.kernel.RECORD_SECONDS", 1.0)
    store.save(own(schedule=steps(("unroll", [], {"k": 5}))))
    with pytest.warns(RecordWarning, match="did not end within 1 seconds"):
        kernel = compiled()
    check(kernel)
    assert kernel.origin == "model"
    assert not alive(int(mark.read_text()))


def alive(process: int) -> bool:
    """Whether a process is still at work; one that ended may wait for its parent."""
    for _ in range(100):
        try:
            state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
        except FileNotFoundError:
            return False
        if state == "Z":
            return False
        time.sleep(0.05)
    return True


def test_a_text_that_is_too_long(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("poly.records.followed.RECORD_CHARACTERS", 100)
    store.save(own(schedule="[]"))
    with pytest.warns(RecordWarning, match="its text has .* characters, more than 100"):
        assert compiled().origin == "model"


def test_more_memory_than_there_is(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("poly.kernel.os.sysconf", lambda name: 1)
    split = steps(("split", [], {"i": 2, "k": 4}), ("order", ["i_tile k_tile i k j"], {}), ("pack", ["A"], {}))
    store.save(own(schedule=split))
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        kernel = compiled()
    check(kernel)
    assert kernel.origin == "model"
    assert len(told) == 1


def test_not_the_records_fault(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the model's kernel can't be built either, the record stays."""
    store.save(own(schedule=steps(("unroll", [], {"k": 5}))))

    def broken(*_: object) -> None:
        raise poly.ToolchainError("the disk is full")

    with monkeypatch.context() as patched:
        patched.setattr("codegen.toolchain.build._run", broken)
        patched.setattr("codegen.toolchain.build.get_file", lambda path: None)
        with pytest.raises(poly.ToolchainError, match="the disk is full"):
            compiled()
    assert len(store.records()) == 1
    assert compiled().origin == "record"


def test_a_store_that_cannot_be_written(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """The record can't be moved: the model serves all the same, and says that it stays."""
    store.save(own(schedule=USELESS["an illegal step"]))

    def full(*_: object, **__: object) -> None:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr("poly.records.exchange.write_file", full)
    with pytest.warns(RecordWarning, match="It stays where it is, since .*Read-only file system"):
        check(compiled())


# Trials.

NUMBERS = ["NaN", "-1", "0", "1e308", "1e400", "-Infinity", "1e-320", '"fast"', "null", "[]", "true", "{}"]


@pytest.mark.parametrize("column", ["samples", "rival"])
@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.slow
def test_times_that_are_none(column: str, number: str, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """A tuning measures anew what it can't read, and ends as ever."""
    monkeypatch.setattr(session, "_space", lambda told: replace(grid_space(), sizes=told.at))
    monkeypatch.setattr(session, "LiveMeasurer", Table)
    monkeypatch.setattr(Table, "measured", [])
    poly.tune(grid_space().nest, target=TARGET, threads=1, trials=4)
    with closing(sqlite3.connect(store.path)) as connection:
        connection.execute(f"UPDATE trials SET {column} = '[1e-6, {number}]'")
        connection.execute("UPDATE records SET seconds = 1e-300 WHERE seconds < 1e-6")
        connection.commit()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RecordWarning)
        again = poly.tune(grid_space().nest, target=TARGET, threads=1, trials=8)
    assert again.tuning.reused == 0 and again.tuning.trials == 8


FACTS = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from([POINT, "[]", "{}"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=200)
@given(name=st.sampled_from(sorted(record().facts())), value=FACTS)
def test_any_fact_of_a_record_may_be_anything(name: str, value: Any, tmp_path_factory: pytest.TempPathFactory) -> None:
    """It is refused, or everything that is done with records works."""
    folder = tmp_path_factory.mktemp("facts", numbered=True)
    store = Store.open(folder / "records.sqlite")
    facts = json.loads(json.dumps({**record().facts(), name: value}))
    lines = [json.dumps({"kind": "poly tuning records", "format": 1}), json.dumps(facts)]
    (folder / "in.jsonl").write_text("\n".join(lines) + "\n")
    with suppress(RecordError):
        merge(store, folder / "in.jsonl")
        assert len(store.records()) == 1
        assert all(str(found) for found in store.records())
        store.neighbours(key(M=9), 4)
        store.offer([record()])
        export(store, folder / "out.jsonl")


@settings(max_examples=200)
@given(name=st.sampled_from(sorted(vars(trial(1)))), value=FACTS)
def test_any_fact_of_a_trial_may_be_anything(name: str, value: Any) -> None:
    facts = {**vars(trial(1)), "when": trial(1).when.isoformat(), name: value}
    with suppress(*poly.records.key.MALFORMED):
        made = StoredTrial.of(facts)
        assert all(0 < seconds < 1e13 for seconds in (*made.samples, *made.rival))


# The file.

TABLES = {
    "a column is missing": ["ALTER TABLE records DROP COLUMN point"],
    "a column of the trials is missing": ["ALTER TABLE trials DROP COLUMN rival"],
    "a column more": ["ALTER TABLE records ADD COLUMN more TEXT"],
    "a column has another name": ["ALTER TABLE keys RENAME COLUMN digest TO digested"],
    "a column of the key has another name": ["ALTER TABLE records RENAME COLUMN key TO number"],
    "a table has another name": ["ALTER TABLE trials RENAME TO trial"],
    "a table more": ["CREATE TABLE more (a TEXT)"],
    "an index is missing": ["DROP INDEX trials_by_key"],
    "a trigger": ["CREATE TRIGGER t AFTER INSERT ON trials BEGIN DELETE FROM records; END"],
    "a view": ["CREATE VIEW v AS SELECT * FROM keys"],
    "an older format": ["PRAGMA user_version = 0"],
}


@pytest.mark.parametrize("statements", TABLES.values(), ids=TABLES)
def test_other_tables_than_ours(statements: list[str], store: Store) -> None:
    store.save(own(schedule="[]"))
    with closing(sqlite3.connect(store.path, isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement)
    with pytest.warns(RecordWarning, match=r"are damaged .*They were moved to records\.sqlite\.damaged-1"):
        assert compiled().origin == "model"
    with warnings.catch_warnings(action="error"):
        store.save(own(schedule="[]"))
        store.add_trials(own().key, [trial(1)])
        assert compiled().origin == "record"


def everything(store: Store, file: Path) -> list[Callable[[], object]]:
    """All that is done with a store."""
    return [
        lambda: store.best(key(M=3)),
        lambda: list(map(str, store.records())),
        lambda: store.trials(key(M=3)),
        lambda: store.neighbours(key(M=3), 4),
        lambda: str(store.count()),
        lambda: store.record(2),
        lambda: export(store, file),
        lambda: merge(Store.open(file.with_name("other.sqlite")), store.path),
        lambda: store.save(record(key(M=3), minutes=1)),
        lambda: store.add_trials(key(M=4), [trial(1)]),
        lambda: store.drop_trials(key(M=3)),
        lambda: store.clear(RecordFilter(nest="matmul")),
    ]


@settings(max_examples=200)
@given(data=st.data())
@pytest.mark.slow
def test_any_bytes_of_the_file_may_be_wrong(data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Whatever is damaged, what is asked for ends in an answer or a RecordError; afterwards the store works."""
    folder = tmp_path_factory.mktemp("flipped", numbered=True)
    store = Store.open(folder / "records.sqlite")
    store.path.write_bytes(SOUND)
    flip(store.path, data.draw(st.randoms(use_true_random=False)), data.draw(st.sampled_from([1, 3, 30, 300])))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RecordWarning)
        order = data.draw(st.permutations(range(12)))
        for number in order[:5]:
            with suppress(RecordError):
                everything(store, folder / "out.jsonl")[number]()
        with suppress(RecordError):
            store.save(record(key(M=77)))
            assert store.best(key(M=77)) == record(key(M=77))


def flip(path: Path, lot: random.Random, count: int) -> None:
    """Change so many bytes, anywhere, half of them in the first page with the tables."""
    content = bytearray(path.read_bytes())
    for _ in range(count):
        at = lot.randrange(len(content)) if lot.random() < 0.5 else lot.randrange(min(4096, len(content)))
        content[at] ^= 1 << lot.randrange(8)
    path.write_bytes(content)


def sound(folder: Path) -> bytes:
    store = Store.open(folder / "records.sqlite")
    store.offer(record(key(M=m)) for m in range(40))
    for m in range(5):
        store.add_trials(key(M=m), [trial(1), trial(2)])
    with closing(sqlite3.connect(store.path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return store.path.read_bytes()


@pytest.fixture(autouse=True, scope="module")
def sound_bytes(tmp_path_factory: pytest.TempPathFactory) -> None:
    global SOUND
    SOUND = sound(tmp_path_factory.mktemp("sound"))


SOUND = b""


def test_compiling_with_a_flipped_store(store: Store) -> None:
    """The model or the record serves, and the result is right."""
    store.path.write_bytes(SOUND)
    store.save(own(schedule=steps(("unroll", [], {"k": 2}))))
    with closing(sqlite3.connect(store.path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    whole = store.path.read_bytes()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RecordWarning)
        for seed in range(40):
            store.path.write_bytes(whole)
            flip(store.path, random.Random(seed), 1 + seed % 3 * 20)
            try:
                check(compiled())
            except PolyError as error:
                raise AssertionError(f"seed {seed}") from error


def test_a_locked_store(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("poly.records.file.PATIENCE", 0.1)
    store.save(own(schedule="[]"))
    with closing(sqlite3.connect(store.path, isolation_level=None)) as elsewhere:
        elsewhere.execute("PRAGMA locking_mode = EXCLUSIVE")
        elsewhere.execute("PRAGMA journal_mode = DELETE")
        elsewhere.execute("BEGIN EXCLUSIVE")
        with pytest.warns(RecordWarning, match=r"locked by another process.*The model chooses"):
            check(compiled())
