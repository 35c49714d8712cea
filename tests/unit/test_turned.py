"""Arrays in another order of their dimensions, backwards or with gaps, in calls of kernels and nests."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import numpy as np
import pytest

import poly
import poly.kernel as kernels
from codegen.calls.turning import ArrayView, turning
from microkernels.dtypes import f64, i32
from microkernels.isa import AVX512
from poly.autoschedule.default import default_schedule
from poly.ir import budget
from poly.ir.turned import turned
from poly.kernel import Kernel
from poly.model import Caches
from poly.model.core import Target

M, N, K, B = poly.sizes("M N K B")
RNG = np.random.default_rng(3)


@poly.nest
def added(X: f64[B, M, N], Y: f64[N, M], Z: f64[B, M, N]):
    for b in range(B):
        for m in range(M):
            for n in range(N):
                Z[b, m, n] = X[b, m, n] + 2.0 * Y[n, m]


@poly.nest
def taken(x: f64[K], at: i32[M, N], y: f64[M, N]):
    for m in range(M):
        for n in range(N):
            y[m, n] = x[at[m, n]]


def ordered(array: np.ndarray, axes: tuple[int, ...], steps: tuple[int, ...] = (1, 1, 1)) -> np.ndarray:
    """The same values, with the dimensions in memory in this order, and the elements of each so many apart."""
    shape = [array.shape[axis] * abs(steps[axis]) for axis in axes]
    memory = np.full(shape, np.nan).transpose(np.argsort(axes))
    found = memory[tuple(slice(None, None, step) for step in steps[: array.ndim])]
    found[...] = array
    return found


@pytest.mark.parametrize("way", ["known", "open", "called", "scheduled"])
def test_a_product_takes_each_operand_in_either_order_and_direction(way: str) -> None:
    nest = poly.einsum("mk,kn->mn", dtype=f64)
    sizes = {"M": 13, "N": 35, "K": 7} if way == "known" else {}
    given = poly.schedule(nest).tile(m=4) if way == "scheduled" else None
    run: Any = nest if way == "called" else poly.compile(nest, schedule=given, threads=1, records=False, sizes=sizes)
    a, b = RNG.standard_normal((13, 7)), RNG.standard_normal((7, 35))
    backwards = (-1, -1) if way == "known" else (1, 1)
    for first, second, third in list(permutations([(1, 0), (0, 1), (0, 1)]))[::2] if way == "open" else [((1, 0),) * 3]:
        for _ in range(2):
            out = ordered(np.full((13, 35), np.nan), third)
            run(ordered(a, first, backwards), ordered(b, second, backwards), out)
            np.testing.assert_allclose(out, a @ b, rtol=1e-12)


@pytest.mark.parametrize(
    ("axes", "steps"),
    [((2, 0, 1), (1, 1, 1)), ((0, 1, 2), (-1, 1, -1)), ((1, 2, 0), (1, -1, 2)), ((0, 1, 2), (2, -3, -2))],
)
def test_arrays_of_three_dimensions_backwards_and_with_gaps(axes: tuple[int, ...], steps: tuple[int, ...]) -> None:
    x, y = RNG.standard_normal((3, 5, 7)), RNG.standard_normal((7, 10))[:, ::2]
    out = ordered(np.full((3, 5, 7), np.nan), axes, steps)
    memory = out if out.base is None else out.base
    beside = np.isnan(memory).sum() - out.size
    added(ordered(x, axes, steps), np.asfortranarray(y), out)
    np.testing.assert_array_equal(out, x + 2.0 * y.T)
    assert np.isnan(memory).sum() == beside, "nothing between its elements was written"
    added(ordered(x, axes, steps), np.broadcast_to(y[:, :1], (7, 5)), out)
    np.testing.assert_array_equal(out, x + 2.0 * y[:, 0])


@pytest.mark.parametrize("array", ["A", "B"])
def test_an_operand_that_lies_backwards_costs_what_it_does_forwards(array: str) -> None:
    target = Target.nominal(AVX512, Caches(32 << 10, 1 << 20, 1 << 25), 1)
    nest = poly.einsum("mk,kn->mn", dtype=f64).with_sizes({"M": 384, "N": 384, "K": 384})
    backwards = turned(nest, {array: ArrayView((0, 1), (0,))})
    assert default_schedule(backwards, target).steps == default_schedule(nest, target).steps


def test_a_kernel_is_made_once_for_each_order(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    of = Kernel.turned
    monkeypatch.setattr(Kernel, "turned", lambda self, axes: made.append(dict(axes)) or of(self, axes))
    kernel = poly.compile(added, records=False, threads=1, B=2, M=3, N=4)
    x, y, z = np.ones((2, 3, 4)), np.ones((4, 3)), np.zeros((2, 3, 4))
    for _ in range(3):
        kernel(x, np.asfortranarray(y), z)
        kernel(X=x, Y=np.asfortranarray(y), Z=z)
        kernel(np.asfortranarray(x), y, z)
    assert made == [{"Y": ArrayView((1, 0))}, {"X": ArrayView((2, 1, 0))}]


def test_kernels_that_calls_make_have_a_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    """One thread at a time has one, so that what one asks isl is not counted for another."""
    made, compiled = [], kernels.compiled

    def counted(nest: poly.Nest, *more: Any) -> Any:
        made.append(budget._current is not None)
        return compiled(nest, *more)

    monkeypatch.setattr(kernels, "compiled", counted)
    kernel = poly.compile(added, records=False)
    x, y, z = np.ones((2, 3, 4)), np.ones((4, 3)), np.zeros((2, 3, 8))
    kernel(x, np.asfortranarray(y), z[..., :4].copy())
    kernel(x, y, z[..., :4])
    kernel(x, y, x)
    assert made == [True] * 4


def test_the_turned_nest_reads_the_turned_arrays() -> None:
    made = turned(added, {"Y": ArrayView((1, 0))})
    assert str(made.array("Y")) == "Y: f64[M, N]"
    assert made.structure != added.structure
    x, y, z = RNG.standard_normal((2, 3, 4)), RNG.standard_normal((3, 4)), np.full((2, 3, 4), np.nan)
    poly.compile(added, records=False, threads=1).turned({"Y": ArrayView((1, 0))})(x, y, z)
    np.testing.assert_array_equal(z, x + 2.0 * y)


def test_what_does_not_fit_is_told_of_the_array_as_it_is() -> None:
    x, y, z = np.ones((2, 3, 4)), np.ones((4, 3)), np.zeros((2, 3, 4))
    repeated = np.lib.stride_tricks.as_strided(np.zeros(4), z.shape, (0, 0, 8))
    with pytest.raises(poly.ArgumentError, match=r"Z is written, but several of its elements share memory \(strides"):
        added(x, y, repeated)
    with pytest.raises(poly.ArgumentError, match=r"Y has shape \(3, 4\); expected \(4, 3\)"):
        added(x, np.asfortranarray(y.T), z)
    added(x, np.asfortranarray(y), z)
    with pytest.raises(poly.ArgumentError, match=r"Y has shape \(3, 4\); expected \(4, 3\)"):
        added(x, np.asfortranarray(y.T), z)
    with pytest.raises(poly.ArgumentError, match="at is not contiguous"):
        taken(np.ones(9), np.zeros((3, 4), np.int32, order="F"), np.zeros((3, 4)))
    with pytest.raises(poly.ArgumentError, match=r"x is not contiguous: shape \(9,\), strides \(-8,\) bytes"):
        taken(np.ones(9)[::-1], np.zeros((3, 4), np.int32), np.zeros((3, 4)))


@pytest.mark.parametrize(
    ("shape", "strides", "expected"),
    [
        ((4, 5), (8, 32), ArrayView((1, 0))),
        ((4, 5), (40, 8), None),
        ((4, 5), (80, 8), None),
        ((4, 5), (0, 8), None),
        ((4, 1), (8, 32), None),
        ((4, 1), (8, -8), None),
        ((1, 5), (8, 32), ArrayView((0, 1), apart=True)),
        ((4, 5), (16, 64), ArrayView((1, 0), apart=True)),
        ((4, 5), (8, 0), ArrayView((1, 0))),
        ((4, 5), (-8, 32), ArrayView((1, 0), (0,))),
        ((4, 5), (-40, -8), ArrayView((0, 1), (0, 1))),
        ((9,), (24,), ArrayView((0,), apart=True)),
        ((9,), (-8,), ArrayView((0,), (0,))),
        ((9,), (12,), None),
        ((0, 5), (8, 32), None),
        ((3, 1, 5), (8, 8, 24), ArrayView((2, 1, 0))),
        ((4, 5, 6), (8, 192, 32), ArrayView((1, 2, 0))),
        ((4, 5, 6), (48, 192, 8), ArrayView((1, 0, 2))),
        ((4, 5, 6), (56, 224, 8), None),
    ],
)
def test_the_view_that_is_passed(shape: tuple[int, ...], strides: tuple[int, ...], expected: ArrayView | None) -> None:
    assert turning(shape, strides, 8) == expected
