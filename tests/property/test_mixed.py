"""Arrays of f16 and bf16 on C targets, and contractions whose operands have another type than the sum."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import poly
from codegen.calls.numpy_types import numpy_type
from microkernels.dtypes import DTYPES, DType, bf16, f16, f32, f64, i8, i16, u8, u16
from microkernels.isa import ISAS, PORTABLE
from poly.autoschedule.default import default_schedule
from poly.frontends.python import parse_text
from poly.frontends.source import Source
from poly.ir.nest import Nest
from poly.ir.reference import reference
from poly.ir.tree import Micro, walk
from poly.measure.trusted import wide
from poly.model.host import here
from poly.schedules.steps import Tensorize

TARGETS = [f"c:{isa.name}" for isa in ISAS.values() if isa.runs_here()]
M, N, K = poly.sizes("M N K")
PAIRS = [(f32, f64), (bf16, f32), (f16, f32), (i8, f32), (u8, f64), (i16, f32), (u16, f32)]
pytest.importorskip("ml_dtypes")

CONVERSIONS = """
def conversions(h: H[N], x: f32[N], d: f64[N], up: f32[N], rounded: H[N], once: H[N], sums: H[N]):
    for i in range(N):
        up[i] = f32(h[i])
        rounded[i] = H(x[i])
        once[i] = H(d[i])
        sums[i] = h[i]
        sums[i] += h[i] * 0.1 if h[i] > 0.3 else -max(h[i], 1)
"""
PRODUCT = """
def product(A: S[M, K], B: R[K, N], C: T[M, N]):
    for i in range(M):
        for j in range(N):
            C[i, j] = 0
            for k in range(K):
                C[i, j] += T(A[i, k]) * T(B[k, j])
"""


def parsed(text: str, **types: DType) -> Nest:
    for letter, dtype in types.items():
        text = text.replace(f" {letter}[", f" {dtype.name}[").replace(f"{letter}(", f"{dtype.name}(")
    environment = {"M": M, "N": N, "K": K, **DTYPES}
    return parse_text(Source(text.lstrip(), "mixed.py", 1), environment)


def halves(dtype: DType) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """All values of a type, and of f32 and f64 those between them, halfway, and next to these."""
    every = np.arange(1 << 16, dtype=np.uint16).view(numpy_type(dtype))
    with np.errstate(all="ignore"):
        middle = every.astype(np.float64)
        halfway = np.nan_to_num(middle + np.roll(middle, -1), nan=0.3) / 2
        single = np.float32(halfway)
        beside = np.nextafter(single, np.where(np.arange(1 << 16) % 3 == 0, np.float32(np.inf), np.float32(0)))
        return every, np.where(np.arange(1 << 16) % 2 == 0, single, beside), np.nextafter(halfway, np.inf)


def same(one: np.ndarray, other: np.ndarray) -> bool:
    """Whether arrays are equal, NaNs and the signs of zeros included."""
    with np.errstate(all="ignore"):
        one, other = np.float64(one), np.float64(other)
    return np.array_equal(one, other, equal_nan=True) and np.array_equal(
        np.signbit(one[~np.isnan(one)]), np.signbit(other[~np.isnan(other)])
    )


@pytest.mark.parametrize("dtype", [f16, bf16], ids=str)
def test_every_half_is_converted_and_rounded_as_numpy_does(dtype: DType) -> None:
    nest = parsed(CONVERSIONS, H=dtype)
    every, single, double = halves(dtype)
    kind = numpy_type(dtype)
    with np.errstate(all="ignore"):
        expected = every.astype(np.float32), single.astype(kind)
    for target in TARGETS:
        up = np.full(every.size, np.nan, np.float32)
        rounded, once, sums = (np.full(every.size, np.nan, kind) for _ in range(3))
        poly.compile(nest, target=target)(every, single, double, up, rounded, once, sums)
        assert same(up, expected[0]), target
        assert same(rounded, expected[1]), target
        few = slice(None, None, 37)
        told = [np.full(every[few].size, np.nan, a.dtype) for a in (up, rounded, once, sums)]
        reference(nest, (*(np.ascontiguousarray(a[few]) for a in (every, single, double)), *told))
        assert same(sums[few], told[3]), target
        if dtype == f16:  # ml_dtypes rounds f64 twice
            with np.errstate(over="ignore"):
                assert same(once, double.astype(kind)), target


def test_a_f64_is_rounded_to_bf16_once() -> None:
    nest = parsed("def once(d: f64[N], h: H[N]):\n    for i in range(N):\n        h[i] = H(d[i])\n", H=bf16)
    step, tiny = 2.0**-8, 2.0**-40
    given_ = np.array(
        [1 + step + tiny, 1 + step - tiny, 1 + step, 1 + 3 * step, -(1 + step + tiny), 1e39, np.nan, -0.0]
    )
    found = np.full(given_.size, np.nan, numpy_type(bf16))
    poly.compile(nest)(given_, found)
    assert same(found, np.array([1 + 2 * step, 1, 1, 1 + 4 * step, -(1 + 2 * step), np.inf, np.nan, -0.0]))


def drawn(dtype: DType, shape: tuple[int, int], seed: int) -> np.ndarray:
    random = np.random.default_rng(seed)
    if dtype.is_float:
        return random.standard_normal(shape).astype(numpy_type(dtype))
    limits = np.iinfo(dtype.numpy_name)
    return random.integers(limits.min, limits.max, shape, numpy_type(dtype), endpoint=True)


@settings(max_examples=6, deadline=None)
@given(st.sampled_from(PAIRS), st.sampled_from(TARGETS), st.tuples(*[st.integers(1, 67)] * 3), st.integers(0, 9))
@example((bf16, f32), TARGETS[0], (13, 129, 33), 0)
@example((f16, f32), TARGETS[-1], (1, 1, 1), 0)
def test_a_product_of_converted_operands(pair: tuple[DType, DType], target: str, sizes: tuple, seed: int) -> None:
    (source, dtype), (m, n, k) = pair, sizes
    nest = parsed(PRODUCT, S=source, R=source, T=dtype)
    a, b = drawn(source, (m, k), seed), drawn(source, (k, n), seed + 1)
    c = np.full((m, n), np.nan, numpy_type(dtype))
    poly.compile(nest, sizes={"M": m, "N": n, "K": k}, target=target)(a, b, c)
    a, b = a.astype(np.float64), b.astype(np.float64)
    bound = (k + 2) * np.finfo(dtype.numpy_name).eps * (abs(a) @ abs(b))
    assert (abs(c - a @ b) <= bound).all()


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("types", [(bf16, f32, f32), (f32, i8, f32), (f32, f32, f64), (f16, bf16, f32)], ids=str)
def test_microkernels_run_products_of_mixed_types(target: str, types: tuple[DType, DType, DType]) -> None:
    left, right, dtype = types
    nest = parsed(PRODUCT, S=left, R=right, T=dtype)
    made = poly.compile(nest, sizes={"M": 61, "N": 67, "K": 71}, target=target)
    assert any(isinstance(step, Tensorize) for step in made.schedule.steps)
    a, b = drawn(left, (61, 71), 0), drawn(right, (71, 67), 1)
    c = np.full((61, 67), np.nan, numpy_type(dtype))
    made(a, b, c)
    a, b = a.astype(np.float64), b.astype(np.float64)
    assert (abs(c - a @ b) <= 73 * np.finfo(dtype.numpy_name).eps * (abs(a) @ abs(b))).all()


def test_an_operand_to_convert_has_to_be_packed() -> None:
    nest = parsed(PRODUCT, S=bf16, R=bf16, T=f32).with_sizes({"M": 6, "N": 8, "K": 64})
    made = poly.schedule(nest).distribute("i")
    with pytest.raises(poly.ScheduleError, match="A is converted while it is packed"):
        made.microkernel("gemm_portable_6x8", "S1")


def test_numbers_of_half_precision_are_refused() -> None:
    nest = parsed("def f(a: f16, x: f32[N]):\n    for i in range(N):\n        x[i] = f32(a)\n")
    with pytest.raises(poly.TargetError, match=r"a is a number of type f16.*make it f32"):
        poly.compile(nest)


def test_an_operand_is_converted_when_it_is_packed_before() -> None:
    a, b = drawn(bf16, (40, 70), 0), drawn(bf16, (70, 96), 1)
    c = np.full((40, 96), np.nan, np.float32)
    made = poly.compile(parsed(PRODUCT, S=bf16, R=bf16, T=f32), sizes={"M": 40, "N": 96, "K": 70})
    made.prepack("B", b)(a, c)
    a, b = a.astype(np.float64), b.astype(np.float64)
    assert (abs(c - a @ b) <= 72 * np.finfo(np.float32).eps * (abs(a) @ abs(b))).all()


def test_results_are_compared_with_those_of_the_same_values() -> None:
    types = {array.name: array.dtype for array in wide(parsed(PRODUCT, S=bf16, R=f32, T=f32)).arrays}
    assert types == {"A": bf16, "B": f64, "C": f64}, "f64 holds values that bf16 rounds"


@pytest.mark.parametrize("dtype", [f16, bf16])
def test_a_factorisation_in_halves_has_no_microkernel(dtype: DType) -> None:
    text = f"def lower(A: {dtype}[N, N]):\n  for i in range(N):\n    for j in range(i + 1):\n      for k in range(j):\n"
    nest = parse_text(Source(f"{text}        A[i, j] -= A[i, k] * A[j, k]", "lower", 1), {"N": N, dtype.name: dtype})
    made = default_schedule(nest, here(PORTABLE, 1))
    assert not any(isinstance(node, Micro) for node in walk(made.tree))
