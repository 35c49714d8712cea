"""Real tunings of tiny nests: from Python and from the command line, interrupted, killed, resumed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import poly
from poly import commands, f32, f64
from poly.records import Store, key_for

M, N, K = poly.sizes("M N K")
NESTS = """import poly
from poly import f32

M, N, K = poly.sizes("M N K")

@poly.nest
def product(A: f32[M, K], B: f32[K, N], C: f32[M, N]):
    for i in range(M):
        for j in range(N):
            for k in range(K):
                C[i, j] += A[i, k] * B[k, j]
"""


@poly.nest
def product(A: f32[M, K], B: f32[K, N], C: f32[M, N]):
    for i in range(M):
        for j in range(N):
            for k in range(K):
                C[i, j] += A[i, k] * B[k, j]


@poly.nest
def smooth(x: f64[M, N], y: f64[M, N]):
    for i in range(1, M - 1):
        for j in range(1, N - 1):
            y[i, j] = x[i - 1, j] + x[i + 1, j] + x[i, j - 1] + x[i, j + 1]


def smoothed(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """What `smooth` gives, without the border."""
    inner: np.ndarray[Any, Any] = x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:]
    return inner


@pytest.fixture(autouse=True)
def records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Records of this test alone, in subprocesses too; what was measured of the machine is shared."""
    monkeypatch.setenv("POLY_RECORDS", str(tmp_path / "records.sqlite"))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "nests.py"
    path.write_text(NESTS)
    return path


def cli(*arguments: str) -> tuple[int, str, str]:
    done = CliRunner().invoke(commands.poly, ["tune", *arguments])
    return done.exit_code, done.stdout, done.stderr


def stored(**sizes: int) -> int:
    """How many trials of `product` on one thread the user's store holds."""
    nest = product.with_sizes(sizes)
    return len(Store.open().trials(key_for(nest, poly.machine().isa, 1)))


def test_a_tuned_contraction_computes_what_it_should_and_is_found_by_compile() -> None:
    kernel = poly.tune(product, M=40, N=48, K=24, threads=1, trials=4)
    assert kernel.tuning.trials == 4
    random = np.random.default_rng(0)
    a, b, c = random.random((40, 24), np.float32), random.random((24, 48), np.float32), np.zeros((40, 48), np.float32)
    kernel(a, b, c)
    np.testing.assert_allclose(c, a @ b, rtol=1e-5)
    compiled = poly.compile(product, M=40, N=48, K=24, threads=1)
    assert compiled.origin == "record" and compiled.record is not None and compiled.record.trials == 4
    assert compiled.schedule == kernel.schedule


def test_a_nest_that_was_called_before_follows_what_was_tuned_since() -> None:
    arrays = [np.ones(shape, np.float32) for shape in ((9, 17), (17, 33), (9, 33))]
    product(*arrays)
    kernel = poly.tune(product, M=9, N=33, K=17, trials=1, start="origin", show=False)
    product(*arrays)
    (called,) = product._kernels.values()
    assert called.kernel.origin == "record"
    assert repr(called.kernel.schedule) == repr(kernel.schedule)


def test_a_nest_that_is_no_contraction_is_tuned_too() -> None:
    kernel = poly.tune(smooth, M=20, N=30, threads=1, trials=4)
    x, y = np.random.default_rng(0).random((20, 30)), np.zeros((20, 30))
    kernel(x, y)
    np.testing.assert_allclose(y[1:-1, 1:-1], smoothed(x))
    assert 1 <= kernel.tuning.trials <= 4 and not kernel.tuning.failures


def test_a_kernel_for_all_sizes_is_tuned_at_some() -> None:
    kernel = poly.tune(smooth, at={"M": 20, "N": 30}, threads=1, trials=3)
    assert set(kernel.nest.sizes) == {"M", "N"}
    assert kernel.tuning.space.sizes == (("M", 20), ("N", 30))
    for shape in ((20, 30), (7, 5)):
        x, y = np.random.default_rng(0).random(shape), np.zeros(shape)
        kernel(x, y)
        np.testing.assert_allclose(y[1:-1, 1:-1], smoothed(x))
    assert poly.compile(smooth, threads=1).origin == "record"
    elsewhere = poly.tune(smooth, at={"M": 10, "N": 30}, threads=1, trials=3).tuning
    assert elsewhere.reused == 0, "what was measured at other sizes says nothing of these"


def test_the_command_prints_a_table_and_json(file: Path) -> None:
    sizes = ("--size", "M=24", "--size", "N=24", "--size", "K=16", "--threads", "1")
    status, out, err = cli(f"{file}:product", *sizes, "--trials", "3")
    assert status == 0
    assert "product M=24 N=24 K=16" in out and "model's choice" in out and "best found" in out
    assert "trials          3\n" in out and str(Store.open().path) in out and "schedule(product)" in out
    assert "3 of 3 tried" in err or "best" in err
    status, out, err = cli(f"{file}:product", *sizes, "--trials", "3", "--json", "--quiet")
    facts = json.loads(out)
    assert (facts["trials"], facts["reused"], facts["sizes"]) == (3, 3, {"M": 24, "N": 24, "K": 16})
    assert err == ""


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["{file}:product"], "nothing says what M, K, N should be"),
        (["{file}:product", "--size", "M=8", "--at", "N=8"], "nothing says what K should be"),
        (["{file}:produkt"], "Did you mean product?"),
        (["{file}:product", "--strategy", "dropplet"], "did you mean 'droplet'?"),
        (["{file}:product", "--trials", "0"], "trials=0 allows no search"),
        (["{file}:product", "--seconds", "-1"], "seconds=-1.0 allows no search"),
    ],
)
def test_a_mistake_gives_one_message_and_status_two(file: Path, arguments: list[str], message: str) -> None:
    status, _, err = cli(*(argument.format(file=file) for argument in arguments))
    assert status == 2
    assert message in err and "Traceback" not in err


def begin(file: Path, size: int) -> subprocess.Popen[str]:
    """A long tuning in a process group of its own, once it has stored two trials."""
    sizes = [f"--size={name}={size}" for name in ("M", "N", "K")]
    command = [sys.executable, "-m", "poly.cli", "tune", f"{file}:product", *sizes, "--threads=1", "--trials=500"]
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # the tests may run where it is ignored
        cwd=Path(__file__).parents[2],
    )
    while stored(M=size, N=size, K=size) < 2:
        assert process.poll() is None, process.communicate()
        time.sleep(0.05)
    return process


def test_ctrl_c_prints_the_best_and_the_same_command_goes_on(file: Path) -> None:
    process = begin(file, 56)
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert "interrupted" in out and "best found" in out and "Traceback" not in err
    count = stored(M=56, N=56, K=56)
    tuning = poly.tune(product, M=56, N=56, K=56, threads=1, trials=count + 1).tuning
    assert tuning.reused == count and tuning.trials == count + 1


def test_a_killed_tuning_loses_no_trial_and_leaves_its_best(file: Path) -> None:
    process = begin(file, 40)
    process.kill()
    process.communicate()
    count = stored(M=40, N=40, K=40)
    assert count >= 2
    record = poly.compile(product, M=40, N=40, K=40, threads=1).record
    assert record is not None and not record.finished
    tuning = poly.tune(product, M=40, N=40, K=40, threads=1, trials=count).tuning
    assert tuning.reused == tuning.trials == count
