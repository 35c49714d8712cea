"""`poly report`'s page in a browser: what it says after its scripts ran, and that it draws something."""

from __future__ import annotations

import json
import re
import subprocess
import zlib
from pathlib import Path

import pytest
from click.testing import CliRunner
from headers import need_tool

from poly.commands import poly as command
from poly.machine import Bandwidth, Measured, Peak
from poly.machine.target import Backend, parse
from poly.model.rates import from_machine
from poly.records import Record, Store, StoredTrial, key_for

FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--hide-scrollbars",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
)  # fmt: skip
NEST = """import poly
from poly import f32

M, N, K = poly.sizes("M N K")


@poly.nest
def product(A: f32[M, K], B: f32[K, N], C: f32[M, N]):
    for i in range(M):
        for j in range(N):
            for k in range(K):
                C[i, j] += A[i, k] * B[k, j]  # </script><b>&"
"""
STEPS = '[{"step": "tile", "args": [], "kwargs": {"i": 8, "j": 16}}]'
RATES = Measured(
    tuple(Peak(dtype, count, 100.0 * count) for dtype in ("f32", "f64") for count in (1, 2)),
    tuple(Bandwidth(level, 1, rate, rate) for level, rate in (("L1", 400), ("L2", 200), ("L3", 100), ("memory", 20))),
)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report with everything in it, made once; the machine's rates are given, the kernel is really measured."""
    folder = tmp_path_factory.mktemp("report")
    (folder / "nests.py").write_text(NEST)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("POLY_RECORDS", str(folder / "records.sqlite"))
        patch.setattr("poly.explanation.explained.measured", lambda machine: RATES)
        patch.setattr("poly.explanation.explained.rates", lambda isa, threads: from_machine(RATES, isa, threads))
        patch.setattr("poly.report.content.measured", lambda machine: RATES)
        patch.setattr("poly.commands.report.kept", lambda machine: RATES)
        patch.chdir(folder)
        _keep_trials(folder, parse("c"))
        sizes = [f"--size={name}=40" for name in ("M", "N", "K")]
        arguments = ["nests.py:product", *sizes, "--threads", "1", "--steps", STEPS, "-o", "report.html"]
        done = CliRunner().invoke(command, ["report", *arguments, "--plot", "pictures"])
        assert done.exit_code == 0, done.output
    return folder / "report.html"


def _keep_trials(folder: Path, target: Backend) -> None:
    from poly.commands.nestfile import load_nest

    nest = load_nest(f"{folder}/nests.py:product").with_sizes({"M": 40, "N": 40, "K": 40})
    key = key_for(nest, target.isa, 1)
    point = '{"traits": {"order": "rows <inside>"}, "values": {}}'
    store = Store.open()
    store.add_trials(key, [StoredTrial(point, STEPS, (1e-5,)), StoredTrial(point, "", (), failure="crashed: <i>")])
    store.save(Record(key, STEPS, point, 1e-5, 0.0, 2, "droplet", True, 1.0))


def test_the_page_is_one_file_without_the_network(page: Path) -> None:
    text = page.read_text()
    assert len(text) < 1_000_000
    links = re.findall(r"(?:src|href|action|url)\s*[=(]\s*[\"']?([^\"'\s)>]+)", text)
    assert links and all(link.startswith("#") for link in links), links
    assert text.count("<script") == 2 and "@import" not in text and "</script><b>" not in text
    assert "&lt;/script&gt;&lt;b&gt;&amp;" in text
    ids = re.findall(r' id="([^"]*)"', text)
    assert len(set(ids)) == len(ids) > 20
    assert sorted(path.name for path in (page.parent / "pictures").iterdir()) == [
        f"{name}.svg" for name in ("dependences", "levels", "order", "roofline", "trail")
    ]


def test_the_page_works_in_a_browser(page: Path, tmp_path: Path) -> None:
    """After the scripts ran, the controls are shown and the text has every part; the picture is not blank."""
    need_tool("chromium")
    shot = tmp_path / "page.png"
    common = ["chromium", *FLAGS, f"--user-data-dir={tmp_path / 'profile'}"]
    done = subprocess.run(
        [*common, "--window-size=1440,1200", f"--screenshot={shot}", "--dump-dom", f"file://{page}"],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    dom = done.stdout
    assert '<html lang="en" class="scripted">' in dom
    assert re.search(r'<div class="player">', dom), "the script shows the controls"
    turns = json.loads(re.search(r'id="turns">(.*?)</script>', dom, re.DOTALL)[1])  # type: ignore[index]
    assert len(turns) > 50 and turns[0] == "S0: i_tile = 0, j_tile = 0, i = 0, j = 0, k = 0"
    assert f"<output>{len(turns)} turns</output>" in dom
    plain = " ".join(re.sub(r"<[^>]*>", " ", dom).split())
    for words in (
        "The nest as written", "Dependences", "updates of a reduction", "a small instance: M = 5",
        "The order of iterations", "Bytes of each level", "measured:", "predicted:", "Roofline", "failed: crashed (1)",
        "2 trials on this machine",
        "hardware counters", "void product", "The machine", "schedule from the caller",
    ):  # fmt: skip
        assert words in plain or words.capitalize() in plain, words
    assert colours(shot) > 50


def colours(path: Path) -> int:
    """The number of different pixel bytes in rows of a PNG, roughly: more than a few on a picture that is not blank."""
    data = path.read_bytes()
    chunks, at = b"", 8
    while at < len(data):
        length, kind = int.from_bytes(data[at : at + 4], "big"), data[at + 4 : at + 8]
        chunks += data[at + 8 : at + 8 + length] if kind == b"IDAT" else b""
        at += 12 + length
    return len(set(zlib.decompress(chunks)))
