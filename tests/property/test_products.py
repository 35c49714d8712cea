"""Products by other operations than multiply-adds: each family, layout and instruction set, NaN and infinities too."""

from __future__ import annotations

from functools import cache
from math import inf

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import poly
from microkernels.catalogue import gemm, tiles
from microkernels.dtypes import DTYPES
from microkernels.isa import ISAS
from microkernels.product import PRODUCTS, OperationPair
from poly import f32, f64
from poly.analysis.contraction import recognise
from poly.ir.tree import bands

M, N, K = poly.sizes("M N K")
NAMES = {"M": M, "N": N, "K": K}
TARGETS = [name for name in ("avx512", "avx2", "portable") if ISAS[name].runs_here()]
NEUTRAL = {"+": "0", "min": "inf", "max": "-inf"}
SPECIAL = (np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0)


def nest_of(product: OperationPair, dtype: str, left: str, right: str, output: str, resets: bool) -> poly.Function:
    """`output = reduce(output, combine(left, right))` over i, j and k, behind its neutral element if it `resets`."""
    shapes = {"i": "M", "j": "N", "k": "K"}
    arrays = [f"{name}: {dtype}[{', '.join(shapes[i] for i in indices)}]" for name, indices in
              (("A", left), ("B", right), ("C", output))]  # fmt: skip
    a, b, c = (f"{name}[{', '.join(indices)}]" for name, indices in (("A", left), ("B", right), ("C", output)))
    reset = f"{c} = {NEUTRAL[product.reduce]}" if resets else "pass"
    lines = [
        f"def made({', '.join(arrays)}):",
        "    for i in range(M):",
        "        for j in range(N):",
        *([f"            {reset}"] if resets else []),
        "            for k in range(K):",
        f"                {product.text(c, a, b)}",
    ]
    return poly.parse("\n".join(lines), {**NAMES, "inf": inf})


def drawn(draw: np.random.Generator, shape: tuple[int, ...], dtype: str, special: bool) -> np.ndarray:
    values = draw.normal(size=shape).astype(DTYPES[dtype].numpy_name)
    if special:
        places = draw.random(shape) < 0.3
        values[places] = draw.choice(SPECIAL, places.sum())
    return values


def check(nest: poly.Function, kernel: poly.Kernel, product: OperationPair, arrays: list[np.ndarray]) -> None:
    expected = [x.copy() for x in arrays]
    with np.errstate(all="ignore"):
        nest.reference(*expected)
    kernel(*arrays)
    if product.is_sum:
        np.testing.assert_allclose(arrays[2], expected[2], rtol=1e-4, atol=1e-4)
    else:
        np.testing.assert_array_equal(arrays[2], expected[2])
        numbers = ~np.isnan(expected[2])
        np.testing.assert_array_equal(np.signbit(arrays[2][numbers]), np.signbit(expected[2][numbers]))


@settings(deadline=None, max_examples=20)
@given(st.data())
def test_every_family_computes_its_contract(data: st.DataObject) -> None:
    product = PRODUCTS[data.draw(st.sampled_from(sorted(set(PRODUCTS) - {"gemm"})))]
    dtype, isa = data.draw(st.sampled_from(["f32", "f64"])), ISAS[data.draw(st.sampled_from(TARGETS))]
    left, right = data.draw(st.sampled_from(["ik", "ki"])), data.draw(st.sampled_from(["kj", "jk"]))
    packs, resets = data.draw(st.booleans()) or right == "jk", data.draw(st.booleans())
    shape = data.draw(st.sampled_from(tiles(isa, DTYPES[dtype], product)))
    m, n = (data.draw(st.integers(2, 2 * most + 1)) for most in (min(shape.rows, 8), min(shape.columns, 32)))
    k = data.draw(st.sampled_from([1, 2, 5, 97]))
    nest = nest_of(product, dtype, left, right, "ij", resets)
    steps = poly.schedule(nest)
    steps = steps.distribute("i") if resets else steps
    i, j = ("i_2", "j_2") if resets else ("i", "j")
    steps = steps.split(**{i: shape.rows, j: shape.columns}).order(f"{i}_tile {j}_tile {i} {j} k")
    steps = steps.pack("B") if packs else steps
    made = steps.microkernel(shape.name, initial="S0" if resets else None)
    kernel = poly.compile(nest, schedule=made, target=f"c:{isa.name}", records=False, M=m, N=n, K=k)
    draw, special = np.random.default_rng(data.draw(st.integers(0, 99))), data.draw(st.booleans())
    of = {"i": m, "j": n, "k": k}
    arrays = [drawn(draw, tuple(of[x] for x in indices), dtype, special) for indices in (left, right, "ij")]
    if resets:
        arrays[2][:] = np.nan
    check(nest, kernel, product, arrays)


MADE = {
    "min_add": nest_of(PRODUCTS["min_add"], "f32", "ik", "kj", "ij", False),
    "max_min": nest_of(PRODUCTS["max_min"], "f64", "ik", "jk", "ji", False),
    "sum_distance": nest_of(PRODUCTS["sum_distance"], "f64", "ik", "jk", "ij", True),
    "sum_square": nest_of(PRODUCTS["sum_square"], "f32", "ik", "jk", "ji", True),
}


@cache
def compiled(name: str, target: str) -> poly.Kernel:
    """One kernel for all tests."""
    return poly.compile(MADE[name], target=f"c:{target}", records=False, threads=1)


@settings(deadline=None, max_examples=6)
@given(st.data())
@pytest.mark.parametrize("name", MADE)
def test_defaults_of_open_sizes(name: str, data: st.DataObject) -> None:
    product, nest = PRODUCTS[name], MADE[name]
    of = {x: data.draw(st.sampled_from([1, 2, 7, 16, 33])) for x in "ijk"}
    draw = np.random.default_rng(data.draw(st.integers(0, 99)))
    indices = [
        [str(index) for index in load.indices] for load in (*nest.statements[-1].reads[1:], nest.statements[-1].target)
    ]
    names = dict(
        zip([load.array for load in (*nest.statements[-1].reads[1:], nest.statements[-1].target)], indices, strict=True)
    )
    arrays = [drawn(draw, tuple(of[x] for x in names[array]), nest.array(array).dtype.name, True) for array in "ABC"]
    for target in TARGETS:
        check(nest, compiled(name, target), product, [x.copy() for x in arrays])


@pytest.mark.parametrize("name", MADE)
@pytest.mark.parametrize("target", TARGETS)
def test_defaults_have_their_microkernel(name: str, target: str) -> None:
    family = PRODUCTS[name].family
    exchanged = PRODUCTS[name].exchanged.family
    source = compiled(name, target).source
    assert f"{family}_tile_" in source or f"{exchanged}_tile_" in source


def test_a_microkernel_of_another_family_is_refused() -> None:
    nest = MADE["min_add"]
    shape = gemm(ISAS["portable"], f32, 4, 1)
    made = poly.schedule(nest).split(i=4, j=4).order("i_tile j_tile i j k")
    with pytest.raises(poly.ScheduleError, match="a microkernel of the family min_add"):
        made.microkernel(shape.name)


def test_minima_keep_their_order_where_sums_must() -> None:
    text = "def made(A: f64[M, K], B: f64[K, N], C: f64[M, N]):\n" + "\n".join(
        "    " * depth + line
        for depth, line in enumerate(
            (
                "for i in range(M):",
                "for j in range(N):",
                "for k in range(K):",
                "C[i, j] = max(C[i, j], A[i, k] * B[k, j])",
            ),
            1,
        )
    )
    nest = poly.parse(text, NAMES, reassociate=False)
    found = recognise(nest, nest.statements[0])
    assert found is not None
    assert found.product.family == "max_mul"


@pytest.mark.parametrize(
    ("body", "family"),
    [
        ("C[i, j] += (A[i, k] - B[k, j]) ** 2", "sum_square"),
        ("C[i, j] += 2 * abs(B[k, j] - A[i, k])", "sum_distance"),
        ("C[i, j] -= (A[i, k] - B[k, j]) * (A[i, k] - B[k, j])", "sum_square"),
        ("C[i, j] = min(C[i, j], B[k, j] - A[i, k])", "min_rsub"),
        ("C[i, j] = A[i, k] + B[k, j] if A[i, k] + B[k, j] < C[i, j] else C[i, j]", "min_add"),
        ("C[i, j] += A[i, k] + B[k, j]", "sum_add"),
        ("C[i, j] += abs(A[i, k] - B[k, j]) * A[i, k]", None),
        ("C[i, j] = min(C[i, j], A[i, k] + 1)", None),
    ],
)
def test_bodies_are_recognised(body: str, family: str | None) -> None:
    loops = "".join(f"{'    ' * (depth + 1)}for {name} in range({size}):\n" for depth, (name, size) in
                    enumerate((("i", "M"), ("j", "N"), ("k", "K"))))  # fmt: skip
    nest = poly.parse(f"def made(A: f64[M, K], B: f64[K, N], C: f64[M, N]):\n{loops}                {body}\n", NAMES)
    found = recognise(nest, nest.statements[0])
    assert (found and found.product.family) == family
    assert f64 in (array.dtype for array in nest.arrays)


PATHS = poly.parse(
    """
    def shortest_paths(P: f64[N, N]):
        for k in range(N):
            for i in range(N):
                for j in range(N):
                    P[i, j] = min(P[i, j], P[i, k] + P[k, j])
    """,
    NAMES,
)


@pytest.mark.parametrize("n", [None, 1, 2, 9, 33])
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("special", [False, True])
def test_shortest_paths_in_place_are_those_of_the_order_as_written(n: int | None, target: str, special: bool) -> None:
    """The loop over elements is parted at the one that the others read, so that both parts have lanes."""
    sizes = {} if n is None else {"N": n}
    kernel = poly.compile(PATHS, target=f"c:{target}", records=False, **sizes)
    for size in [1, 2, 16, 17] if n is None else [n]:
        paths = drawn(np.random.default_rng(size), (size, size), "f64", special)  # with cycles of negative length
        expected = paths.copy()
        with np.errstate(all="ignore"):
            PATHS.reference(expected)
        kernel(paths)
        np.testing.assert_array_equal(paths, expected)
    if n in (None, 33):
        lanes = [band.name for band in bands(kernel.schedule.tree) if band.vectorize]
        assert {"j", "j_3"} <= set(lanes)


@pytest.mark.parametrize(("columns", "place"), [("range(i + 1)", "j"), ("range(N)", "2 * j")])
def test_extremes_off_a_box_or_a_row_are_right(columns: str, place: str) -> None:
    """Only sums are put in place from a tile on the stack, by adding."""
    nest = poly.parse(
        f"""
        def made(A: f64[N, K], B: f64[K, N], C: f64[N, 2 * N]):
            for i in range(N):
                for j in {columns}:
                    for k in range(K):
                        C[i, {place}] = min(C[i, {place}], A[i, k] + B[k, j])
        """,
        NAMES,
    )
    draw = np.random.default_rng(2)
    arrays = [draw.random(shape) for shape in ((40, 20), (20, 40), (40, 80))]
    expected = [x.copy() for x in arrays]
    nest.reference(*expected)
    poly.compile(nest, records=False, N=40, K=20)(*arrays)
    np.testing.assert_array_equal(arrays[2], expected[2])


def test_a_local_result_of_open_sizes_is_no_array() -> None:
    """The right operand of a product in blocks of rows is packed as a whole only if its size is known."""
    nest = poly.parse(
        """
        def dots(X: f64[M, 3], Y: f64[N, 3], out: f64[M]):
            for i in range(M):
                for j in range(N):
                    s = 0.0
                    for k in range(3):
                        s += X[i, k] * Y[j, k]
                    out[i] += exp(-s)
        """,
        NAMES,
    )
    draw = np.random.default_rng(1)
    arrays = [draw.random((33, 3)), draw.random((50, 3)), np.zeros(33)]
    expected = np.exp(-arrays[0] @ arrays[1].T).sum(1)
    poly.compile(nest, records=False, threads=1)(*arrays)
    np.testing.assert_allclose(arrays[2], expected)
