"""Several rows in each iteration of a vector loop, against plain loops: they update the same elements, or one each."""

import re

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import poly
from poly import f32, f64, i32
from poly.autoschedule.rules import rows as rows_in_lanes
from poly.autoschedule.rules import sharing
from poly.autoschedule.rules.form import Form
from poly.model.core import Caches

B, C, H, M, N, W = poly.sizes("B C H M N W")


def nests(T):
    @poly.nest
    def prefixes(x: T[M, N], y: T[M, N]):
        for j in range(N):
            total: T = 0
            for i in range(M):
                total += x[i, j]
                y[i, j] = total

    @poly.nest
    def greatest(x: T[M, N], y: T[N]):
        for j in range(N):
            y[j] = x[0, j]
            for i in range(M):
                y[j] = max(y[j], x[i, j])

    @poly.nest
    def damped(x: T[M, N], y: T[N]):
        for j in range(N):
            y[j] = 0
        for i in range(M):
            for j in range(N):
                y[j] = x[i, j] - 2 * y[j]

    return prefixes, greatest, damped


NESTS = {dtype: nests(dtype) for dtype in (f32, f64, i32)}


@poly.nest
def averages(x: f32[B, H, W, C], y: f32[B, C]):
    for b in range(B):
        for c in range(C):
            total: f32 = 0.0
            for i in range(H):
                for j in range(W):
                    total += x[b, i, j, c]
            y[b, c] = total / (H * W)


@settings(max_examples=9, deadline=None)
@given(
    rows=st.integers(1, 40),
    columns=st.integers(1, 70),
    dtype=st.sampled_from([f32, f64, i32]),
    target=st.sampled_from(["c", "c:avx2", "c:portable"]),
    threads=st.sampled_from([1, 2]),
)
@example(16, 64, f32, "c", 1)
@example(13, 50, f64, "c:avx2", 1)
def test_columns(rows, columns, dtype, target, threads):
    x = np.random.default_rng(0).integers(-9, 9, (rows, columns)).astype(dtype.numpy_name)  # sums of these are exact
    last = np.zeros(columns, dtype.numpy_name)
    for row in x[: 10 if dtype == f32 else 30]:
        last = row - 2 * last
    for nest, wanted, part in zip(
        NESTS[dtype],
        (x.cumsum(axis=0, dtype=x.dtype), x.max(axis=0), last),
        (x, x, x[: 10 if dtype == f32 else 30]),
        strict=True,
    ):
        kernel = poly.compile(nest, sizes={"M": len(part), "N": columns}, target=target, threads=threads)
        y = np.full(wanted.shape, -77, x.dtype) if dtype == i32 else np.full(wanted.shape, np.nan, x.dtype)
        kernel(part, y)
        np.testing.assert_array_equal(y, wanted)


@settings(max_examples=6, deadline=None)
@given(
    sizes=st.tuples(st.integers(1, 3), st.integers(1, 9), st.integers(1, 9), st.integers(1, 70)),
    target=st.sampled_from(["c", "c:avx2"]),
)
@example((2, 7, 7, 64), "c")
def test_averages_of_channels(sizes, target):
    x = np.random.default_rng(0).standard_normal(sizes, np.float32)
    y = np.full((sizes[0], sizes[3]), np.nan, np.float32)
    poly.compile(averages, sizes=dict(zip("BHWC", sizes, strict=True)), target=target, threads=1)(x, y)
    bound = sizes[1] * sizes[2] * np.finfo(np.float32).eps * np.abs(x).max()
    np.testing.assert_allclose(y, x.astype(np.float64).mean(axis=(1, 2)), rtol=0, atol=bound)


@pytest.mark.parametrize(
    ("nest", "sizes", "rows"),
    [(NESTS[f32][0], {"M": 64, "N": 100}, 4), (averages, {"B": 1, "H": 7, "W": 7, "C": 64}, 7)],
    ids=["prefixes", "averages"],
)
def test_rows_are_inside_the_vector_loop(nest, sizes, rows):
    text = str(poly.compile(nest, sizes=sizes, threads=1).schedule)
    assert re.search(rf"for \w+ in .*# vectorize\n\s*for \w+ in .*# unroll {rows}\n", text)


ELEMENTS = ("i", "j", "i + j", "i / 2", "0", "2*i", "i - j + 40")
"""What the rows i and the lanes j may add to: an element each, the same, or another one's."""


def shared(nest):
    """The schedule whose two threads have sums of their own, with tiles of rows in their blocks; None if there is none.

    Threads pay off for more rows than can be run here: what they have to be worth is set to nothing. Blocks of
    more than 32 rows have tiles.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sharing, "WORTH", 0)
        form = sharing.summed_apart(Form.fixed((), poly.schedule(nest)), 2)
    tiled = form and rows_in_lanes.in_tiles_of_rows(form, Caches(32 << 10, 1 << 20, 0), 12)
    return form and (tiled or form).tried


@settings(max_examples=6, deadline=None)
@given(
    targets=st.just(["i", "j"]) | st.lists(st.sampled_from(ELEMENTS), min_size=1, max_size=3),
    arrays=st.lists(st.sampled_from("uv"), min_size=3, max_size=3),
    rows=st.integers(1, 12) | st.integers(66, 96),
    size=st.integers(2, 8),
    columns=st.integers(1, 40),
    kind=st.sampled_from([("double", f64), ("float", f32), ("int", i32)]),
    target=st.sampled_from(["c", "c:avx2", "c:portable"]),
    way=st.sampled_from(["given", "default", "shared"]),
)
@example(["i", "j"], ["u", "v", "u"], 12, 4, 37, ("double", f64), "c", "given")
@example(["i + j"], ["u", "u", "u"], 12, 4, 37, ("double", f64), "c", "given")
@example(["i / 2", "j"], ["u", "v", "u"], 12, 4, 37, ("float", f32), "c:avx2", "given")
@example(["i", "j"], ["u", "v", "u"], 12, 4, 40, ("float", f32), "c", "default")
@example(["i", "j"], ["u", "v", "u"], 72, 4, 37, ("double", f64), "c:avx2", "shared")
def test_sums_of_rows_and_columns(targets, arrays, rows, size, columns, kind, target, way):
    """Sums of small whole numbers are exact in every order. What a vector loop may not do is refused."""
    name, dtype = kind
    sums = [f"{array}[{element}] += A[i][j] * x[{'j' if at % 2 else 'i'}];" for at, (array, element) in
            enumerate(zip(arrays, targets, strict=False))]  # fmt: skip
    text = f"void f({name} A[{rows}][{columns}], {name} x[96], {name} u[192], {name} v[192])"
    loops = f"for (int i = 0; i < {rows}; i++) for (int j = 0; j < {columns}; j++) {{ {' '.join(sums)} }}"
    nest = poly.from_c(f"{text} {{ {loops} }}")
    try:
        made = poly.schedule(nest).split(i=size).order("i_tile j i").unroll(i=size).vectorize("j")
    except poly.ScheduleError:
        made = None
    schedules = {"given": made, "default": None, "shared": shared(nest)}
    kernel = poly.compile(nest, schedule=schedules[way], target=target, threads=1 + (way == "shared"))
    rng = np.random.default_rng(rows)
    shapes = [tuple(extent.number for extent in array.shape) for array in nest.arguments]
    given_ = [rng.integers(-9, 9, shape).astype(dtype.numpy_name) for shape in shapes]
    wanted = [x.copy() for x in given_]
    nest.reference(*wanted)
    kernel(*given_)
    for got, right in zip(given_, wanted, strict=True):
        np.testing.assert_array_equal(got, right)


@pytest.mark.parametrize(
    ("rows", "tile", "threads"), [(40, 8, 1), (35, 7, 1), (37, None, 1), (2000, 8, 2), (2100, 7, 2)]
)
def test_products_of_a_matrix_and_vectors_share_their_rows(rows, tile, threads):
    """Where tiles of rows are whole, each sum over a row has vectors of its own, also in a thread's block."""
    columns = 64 if threads == 1 else 2000
    sums = "u[i] += A[i][j] * x[j]; v[j] += A[i][j] * y[i];"
    vectors = f"double x[{columns}], double y[{rows}], double u[{rows}], double v[{columns}]"
    loops = f"for (int i = 0; i < {rows}; i++) for (int j = 0; j < {columns}; j++)"
    nest = poly.from_c(f"void f(double A[{rows}][{columns}], {vectors}) {{ {loops} {{ {sums} }} }}")
    kernel = poly.compile(nest, threads=threads)
    found = re.search(r"for \w+ in .*# vectorize\n\s*for \w+ in .*# unroll (\d)\n", str(kernel.schedule))
    assert (found and int(found[1])) == tile
    assert tile is None or len(re.findall(r"\+= sum_lanes_f64x\d\(", kernel.source)) == tile
