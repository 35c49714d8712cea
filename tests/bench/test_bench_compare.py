"""What changed between two runs: the test, its correction, the noise that unchanged peers show, and the command."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

import pytest
from click.testing import CliRunner

from benchmarks.cli import bench
from benchmarks.compare import compare, holm, text

ROUNDS = 12
FLOP = 1e9


def row(size: str, speed: float, peer: float = 1.0, seed: int = 0, rounds: int = ROUNDS, **more: Any) -> dict[str, Any]:
    """A row whose speeds scatter by a percent around `speed` GFLOP/s, its peer's around `peer`."""
    random = Random(f"{size} {seed}")

    def samples(gflops: float) -> list[float]:
        return [FLOP / (gflops * 1e9 * random.gauss(1, 0.01)) for _ in range(rounds)]

    return {
        "workload": "gemm", "size": size, "dtype": "f32", "target": "c", "threads": 1, "gflops": speed,
        "seconds": FLOP / speed / 1e9, "samples": samples(speed), "peaks": [1.0] * rounds,
        "peers": {"numpy": {"gflops": peer, "version": "2", "config": "Zen", "samples": samples(peer)}},
        **more,
    }  # fmt: skip


def rows(speeds: dict[str, float], seed: int = 0, **more: Any) -> list[dict[str, Any]]:
    return [row(size, speed, seed=seed, **more) for size, speed in speeds.items()]


SPEEDS = {str(size): 0.8 for size in range(30)}


def verdicts(old: list[dict[str, Any]], new: list[dict[str, Any]]) -> dict[str, str]:
    return {change.key.size: change.verdict for change in compare(old, new).changes}


def test_the_same_speeds_are_no_change() -> None:
    assert set(verdicts(rows(SPEEDS), rows(SPEEDS, seed=1)).values()) == {"same"}


def test_a_faster_and_a_slower_row_are_found_among_many() -> None:
    found = verdicts(rows(SPEEDS), rows({**SPEEDS, "3": 0.88, "4": 0.72}, seed=1))
    assert {size: verdict for size, verdict in found.items() if verdict != "same"} == {"3": "faster", "4": "slower"}


def test_what_unchanged_peers_seem_to_change_by_is_noise() -> None:
    """Half of the peers seem 15 % faster in the new run, and so seems one of our rows, which is 10 % faster."""
    new = [row(size, 0.88 if size == "3" else 0.8, peer=1.15, seed=1) for size in SPEEDS]
    assert verdicts(rows(SPEEDS), new)["3"] == "same"
    updated = [{**r, "peers": {"numpy": {**r["peers"]["numpy"], "version": "3"}}} for r in new]
    assert verdicts(rows(SPEEDS), updated)["3"] == "faster"


def test_two_peers_of_a_row_tell_its_own_noise() -> None:
    def with_two_peers(made: dict[str, Any], peer: float, seed: int) -> dict[str, Any]:
        other = row(made["size"], 0.8, peer, seed)["peers"]["numpy"]
        return {**made, "peers": {**made["peers"], "mkl": other}}

    old = [with_two_peers(r, 1.0, 2) for r in rows(SPEEDS)]
    new = [
        with_two_peers(row(size, 0.88 if size in "34" else 0.8, seed=1), 1.2 if size == "4" else 1.0, 3)
        for size in SPEEDS
    ]
    found = verdicts(old, new)
    assert (found["3"], found["4"]) == ("faster", "same")


def test_a_disturbance_that_lasts_for_some_rounds_is_no_change() -> None:
    """Two thirds of the old samples are 20 % slower: the medians differ, the test passes, and the quartiles overlap."""
    (old,) = rows({"512": 0.8}, rounds=30)
    slowed = {**old, "samples": [s * (1.2 if n < 20 else 1) for n, s in enumerate(old["samples"])]}
    (change,) = compare([slowed], rows({"512": 0.8}, seed=1, rounds=30)).changes
    assert change.p < 0.05 and change.ratio > 1.1
    assert change.verdict == "same"


def test_a_faster_clock_is_no_change() -> None:
    old = rows({"512": 0.8})
    (clocked,) = rows({"512": 0.8}, seed=1)
    clocked["samples"] = [seconds / 1.2 for seconds in clocked["samples"]]
    clocked["peers"]["numpy"]["samples"] = [seconds / 1.2 for seconds in clocked["peers"]["numpy"]["samples"]]
    clocked["peaks"] = [peak * 1.2 for peak in clocked["peaks"]]
    assert verdicts(old, [clocked]) == {"512": "same"}


def test_few_samples_tell_nothing_and_that_is_said() -> None:
    found = compare(rows({"512": 0.8}, rounds=3), rows({"512": 0.4}, rounds=3))
    assert found.changes[0].verdict == "too few samples"
    assert any("too few samples to tell: gemm 512 f32, 1 thread" in line for line in text(found, "old.json"))


def test_rows_of_one_run_alone_are_named() -> None:
    found = compare(rows({"1": 0.8, "2": 0.8}), rows({"2": 0.8, "3": 0.8}))
    assert ([key.size for key in found.gone], [key.size for key in found.new]) == (["1"], ["3"])


def test_holms_correction() -> None:
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.9, 0.6]) == [1.0, 1.0]
    assert holm([]) == []


def stored(path: Path, made: list[dict[str, Any]], cpu: str = "some") -> str:
    path.write_text(json.dumps({"machine": {"cpu": cpu, "isa": "avx2", "cores": 2}, "rows": made}))
    return str(path)


def test_the_exit_status_tells_of_a_slower_row(tmp_path: Path) -> None:
    old, new = stored(tmp_path / "old.json", rows(SPEEDS)), stored(tmp_path / "new.json", rows({**SPEEDS, "4": 0.6}))
    done = CliRunner().invoke(bench, ["compare", old, new])
    assert done.exit_code == 3
    assert "slower: gemm 4 f32, 1 thread" in done.output
    assert CliRunner().invoke(bench, ["compare", new, old]).exit_code == 0
    assert CliRunner().invoke(bench, ["compare", old, old]).exit_code == 0


def test_runs_of_other_machines_and_other_files_are_refused(tmp_path: Path) -> None:
    one, other = stored(tmp_path / "1.json", []), stored(tmp_path / "2.json", [], cpu="another")
    done = CliRunner().invoke(bench, ["compare", one, other])
    assert done.exit_code == 2 and "different machines: cpu some and another" in done.output
    (tmp_path / "3.json").write_text("[1]")
    for arguments in (["compare", one, str(tmp_path / "3.json")], ["gemm", "--compare", str(tmp_path / "3.json")]):
        done = CliRunner().invoke(bench, arguments)
        assert done.exit_code == 2 and "is not what `poly bench --json` writes" in done.output
    done = CliRunner().invoke(bench, ["gemm", "--compare", one])
    assert done.exit_code == 2 and "different machines" in done.output
