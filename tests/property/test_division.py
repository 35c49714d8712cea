"""Vector loops that divide by what stays the same in them: the bits of divisions, and odd values."""

import numpy as np
import pytest
from headers import need_isa
from hypothesis import given, settings
from hypothesis import strategies as st

import poly
from poly import f32, f64

M, N = poly.sizes("M N")
KERNELS: dict[tuple[str, str, str], poly.Kernel] = {}


def nest(T, reassociate=True):
    @poly.nest(reassociate=reassociate)
    def divided(x: T[M, N], d: T[M], y: T[M, N]):
        for i in range(M):
            for j in range(N):
                y[i, j] = x[i, j] / d[i]

    return divided


def by_terms(T):
    @poly.nest
    def divided(x: T[M, N], d: T[M], y: T[M, N]):
        for i in range(M):
            for j in range(N):
                y[i, j] = x[i, j] / (d[i] * 2) / 7.3

    return divided


def quotients(x, d, target, make=nest):
    """The kernel's, by one kernel for each nest, type and target."""
    dtype = f32 if x.dtype == np.float32 else f64
    key = make.__name__, dtype.name, target
    if key not in KERNELS:
        KERNELS[key] = poly.compile(make(dtype), target=target, threads=1)
    y = np.full_like(x, np.nan)
    KERNELS[key](x, d, y)
    return y


TARGETS = ("c", "c:avx2", "c:portable")
TYPES = (np.float32, np.float64)


@settings(max_examples=20, deadline=None)
@given(
    seed=st.integers(0, 1000),
    dtype=st.sampled_from(TYPES),
    target=st.sampled_from(TARGETS),
    sizes=st.tuples(st.integers(1, 20), st.integers(1, 700)),
)
def test_bits(seed, dtype, target, sizes):
    """A division's, or beside it for small dividends; mantissas are random or near to 2."""
    rng, info = np.random.default_rng(seed), np.finfo(dtype)
    most = np.log(float(info.max)) * 0.99
    x = (rng.choice([-1, 1], sizes) * np.exp(rng.uniform(-1.05 * most, most, sizes))).astype(dtype)
    d = (rng.choice([-1, 1], sizes[0]) * np.exp(rng.uniform(-5, 60, sizes[0]))).astype(dtype)
    some = rng.random(sizes[0]) < 0.3
    d[some] = 2 * d[some] / np.frexp(d[some])[0] * (1 - rng.integers(1, 9, some.sum()) * info.epsneg)
    with np.errstate(over="ignore", under="ignore"):
        exact, half = x / d[:, None], x / (d * 2)[:, None]
        again = half / dtype(7.3)
    least = 2.0**-100 if dtype == np.float32 else 2.0**-960
    y, large = quotients(x, d, target), np.abs(x) >= least
    np.testing.assert_array_equal(y[large], exact[large])
    np.testing.assert_allclose(y[~large], exact[~large], rtol=info.eps, atol=info.smallest_subnormal)
    large &= np.abs(half) >= least
    np.testing.assert_array_equal(quotients(x, d, target, by_terms)[large], again[large])


@pytest.mark.parametrize("dtype", TYPES, ids=["f32", "f64"])
@pytest.mark.parametrize("target", TARGETS)
def test_odd_values(dtype, target):
    """Infinities, NaN, both zeros, subnormal and huge numbers, over such and over plain divisors."""
    info = np.finfo(dtype)
    values = [0.0, np.inf, np.nan, info.max, info.tiny, info.smallest_subnormal, 1, 0.75, 2.0**60, 2.0**61, 3, 1e10]
    odd = np.array([*values, *(-value for value in values)], dtype)
    x = np.tile(odd, (len(odd), 5))
    with np.errstate(all="ignore"):
        wanted = x / odd[:, None]
    y = quotients(x, odd, target)
    np.testing.assert_allclose(y, wanted, rtol=info.eps, atol=info.smallest_subnormal)
    np.testing.assert_array_equal(np.signbit(y[wanted == 0]), np.signbit(wanted[wanted == 0]))


@pytest.mark.parametrize(("target", "multiplies"), [("c:avx512", True), ("c:avx2", True), ("c:portable", False)])
def test_fused_operations_replace_divisions(target, multiplies):
    need_isa(target.removeprefix("c:"))
    for make in (nest, by_terms):
        source = poly.compile(make(f32), target=target, threads=1).source
        assert source.count("quotient_f32(") - source.count("float quotient_f32(") >= 2 * multiplies
        assert multiplies or "quotient" not in source
    assert "quotient" not in poly.compile(nest(f32), sizes={"M": 9, "N": 30}, target=target, threads=1).source
    assert "quotient" not in poly.compile(nest(f32, reassociate=False), target=target, threads=1).source
