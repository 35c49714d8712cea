"""Making the tables of small spaces, and keeping them as files."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from small_space import CASE, FACTS, ORIGIN, FakeMeasurer, full_table, small_space

from benchmarks.search import origins, store
from benchmarks.search.making import Maker, thinned
from benchmarks.search.making import MeasuringPlan as Plan
from benchmarks.search.problems import chosen, sampled, whole
from benchmarks.search.table import ALIGNED, Entry, Table, key
from poly.autoschedule.spaces.space import Point, Space
from poly.errors import RecordError, SearchError
from poly.search.events import Ask, Measurer, Trial

NAME = CASE.size


def maker(folder: Path, measurer: FakeMeasurer | Killed, told: list[str] | None = None) -> Maker:
    @contextmanager
    def opened(space: Space, samples: int) -> Iterator[Measurer]:
        yield measurer

    tell = (told if told is not None else []).append
    return Maker(folder, ORIGIN, 1, lambda origin: origin, lambda origin, case: measurer.space, opened, tell)


def plan(passes: int, together: int = 1, batch: int = 8, seconds: float = 300.0, points: int | None = None) -> Plan:
    return Plan(passes, together, batch, seconds, points)


def read(folder: Path) -> Table:
    table = store.read(folder, NAME)
    assert table is not None
    return table


def test_every_point_is_visited_in_every_pass(tmp_path: Path) -> None:
    space = small_space()
    measurer = FakeMeasurer(space)
    maker(tmp_path, measurer).make({NAME: CASE}, plan(3))
    table = read(tmp_path)
    assert set(table.entries) == {key(space, point) for point in space}
    assert {len(entry.passes) for entry in table.entries.values()} == {3}
    first, second = ([p for ask in asks for p in ask.points] for asks in (measurer.asked[1:5], measurer.asked[5:9]))
    assert sorted(first) == sorted(second) == list(space)
    assert space.choice in first[:8]
    assert first != second != sorted(second), "each pass has a random order of its own"


@pytest.mark.parametrize("heavy", [False, True])
def test_points_are_visited_in_turn_while_they_are_compiled(tmp_path: Path, heavy: bool) -> None:
    space = small_space()
    measurer = FakeMeasurer(space)
    case = replace(CASE, problem=replace(CASE.problem, m=10**9)) if heavy else CASE
    maker(tmp_path, measurer).make({NAME: case}, plan(3, together=3, batch=40))
    _, ask = measurer.asked
    visited = [point for point in ask.points if not heavy or point != space.choice]
    count = len(space) - heavy
    rounds = [visited[first : first + count] for first in range(0, len(visited), count)]
    assert len(rounds) == 3
    assert {tuple(sorted(one)) for one in rounds} == {tuple(p for p in space if not heavy or p != space.choice)}
    assert len(set(map(tuple, rounds))) == 3, "each round has an order of its own"
    assert {len(entry.passes) for entry in read(tmp_path).entries.values()} == {3}


class Killed:
    """Measures each point when its trial is asked for, and is killed in the second round."""

    def __init__(self, space: Space) -> None:
        self.space = space
        self._left = 1 + len(space) + 20

    def measure(self, ask: Ask) -> Iterator[Trial]:
        for trial in FakeMeasurer(self.space).measure(ask):
            if not self._left:
                raise KeyboardInterrupt
            self._left -= 1
            yield trial


def test_a_kill_loses_one_round_and_the_same_call_goes_on(tmp_path: Path) -> None:
    space = small_space()
    rounds = plan(3, together=3, batch=40)
    with pytest.raises(KeyboardInterrupt):
        maker(tmp_path, Killed(space)).make({NAME: CASE}, rounds)
    before = read(tmp_path)
    assert {len(entry.passes) for entry in before.entries.values()} == {1}
    measurer = FakeMeasurer(space)
    maker(tmp_path, measurer).make({NAME: CASE}, rounds)
    assert sum(len(ask.points) for ask in measurer.asked) == 2 * len(space)
    assert {len(entry.passes) for entry in read(tmp_path).entries.values()} == {3}


def test_all_are_timed_in_turn_with_the_reference(tmp_path: Path) -> None:
    space = small_space()
    measurer = FakeMeasurer(space)
    maker(tmp_path, measurer).make({NAME: CASE}, plan(1))
    assert {ask.incumbent for ask in measurer.asked[1:]} == {space.choice}
    assert read(tmp_path).reference == key(space, space.choice)


def test_a_long_call_is_timed_alone_beside_the_reference(tmp_path: Path) -> None:
    space = small_space()
    measurer = FakeMeasurer(space)
    heavy = replace(CASE, problem=replace(CASE.problem, m=10**9))
    maker(tmp_path, measurer).make({NAME: heavy}, plan(1))
    assert all(ask.incumbent is None and ask.points[0] == space.choice for ask in measurer.asked)
    visits = [visit for entry in read(tmp_path).entries.values() for visit in entry.passes]
    assert len(visits) == len(space)
    assert {visit.reference for visit in visits} == {1e-3}


def test_a_kill_loses_one_batch_and_the_same_call_goes_on(tmp_path: Path) -> None:
    space = small_space()
    with pytest.raises(KeyboardInterrupt):
        maker(tmp_path, FakeMeasurer(space, stop_at=4)).make({NAME: CASE}, plan(2))
    before = read(tmp_path)
    assert len(before.entries) == 3 * 8
    measurer = FakeMeasurer(space)
    maker(tmp_path, measurer).make({NAME: CASE}, plan(2))
    assert sum(len(ask.points) for ask in measurer.asked) == 2 * len(space) - 3 * 8
    after = read(tmp_path)
    assert {len(entry.passes) for entry in after.entries.values()} == {2}
    assert all(after.entries[point].passes[0] == entry.passes[0] for point, entry in before.entries.items())


def test_a_complete_table_is_left_alone(tmp_path: Path) -> None:
    space = small_space()
    maker(tmp_path, FakeMeasurer(space)).make({NAME: CASE}, plan(1))
    bytes_before = store.path(tmp_path, NAME).read_bytes()
    measurer = FakeMeasurer(space)
    maker(tmp_path, measurer).make({NAME: CASE}, plan(1))
    assert not measurer.asked
    assert store.path(tmp_path, NAME).read_bytes() == bytes_before


def test_failures_are_kept_with_their_reason_and_not_tried_again(tmp_path: Path) -> None:
    space = small_space()
    broken = Point(0, (0, 0))
    maker(tmp_path, FakeMeasurer(space, broken=frozenset({broken}))).make({NAME: CASE}, plan(2))
    assert read(tmp_path).entries[key(space, broken)].failure == "crash: it fell over"
    measurer = FakeMeasurer(space)
    maker(tmp_path, measurer).make({NAME: CASE}, plan(3))
    assert all(broken not in ask.points for ask in measurer.asked)


def test_the_next_favourite_is_the_reference_where_the_choice_fails(tmp_path: Path) -> None:
    space = small_space()
    measurer = FakeMeasurer(space, broken=frozenset({space.choice}))
    maker(tmp_path, measurer).make({NAME: CASE}, plan(1))
    assert read(tmp_path).reference == key(space, space.ranked()[1])


def test_a_space_of_which_nothing_can_be_measured(tmp_path: Path) -> None:
    space = small_space()
    measurer = FakeMeasurer(space, broken=frozenset(space))
    told: list[str] = []
    maker(tmp_path, measurer, told).make({NAME: CASE}, plan(1))
    assert told == [f"{NAME}: none of the model's first 8 schedules of gemm can be measured."]


def test_a_limit_on_points_keeps_the_models_choice(tmp_path: Path) -> None:
    space = small_space()
    told: list[str] = []
    maker(tmp_path, FakeMeasurer(space), told).make({NAME: CASE}, plan(2, points=5))
    table = read(tmp_path)
    assert len(table.entries) == 5
    assert key(space, space.choice) in table.entries
    assert told[0].startswith(f"{NAME}: 5 of 5 points, round 1")


def test_time_runs_out_after_a_batch(tmp_path: Path) -> None:
    space = small_space()
    told: list[str] = []
    maker(tmp_path, FakeMeasurer(space), told).make({NAME: CASE}, plan(2, seconds=0.0))
    assert len(read(tmp_path).entries) == 8 < len(small_space())
    assert told[0].endswith("out of time")


def test_points_that_the_space_no_longer_has_are_left_out(tmp_path: Path) -> None:
    space = small_space()
    full = full_table(space)
    gone = replace(full.reference, values=(("depth", 999), ("rows", 1)))
    store.write(replace(full, entries={**full.entries, gone: Entry((), 0.1, "crash")}), tmp_path)
    maker(tmp_path, FakeMeasurer(space)).make({NAME: CASE}, plan(5))
    assert gone not in read(tmp_path).entries


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"origin": replace(ORIGIN, machine={**FACTS, "cpu": "another"})}, "is from another, 1 threads, cc 1.0"),
        ({"origin": replace(ORIGIN, engine="9")}, "poly 9: measure into another folder"),
        ({"origin": replace(ORIGIN, arrays=ALIGNED)}, "aligned arrays, poly 0.1.0: measure into another folder"),
        ({"threads": 2}, "made up, 2 threads"),
    ],
)
def test_what_cannot_stand_beside_the_table_is_refused(
    tmp_path: Path, changed: dict[str, object], message: str
) -> None:
    space = small_space()
    store.write(replace(full_table(space), **changed), tmp_path)
    with pytest.raises(RecordError, match=message):
        maker(tmp_path, FakeMeasurer(space)).make({NAME: CASE}, plan(5))


def test_a_table_of_another_space_is_not_mixed_in(tmp_path: Path) -> None:
    space = small_space()
    full = full_table(space)
    store.write(replace(full, reference=replace(full.reference, values=(("depth", 999), ("rows", 1)))), tmp_path)
    with pytest.raises(RecordError, match="is of another space"):
        maker(tmp_path, FakeMeasurer(space)).make({NAME: CASE}, plan(5))


def test_drift_is_divided_out(tmp_path: Path) -> None:
    space = small_space()
    for visit, speed in enumerate((1.0, 1.5, 1.0)):
        maker(tmp_path, FakeMeasurer(space, speed=speed)).make({NAME: CASE}, plan(visit + 1))
    table = read(tmp_path)
    point = key(space, Point(0, (0, 0)))
    middles = [samples[1] for samples in table.visits(point)]
    assert middles == pytest.approx([middles[0]] * 3, rel=1e-3)


def test_files_say_what_they_hold_and_come_back_equal(tmp_path: Path) -> None:
    table = full_table(small_space())
    store.write(table, tmp_path)
    again = read(tmp_path)
    assert again.reference == table.reference
    assert again.origin == table.origin
    for point, entry in table.entries.items():
        found = again.entries[point]
        assert found.seconds == entry.seconds
        for visit, known in zip(found.passes, entry.passes, strict=True):
            assert (visit.reference, *visit.samples) == pytest.approx((known.reference, *known.samples), rel=6e-4)
    first = store.path(tmp_path, NAME).read_bytes()
    store.write(again, tmp_path)
    assert store.path(tmp_path, NAME).read_bytes() == first


def test_there_is_no_table_of_what_was_not_measured(tmp_path: Path) -> None:
    assert store.read(tmp_path, NAME) is None


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"no gzip", "is no table"),
        (gzip.compress(b"{"), "is no table"),
        (gzip.compress(json.dumps({"version": 999}).encode()), "is no table of version 1"),
        (gzip.compress(json.dumps({"version": 1}).encode()), "is damaged"),
    ],
    ids=["no gzip", "no table", "another version", "damaged"],  # a gzip holds the time at which it was made
)
def test_a_damaged_file_is_told(tmp_path: Path, content: bytes, message: str) -> None:
    store.path(tmp_path, NAME).write_bytes(content)
    with pytest.raises(RecordError, match=message):
        store.read(tmp_path, NAME)


def test_few_samples_are_kept() -> None:
    assert thinned((1.0, 2.0, 3.0)) == (1.0, 2.0, 3.0)
    assert thinned(tuple(map(float, range(16)))) == (0.0, 1.0, 14.0, 15.0)


def test_the_problems() -> None:
    problems = whole()
    assert len(problems) == 29
    assert set(chosen(["conv"], problems)) == {f"conv {n:02}" for n in range(1, 20)}
    assert list(chosen(["conv 03", "gemm 256x256x2048"], problems)) == ["gemm 256x256x2048", "conv 03"]
    assert sum(problems[f"conv {n:02}"].problem.flop for n in range(1, 20)) / 1e9 == pytest.approx(2.4, rel=0.2)
    with pytest.raises(SearchError, match="unknown problem 'conv 20'"):
        chosen(["conv 20"], problems)


def test_the_sampled_problems_cover_what_a_model_may_be_wrong_about() -> None:
    problems = sampled()
    assert {case.dtype.name for case in problems.values()} == {"f32", "f64"}
    assert {name.partition(" ")[0] for name in problems} == {"gemm", "conv", "einsum"}
    assert {"conv 07", "conv 03 NCHW", "gemm 512x512x512", "gemm 720x720x720 f64"} <= set(problems)
    shared = problems.keys() & whole().keys()
    assert {name: problems[name].problem for name in shared} == {name: whole()[name].problem for name in shared}


def test_the_model_sees_the_machine_of_the_table() -> None:
    host = origins.described(FACTS)
    assert (host.machine.cpu, host.machine.isa.name, host.caches(1).l1, host.caches(1).l3) == (
        "made up",
        "portable",
        32768,
        0,
    )
    with pytest.raises(RecordError, match="machine cannot be read"):
        origins.described({**FACTS, "isa": "abacus"})
