"""Contractions on a GPU: which steps they get, how a work-group calls the microkernel, and that results are right.

The device is PoCL's, taken for a GPU.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from shared_nests import matmul, product

import poly
from microkernels.dtypes import f32, f64
from microkernels.errors import TargetError
from microkernels.opencl_isa import OPENCLGPU, DeviceISA
from poly.autoschedule.rules.gpu import gpu_schedule
from poly.autoschedule.rules.gpu.contraction import gpu_contracted
from poly.compiled import translate_device
from poly.errors import ScheduleError
from poly.ir.nest import Nest
from poly.ir.reference import reference
from poly.ir.tree import Micro, bands, walk
from poly.schedules.schedule import Schedule, schedule

Array = np.ndarray[Any, Any]
GPU = replace(OPENCLGPU, max_items=1024, local_bytes=48 << 10, units=8)
LARGE = replace(GPU, units=132)
FEW = replace(GPU, max_items=64, local_bytes=6 << 10)
"""A device for the smallest tiles alone, which PoCL compiles soonest."""
SMALL = "gemm_openclgpu_32x32x16_4x4"
M, N, K, C, F, R, S, P, Q = poly.sizes("M N K C F R S P Q")


@poly.nest
def scaled(a: f64, A: f64[K, M], B: f64[N, K], C: f64[M, N]):
    for i in range(M):
        for j in range(N):
            for k in range(K):
                C[i, j] -= a * A[k, i] * B[j, k]


@poly.nest
def conv(X: f32[N, C, 2 * P + R - 2, 2 * Q + S - 2], W: f32[F, C, R, S], Y: f32[N, F, P, Q]):
    for n in range(N):
        for f in range(F):
            for p in range(P):
                for q in range(Q):
                    for c in range(C):
                        for r in range(R):
                            for s in range(S):
                                Y[n, f, p, q] += X[n, c, 2 * p + r, 2 * q + s] * W[f, c, r, s]


@poly.nest
def layer(X: f32[N, P + R - 1, Q + S - 1, C], W: f32[R, S, C, F], b: f32[F], Y: f32[N, P, Q, F]):
    for n in range(N):
        for p in range(P):
            for q in range(Q):
                for f in range(F):
                    Y[n, p, q, f] = 0.0
                    for r in range(R):
                        for s in range(S):
                            for c in range(C):
                                Y[n, p, q, f] += X[n, p + r, q + s, c] * W[r, s, c, f]
                    Y[n, p, q, f] = max(Y[n, p, q, f] + b[f], 0.0)


@poly.nest
def padded(X: f32[P, Q, C], W: f32[R, S, C, F], Y: f32[P, Q, F]):
    for p in range(P):
        for q in range(Q):
            for f in range(F):
                for r in range(R):
                    for s in range(S):
                        if 0 <= p + r - 1 < P and 0 <= q + s - 1 < Q:
                            for c in range(C):
                                Y[p, q, f] += X[p + r - 1, q + s - 1, c] * W[r, s, c, f]


CASES: dict[str, tuple[Any, dict[str, int]]] = {
    "product": (product, {"M": 70, "N": 45, "K": 33}),
    "product open": (product, {}),
    "in blocks": (product, {"M": 3, "N": 5, "K": 4096}),
    "scaled": (scaled, {"M": 33, "N": 70, "K": 19}),
    "conv": (conv, {"N": 2, "C": 3, "F": 20, "R": 3, "S": 3, "P": 7, "Q": 9}),
    "layer": (layer, {"N": 2, "C": 8, "F": 12, "R": 3, "S": 3, "P": 5, "Q": 7}),
    "padded": (padded, {"C": 16, "F": 12, "R": 3, "S": 3, "P": 3, "Q": 37}),
    "transposed": (poly.einsum("km,nk->mn"), {"M": 33, "K": 40, "N": 65}),
    "batch": (poly.einsum("bmk,bkn->bmn"), {"Nb": 3, "M": 33, "K": 20, "N": 40}),
    "many columns": (poly.einsum("akb,kcd->acbd"), {"Na": 5, "Nb": 7, "K": 20, "Nc": 6, "D": 9}),
    "levels": (poly.einsum("abij,bcjk->acik"), {"Na": 9, "Nb": 3, "Nc": 5, "I": 6, "J": 7, "K": 8}),
    "one run of steps": (poly.einsum("abcde,fbcde->af"), {"Na": 34, "Nb": 2, "Nc": 3, "D": 4, "E": 3, "F": 33}),
}
OPEN = {"M": 37, "N": 29, "K": 21}
DEPTH = 150
"""At least the terms of each sum in these cases."""


def arrays(nest: Nest, sizes: dict[str, int]) -> list[Any]:
    """An array of values up to 1, or a scalar, for each argument; NaN where all is assigned."""
    random = np.random.default_rng(1)
    assigned = {statement.target.array for statement in nest.statements if statement.op == "="}
    made: list[Any] = []
    for argument in nest.arguments:
        shape = tuple(extent.evaluate(sizes) for extent in argument.shape)
        values = random.uniform(-1, 1, shape).astype(argument.dtype.numpy_name)
        made.append(np.full(shape, np.nan, values.dtype) if argument.name in assigned else values if shape else 0.75)
    return made


def default(nest: Nest, isa: DeviceISA = GPU) -> Schedule:
    return gpu_schedule(gpu_contracted(nest, isa, {}), isa)


def micro(made: Schedule) -> Micro:
    return next(node for node in walk(made.tree) if isinstance(node, Micro))


@pytest.mark.parametrize("name", CASES)
def test_results(name: str) -> None:
    pytest.importorskip("pyopencl")
    from opencl_device import device

    from poly.opencl_kernel import opencl_kernel

    function, sizes = CASES[name]
    nest = function.with_sizes(sizes) if sizes else function
    isa = GPU if name == "layer" else FEW
    made = default(nest, isa)
    given = arrays(nest, sizes or OPEN)
    expected = [value.copy() if isinstance(value, np.ndarray) else value for value in given]
    reference(nest, tuple(expected))
    opencl_kernel(nest, isa, 1, made, device())(*given)
    assert micro(made).kernel.by_group and ("rfactor" in repr(made)) == (name == "in blocks")
    for got, want in zip(given, expected, strict=True):
        if isinstance(got, np.ndarray):
            error = np.abs(got.astype("float64") - want)
            assert np.all(error <= 2 * DEPTH * np.finfo(got.dtype).eps * np.sqrt(DEPTH)), error.max()


def test_a_large_product_takes_the_largest_tile() -> None:
    made = default(product.with_sizes({"M": 4096, "N": 4096, "K": 4096}), LARGE)
    assert micro(made).kernel.name == "gemm_openclgpu_128x128x8_8x8"
    program = translate_device(made, LARGE)
    assert program.registers == LARGE.registers and "reqd_work_group_size" not in program.source
    assert [band.name for band in bands(made.tree) if band.group][-2:] == ["i_2_tile", "j_2_tile"]


def test_few_results_take_small_tiles_so_that_all_units_work() -> None:
    made = default(product.with_sizes({"M": 256, "N": 256, "K": 4096}), LARGE)
    kernel = micro(made).kernel
    assert kernel.rows * kernel.columns <= 64 * 64


def test_tiles_fit_the_device() -> None:
    tiny = replace(GPU, max_items=64, local_bytes=8 << 10)
    kernel = micro(default(product, tiny)).kernel
    assert kernel.fits(tiny)
    none = replace(GPU, local_bytes=1 << 10)
    assert not any(isinstance(node, Micro) for node in walk(default(product, none).tree))


def test_matrix_vector_products_are_left_to_other_rules() -> None:
    vector = poly.einsum("mk,k->m", m=300, k=200)
    assert gpu_contracted(vector, GPU, {}).steps == ()


def test_rows_and_columns_with_strides_have_no_tables() -> None:
    text = translate_device(default(product.with_sizes(CASES["product"][1])), GPU).source
    assert "S1_panels" in text and "S1_a_rows" not in text and "S1_c_columns" not in text
    assert "A + 33*i_2, 0, 33, B, 0, 1, C + 45*i_2, 0, 45, 0, 1," in " ".join(text.split())


def test_pixels_have_tables_whose_divisor_is_told() -> None:
    text = translate_device(default(layer.with_sizes(CASES["layer"][1])), GPU).source
    assert "S1_a_rows[row] = 8*this_row + 144*this_row__35 + 16*this_row__7;" in text
    assert "S1_a_rows, 8, W" in " ".join(text.split())


def test_steps_follow_the_operand_that_is_read_along_them() -> None:
    """The weights of a convolution lie as W[f, c, r, s]: neighbours of one f are read together."""
    node = micro(default(conv.with_sizes(CASES["conv"][1])))
    assert [band.name.split("_")[0] for band in node.reduce] == ["c", "r", "s"]


def test_a_group_too_large_for_the_device() -> None:
    made = schedule(matmul).tile(i=128, j=128).microkernel("gemm_openclgpu_128x128x8_8x8_db").groups("i_tile", "j_tile")
    with pytest.raises(TargetError, match=r"256 work-items and 16896 bytes .*the device has 1024 and 8192"):
        translate_device(made, replace(GPU, local_bytes=8 << 10))


def test_a_copy_for_it_is_refused() -> None:
    made = schedule(matmul).tile(i=32, j=32).pack("B", at="j_tile")
    with pytest.raises(ScheduleError, match="its own panels"):
        made.microkernel(SMALL)


def test_operands_are_read_in_any_orientation() -> None:
    """Columns stay those along which the output is contiguous, also where only the other operand is."""
    transposed = poly.einsum("km,nk->mn", k=64, m=64, n=64)
    assert not micro(default(transposed)).exchanged
