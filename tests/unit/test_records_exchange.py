"""Records that travel: export, import and merge keep what they say, and refuse what they cannot read."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from small_space import small_space
from tuning_records import OTHER_SCHEDULE, SCHEDULE, key, record, trial

import poly
from microkernels.isa import parse_target
from poly.autoschedule.spaces.space import Knob, Point
from poly.errors import RecordError, ScheduleError
from poly.records import RecordFilter, Store, find_point, key_for, point_text, read_point, schedule_of
from poly.records.exchange import Merged, export, merge


@pytest.fixture
def store(tmp_path: Path) -> Store:
    store = Store.open(tmp_path / "records.sqlite")
    store.offer([record(key("a", M=1)), record(key("b", M=2)), record(key("a", M=3, machine="Intel 486"))])
    store.add_trials(key("a", M=1), [trial(1)])
    return store


@pytest.fixture
def other(tmp_path: Path) -> Store:
    return Store.open(tmp_path / "other" / "records.sqlite")


def test_export_and_import(store: Store, other: Store, tmp_path: Path) -> None:
    file = tmp_path / "out.jsonl"
    assert export(store, file) == 3
    assert merge(other, file) == Merged(new=3, better=0, left=0, elsewhere=1)
    assert other.records() == store.records()
    assert other.trials(key("a", M=1)) == []
    assert merge(other, file) == Merged(new=0, better=0, left=3, elsewhere=1)
    assert [p.name for p in tmp_path.iterdir() if p.name.startswith(".part")] == []


def test_the_file_says_what_it_is(store: Store, tmp_path: Path) -> None:
    assert export(store, tmp_path / "out.jsonl", RecordFilter(nest="b")) == 1
    head, line = (tmp_path / "out.jsonl").read_text().splitlines()
    assert json.loads(head) == {"kind": "poly tuning records", "format": 1}
    assert json.loads(line) == json.loads(json.dumps(record(key("b", M=2)).facts()))


def test_merge_another_store(store: Store, other: Store) -> None:
    assert merge(other, store.path) == Merged(new=3, better=0, left=0, elsewhere=1)
    assert other.records() == store.records()


def test_the_better_record_stays(store: Store, other: Store) -> None:
    first = key("a", M=1)
    other.offer([record(first, seconds=2e-3, schedule=OTHER_SCHEDULE), record(key("b", M=2), minutes=9)])
    assert merge(other, store.path) == Merged(new=1, better=1, left=1, elsewhere=1)
    assert other.best(first) == record(first)
    assert other.best(key("b", M=2)) == record(key("b", M=2), minutes=9)


def test_a_file_with_two_records_of_one_key(other: Store, tmp_path: Path) -> None:
    slow, fast = record(seconds=2.0, schedule=OTHER_SCHEDULE), record(seconds=1.0)
    file = tmp_path / "both.jsonl"
    lines = [{"kind": "poly tuning records", "format": 1}, fast.facts(), slow.facts()]
    file.write_text("\n".join(map(json.dumps, lines)))
    assert merge(other, file) == Merged(new=1, better=0, left=1, elsewhere=0)
    assert other.records() == [fast]


def test_merging_a_store_with_itself_changes_nothing(store: Store) -> None:
    before = store.records()
    assert merge(store, store.path) == Merged(new=0, better=0, left=3, elsewhere=1)
    assert store.records() == before


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([], "holds no tuning records"),
        (["not JSON"], "holds no tuning records"),
        (['{"kind": "recipes", "format": 1}'], "holds no tuning records"),
        (["[1, 2]"], "holds no tuning records"),
        (
            ['{"kind": "poly tuning records", "format": 2}'],
            "format 2 of .*reads format 1",
        ),
        (["{head}", "{record}", "{"], "line 3: this is no tuning record"),
        (["{head}", "{}"], "line 2: this is no tuning record .*'gflops'"),
        (["{head}", "[]"], "line 2"),
        (["{head}", "{record}", '{"key": 3}'], "line 3"),
        (["{head}", "\xff\xfe"], "line 2"),
    ],
)
def test_a_file_that_is_none(store: Store, tmp_path: Path, lines: list[str], message: str) -> None:
    """All or nothing: a good record before a bad line is not taken in either."""
    facts = json.dumps(record(key("new")).facts())
    head = '{"kind": "poly tuning records", "format": 1}'
    text = "\n".join(lines).replace("{head}", head).replace("{record}", facts)
    (tmp_path / "in.jsonl").write_bytes(text.encode("latin-1"))
    with pytest.raises(RecordError, match=message):
        merge(store, tmp_path / "in.jsonl")
    assert len(store.records()) == 3


@pytest.mark.parametrize(
    "change",
    [
        {"seconds": "fast"},
        {"seconds": None},
        {"schedule": "no JSON"},
        {"schedule": None},
        {"schedule": "{}"},
        {"point": 3},
        {"point": "3"},
        {"point": '{"traits": {}}'},
        {"when": "yesterday"},
        {"at": 3},
        {"key": {}},
        {"seconds": float("nan")},
        {"seconds": -1.0},
    ],
)
def test_a_record_with_a_wrong_field(other: Store, tmp_path: Path, change: dict[str, object]) -> None:
    facts = record().facts() | change
    (tmp_path / "in.jsonl").write_text('{"kind": "poly tuning records", "format": 1}\n' + json.dumps(facts))
    with pytest.raises(RecordError, match=r"in\.jsonl, line 2: this is no tuning record"):
        merge(other, tmp_path / "in.jsonl")


def test_files_that_cannot_be_opened(store: Store, tmp_path: Path) -> None:
    with pytest.raises(RecordError, match=r"absent\.jsonl cannot be read: No such file"):
        merge(store, tmp_path / "absent.jsonl")
    with pytest.raises(RecordError, match=r"cannot be read: Is a directory"):
        merge(store, tmp_path)
    with pytest.raises(RecordError, match=r"cannot be written to .*nowhere/out\.jsonl: No such file"):
        export(store, tmp_path / "nowhere" / "out.jsonl")
    with pytest.raises(RecordError, match=r"^there are no tuning records .*no\.sqlite"):
        export(Store.open(tmp_path / "no.sqlite"), tmp_path / "out.jsonl")


def test_a_failing_export_leaves_the_last_one(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "out.jsonl"
    export(store, file)
    before = file.read_text()

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("codegen.system.files.os.replace", full)
    with pytest.raises(RecordError, match="No space left on device"):
        export(store, file)
    assert file.read_text() == before
    assert not list(tmp_path.glob(".part*"))


def test_a_records_schedule_is_proven_again() -> None:
    nest = poly.einsum("mk,kn->mn")
    found = replace(record(), key=key_for(nest, parse_target("c:portable"), 1))
    for sizes in ({}, {"M": 7}):
        made = schedule_of(found, nest.with_sizes(sizes))
        assert repr(made).endswith(".split(m=6)")
    with pytest.raises(ScheduleError):
        schedule_of(replace(found, schedule=SCHEDULE.replace('"m"', '"z"')), nest)


def test_a_record_for_another_machine_or_other_loops() -> None:
    nest = poly.einsum("mk,kn->mn")
    found = replace(record(), key=key_for(nest, parse_target("c:portable"), 1))
    elsewhere = replace(found, key=replace(found.key, machine="Intel 486"))
    with pytest.raises(RecordError, match=r"was tuned on another machine \(Intel 486; this one is .*\)\. Tune .* here"):
        schedule_of(elsewhere, nest)
    with pytest.raises(RecordError, match="is for other loops than those of einsum_mk_nk_to_mn"):
        schedule_of(found, poly.einsum("mk,nk->mn"))


def test_points_are_found_again_by_their_names() -> None:
    space = small_space()
    uncut = replace(
        space.structures[0], knobs=(Knob("rows", (4, None)), Knob("depth", (16, 32))), allows=lambda _: True
    )
    space = replace(space, structures=(uncut, space.structures[1]))
    for point in space:
        text = point_text(space, point)
        assert find_point(space, text) == point
        traits, values = read_point(text)
        assert traits == space.structures[point.structure].traits
        assert values == space.values(point)
    turned = replace(space, structures=space.structures[::-1])
    for point in space:
        found = find_point(turned, point_text(space, point))
        assert found is not None
        assert turned.values(found) == space.values(point)
    assert find_point(small_space(), point_text(space, Point(0, (1, 0)))) is None
    assert find_point(replace(space, structures=space.structures[:1]), point_text(space, Point(1, (0, 0)))) is None
