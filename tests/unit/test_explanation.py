"""Explanations: the numbers are those of the sets and rates, the sentences say where two schedules differ."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner
from shared_nests import matmul
from working_set_nests import solve

import poly
from poly.commands import poly as command
from poly.errors import ScheduleError, SpecError
from poly.explanation import Measurement, compare, explain, explained
from poly.explanation.comparison import against
from poly.explanation.explained import measurement
from poly.explanation.facts import comparison_facts, facts
from poly.explanation.text import bytes_text, size_text
from poly.explanation.values import ARITHMETIC, Level
from poly.machine import Bandwidth, Measured, Peak
from poly.machine.target import Backend
from poly.model import Caches
from poly.model.core import Target
from poly.model.cost import Cost, CostPart
from poly.model.rates import from_machine
from poly.records.key import key_for
from poly.records.record import Record, StoredTrial
from poly.records.store import Store
from poly.schedules.schedule import schedule

BANDWIDTHS = {"L1": 200.0, "L2": 100.0, "L3": 50.0, "memory": 10.0}
RATES = Measured(
    (Peak("f32", 1, 100.0), Peak("f64", 1, 50.0)),
    tuple(Bandwidth(level, 1, rate, rate) for level, rate in BANDWIDTHS.items()),
)
CACHES = Caches(1 << 10, 1 << 14, 1 << 20)
SIZES = {"M": 48, "N": 64, "K": 32}


@pytest.fixture(autouse=True)
def known_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Nothing is measured: every test sees this machine, and a store of its own."""
    monkeypatch.setattr(explained, "measured", lambda machine: RATES)
    monkeypatch.setattr(explained, "rates", lambda isa, threads: from_machine(RATES, isa, threads))
    monkeypatch.setattr(explained, "here", lambda isa, threads, known: Target(isa, CACHES, known, threads))
    monkeypatch.setenv("POLY_CACHE_DIR", str(tmp_path))


def told(made=None, **more):
    return explain(made or schedule(matmul), sizes=SIZES, threads=1, **more)


def test_the_roofline_is_work_over_rates():
    found = told()
    assert found.flop == 2 * 48 * 64 * 32 and found.arithmetic == found.flop / 100e9
    assert [level.name for level in found.levels] == list(BANDWIDTHS)
    for level in found.levels:
        assert level.rate == BANDWIDTHS[level.name] * 1e9
        assert level.seconds == pytest.approx(level.bytes / level.rate)
    l1 = found.levels[0]
    assert l1.bytes == 4 * 48 * 64 * (1 + 32 + 32 + 1)
    assert l1.intensity(found.flop) == pytest.approx(found.flop / l1.bytes)
    assert l1.roof(found.flop, found.peak) == pytest.approx(200e9 * found.flop / l1.bytes)
    assert found.bound == max(found.times, key=found.times.__getitem__)


def test_arrays_that_stay_in_a_cache_come_from_no_further():
    assert [level.bytes for level in told().levels][-1] == 0
    assert told().levels[-1].fits == ("everything",)


def test_three_quarters_of_a_cache_are_free():
    assert told().caches == Caches(768, 12288, 786432)


def test_the_text_has_every_part():
    found = told(schedule(matmul).tile(i=8, j=16))
    text = str(found)
    assert text.startswith("matmul, M = 48, N = 64, K = 32, 1 thread, ")
    for part in ("predicted", "roofline", "multiply-adds", "memory", "i_tile", "working sets", "pessimistic"):
        assert part in text
    assert "\nmeasured" not in text


def test_the_default_schedule_and_one_by_hand_are_priced_by_one_model():
    default, mine = explain(poly.compile(matmul, sizes=SIZES, threads=1)), told()
    names = [[part.name for part in one.prediction.parts] for one in (default, mine)]
    assert names[0] == names[1]
    assert 0 < default.prediction.seconds < mine.prediction.seconds


def test_sizes_that_are_open_are_asked_for():
    with pytest.raises(ScheduleError, match=r"depend on its sizes: give K=…\."):
        explain(schedule(matmul), M=3, N=4, threads=1)


def test_what_is_explained_must_be_a_schedule():
    with pytest.raises(SpecError, match="no kernel and no schedule"):
        explain(matmul)


def kept_record(steps: str, seconds: float) -> Record:
    key = key_for(matmul.with_sizes(SIZES), poly.compile(matmul).isa, 1)
    return Record(key, steps, '{"traits": {}, "values": {}}', seconds, 0.0, 3, "droplet", True, 1.0)


def test_what_was_measured_stands_beside():
    fixed = schedule(matmul.with_sizes(SIZES))
    Store.open().save(kept_record(fixed.to_json(), 0.25))
    found = explain(fixed, threads=1)
    assert found.measurement is not None and found.measurement.seconds == 0.25
    assert "\nmeasured" in str(found) and "3 trials" in str(found)
    assert explain(fixed.order("k i j"), threads=1).measurement is None


def test_a_trial_was_measured_too():
    fixed = schedule(matmul.with_sizes(SIZES))
    record = kept_record(fixed.to_json(), 0.25)
    other = fixed.order("k i j")
    store = Store.open()
    store.save(record)
    store.add_trials(record.key, [StoredTrial('{"traits": {}, "values": {}}', other.to_json(), (0.5, 0.75, 1.0))])
    found = measurement(fixed.nest, other, Backend(poly.compile(matmul).isa), 1, {})
    assert found is not None and found.seconds == 0.75 and found.source.startswith("a trial of ")


def test_why_one_schedule_is_faster():
    compared = compare(schedule(matmul).order("k i j"), schedule(matmul), sizes=SIZES, threads=1)
    assert compared.winner in ("first", "second")
    assert f"The {compared.winner} is expected to be faster" in compared.sentences[0]
    first, second = (one.levels[1] for one in (compared.first, compared.second))
    assert first.bytes != second.bytes
    more, fewer = sorted((first.bytes, second.bytes), reverse=True)
    sentence = next(s for s in compared.sentences if s.startswith("L2 delivers"))
    assert f"{bytes_text(fewer)} to the" in sentence and f"{bytes_text(more)} to the other" in sentence
    assert "L1 keeps an iteration of" in sentence
    assert "expected" in str(compared)


def test_the_same_schedule_wins_nothing():
    compared = compare(schedule(matmul), schedule(matmul), sizes=SIZES, threads=1)
    assert compared.winner == "neither"
    assert compared.sentences[0].startswith("Neither is expected to be faster")
    assert len(compared.sentences) == 2


def test_parts_that_differ_are_named():
    one = told()

    def predicted(seconds: float, copies: float):
        cost = Cost(seconds, (CostPart("L2", 0.1), CostPart("copies", copies)))
        return replace(one, prediction=cost, measurement=Measurement(seconds, "here"))

    compared = against(predicted(1.0, 0.0), predicted(2.0, 0.5))
    assert compared.winner == "first"
    assert "The model expects copies to take 0 ns in the first, 500 ms in the second." in compared.sentences
    assert compared.sentences[-1] == "Measured: 1 s and 2 s."


def test_different_nests_are_not_compared():
    with pytest.raises(SpecError, match="matmul and solve"):
        compare(schedule(matmul.with_sizes(SIZES)), schedule(solve.with_sizes({"N": 8})), threads=1)


def test_facts_are_json():
    found = json.loads(json.dumps(facts(told())))
    assert found["sizes"] == SIZES and found["flop"] == told().flop
    assert found["bound"] in found["times"] and ARITHMETIC in found["times"]
    assert {"kind", "array", "loop", "nearest", "furthest"} <= found["working_sets"][0].keys()
    assert found["levels"][-1]["intensity"] is None
    compared = compare(schedule(matmul), schedule(matmul), sizes=SIZES, threads=1)
    both = json.loads(json.dumps(comparison_facts(compared)))
    assert both["winner"] == "neither" and both["first"] == both["second"] == found


def test_numbers_as_text():
    assert [bytes_text(n) for n in (12, 1200, 3.5e6, 2e9)] == ["12 B", "1.2 kB", "3.5 MB", "2 GB"]
    assert [size_text(n) for n in (12, 1536, 5 << 19, 1 << 31)] == ["12 B", "1.5 KiB", "2.5 MiB", "2 GiB"]


def test_a_level_that_delivers_nothing_allows_the_peak():
    assert Level("L3", 0.0, 0.0, 1e9).roof(100, 5e9) == 5e9


FILE = """import poly
from poly import f32

N = poly.sizes("N")

@poly.nest
def transpose(A: f32[N, N], B: f32[N, N]):
    for i in range(N):
        for j in range(N):
            B[i, j] = A[j, i]
"""
STEPS = '[{"step": "tile", "args": [], "kwargs": {"i": 8, "j": 8}}]'


@pytest.fixture
def nest(tmp_path: Path) -> str:
    path = tmp_path / "loops.py"
    path.write_text(FILE)
    return f"{path}:transpose"


def shown(*arguments: str) -> str:
    done = CliRunner().invoke(command, ["show", *arguments, "--threads", "1"])
    assert done.exit_code == 0, done.output
    return done.stdout


def test_the_command_prints_the_model(nest):
    text = shown(nest, "--size", "N=64", "--model", "--steps", STEPS)
    assert "transpose, N = 64" in text and "i_tile" in text
    assert json.loads(shown(nest, "--size", "N=64", "--model", "--json"))["nest"] == "transpose"


def test_the_command_compares_and_draws(nest, tmp_path):
    picture = tmp_path / "roof.svg"
    text = shown(nest, "--size", "N=64", "--model", "--against", STEPS, "--plot", str(picture))
    assert "expected" in text and "an iteration of" in text
    assert "Time of each resource alone, transpose" in picture.read_text(), "a copy has bytes alone, and no roofline"
    compared = json.loads(shown(nest, "--size", "N=64", "--model", "--against", STEPS, "--json"))
    assert compared["second"]["steps"] == json.loads(STEPS)


def test_steps_are_shown_without_the_model_too(nest):
    assert "i_tile" in shown(nest, "--schedule", "--steps", STEPS)


def test_options_of_the_model_want_the_model(nest):
    done = CliRunner().invoke(command, ["show", nest, "--json"])
    assert done.exit_code == 2 and "--against and --json go with --model" in done.stderr


def test_the_model_wants_sizes(nest):
    done = CliRunner().invoke(command, ["show", nest, "--model", "--threads", "1"])
    assert done.exit_code == 2 and "depend on its sizes: give N=…" in done.stderr
