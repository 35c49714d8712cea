"""Loops fetch ahead what they read from memory where the machine gains by it, and nowhere else."""

from __future__ import annotations

from dataclasses import replace
from math import exp

import numpy as np
import pytest

import poly
from microkernels.isa import AVX2, ISA
from poly import f32, i32
from poly.analysis.bounds import check
from poly.autoschedule.rules.form import Form
from poly.autoschedule.rules.rows import in_tiles_of_rows
from poly.ir.tree import bands
from poly.machine.calibration import best_ahead, best_rows
from poly.model.core import Caches
from poly.model.host import known_rates
from poly.model.rates import Rates

M, N = poly.sizes("M N")


@poly.nest
def of_rows(A: f32[M, N], where: i32[M]):
    for i in range(M):
        best: f32 = A[i, 0]
        where[i] = 0
        for j in range(1, N):
            if A[i, j] < best:
                best = A[i, j]
                where[i] = j


@poly.nest
def powers(x: f32[N], y: f32[N]):
    for i in range(N):
        y[i] = exp(x[i])


@poly.nest
def both_ways(A: f32[M, N], x: f32[N], y: f32[N], u: f32[M], v: f32[M]):
    for i in range(M):
        for j in range(N):
            u[i] += A[i, j] * x[j]
            y[j] += A[i, j] * v[i]


@pytest.mark.parametrize(("near", "far", "best"), [(0.96, 0.99, 0), (0.9, 0.8, 4096), (0.9, 1.2, 2048), (1.4, 1.3, 0)])
def test_the_fastest_distance_counts_if_it_gains(near: float, far: float, best: int) -> None:
    assert best_ahead({0: 1.0, 2048: near, 4096: far}) == best


@pytest.mark.parametrize(("eight", "sixteen", "best"), [(0.9, 0.88, 8), (0.9, 0.8, 16), (1.1, 1.2, 4)])
def test_as_few_rows_are_read_at_once_as_are_about_the_fastest(eight: float, sixteen: float, best: int) -> None:
    assert best_rows({4: 1.0, 8: eight, 16: sixteen}) == best


def test_products_of_vectors_take_as_many_rows_at_once_as_the_machine_says() -> None:
    whole = Form.fixed((), poly.schedule(check(both_ways.with_sizes({"M": 1200, "N": 2000}))))
    for last, rows, taken in ((4 << 20, 8, 8), (4 << 20, 16, 16), (16 << 20, 16, 8)):
        form = in_tiles_of_rows(whole, Caches(32 << 10, 1 << 20, last), rows)
        assert form is not None
        assert max(band.unroll for band in bands(form.tried.tree)) == taken


@pytest.mark.skipif(not AVX2.runs_here(), reason="functions of whole vectors are for these instruction sets")
@pytest.mark.parametrize("ahead", [0, 3072])
def test_loops_fetch_as_far_ahead_as_the_machine_says(ahead: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def rates(isa: ISA, threads: int) -> Rates:
        return replace(known_rates(isa, threads), ahead=ahead)

    monkeypatch.setattr("poly.compiled.known_rates", rates)
    selecting, calling = (poly.compile(nest, target="c:avx2", records=False) for nest in (of_rows, powers))
    for kernel in (selecting, calling):
        assert kernel.source.count("__builtin_prefetch") == kernel.source.count("+ 3072)")
        assert ("+ 3072)" in kernel.source) == bool(ahead)
    A, where = np.random.default_rng(0).random((3, 600), np.float32), np.zeros(3, np.int32)
    selecting(A, where)
    assert where.tolist() == A.argmin(axis=1).tolist()
    y = np.zeros_like(A[0])
    calling(A[0], y)
    np.testing.assert_allclose(y, np.exp(A[0]), rtol=1e-6)
