"""BLAS routines of a header against NumPy: layouts, transpositions, strides, special factors, untouched neighbours."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import product
from typing import Any

import numpy as np
import pytest
from blas_library import Blas, Layout, Trans, close, matrix, op, scaled, vector
from headers import HERE
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from microkernels.isa import ISAS

FACTORS = tuple(product((0.0, 1.0, -0.5), repeat=2))
SHAPES = ((1, 1, 1), (5, 7, 3), (13, 1, 9), (1, 33, 20), (17, 65, 31), (70, 40, 129), (6, 130, 2))
LARGE = ((150, 170, 1100), (800, 66, 70), (300, 300, 530), (30, 700, 600))
LAYOUTS: tuple[Layout, ...] = ("rows", "columns")
TRANS: tuple[Trans, ...] = ("N", "T", "C")
NAN = float("nan")

dtypes = pytest.mark.parametrize("dtype", ["f4", "f8"])
layouts = pytest.mark.parametrize("layout", LAYOUTS)


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Blas:
    return Blas(tmp_path_factory.mktemp("blas"), isas=HERE)


@pytest.fixture(params=[name for name, isa in ISAS.items() if isa.runs_here()])
def blas(library: Blas, request: pytest.FixtureRequest) -> Iterator[Blas]:
    """The routines on one instruction set; no call may complain of its arguments."""
    library.force(request.param)
    yield library
    library.lib.blas_force_isa(0)
    assert library.trouble == (0, "")


def draw(dtype: str, *shape: int) -> NDArray[Any]:
    return np.random.default_rng(len(shape)).uniform(-1, 1, shape).astype(dtype)


def wide(values: NDArray[Any]) -> NDArray[Any]:
    return values.astype(np.float64 if values.dtype == np.float32 else np.longdouble)


@lru_cache(maxsize=64)
def multiplied(dtype: str, left: tuple[int, int], right: tuple[int, ...]) -> tuple[NDArray[Any], NDArray[Any]]:
    """The exact product of what `draw` draws, and that of the sizes of its elements; in long doubles NumPy is slow."""
    a, b = wide(draw(dtype, *left)), wide(draw(dtype, *right))
    return a @ b, abs(a) @ abs(b)


@lru_cache(maxsize=64)
def squared(dtype: str, shape: tuple[int, int]) -> tuple[NDArray[Any], NDArray[Any]]:
    """The same of a matrix and its transpose."""
    a = wide(draw(dtype, *shape))
    return a @ a.T, abs(a) @ abs(a).T


def started(dtype: str, beta: float, *shape: int) -> NDArray[Any]:
    """An output before the call: NaN where it must not be read."""
    return draw(dtype, *shape) if beta else np.full(shape, np.nan, dtype)


def unread(alpha: float, values: NDArray[Any]) -> NDArray[Any]:
    """An operand: NaN where it must not be read."""
    return values if alpha else np.full_like(values, np.nan)


def check_gemm(
    blas: Blas,
    layout: Layout,
    trans: tuple[Trans, Trans],
    shape: tuple[int, int, int],
    factors: tuple[float, float],
    dtype: str,
    gap: int,
) -> None:
    (m, n, k), (alpha, beta), (ta, tb) = shape, factors, trans
    a, b, start = draw(dtype, m, k), draw(dtype, k, n), started(dtype, beta, m, n)
    c = matrix(start, layout, gap)
    left, right = (matrix(op(unread(alpha, x), t), layout, gap) for x, t in ((a, ta), (b, tb)))
    blas.gemm(layout, ta, tb, alpha, left, right, beta, c)
    c.only()
    found, bound = multiplied(dtype, a.shape, b.shape)
    exact = scaled(alpha, found) + scaled(beta, start)
    close(c.values, exact, abs(alpha) * bound + abs(scaled(beta, start)), k)


def check_gemv(
    blas: Blas,
    layout: Layout,
    trans: Trans,
    shape: tuple[int, int],
    factors: tuple[float, float],
    steps: tuple[int, int],
    dtype: str,
    gap: int,
) -> None:
    (rows, columns), (alpha, beta) = shape, factors
    a, x, start = draw(dtype, rows, columns), draw(dtype, columns), started(dtype, beta, rows)
    y = vector(start, steps[1])
    held = matrix(op(unread(alpha, a), trans), layout, gap)
    blas.gemv(layout, trans, alpha, held, vector(unread(alpha, x), steps[0]), beta, y)
    if 0 in shape:
        y.only(False)
        return
    y.only()
    found, bound = multiplied(dtype, a.shape, x.shape)
    exact = scaled(alpha, found) + scaled(beta, start)
    close(y.values, exact, abs(alpha) * bound + abs(scaled(beta, start)), columns)


def check_syrk(
    blas: Blas,
    layout: Layout,
    uplo: str,
    trans: Trans,
    shape: tuple[int, int],
    factors: tuple[float, float],
    dtype: str,
    gap: int,
) -> None:
    (n, k), (alpha, beta) = shape, factors
    a, start = draw(dtype, n, k), started(dtype, beta, n, n)
    triangle = np.triu(np.ones((n, n), bool)) if uplo == "upper" else np.tril(np.ones((n, n), bool))
    c = matrix(np.where(triangle, start, np.array(np.nan, dtype)), layout, gap)
    blas.syrk(layout, uplo, trans, alpha, matrix(op(unread(alpha, a), trans), layout, gap), beta, c)
    c.only(triangle)
    found, size = squared(dtype, a.shape)
    exact = scaled(alpha, found) + scaled(beta, start)
    bound = abs(alpha) * size + abs(scaled(beta, start))
    close(c.values[triangle], exact[triangle], bound[triangle], k)


@dtypes
@layouts
@pytest.mark.parametrize("trans", [*product("NT", repeat=2), ("C", "C")], ids="".join)
def test_gemm(blas: Blas, layout: Layout, trans: tuple[Trans, Trans], dtype: str) -> None:
    for shape, factors, gap in product(SHAPES, FACTORS, (0, 3)):
        check_gemm(blas, layout, trans, shape, factors, dtype, gap)


@dtypes
@layouts
@pytest.mark.parametrize("trans", [*product("NT", repeat=2)], ids="".join)
def test_large_gemm(blas: Blas, layout: Layout, trans: tuple[Trans, Trans], dtype: str) -> None:
    for shape in LARGE:
        check_gemm(blas, layout, trans, shape, (0.75, 1.0), dtype, 1)


@dtypes
@layouts
@pytest.mark.parametrize("trans", TRANS)
def test_gemv(blas: Blas, layout: Layout, trans: Trans, dtype: str) -> None:
    shapes = ((1, 1), (1, 9), (9, 1), (5, 7), (33, 65), (70, 31))
    for shape, factors, steps in product(shapes, FACTORS, product((1, -1, 2, -3), repeat=2)):
        check_gemv(blas, layout, trans, shape, factors, steps, dtype, 2)


@dtypes
@layouts
@pytest.mark.parametrize("steps", [(1, 1), (3, -2)], ids=str)
def test_long_gemv(blas: Blas, layout: Layout, steps: tuple[int, int], dtype: str) -> None:
    """Vectors of more than one gathered part."""
    for trans, shape in product(TRANS, ((2500, 30), (30, 2500), (1100, 1300))):
        check_gemv(blas, layout, trans, shape, (0.75, 1.0), steps, dtype, 0)


@dtypes
@layouts
@pytest.mark.parametrize("uplo", ["upper", "lower"])
@pytest.mark.parametrize("trans", TRANS)
def test_syrk(blas: Blas, layout: Layout, uplo: str, trans: Trans, dtype: str) -> None:
    for shape, factors, gap in product(((1, 1), (7, 3), (33, 20), (65, 9), (130, 40)), FACTORS, (0, 3)):
        check_syrk(blas, layout, uplo, trans, shape, factors, dtype, gap)
    check_syrk(blas, layout, uplo, trans, (300, 550), (0.75, 1.0), dtype, 1)


def drawn(*strategies: st.SearchStrategy[Any]) -> Any:
    """A test with what is drawn as one argument, for each instruction set."""
    often = settings(max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture])
    return lambda test: often(given(told=st.tuples(*strategies))(test))


sizes, gaps = st.integers(0, 90), st.integers(0, 9)
factor = st.sampled_from((0.0, 1.0, -1.0, 0.75))
step = st.integers(-4, 4).filter(bool)
order, trans_, uplo_ = st.sampled_from(LAYOUTS), st.sampled_from(TRANS), st.sampled_from(("upper", "lower"))
dtype_ = st.sampled_from(("f4", "f8"))


@drawn(order, st.tuples(trans_, trans_), st.tuples(sizes, sizes, sizes), st.tuples(factor, factor), dtype_, gaps)
def test_any_gemm(blas: Blas, told: Any) -> None:
    check_gemm(blas, *told)


@drawn(order, trans_, st.tuples(sizes, sizes), st.tuples(factor, factor), st.tuples(step, step), dtype_, gaps)
def test_any_gemv(blas: Blas, told: Any) -> None:
    check_gemv(blas, *told)


@drawn(order, uplo_, trans_, st.tuples(sizes, sizes), st.tuples(factor, factor), dtype_, gaps)
def test_any_syrk(blas: Blas, told: Any) -> None:
    check_syrk(blas, *told)


@dtypes
def test_values_that_are_no_numbers_go_through(blas: Blas, dtype: str) -> None:
    """NaN and infinity in an operand reach the results that they belong to, and no others."""
    a, b, c = np.ones((20, 30), dtype), np.ones((30, 40), dtype), np.ones((20, 40), dtype)
    a[3, 7], b[9, 11] = np.nan, np.inf
    held = matrix(c, "rows", 0)
    blas.gemm("rows", "N", "N", 1.0, matrix(a, "rows", 0), matrix(b, "rows", 0), 1.0, held)
    np.testing.assert_array_equal(held.values, a @ b + c)


@pytest.mark.parametrize("trans", [*product("NT", repeat=2)], ids="".join)
@dtypes
def test_without_memory(blas: Blas, trans: tuple[Trans, Trans], dtype: str) -> None:
    """The results are right, in parts that need no more than the stack."""
    blas.lib.reset(1)
    for shape in ((150, 170, 1100), (800, 66, 70)):
        check_gemm(blas, "rows", trans, shape, (0.75, 1.0), dtype, 1)
    check_syrk(blas, "columns", "upper", trans[0], (150, 300), (0.75, 1.0), dtype, 1)
    blas.lib.reset(0)


def test_small_calls_take_no_memory(blas: Blas) -> None:
    for trans, dtype in product(product("NT", repeat=2), ("f4", "f8")):
        check_gemm(blas, "rows", trans, (100, 100, 60), (1.0, 1.0), dtype, 0)
        check_syrk(blas, "rows", "lower", trans[0], (100, 60), (1.0, 1.0), dtype, 0)
    check_gemv(blas, "rows", "N", (1000, 1000), (1.0, 1.0), (2, 2), "f8", 0)
    assert blas.lib.allocations() == 0
