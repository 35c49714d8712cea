"""`kernel.benchmark`: what it does to arrays, when it stops, and what the figures are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from opencl_device import device

import poly
from poly import f64
from poly.analysis.work import Work
from poly.machine.calibration import described
from poly.timing import benchmark as module
from poly.timing import kernels
from poly.timing.benchmark import LEAST, MOST, Benchmark, Setting, TimedCalls, benchmark, python_timed, restorer
from poly.timing.load import MachineLoad
from poly.timing.yardstick import Yardstick

M, N = poly.sizes("M N")
SETTING = Setting("axpy", (("N", 8),), "avx2", 1, "model", "1.0", "gcc 12", "a machine")


@pytest.fixture(autouse=True)
def rates(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rates of a described CPU, so that no test measures this one."""
    monkeypatch.setattr(kernels, "at_hand", lambda machine: described("avx2", (32 << 10, 1 << 20, 32 << 20)))


@poly.nest
def tripled(x: f64[N], y: f64[N]):
    for i in range(N):
        x[i] *= 3.0
        y[i] = x[i]


@poly.nest
def copied(x: f64[M, N], y: f64[M, N]):
    for i in range(M):
        for j in range(N):
            y[i, j] = 2.0 * x[i, j]


class Clocked:
    """A kernel that takes a time of our choice by a clock of our own, and adds one to an array for each call."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, seconds: Callable[[int], float]) -> None:
        self.now, self.array, self.seconds, self.most, self.called = 0.0, np.zeros(3), seconds, 0.0, 0
        monkeypatch.setattr(module, "perf_counter", lambda: self.now)

    def timed(self, times: int) -> float:
        spent = 0.0
        for _ in range(times):
            self.array += 1
            self.called += 1
            spent += self.seconds(self.called)
        self.most = max(self.most, float(self.array[0]))
        self.now += spent
        return spent

    def run(self, calls: int, seconds: float = 2.0) -> Benchmark:
        return benchmark(TimedCalls(self.timed, calls, restorer([self.array])), SETTING, None, None, seconds)


def test_arrays_are_put_back_before_too_many_calls_and_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = Clocked(monkeypatch, lambda call: 1e-5)
    found = kernel.run(calls=8)
    assert found.calls == 8 and kernel.called > 100
    assert kernel.most == 8, "no more calls in a row than the nest stands"
    assert (kernel.array == 0).all()


def test_arrays_are_put_back_after_an_error() -> None:
    array = np.zeros(3)

    def fails(times: int) -> float:
        array[:] = 7
        raise RuntimeError("no memory")

    with pytest.raises(RuntimeError, match="no memory"):
        benchmark(TimedCalls(fails, 8, restorer([array])), SETTING, None, None, 1.0)
    assert (array == 0).all()


def test_steady_times_end_early_and_unsteady_ones_at_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    steady = Clocked(monkeypatch, lambda call: 0.01)
    steady.run(calls=1)
    assert 0.2 <= steady.now < 0.5
    unsteady = Clocked(monkeypatch, lambda call: 0.01 * (1 + call % 2))
    unsteady.run(calls=1)
    assert 2.0 <= unsteady.now < 2.5


def test_slow_calls_are_still_repeated_and_fast_ones_not_forever(monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(Clocked(monkeypatch, lambda call: 3.0).run(calls=1).samples) == LEAST
    assert len(Clocked(monkeypatch, lambda call: 1e-9 * (1 + call % 2)).run(calls=1).samples) == MOST


def test_one_slow_first_call_does_not_make_all_samples_short(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Clocked(monkeypatch, lambda call: 1e-2 if call == 2 else 1e-4).run(calls=10**5).calls == 20


def test_a_kernel_that_changes_its_input_is_measured_and_leaves_it_as_it_was() -> None:
    kernel = poly.compile(tripled)
    x, y = np.full(1000, 1.5), np.full(1000, -1.0)
    found = kernel.benchmark(x, y, threads=1, seconds=0.05)
    assert (x == 1.5).all() and (y == -1.0).all()
    assert found.calls <= 8, "more multiplications in a row may overflow"
    assert dict(found.setting.sizes) == {"N": 1000}
    assert found.gflops == pytest.approx(1000 / found.seconds / 1e9)
    assert found.gbs == pytest.approx(3 * 8000 / found.seconds / 1e9), "x is read and written, y is written"
    assert found.bound_fraction is not None and found.bound_fraction > 0
    assert found.facts()["samples"] == found.samples


def test_arrays_that_are_not_contiguous_are_measured_too() -> None:
    whole, out = np.ones((6, 9)), np.zeros((6, 5))
    found = poly.compile(copied).benchmark(whole[:, :5], out, threads=1, seconds=0.02)
    assert dict(found.setting.sizes) == {"M": 6, "N": 5}
    assert (whole == 1).all() and (out == 0).all()


def test_an_opencl_kernel_is_measured_on_arrays_of_host_and_device() -> None:
    found = device()
    import pyopencl
    import pyopencl.array

    kernel = poly.compile(tripled, N=100, target="opencl")
    x, y = np.full(100, 1.5), np.full(100, -1.0)
    queue = pyopencl.CommandQueue(pyopencl.Context([found.handle]))
    on_device = [pyopencl.array.to_device(queue, array) for array in (x, y)]
    for arrays in ((x, y), on_device):
        made = kernel.benchmark(*arrays, seconds=0.02)
        assert made.calls <= 8 and made.setting.target.startswith("opencl") and made.gflops
    assert (x == 1.5).all() and (y == -1.0).all()
    assert (on_device[0].get() == 1.5).all() and (on_device[1].get() == -1.0).all()
    with pytest.raises(poly.ArgumentError, match="seconds must be a positive number"):
        kernel.benchmark(x, y, seconds=0)


@pytest.fixture
def made() -> Benchmark:
    samples = tuple(1e-3 * (1 + n / 1000) for n in range(11))
    load = MachineLoad(1.0, 2, 0.1, others=0.0, stolen=0.0)
    when = module.datetime(2026, 11, 25, 12, tzinfo=module.UTC)
    return Benchmark(SETTING, samples, 2, Work(2_000_000, 4_000_000), Yardstick("GFLOP/s", 2e6, 4.0), load, when)


def test_the_text_has_each_figure_once(made: Benchmark) -> None:
    text = str(made)
    for part in ("axpy, N = 8, 1 thread, avx2", "1 ms ± 0.", "11 samples of 2 calls", "1.99 GFLOP/s", "3.98 GB/s",
                 "50 % of the peak, 4 GFLOP/s", "schedule   model", "poly 1.0, gcc 12", "a machine"):  # fmt: skip
        assert text.count(part) == 1, part
    assert "busy" not in text
    assert repr(made).startswith("<benchmark axpy, N = 8, 1 thread, avx2: 1 ms ± 0.")


def test_a_busy_machine_is_said(made: Benchmark) -> None:
    busy = replace(made, load=replace(made.load, others=1.25))
    assert "the machine was busy: other processes used 1.2 of 2 CPUs meanwhile" in str(busy)
    assert "busy machine" in repr(busy)
    assert busy.facts()["load"]["busy"] is True


def test_of_an_unknown_work_there_are_times_alone(made: Benchmark) -> None:
    unknown = replace(made, work=None, limit=None)
    assert (unknown.gflops, unknown.gbs, unknown.bound_fraction) == (None, None, None)
    assert "rates" not in str(unknown) and "median" in str(unknown)


def test_the_clock_in_python_makes_as_many_calls_as_told() -> None:
    seen: list[int] = []
    assert python_timed(lambda: seen.append(1))(5) > 0
    assert len(seen) == 5
