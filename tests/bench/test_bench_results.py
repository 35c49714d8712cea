"""The runs of several CPUs in one folder, and the tables of them side by side."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
import pytest

from benchmarks.published import file_name, record, stored, without_samples
from benchmarks.side_by_side import case, details, summary


def machine(cpu: str, isa: str, cores: int) -> dict[str, Any]:
    return {"cpu": cpu, "isa": isa, "cores": cores, "caches": [{"level": 1, "bytes": 32768}]}


ZEN, ARM = machine("Zen", "avx512", 2), machine("ARM", "neon", 8)


def row(size: str, ratio: float | None = 1.0, **more: Any) -> dict[str, Any]:
    peer = {"gflops": 80.0, "version": "2", "config": "Haswell kernels", "samples": [1.0]}
    return {
        "workload": "gemm", "size": size, "dtype": "f32", "target": "c", "threads": 1, "gflops": 90.0,
        "peak_fraction": 0.9, "peers": {"numpy": peer} if ratio else {}, "ratio_to_best_peer": ratio,
        "best_peer": "numpy" if ratio else None, "reliable": True, "bound": 100.0,
        "ratio_spread": 0.02, "samples": [1.0], "peaks": [100.0], "issues": [],
        **more,
    }  # fmt: skip


def test_a_run_is_merged_into_the_machines_file_without_samples(tmp_path: Path) -> None:
    path = record({"machine": ZEN, "rows": [row("1024"), row("512")]}, tmp_path)
    assert record({"machine": ZEN, "rows": [row("512", 0.8), row("64 aligned"), row("64")]}, tmp_path) == path
    (made,) = stored(tmp_path)
    assert [(r["size"], r["ratio_to_best_peer"]) for r in made["rows"]] == [
        ("64", 1.0), ("64 aligned", 1.0), ("512", 0.8), ("1024", 1.0)
    ]  # fmt: skip
    assert "samples" not in path.read_text() and 'peaks": [\n    100' not in path.read_text()
    assert made["rows"][0] == without_samples(row("64"))


def test_machines_and_targets_have_files_of_their_own(tmp_path: Path) -> None:
    names = {
        file_name({"machine": machine, "rows": [row("64", target=target)]})
        for machine in (ZEN, ARM)
        for target in ("c", "c:avx2")
    }
    assert names == {"zen-avx512-2-cores", "zen-avx512-2-cores-c-avx2", "arm-neon-8-cores", "arm-neon-8-cores-c-avx2"}


def test_a_damaged_file_is_refused(tmp_path: Path) -> None:
    path = record({"machine": ZEN, "rows": [row("64")]}, tmp_path)
    path.write_text(json.dumps({"machine": ZEN, "rows": [row("64"), row("64")]}))
    with pytest.raises(click.UsageError, match="a row is there twice"):
        record({"machine": ZEN, "rows": []}, tmp_path)


def test_each_cpu_has_a_column_and_the_worst_case_is_named() -> None:
    zen = {"machine": ZEN, "rows": [row("512", 1.21), row("1024", 1.0), row("2048", 0.81, best_peer="mkl")]}
    arm = {"machine": ARM, "rows": [row("512", 0.97, reliable=False), row("trsv", 5.0, workload="stencil")]}
    arm["rows"].append(row("512", None, dtype="f64", peak_fraction=1.8))
    head, rule, peak, gemm, stencil, double, weak = summary([zen, arm])
    assert head == "|  | Zen, avx512, 2 cores | ARM, neon, 8 cores |"
    assert rule == "| --- | --- | --- |"
    assert peak == "| FMA peak of a core, GFLOP/s | 100 f32 | 100 f32, 50 f64 |"
    zen_cell = "90 %; 0.99, least 0.81 (2048, mkl)"
    assert gemm == f"| gemm f32, one thread, 3 cases | {zen_cell} | 90 %; 0.97, least 0.97 (512, numpy) 1 ! |"
    assert stencil == "| stencil f32, one thread, 1 case | - | 5.00, least 5.00 (trsv, numpy) |"
    assert double == "| gemm f64, one thread, 1 case | - | 180 % |"
    assert weak == "| below 0.95 of the best peer | 0.81 gemm f32 2048, mkl | - |"


def test_all_cases_stand_side_by_side_with_the_kernels_of_the_peers() -> None:
    zen, arm = {"machine": ZEN, "rows": [row("512", 1.21)]}, {"machine": ARM, "rows": [row("64", None)]}
    lines = list(details([zen, arm]))
    assert "| 512 | 90 %, 1.21 ± 2 % of numpy | - |" in lines
    assert "| 64 | - | 90 % |" in lines
    assert "* numpy 2: Haswell kernels" in lines and "* caches: L1 32 KiB" in lines


def test_a_cell_of_what_memory_bounds_or_what_is_unreliable() -> None:
    assert case(row("softmax", workload="bandwidth", reliable=False)) == "90.0 GFLOP/s, 1.00 ± 2 % of numpy !"
    assert case(row("1x4096x4096", bound=20.0)).startswith("90.0 GFLOP/s")
    assert case(None) == case(row("64", gflops=None)) == "-"
