"""`poly bench` from outside, on one tiny case, and its picture."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from matplotlib.figure import Figure

from benchmarks import cli
from benchmarks import plot as plots
from benchmarks.cli import bench
from benchmarks.peers.package import Package
from benchmarks.plot import balanced, panels, plot
from benchmarks.runner import Rounds

TINY = ["gemm", "--dtype", "f32", "--quick", "--only", "7x333x1001", "--threads", "1"]
ROW = {
    "workload": "gemm", "size": "64", "dtype": "f32", "target": "c", "threads": 1, "gflops": 90.0, "peak_fraction": 0.9,
    "seconds": 1e-5, "peers": {"numpy": {"gflops": 80.0, "version": "2", "config": ""}}, "ratio_to_best_peer": 1.125,
    "trials": 0, "tune_seconds": 0.0, "max_error": 1e-7, "reliable": True,
}  # fmt: skip


def test_one_case_against_one_peer_as_json(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli, "missing", lambda peers: {Package("pip", "some-blas"): ["some"]})
    monkeypatch.setattr(cli, "QUICK", Rounds(0, (6, 6), attempts=1))
    done = CliRunner().invoke(bench, [*TINY, "--against", "numpy", "--json", "-"])
    assert done.exit_code == 0, done.output
    made = json.loads(done.stdout)
    (row,) = made["rows"]
    assert (row["workload"], row["size"], set(row["peers"])) == ("gemm", "7x333x1001", {"numpy"})
    assert made["machine"]["cores"] >= 1
    assert not {"trials", "tune_seconds"} & set(row), "nothing was tuned"
    assert row["load"]["cpus"] >= 1 and row["date"].startswith("20") and row["poly"] and row["compiler"]
    assert row["interval"] is None or row["interval"][0] <= row["seconds"] <= row["interval"][1]
    assert "geometric means" in done.stderr
    head, *_, table = done.stderr.partition("workload ")
    assert "Not installed" in head and "pip install some-blas" in head and "gemm" in table


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--against", "atlas"], "unknown peer 'atlas': --against takes numpy, mkl,"),
        (["gemm", "--only", "51"], "--only '51' is the size of no case here. Some are: 512,"),
        (["stencil", "--only", "trsv 200"], "--only 'trsv 200' is the size of no case here. Some are: trsv 2000"),
        (["--fail-if", "5%"], "--fail-if compares with an earlier run: add --compare OLD.json or --history"),
        (["--fail-if", "much", "--history"], "'much' is no percentage from 0 to 100, such as 5%"),
        (["--fail-if", "100%", "--history"], "'100%' is no percentage from 0 to 100"),
        (["--threads", "4096"], "--threads 4096: this process may use"),
        (["--json", "no/such/folder/rows.json"], "--json no/such/folder/rows.json: there is no such folder"),
        (["--plot", "bars.gif"], "--plot bars.gif: the name must end in .png, .svg, .pdf"),
        (["sorting"], "'sorting' is not one of 'gemm', 'mixed', 'einsum', 'conv2d'"),
    ],
)
def test_wrong_use_is_told_in_one_message(arguments: list[str], message: str) -> None:
    done = CliRunner().invoke(bench, arguments)
    assert done.exit_code == 2
    assert message in done.output


def test_the_picture_is_written(tmp_path: Path) -> None:
    slow = {"gflops": 9.0, "version": "12", "config": "", "spread": 0.1}
    stencil = {**ROW, "workload": "stencil", "size": "trsv", "peers": {"gcc": slow, "clblast": slow}}
    plot([ROW, stencil, {**ROW, "gflops": None}], tmp_path / "bars.svg", "some machine")
    text = (tmp_path / "bars.svg").read_text()
    for expected in ("gemm, f32, 1 thread", "stencil, f32, 1 thread", "some machine", "percent of the FMA peak", "gcc"):
        assert expected in text
    assert ">FMA peak<" in text and ">clblast<" in text, "the line at 100 has a name, any peer has a colour"


def test_the_picture_has_error_bars_and_a_legend_inside(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[Figure] = []
    monkeypatch.setattr(plots, "save", lambda figure, path: drawn.append(figure))
    plot([{**ROW, "spread": 0.05, "ratio_spread": 0.02, "reliable": False}], Path("bars.png"), "some machine")
    (figure,) = drawn
    (axes,) = figure.axes
    assert len(axes.containers) == 3, "two bars, and the quartiles of ours"
    assert axes.get_xlim()[1] >= 90 * 1.05, "the bar of the quartiles is whole"
    assert "90.0   1.12 ± 0.02 x !" in [text.get_text() for text in axes.texts]
    figure.draw_without_rendering()
    edges = figure.legends[0].get_window_extent().transformed(figure.transFigure.inverted())
    assert 0 < edges.x0 < edges.x1 < 1 and 0 < edges.y0 < edges.y1 < 1
    boxes = [text.get_window_extent() for text in figure.texts]
    assert not any(one.overlaps(other) for one in boxes for other in boxes if one is not other)


def test_panels_hold_rows_of_one_kind_and_columns_are_balanced() -> None:
    assert list(panels([ROW, {**ROW, "threads": 2}, {**ROW, "gflops": None}])) == [
        "gemm, f32, 1 thread",
        "gemm, f32, 2 threads",
    ]
    left, right = balanced([("a", 3.0), ("b", 1.0), ("c", 2.0)])
    assert ([name for name, _ in left], [name for name, _ in right]) == (["a"], ["b", "c"])
