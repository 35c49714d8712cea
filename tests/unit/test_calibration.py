"""The calibration: rounds that are disturbed, what is kept, described CPUs, and the process in the background."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from dataclasses import asdict, replace
from functools import lru_cache
from typing import Any, cast

import numpy as np
import pytest

from codegen.system.cache import put
from microkernels.catalogue import tiles
from microkernels.dtypes import f32
from microkernels.isa import AVX2, AVX512, ISAS, NEON, PORTABLE, host
from poly.machine import background, calibration
from poly.machine.calibration import cautious, described
from poly.machine.description import Machine, machine
from poly.machine.measured import COPIES, Measured, TileCosts, TileSpeed, parsed
from poly.machine.operands import DEPTH, PITCHES, FarCalls, Operands, _in_turn, regions
from poly.machine.tile_probes import TileProbes
from poly.machine.tiles import MOST_ROUNDS, ROUNDS, _Rounds, measured_tiles
from poly.machine.topology import Cache

SIZES = (32 << 10, 1 << 20, 32 << 20)


def costs_of(isa: str) -> TileCosts:
    found = described(isa, SIZES).tiles
    assert found is not None
    return found


class FakeProbes:
    """A core that is busy in some rounds: it issues at half of its rate, and all takes longer."""

    def __init__(self, busy: set[int]) -> None:
        self.busy, self.asked = busy, 0

    def job(self, number: int) -> float:
        return 2e-6 if number in self.busy else 1e-6 + number * 1e-9

    def idle(self) -> float:
        self.asked += 1
        return 2e-10 if (self.asked - 1) // 2 in self.busy else 1e-10  # before and after the job of each round

    def unit(self) -> float:
        return 1e-9


def run(busy: set[int], name: tuple[str, str] = ("left", "L2")) -> tuple[float, _Rounds]:
    probes: Any = FakeProbes(busy)
    rounds = _Rounds(probes, {name: probes.job})
    return rounds.run()[name], rounds


def test_the_least_time_of_undisturbed_rounds_counts() -> None:
    time, rounds = run(set())
    assert time == pytest.approx(1000)
    assert rounds.disturbed == 0


def test_of_levels_that_others_use_the_lower_quartile_counts() -> None:
    assert run(set(), ("left", "L3"))[0] == pytest.approx(1000 + ROUNDS // 4)


def test_disturbed_rounds_are_done_again() -> None:
    busy = {1, 2, 3, 5, 8}
    time, rounds = run(busy)
    assert time == pytest.approx(1000)
    assert rounds.disturbed == pytest.approx(len(busy) / (ROUNDS + len(busy)))


def test_a_core_that_is_hardly_ever_quiet_is_measured_as_it_is() -> None:
    time, rounds = run(set(range(1, 1000)))
    assert time == pytest.approx(1000)
    assert rounds.disturbed == pytest.approx(1 - 1 / MOST_ROUNDS)


@pytest.mark.parametrize("isa", ["avx512", "avx2"])
def test_a_calibration_is_read_back_as_it_was_stored(isa: str) -> None:
    whole = described(isa, SIZES)
    assert parsed(json.dumps(asdict(whole))) == whole


@pytest.mark.parametrize("damage", ["", "{", "[]", '{"peaks": [], "bandwidths": []}', '{"peaks": 3, "bandwidths": 4}'])
def test_a_damaged_calibration_is_none(damage: str) -> None:
    assert parsed(damage) is None


def test_every_described_cpu_has_all_costs() -> None:
    for cpu in calibration.cpus():
        found = parsed(json.dumps(cpu))
        assert found is not None and found.tiles is not None and found.starts is not None
        speeds = {(speed.rows, speed.vectors) for speed in found.tiles.speeds}
        lanes = ISAS[cpu["isa"]].vector_bytes // 4
        assert speeds == {(k.rows, k.columns // lanes) for k in measured_tiles(ISAS[cpu["isa"]])}
        assert {place.classes for place in found.tiles.places} == set(PITCHES)
        assert all(one.cost >= 0 for one in (*found.tiles.lines, *found.tiles.places))


def test_the_nearest_described_cpu_serves_where_nothing_was_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    one = next(cpu for cpu in calibration.cpus() if cpu["isa"] == "avx2" and cpu["caches"][0]["bytes"] == SIZES[0])
    small = {**one, "cpu": "small", "caches": [{**cache, "bytes": cache["bytes"] // 2} for cache in one["caches"]]}
    small["tiles"] = {**one["tiles"], "crowded": 99.0}
    monkeypatch.setattr(calibration, "cpus", lambda: (one, small))
    found = [calibration.described.__wrapped__("avx2", (size, 32 * size, 1024 * size)).tiles for size in (16384, 32768)]
    assert [tiles.crowded == 99 for tiles in found if tiles] == [True, False]


@pytest.mark.parametrize("isa", ["avx512", "avx2", NEON.name])
def test_a_cpu_that_is_not_described_may_be_as_slow_as_any_other(isa: str) -> None:
    """Lines and pages cost what is the most on any other CPU; copies and tiles are the most similar one's."""
    for hidden in ("", *(cpu["cpu"] for cpu in calibration.cpus())):
        known = [parsed(json.dumps(cpu)) for cpu in calibration.cpus() if cpu["cpu"] != hidden]
        others = [cpu.tiles for cpu in known if cpu and cpu.tiles]
        found, near = cautious(isa, SIZES, hidden), described(isa, SIZES, hidden).tiles
        assert near is not None and near in [replace(one, speeds=near.speeds) for one in others]
        assert (found.speeds, found.places) == (near.speeds, near.places)
        for one, same in zip(found.lines, near.lines, strict=True):
            costs = [other.line(one.operand, one.level, one.rows) for other in others]
            assert one.cost == (same.cost if one.operand in COPIES else max(costs))
        assert found.walked == max(one.walked for one in others)


@pytest.mark.parametrize("isa", [NEON.name, PORTABLE.name])
def test_another_instruction_set_borrows_all_but_the_tiles_speeds(isa: str) -> None:
    assert costs_of(isa).speeds == ()
    assert costs_of(isa).lines


def test_regions_lie_in_their_levels() -> None:
    here = machine()
    found, second = regions(here), here.cache(2)
    assert second is None or found["L2"] < second.bytes
    assert found["memory"] > max(cache.bytes for cache in here.caches)
    assert list(found.values()) == sorted(found.values())


@pytest.mark.parametrize(("base", "panels"), [(9000.0, 8000.0), (8000.0, 9000.0)])
def test_lines_are_compared_with_the_faster_of_two_jobs_near_by(base: float, panels: float) -> None:
    """Each of them is slow on some pages."""
    caches = (Cache(1, 32 << 10, 8, 64, 1), Cache(2, 1 << 20, 8, 64, 1), Cache(3, 32 << 20, 16, 64, 1))
    usual = tiles(AVX512, f32)[0]
    operands = Operands(cast(TileProbes, None), Machine("some CPU", AVX512, 1, caches), usual, usual)
    near = {("base", DEPTH): base, ("right panels", "near", usual.rows): panels}
    times = {**dict.fromkeys(operands.jobs(), 8000.0), **near, ("left", "L3", usual.rows): 8960.0}
    lines, *_ = operands.costs(times, TileSpeed(usual.rows, usual.columns // 16, 24.0, 100.0))
    found = {(one.operand, one.level): one.cost for one in lines}
    assert found["left", "L3"] == pytest.approx(960 / (DEPTH * usual.rows * 4 / 64))
    assert found["left", "L2"] == found["output", "memory"] == 0


def test_the_probes_time_what_they_are_told() -> None:
    isa = host()
    kernel = measured_tiles(isa)[0]
    probes = TileProbes(isa, [kernel], [kernel])
    assert probes.near(kernel, 32, 10) > 0 and probes.unit() > 0 and probes.idle() > 0
    assert probes.branches(np.ones(64, np.uint8)) > 0


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    """The processes that were to be started. None is."""
    found: list[Any] = []
    monkeypatch.setattr(subprocess, "Popen", lambda command, **more: found.append((command, more)))
    monkeypatch.delenv(background.VARIABLE)
    background.calibrate_soon.cache_clear()
    yield found
    background.calibrate_soon.cache_clear()


def test_a_calibration_starts_once_a_process_and_apart_from_it(started: list[Any]) -> None:
    for _ in range(3):
        background.calibrate_soon(NEON)
    ((command, more),) = started
    assert "calibrate('neon')" in command[-1] and more["start_new_session"]
    assert more["env"][background.VARIABLE] == background.NEVER
    assert "-P" in command, "a file in the working folder must not hide a package of ours"


def test_none_starts_where_the_machine_is_calibrated(started: list[Any]) -> None:
    put(calibration._key(replace(machine(), isa=host())), json.dumps(asdict(described("avx2", SIZES))))
    background.calibrate_soon(host())
    assert started == []


def test_none_starts_where_the_user_wants_none(started: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(background.VARIABLE, background.NEVER)
    background.calibrate_soon(NEON)
    assert started == []


def test_one_process_calibrates_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []

    def fake(here: Any) -> Measured:
        done.append(here.isa.name)
        background.calibrate("portable")  # another process, meanwhile
        return described("avx2", SIZES)

    monkeypatch.setattr(background, "measured", fake)
    background.calibrate("portable")
    assert done == ["portable"]


@pytest.mark.parametrize("isa", [AVX512, AVX2], ids=str)
def test_described_tiles_know_what_large_ones_gain(isa: Any) -> None:
    """Steps of large tiles take their multiply-adds and little more, those of one row far more."""
    speeds = {(one.rows, one.vectors): one.step / (one.rows * one.vectors) for one in costs_of(isa.name).speeds}
    assert speeds[6, 2] < 1.1 and speeds[1, 1] > 2


@pytest.fixture
def probed(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The names of the instruction sets that were measured: what is found is a described CPU."""
    found: list[str] = []

    def fake(here: Machine) -> Measured:
        found.append(here.isa.name)
        return described("avx2", SIZES)

    monkeypatch.setattr(calibration, "measure", fake)
    for name in ("_measured_once", "_rates_once"):
        monkeypatch.setattr(calibration, name, lru_cache(fake))
    return found


def test_a_benchmark_keeps_no_calibration(probed: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    uncalibrated = replace(machine(), isa=PORTABLE, cpu="one that is not calibrated")
    monkeypatch.setenv(calibration.VARIABLE, calibration.UNKEPT)
    assert calibration.measured(uncalibrated) == calibration.measured(uncalibrated)
    assert calibration.kept(uncalibrated) is None and probed == ["portable"]
    monkeypatch.setenv(calibration.VARIABLE, calibration.NEVER)
    assert calibration.at_hand(uncalibrated) == described("avx2", SIZES)
    assert calibration.kept(uncalibrated) is None
    calibration.measured(uncalibrated)
    assert calibration.kept(uncalibrated) == calibration.at_hand(uncalibrated) == described("avx2", SIZES)


def test_none_starts_beside_a_benchmark(started: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(background.VARIABLE, background.UNKEPT)
    background.calibrate_soon(NEON)
    assert started == []


def test_what_is_read_from_memory_was_read_by_no_job_since_all_of_it_was() -> None:
    """Each of three jobs has its own number of positions on the same memory; what was read stays in mind."""
    read: list[float] = []

    def calls(positions: int, count: int) -> FarCalls:
        def timed(at: np.ndarray[Any, Any]) -> float:
            read.extend(at[:, 0] / positions)
            return 1.0

        places = np.zeros((positions, 3), np.int64)
        places[:, 0] = np.arange(positions)
        return FarCalls(timed, places, count)

    jobs = _in_turn({"many": calls(1000, 40), "few": calls(100, 3), "more": calls(5000, 150)})
    for number in range(25):
        for job in jobs.values():
            job(number)
    apart = np.abs(np.subtract.outer(read, read))
    same = np.argwhere(np.minimum(apart, 1 - apart) < 1e-4)
    share = np.array([1 / 1000] * 40 + [1 / 100] * 3 + [1 / 5000] * 150)
    passed = np.concatenate([[0.0], np.cumsum(np.tile(share, 25))])
    between = [passed[b] - passed[a] for a, b in same if a < b]
    assert between and min(between) > 0.97
