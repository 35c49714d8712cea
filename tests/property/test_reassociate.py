"""`reassociate=False`: each element is updated in the order in which the loops are written, to the last bit."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from headers import CLANG, GCC, Toolchain, library, need
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from opencl_device import TARGET, device

import poly
from codegen.c import UNFUSED
from poly import f32, f64
from poly.analysis.contraction import recognise
from poly.ir.tree import bands

M, N, K = poly.sizes("M N K")
SIZES = {"M": 13, "N": 37, "K": 29}
TYPES = {"f32": f32, "f64": f64}


def product(dtype: Any, reassociate: bool = False) -> poly.Function:
    return poly.einsum("mk,kn->mn", dtype=dtype, reassociate=reassociate)


def product_in_place(dtype: Any) -> poly.Function:
    @poly.nest(reassociate=False)
    def added(A: dtype[M, K], B: dtype[K, N], C: dtype[M, N]):
        for i in range(M):
            for j in range(N):
                for k in range(K):
                    C[i, j] -= A[i, k] * B[k, j]

    return added


def sums(dtype: Any) -> poly.Function:
    @poly.nest(reassociate=False)
    def summed(A: dtype[M, N], s: dtype[M], t: dtype[N], p: dtype[1]):
        for i in range(M):
            for j in range(N):
                s[i] += 0.5 * A[i, j]
                t[j] += A[i, j] / (1.5 + A[i, j] * A[i, j])
                p[0] *= 1.0 + 0.001 * A[i, j]

    return summed


def solve(dtype: Any) -> poly.Function:
    @poly.nest(reassociate=False)
    def solved(L: dtype[M, M], x: dtype[M, N]):
        for i in range(M):
            for j in range(i):
                for c in range(N):
                    x[i, c] -= L[i, j] * x[j, c]

    return solved


def convolution(dtype: Any) -> poly.Function:
    @poly.nest(reassociate=False)
    def convolved(x: dtype[M + 2, N + 2], w: dtype[3, 3], y: dtype[M, N]):
        for p in range(M):
            for q in range(N):
                y[p, q] = 0.0
                for r in range(3):
                    for s in range(3):
                        y[p, q] += x[p + r, q + s] * w[r, s]

    return convolved


NESTS: dict[str, Callable[[Any], poly.Function]] = {
    "einsum": product, "in place": product_in_place, "sums": sums, "solve": solve, "convolution": convolution,
}  # fmt: skip


def case(name: str, dtype: str) -> tuple[poly.Function, dict[str, int], list[np.ndarray]]:
    """A nest, the sizes it has, and arrays of numbers of many magnitudes, which no two orders sum up alike."""
    nest = NESTS[name](TYPES[dtype])
    sizes = {size: SIZES[size] for size in nest.sizes}
    random = np.random.default_rng(1)
    shapes = [[extent.evaluate(sizes) for extent in array.shape] for array in nest.arguments]
    arrays = [random.normal(size=shape) * 10.0 ** random.integers(-3, 4, shape) for shape in shapes]
    return nest, sizes, [array.astype(TYPES[dtype].numpy_name) for array in arrays]


def check(run: Callable[..., Any], nest: poly.Function, arrays: list[np.ndarray]) -> None:
    """Every array has the bits that the loops as written give it."""
    wanted, got = ([array.copy() for array in arrays] for _ in range(2))
    nest.reference(*wanted)
    run(*got)
    for array, before in zip(got, wanted, strict=True):
        np.testing.assert_array_equal(array.view(np.uint8), before.view(np.uint8))


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("name", NESTS)
@pytest.mark.parametrize("target", ["c", "c:portable"])
def test_default_kernels_have_the_bits_of_the_loops(name: str, dtype: str, target: str) -> None:
    nest, sizes, arrays = case(name, dtype)
    check(poly.compile(nest, target=target, threads=2), nest, arrays)
    check(poly.compile(nest, target=target, threads=1, sizes=sizes), nest, arrays)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("name", NESTS)
def test_default_kernels_of_a_device_too(name: str, dtype: str) -> None:
    """PoCL's quotients are rounded correctly, so all bits are those of the loops."""
    device()
    nest, _, arrays = case(name, dtype)
    kernel = poly.compile(nest, target=TARGET)
    assert "#pragma OPENCL FP_CONTRACT OFF" in kernel.source
    check(kernel, nest, arrays)


STEPS: list[Callable[[poly.Schedule, str, int], poly.Schedule]] = [
    lambda s, loop, size: s.split(**{loop: size}),
    lambda s, loop, size: s.parallel(loop),
    lambda s, loop, size: s.vectorize(loop),
    lambda s, loop, size: s.unroll(**{loop: size}),
    lambda s, loop, size: s.reverse(loop),
    lambda s, loop, size: s.distribute(loop),
    lambda s, loop, size: s.order(loop + " " + " ".join(b.name for b in bands(s.tree) if b.name != loop)),
    lambda s, loop, size: s.pack(s.nest.arguments[0].name, at=loop),
]


@given(st.sampled_from(sorted(NESTS)), st.sampled_from(sorted(TYPES)), st.data())
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
def test_whatever_steps_are_accepted_keep_the_bits(name: str, dtype: str, data: st.DataObject) -> None:
    nest, _, arrays = case(name, dtype)
    made = poly.schedule(nest)
    for _ in range(data.draw(st.integers(1, 5))):
        loop = data.draw(st.sampled_from([band.name for band in bands(made.tree)]))
        step, size = data.draw(st.sampled_from(STEPS)), data.draw(st.integers(2, 8))
        try:
            made = step(made, loop, size)
        except poly.ScheduleError:
            continue
    check(poly.compile(nest, schedule=made, threads=2), nest, arrays)


def test_points_of_a_space_keep_the_bits() -> None:
    nest, sizes, arrays = case("einsum", "f32")
    space = poly.space(nest, sizes=sizes, threads=2, coarse=True)
    for point in space.sample(3, Random(0)):
        made = space.schedule(point)
        check(poly.compile(made.nest, schedule=made, threads=2), nest, arrays)


@pytest.mark.parametrize("kernel", ["gemm_avx512_6x64", "gemm_portable_2x8", "gemvt_avx2", "gemm_openclgpu_64x64"])
def test_a_microkernel_is_refused(kernel: str) -> None:
    """It sums up in registers, and adds that to the element."""
    nest = product_in_place(f32)
    with pytest.raises(poly.ScheduleError, match="has reassociate=False, and the kernel sums up in registers"):
        poly.schedule(nest).tile(i=2, j=8).microkernel(kernel)
    text = poly.schedule(product(f32, True)).distribute("n").to_json()
    step = {"step": "microkernel", "args": [kernel], "kwargs": {}}
    with pytest.raises(poly.ScheduleError, match="reassociate=False"):
        poly.Schedule.from_json(product(f32), json.dumps([*json.loads(text), step]))


@pytest.mark.parametrize(
    "refused",
    [
        lambda s: s.order("i k j").vectorize("k"), lambda s: s.vectorize("k"), lambda s: s.parallel("k"),
        lambda s: s.split(k=8).reverse("k"), lambda s: s.reverse("k"), lambda s: s.items(k=8),
        lambda s: s.groups("k"),
    ],
)  # fmt: skip
def test_a_step_that_changes_the_order_of_a_sum_is_refused(refused: Callable[[poly.Schedule], poly.Schedule]) -> None:
    with pytest.raises(poly.ScheduleError):
        refused(poly.schedule(product_in_place(f32)))


@pytest.mark.parametrize("toolchain", [GCC, CLANG], ids=str)
@pytest.mark.parametrize("isas", [("portable",), ("avx2", "portable")], ids=len)
def test_headers_keep_the_bits(toolchain: Toolchain, isas: tuple[str, ...], tmp_path: Path) -> None:
    """Beside a nest whose products and sums may be fused, in whatever order they come."""
    need(toolchain)
    nest, sizes, arrays = case("convolution", "f32")
    loose = poly.compile(product(f32, True), threads=1)
    path = tmp_path / "both.h"
    poly.write_header(path, [loose, poly.compile(nest, threads=1)], prefix="both", isas=isas, dense=True)
    ffi, lib = library(path, toolchain, "-O2", "-ffp-contract=on" if toolchain.is_clang else "-march=native")
    assert path.read_text().count(UNFUSED) == len(isas)

    def run(*given_arrays: np.ndarray) -> None:
        pointers = [ffi.from_buffer("float[]", array) for array in given_arrays]
        status = lib.both_convolved(*(sizes[size] for size in nest.sizes), *pointers)
        assert status == 0

    check(run, nest, arrays)


def test_the_flag_stays_with_the_nest() -> None:
    strict, loose = product(f64), product(f64, True)
    assert strict.structure != loose.structure
    fixed = strict.with_sizes({"M": 4})
    assert (strict.reassociate, fixed.reassociate, loose.reassociate) == (False, False, True)
    assert fixed.structure == strict.structure
    assert pickle.loads(pickle.dumps(strict)).reassociate is False
    assert poly.compile(strict).nest.reassociate is False
    assert poly.compile(strict).schedule.nest.reassociate is False
    assert all(recognise(strict, statement) is None for statement in strict.statements)


@pytest.mark.parametrize("value", [None, 0, "no"])
def test_the_flag_is_true_or_false(value: Any) -> None:
    with pytest.raises(poly.ArgumentError, match="reassociate must be True or False"):
        poly.einsum("mk,kn->mn", reassociate=value)


def test_tuning_keeps_the_bits() -> None:
    nest, sizes, arrays = case("sums", "f32")
    kernel = poly.tune(nest, trials=2, threads=1, records=False, show=False, sizes=sizes)
    check(kernel, nest, arrays)
