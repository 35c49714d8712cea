"""Hardware counters: outputs of perf as machines give them, refusals with their remedy; perf is a stand-in."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from poly.measure import counters
from poly.measure.counters import difference, parse, reason, refused

BARE = """# started on Tue Mar  3 10:12:01 2026

1200345,,instructions:u,2000100,100.00,1.91,insn per cycle
628345,,cycles:u,2000100,100.00,,
401200,,L1-dcache-loads:u,1500100,75.00,,
20010,,L1-dcache-load-misses:u,1500100,75.00,4.99,of all L1-dcache accesses
<not supported>,,LLC-loads,0,100.00,,
<not counted>,,cache-misses,0,0.00,,
"""
HYBRID = """500,,cpu_core/instructions/,100,80.00,,
<not counted>,,cpu_atom/cycles/,0,0.00,,
300,,cpu_core/cycles/u,100,80.00,,
250,,cpu_atom/instructions/,100,20.00,,
"""
VIRTUAL = "<not supported>,,instructions,0,100.00,,\n"
OTHER = "Some events weren't counted. Try disabling the NMI watchdog:\n\n,,\nx\n"
FORBIDDEN = """Error:
Access to performance monitoring and observability operations is limited.
Consider adjusting /proc/sys/kernel/perf_event_paranoid setting to open
"""


def test_counts_are_read_and_their_absence_too() -> None:
    assert parse(BARE) == {
        "instructions": 1200345.0,
        "cycles": 628345.0,
        "L1-dcache-loads": 401200.0,
        "L1-dcache-load-misses": 20010.0,
        "LLC-loads": None,
        "cache-misses": None,
    }
    assert parse(OTHER) == {}


def test_the_kinds_of_cores_are_added_up() -> None:
    assert parse(HYBRID) == {"instructions": 750.0, "cycles": 300.0}


def test_what_starts_the_process_is_no_part_of_a_call() -> None:
    found = difference({"cycles": 100.0, "LLC-loads": None}, {"cycles": 1100.0, "LLC-loads": None, "other": 1.0}, 10)
    assert found.per_call("cycles") == 100.0 and found.per_call("LLC-loads") is None
    assert "LLC-loads" in found.missing and "cycles" not in found.missing
    assert difference({"cycles": 5.0}, {"cycles": 4.0}, 3).per_call("cycles") == 0.0, "noise is no negative count"


@pytest.mark.parametrize(
    ("status", "said", "words"),
    [
        (255, FORBIDDEN, "they are not permitted to this user (it is 4). `sudo sysctl kernel.perf_event_paranoid=2`"),
        (0, VIRTUAL, "this CPU shows none to the system, as in most virtual machines"),
        (2, "perf: cannot\nload: it is broken\n", "perf failed: load: it is broken."),
        (129, "", "perf failed: 129."),
    ],
)
def test_a_refusal_says_why_and_what_to_do(status: int, said: str, words: str) -> None:
    found = reason(status, said, "4")
    assert found.startswith("No hardware counters: ") and words in found and "\n" not in found


def test_permitted_counters_have_no_refusal() -> None:
    assert reason(0, BARE, "2") == ""


def test_a_missing_perf_is_named_with_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert "perf is not installed" in refused() and "linux-perf" in refused()


PERF = """#!/bin/sh
# Stands in for perf: runs what follows `--`, and gives 1000 loads a call and 5000 for the start.
echo "7,,instructions,1,100.00,," >&2
while [ $# -gt 0 ]; do
    case "$1" in -o) file=$2; shift;; --) shift; break;; esac
    shift
done
[ $# -eq 0 ] && exit 0
"$@" || exit 3
for calls; do :; done
echo "$((5000 + 1000 * calls)),,L1-dcache-loads:u,1,100.00,," > "$file"
"""


@pytest.fixture
def perf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A perf that counts."""
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "perf").write_text(PERF)
    (folder / "perf").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")


def test_a_kernel_is_called_by_a_process_under_perf(perf: None) -> None:
    """The process really makes the calls: without them the stand-in ends with a failure."""
    from shared_nests import matmul

    import poly
    from poly.machine.target import parse as target
    from poly.measure.alone import measured_alone

    made = poly.schedule(matmul.with_sizes({"M": 4, "N": 5, "K": 6}))
    found = measured_alone(made, target("c"), 1, {}, 1e-6)
    assert len(found.samples) >= 5 and found.failure == ""
    assert found.counts.per_call("L1-dcache-loads") == 1000.0 and found.counts.refusal == ""
    assert found.counts.missing == tuple(event for event in counters.EVENTS if event != "L1-dcache-loads")


def test_a_perf_that_fails_later_is_a_refusal_too(perf: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(counters, "CHILD", "raise SystemExit(1)")
    found = counters.counted(tmp_path / "none.so", None, 1.0, tmp_path)  # type: ignore[arg-type]
    assert found.refusal.startswith("No hardware counters: perf failed") and found.events == ()
