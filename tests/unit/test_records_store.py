"""The store: what is kept comes back the same, the better record stays, neighbours are the nearest."""

from __future__ import annotations

import json
import pickle
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tuning_records import OTHER_SCHEDULE, POINT, key, record, trial

from poly.errors import RecordError, RecordWarning
from poly.records import Key, Record, RecordFilter, Store, StoredTrial
from poly.records.store import StoreCounts

TEXTS = st.text(max_size=8)
SIZES = st.dictionaries(st.text("MNK", min_size=1), st.integers(0, 2**40), max_size=3).map(
    lambda sizes: tuple(sorted(sizes.items()))
)
KEYS = st.builds(
    Key,
    structure=TEXTS,
    sizes=SIZES,
    dtypes=st.lists(TEXTS, max_size=3).map(tuple),
    target=TEXTS,
    threads=st.integers(1, 512),
    machine=TEXTS,
    compiler=TEXTS,
    engine=TEXTS,
    name=TEXTS,
)
SECONDS = st.floats(1e-9, 1e6)
RECORDS = st.builds(
    Record,
    key=KEYS,
    schedule=st.just("[]"),
    point=st.dictionaries(TEXTS, st.none() | st.integers()).map(lambda v: json.dumps({"traits": {}, "values": v})),
    seconds=SECONDS,
    spread=SECONDS,
    trials=st.integers(0, 10**6),
    strategy=TEXTS,
    finished=st.booleans(),
    tuning_seconds=SECONDS,
    gflops=st.none() | SECONDS,
    at=SIZES,
    when=st.datetimes(timezones=st.just(UTC)),
)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store.open(tmp_path / "deep" / "below" / "records.sqlite")


def test_where_it_lies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POLY_CACHE_DIR", str(tmp_path))
    monkeypatch.delenv("POLY_RECORDS")
    assert Store.open().path == tmp_path / "records.sqlite"
    monkeypatch.setenv("POLY_RECORDS", str(tmp_path / "mine.sqlite"))
    assert Store.open().path == tmp_path / "mine.sqlite"


def test_reading_makes_no_file(store: Store) -> None:
    assert store.best(key()) is None
    assert store.trials(key()) == store.records() == store.neighbours(key(), 3) == []
    assert store.clear() == store.count() == StoreCounts(0, 0, 0)
    store.drop_trials(key())
    assert not store.exists()
    assert not store.path.parent.parent.exists()


def test_what_is_saved_comes_back(store: Store) -> None:
    assert store.save(record())
    found = store.best(record().key)
    assert found == record()
    assert found is not None and found.id == 1
    assert found.key.name == "matmul"
    assert store.best(key(M=513)) is None
    assert store.record(1) == record()


@settings(max_examples=25)
@given(saved=st.lists(RECORDS, max_size=4, unique_by=lambda r: r.key))
def test_any_record_comes_back(saved: list[Record], tmp_path_factory: pytest.TempPathFactory) -> None:
    store = Store.open(tmp_path_factory.mktemp("store") / "records.sqlite")
    store.offer(saved)
    assert store.records() == saved
    assert [store.best(r.key) for r in saved] == saved
    assert [Record.of(json.loads(json.dumps(r.facts()))) for r in saved] == saved


def test_it_is_private(store: Store) -> None:
    store.save(record())
    assert store.path.stat().st_mode & 0o077 == 0
    assert store.path.parent.stat().st_mode & 0o077 == 0


def test_it_is_a_value(store: Store) -> None:
    store.save(record())
    assert pickle.loads(pickle.dumps(store)).best(record().key) == record()


@pytest.mark.parametrize(
    ("second", "kept"),
    [
        (record(minutes=1, seconds=2e-3), True),  # the same schedule, measured later
        (record(minutes=-1, seconds=0.5e-3), False),  # the same schedule, measured before
        (record(minutes=-1, seconds=0.5e-3, schedule=OTHER_SCHEDULE), True),
        (record(minutes=1, seconds=2e-3, schedule=OTHER_SCHEDULE), False),
        (record(minutes=1, schedule=OTHER_SCHEDULE), False),
        (record(minutes=1, seconds=9.0, schedule=OTHER_SCHEDULE, at=(("M", 9),)), True),  # times don't compare
        (record(minutes=-1, seconds=1e-9, schedule=OTHER_SCHEDULE, at=(("M", 9),)), False),
    ],
)
def test_of_two_records_under_one_key_the_better_one_stays(store: Store, second: Record, kept: bool) -> None:
    store.save(record())
    assert store.save(second) is kept
    assert store.records() == [second if kept else record()]
    assert store.save(second, replace=True)
    assert store.records() == [second]


def test_a_record_keeps_its_number_when_a_better_one_comes(store: Store) -> None:
    store.save(record())
    store.save(record(key(N=1)))
    store.save(record(minutes=1, seconds=0.5e-3))
    assert [found.id for found in store.records()] == [1, 2]


def test_trials_come_back_in_order_and_per_key(store: Store) -> None:
    first = [trial(1), trial(2, failure="crash", samples=()), trial(3, incumbent=POINT, rival=(2.0, 2.5), strategy="x")]
    store.add_trials(key(M=1), first[:1])
    store.add_trials(key(M=2), [trial(9)])
    store.add_trials(key(M=1), first[1:])
    assert store.trials(key(M=1)) == first
    assert store.trials(key(M=2)) == [trial(9)]
    assert store.best(key(M=1)) is None
    store.drop_trials(key(M=1))
    assert store.trials(key(M=1)) == []
    assert store.trials(key(M=2)) == [trial(9)]


def test_times_are_kept_to_the_last_digit(store: Store) -> None:
    samples = (0.1 + 0.2, 1 / 3, 1e-9)
    store.add_trials(key(), [trial(0, samples=samples)])
    assert store.trials(key())[0].samples == samples


def test_neighbours_are_the_nearest_of_the_same_kind(store: Store) -> None:
    near = [key(M=512, N=600), key(M=256, N=512), key(M=2048, N=64)]
    others = [
        key(M=512, N=512),  # the key itself
        key(M=512, N=513, structure="6" * 32),
        key(M=512, N=513, machine="another"),
        key(M=512, N=513, target="neon"),
        key(M=512, N=513, dtypes=("f64", "f64", "f64")),
    ]
    store.offer(record(of) for of in (*others, *reversed(near)))
    assert [found.key for found in store.neighbours(key(M=512, N=512), 9)] == near
    assert [found.key for found in store.neighbours(key(M=512, N=512), 2)] == near[:2]
    assert store.neighbours(key(M=512, N=512), 0) == []


def test_neighbours_of_open_sizes_go_by_where_they_are_measured(store: Store) -> None:
    store.offer([record(key(), at=(("M", 64),)), record(key(M=1000))])
    assert [found.key.sizes for found in store.neighbours(key(M=70), 2)] == [(), (("M", 1000),)]
    assert store.neighbours(key(N=3), 1, at=(("M", 900),)) == [record(key(M=1000))]


def test_a_choice_of_records(store: Store) -> None:
    saved = [
        record(key("a")),
        record(key("b", M=1)),
        record(key("b", M=2, target="neon")),
        record(key("b", M=3, machine="another")),
        record(key("b", M=4, engine="0.0.9")),
    ]
    store.offer(saved)
    here = saved[0].key.machine
    assert store.records(RecordFilter(nest="a")) == saved[:1]
    assert store.records(RecordFilter(nest="b", target="avx2")) == [saved[1], *saved[3:]]
    assert store.records(RecordFilter(machines=(here,))) == [*saved[:3], saved[4]]
    assert store.records(RecordFilter(outdated="0.1.0")) == saved[4:]
    assert store.records(RecordFilter(id=2)) == [saved[1]]
    assert store.records(RecordFilter(nest="%")) == []
    assert store.records(RecordFilter(nest="a' OR 'a' = 'a")) == []


def test_clear_removes_trials_too(store: Store) -> None:
    store.save(record(key("a", M=1)))
    store.add_trials(key("a", M=1), [trial(1), trial(2)])
    store.add_trials(key("b", M=2), [trial(3)])  # a search without a record yet
    assert store.count() == StoreCounts(problems=2, records=1, trials=3)
    assert str(store.count(RecordFilter(nest="a"))) == "1 record and 2 trials"
    assert store.clear(RecordFilter(nest="a")) == StoreCounts(problems=1, records=1, trials=2)
    assert store.trials(key("a", M=1)) == store.records() == []
    assert store.trials(key("b", M=2)) == [trial(3)]
    assert store.clear() == StoreCounts(1, 0, 1)


def test_no_such_record(store: Store) -> None:
    with pytest.raises(RecordError, match=r"^there is no record 7\. `poly records list --all-machines` shows"):
        store.record(7)


def test_a_record_in_words() -> None:
    assert str(record()) == "the record of matmul, M=512 (2026-11-20 12:00 UTC, 12 trials in 3.2 s)"
    words = str(replace(record(key()), id=3, trials=1, finished=False))
    assert words == "record 3 of matmul, any sizes (2026-11-20 12:00 UTC, 1 trial in 3.2 s, unfinished)"


def test_a_record_that_cannot_be_read_is_left_out(store: Store) -> None:
    store.offer([record(key(M=1)), record(key(M=2), schedule="[{"), record(key(M=3))])
    with pytest.warns(RecordWarning, match=r"record 2 cannot be read .*`poly records clear --id 2`"):
        assert [found.key for found in store.records()] == [key(M=1), key(M=3)]
    with pytest.warns(RecordWarning, match="record 2"):
        assert store.best(key(M=2)) is None


def test_a_trial_is_stamped_with_the_time() -> None:
    made = StoredTrial("{}", "[]", (1.0,)).when
    assert abs((datetime.now(UTC) - made).total_seconds()) < 60
