"""Kernels whose operand was packed before: they compute what the kernel computes that packs in each call, or refuse."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from shared_nests import matmul, padded, product

import poly
from poly import f32
from poly.autoschedule.rules.microkernels import contracted
from poly.machine.calibration import described
from poly.machine.target import parse
from poly.model.host import here
from poly.timing import kernels

K, M, N = poly.sizes("K M N")


@poly.nest
def dense(X: f32[M, K], W: f32[N, K], b: f32[N], Y: f32[M, N]):
    for i in range(M):
        for j in range(N):
            Y[i, j] = b[j]
            for k in range(K):
                Y[i, j] += X[i, k] * W[j, k]
            Y[i, j] = max(Y[i, j], 0.0)


@poly.nest
def squares(W: f32[N, K], Y: f32[N, N]):
    """Reads W on both sides."""
    for i in range(N):
        for j in range(N):
            for k in range(K):
                Y[i, j] += W[i, k] * W[j, k]


@poly.nest
def twice(X: f32[M, K], W: f32[K, N], Y: f32[M, N], Z: f32[M, N]):
    """Two contractions read W."""
    for i in range(M):
        for j in range(N):
            for k in range(K):
                Y[i, j] += X[i, k] * W[k, j]
    for i in range(M):
        for j in range(N):
            for k in range(K):
                Z[i, j] += 2.0 * X[i, k] * W[k, j]


@poly.nest
def scaled(W: f32[K, N], Y: f32[K, N]):
    for i in range(K):
        for j in range(N):
            Y[i, j] = 2.0 * W[i, j]


@poly.nest
def beside(X: f32[M, K], W: f32[K, N], Y: f32[M, N], Z: f32[K, N]):
    """A contraction reads W, and so does what is none."""
    for i in range(M):
        for j in range(N):
            for k in range(K):
                Y[i, j] += X[i, k] * W[k, j]
    for k in range(K):
        for j in range(N):
            Z[k, j] = W[k, j]


def arrays(nest: poly.Nest, **sizes: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(1)
    shapes = {a.name: [extent.evaluate(sizes) for extent in a.shape] for a in nest.arguments}
    return {name: rng.random(shape, np.float32) for name, shape in shapes.items()}


def agree(kernel: poly.Kernel, name: str, packed: poly.Kernel, given: dict[str, Any]) -> None:
    """Compare all outputs of both kernels on the same arrays."""
    one, other = ({key: value.copy() for key, value in given.items()} for _ in range(2))
    kernel(*one.values())
    packed(*(value for key, value in other.items() if key != name))
    for key in given:
        np.testing.assert_allclose(other[key], one[key], rtol=1e-5, err_msg=key)


CASES = (
    (product, "B", {"M": 2, "N": 131, "K": 3}),
    (product, "A", {"M": 13, "N": 65, "K": 7}),
    (dense, "W", {"M": 7, "N": 129, "K": 33}),
    (squares, "W", {"N": 67, "K": 9}),
    (twice, "W", {"M": 7, "N": 33, "K": 5}),
    (padded.with_sizes({"F": 64, "C": 16}), "W", {"P": 14, "Q": 14}),
)


@pytest.mark.parametrize("target", ["c", "c:avx2", "c:portable"])
@pytest.mark.parametrize(("nest", "name", "sizes"), CASES, ids=lambda value: getattr(value, "name", None))
def test_results_are_the_same(nest: poly.Function, name: str, sizes: dict[str, int], target: str) -> None:
    """At odd sizes, and with threads; what a kernel assigns is poisoned before."""
    fixed = nest.with_sizes(sizes)
    given = arrays(fixed)
    if nest in (product, dense):
        given[nest.arguments[-1].name][:] = np.nan
    threads = 2 if target == "c" else 1
    # so few steps may be expected to be faster in plain loops
    made = contracted(fixed, here(parse(target).isa, threads))
    kernel = poly.compile(fixed, schedule=made, target=target, threads=threads)
    agree(kernel, name, kernel.prepack(name, given[name]), given)


def test_other_sizes_stay_open_and_strides_are_taken() -> None:
    """The panels of W do not depend on M; X may have gaps, W any strides."""
    kernel = poly.compile(dense)
    given = arrays(dense, M=1, N=70, K=19)
    given["W"] = np.asfortranarray(given["W"])
    packed = kernel.prepack("W", given["W"])
    given["W"] = np.ascontiguousarray(given["W"])
    assert packed.nest.sizes == ("M",)
    for rows in (0, 1, 6, 13):
        given |= {"X": np.ones((rows, 38), np.float32)[:, :19], "Y": np.full((rows, 70), np.nan, np.float32)}
        agree(kernel, "W", packed, given)
    wide = np.random.default_rng(2).random((5, 38), np.float32)[:, 10:29]
    given |= {"X": wide, "Y": np.full((5, 70), np.nan, np.float32)}
    expected = np.maximum(wide @ given["W"].T + given["b"], 0)
    packed(wide, given["b"], given["Y"])
    np.testing.assert_allclose(given["Y"], expected, rtol=1e-5)


def test_a_kernel_travels_with_its_panels() -> None:
    """And what is written to the array later has no effect: its panels are a copy."""
    given = arrays(dense, M=3, N=65, K=8)
    kernel = poly.compile(dense)
    packed = kernel.prepack("W", given["W"])
    weights = given["W"].copy()
    given["W"][:] = 0
    for one in (packed, pickle.loads(pickle.dumps(packed))):
        agree(kernel, "W", one, given | {"W": weights})
        assert all(panel.ctypes.data % 64 == 0 for panel in one.packed.panels)


def test_a_benchmark_says_what_it_leaves_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "at_hand", lambda machine: described("avx2", (32 << 10, 1 << 20, 32 << 20)))
    given = arrays(dense, M=3, N=65, K=8)
    kernel = poly.compile(dense)
    packed = kernel.prepack("W", given["W"])
    assert "W packed before" in str(packed)
    whole = kernel.benchmark(*given.values(), seconds=0.01)
    without = packed.benchmark(given["X"], given["b"], given["Y"], seconds=0.01)
    assert "packing" not in str(whole)
    assert "packing W" in str(without)
    assert (whole.facts()["packed_before"], without.facts()["packed_before"]) == (None, "W")


def test_the_schedule_says_where_the_copies_are() -> None:
    """A copy in a loop moves before it, and one is added for what is read in place."""
    made = poly.schedule(product).distribute("i").split(j_2=8).split(i_2=4).order("j_2_tile i_2_tile i_2 j_2 k")
    made = made.pack("B", at="j_2_tile").microkernel("gemm_avx2_4x24", statement="S1")
    kernel = poly.compile(product, schedule=made, target="c:avx2", M=9, N=30, K=5)
    given = arrays(kernel.nest)
    packed = kernel.prepack("B", given["B"])
    assert str(packed.schedule).index("# pack B") < str(packed.schedule).index("for j_2_tile")
    agree(kernel, "B", packed, given)


REFUSED = (
    (matmul, "C", "S0 writes C"),
    (matmul, "D", "has no argument D.*Its arguments: A, B, C"),
    (scaled, "W", "S0 reads W and is no contraction"),
    (beside, "W", "S1 reads W and is no contraction"),
    (poly.einsum("mk,kn->mn", m=1, n=64, k=64), "B", "reads B in place"),
    (poly.einsum("mk,kn->mn", m=4, n=4, k=4).with_sizes({}), "C", "writes C"),
)


@pytest.mark.parametrize(("nest", "name", "problem"), REFUSED)
def test_what_cannot_be_packed_is_refused(nest: poly.Function, name: str, problem: str) -> None:
    kernel = poly.compile(nest)
    with pytest.raises(poly.PolyError, match=problem):
        kernel.prepack(name, np.ones((64, 64), np.float32))


def test_values_that_do_not_fit_are_refused() -> None:
    kernel = poly.compile(matmul, K=8, N=8)
    wrong = (
        (np.ones((8, 8)), "B has dtype float64"),
        (np.ones((8, 9), np.float32), r"B has shape \(8, 9\); expected \(8, 8\)"),
        (np.ones(8, np.float32), "B has 1 dimension"),
        ("weights", "expected a NumPy array"),
    )
    for value, problem in wrong:
        with pytest.raises(poly.ArgumentError, match=problem):
            kernel.prepack("B", value)
    packed = kernel.prepack("B", np.ones((8, 8), np.float32))
    with pytest.raises(poly.ArgumentError, match=r"takes 2 arguments: A.*, C"):
        packed(np.ones((8, 8), np.float32), np.ones((8, 8), np.float32), np.ones((8, 8), np.float32))
    with pytest.raises(poly.ArgumentError, match="B is packed before"):
        packed.prepack("A", np.ones((8, 8), np.float32))
    with pytest.raises(poly.SpecError, match="Remedy: pass the kernel before prepack"):
        packed.write_header("matmul.h")
