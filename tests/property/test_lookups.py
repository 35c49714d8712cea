"""Elements looked up by data, `x[idx[i]]`: NumPy's results, values that are checked first, and refusals."""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path
from typing import Any

import islpy as isl
import numpy as np
import pytest
from header_calls import CODES
from headers import STRICT
from hypothesis import given, settings
from hypothesis import strategies as st

import poly
from poly import Nest, f64, i8, i16, i32, i64, u8
from poly.frontends.python import parse_text
from poly.frontends.source import Source
from poly.ir.lookups import index_ranges
from poly.ir.reference import reference
from poly.kernel import signature
from poly.measure.data import Arena
from poly.measure.orders import Data

M, N = poly.sizes("M N")
NAMES: dict[str, Any] = {"M": M, "N": N, "f64": f64, "u8": u8, "i8": i8, "i16": i16, "i32": i32, "i64": i64}


def nest(*lines: str, dtype: str = "i32") -> Nest:
    head = f"def looked(x: f64[M, N], y: f64[N, N], a: {dtype}[N, N], b: {dtype}[M]):"
    loops = ["    for i in range(N):", "        for j in range(N):", *(f"            {line}" for line in lines)]
    return parse_text(Source("\n".join([head, *loops]), "looked", 1), NAMES)


@st.composite
def lookups(draw: st.DrawFn) -> str:
    """An index of a dimension with M elements."""
    place = draw(st.sampled_from(["i, j", "j, i", "i // 2, j", "i, (j + 1) % N", "i, N - 1 - j", "0, j"]))
    return draw(st.sampled_from(["a[{}]", "b[a[{}]]", "M - 1 - a[{}]", "-(b[a[{}]] - M) - 1"])).format(place)


@settings(max_examples=12, deadline=None)
@given(
    lookups(),
    lookups(),
    st.sampled_from(["y[i, j] =", "y[i, j] +=", "y[i, 0] +="]),
    st.sampled_from(["u8", "i8", "i16", "i32", "i64"]),
    st.sampled_from([(1, 1), (5, 3), (2, 19)]),
    st.booleans(),
)
def test_lookups_give_what_python_gives(
    one: str, two: str, update: str, dtype: str, size: tuple[int, int], by_columns: bool
) -> None:
    line = f"{update} x[{one}, j] - x[{two}, i // 2] * (1 if a[i, j] > b[{one}] else 2)"
    made = nest(line, dtype=dtype)
    schedule = poly.schedule(made).interchange("i", "j") if by_columns else None
    arrays, expected = data(*size, dtype), data(*size, dtype)
    poly.compile(made, schedule=schedule, records=False)(*arrays)
    reference(made, tuple(expected))
    for got, wanted in zip(arrays, expected, strict=True):
        np.testing.assert_array_equal(got, wanted)


def data(m: int, n: int, dtype: str) -> list[np.ndarray]:
    rng = np.random.default_rng(m + n)
    kind = NAMES[dtype].numpy_name
    x, y = (rng.integers(-4, 5, shape).astype(np.float64) for shape in ((m, n), (n, n)))
    return [x, y, rng.integers(0, m, (n, n)).astype(kind), rng.integers(0, m, m).astype(kind)]


def test_a_lookup_depends_on_every_write_of_the_array() -> None:
    made = nest("y[i, j] = y[a[i, j], N - 1 - j] + x[0, j]")
    read = made.statements[0].relation(made.statements[0].reads[0])
    text = "[M, N] -> { S0[i, j] -> y[r, N - 1 - j] : 0 <= i < N and 0 <= j < N and 0 <= r < N }"
    assert read.is_equal(isl.Map(text))
    for step in (lambda s: s.parallel("i"), lambda s: s.parallel("j"), lambda s: s.interchange("i", "j")):
        with pytest.raises(poly.ScheduleError, match="y"):
            step(poly.schedule(made))
    arrays, expected = data(12, 12, "i32"), data(12, 12, "i32")
    poly.compile(made, threads=2)(*arrays)
    reference(made, tuple(expected))
    np.testing.assert_array_equal(arrays[1], expected[1])


@pytest.mark.parametrize(("bad", "names"), [(5, "a[2, 1] is 5, and must be from 0 to 4"), (-1, "a[2, 1] is -1")])
def test_a_value_outside_is_refused_before_anything_runs(bad: int, names: str) -> None:
    made = nest("y[i, j] = x[a[i, j], j]")
    kernel = poly.compile(made)
    arrays = data(5, 3, "i32")
    arrays[2][2, 1] = bad
    before = arrays[1].copy()
    for run in (kernel, kernel.arguments, lambda *given: reference(made, given)):
        with pytest.raises(poly.ArgumentError) as caught:
            run(*arrays)
        assert names in str(caught.value)
        assert "index 0 of x" in str(caught.value)
    np.testing.assert_array_equal(arrays[1], before)


def test_values_that_are_not_looked_up_may_be_anything() -> None:
    kernel = poly.compile(nest("if i > j:", "    y[i, j] = x[a[i, j] + 1, j]"))
    arrays = data(5, 4, "i32")
    arrays[2][:] = 99
    arrays[2][np.tril_indices(4, -1)] = -1
    kernel(*arrays)
    assert (arrays[1][3, :3] == arrays[0][0, :3]).all()


def test_only_the_iterations_that_run_look_up() -> None:
    """A step, whose places are no polyhedron: every second element may be anything."""
    made = nest("if (i + j) % 2 == 0:", "    y[i, j] = x[a[i, j], j]")
    kernel, arrays = poly.compile(made), data(5, 4, "i32")
    arrays[2][::2, 1::2] = arrays[2][1::2, ::2] = -1
    kernel(*arrays)
    assert (arrays[1][2, 2]) == arrays[0][arrays[2][2, 2], 2]
    arrays[2][3, 1] = -1
    with pytest.raises(poly.ArgumentError, match=r"a\[3, 1\] is -1"):
        kernel(*arrays)


def test_an_index_does_not_wrap_around() -> None:
    """127 + 1 is 128, though an i8 has no such number."""
    made = nest("y[i, j] = x[a[i, j] + 1, j]", dtype="i8")
    arrays, expected = data(200, 2, "i8"), data(200, 2, "i8")
    arrays[2][:] = expected[2][:] = 127
    poly.compile(made)(*arrays)
    reference(made, tuple(expected))
    np.testing.assert_array_equal(arrays[1], np.tile(arrays[0][128], (2, 1)))
    np.testing.assert_array_equal(expected[1], arrays[1])


def test_an_array_without_elements_has_no_index() -> None:
    _, y, a, _ = data(1, 3, "i32")
    with pytest.raises(poly.ArgumentError, match="must be from 0 to -1"):
        poly.compile(nest("y[i, j] = x[a[i, j], j]"))(np.empty((0, 3)), y, a, np.empty(0, np.int32))


@pytest.mark.parametrize(
    "line", ["y[i] += a[i][j] * x[col[i][j] - 1];", "c = col[i][j] - 2; y[i] += a[i][j] * x[c + 1];"]
)
def test_the_same_loops_in_c(line: str) -> None:
    made = poly.from_c(f"""
        void spmv(int n, int m, int k, double a[n][k], int col[n][k], double x[m], double y[n]) {{
            int c;
            for (int i = 0; i < n; i++) for (int j = 0; j < k; j++) {{ {line} }}
        }}""")
    rng = np.random.default_rng(3)
    a, col, x, y = rng.normal(size=(7, 4)), rng.integers(1, 6, (7, 4)), rng.normal(size=5), np.zeros(7)
    made(a, col.astype(np.int32), x, y)
    np.testing.assert_allclose(y, (a * x[col - 1]).sum(1))


def test_tuning_makes_indices_that_are_inside() -> None:
    made = nest("y[i, j] = x[a[i, j] - 1, j]").with_sizes({"M": 4, "N": 9})
    values = Arena(Data(signature(made, False), (), 1, False, frozenset(), index_ranges(made, {}))).values["a"]
    assert set(values.ravel()) == {1, 2, 3, 4}


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("x[a[i, j], j] = 1.0", "two iterations may write one element"),
        ("x[a[i, j], j] += 1.0", "Loop over the elements that are written"),
        ("y[i, j] = x[y[i, j], j]", "`y[i, j]` is no element of an array of integers"),
        ("y[i, j] = x[a[i, j] + i, j]", "does more with an element than adding it to an integer or a size"),
        ("y[i, j] = x[2 * a[i, j], j]", "does more with an element"),
        ("y[i, j] = x[a[i, j] - a[j, i], j]", "does more with an element"),
        ("y[i, j] = x[a[i, j + 1], j]", "reads a[i, j + 1] outside of a"),
        ("y[i, j] = x[a[i, j], j + 1]", "index 1 of dimension 1 is outside of 0 <= index < N = 1"),
    ],
)
def test_other_forms_are_refused(line: str, words: str) -> None:
    with pytest.raises(poly.SpecError) as caught:
        poly.compile(nest(line))
    assert words in str(caught.value)


def test_an_array_of_indices_is_not_written() -> None:
    with pytest.raises(poly.SpecError, match="`a` is written, and its elements are looked up as indices"):
        nest("y[i, j] = x[a[i, j], j]", "a[i, j] = 0")


HEADERS = {
    "sums": (["y[i, j] += x[a[i, j] + 1, j] * x[M - 1 - (M - 1) + b[a[j, i]], 0]"], "i16"),
    "some": (["if (i + j) % 2 == 0:", "    y[i, j] = x[a[i, j], j]"], "u8"),
}


@pytest.mark.parametrize(("name", "dense"), [("sums", False), ("some", True)])
def test_headers_check_indices(tmp_path: Path, name: str, dense: bool) -> None:
    """A call with an index outside returns a status and writes nothing; what isn't looked up may be anything."""
    lines, dtype = HEADERS[name]
    made = nest(*lines, dtype=dtype)
    header = poly.write_header(tmp_path / "x.h", poly.compile(made, threads=1), isas=["portable"], dense=dense)
    command = ["gcc", "-x", "c", "-O1", *STRICT, str(header), "-lm", "-o"]
    subprocess.run([*command, str(tmp_path / "try"), "-DLOOKED_SELFTEST"], check=True)
    assert subprocess.run([tmp_path / "try"], capture_output=True, check=True).stdout.rstrip().endswith(b"PASS")
    subprocess.run([*command, str(tmp_path / "x.so"), "-DLOOKED_IMPLEMENTATION", "-shared", "-fPIC"], check=True)
    function = ctypes.CDLL(str(tmp_path / "x.so")).looked

    def call(arrays: list[np.ndarray]) -> int:
        sizes = {"M": len(arrays[0]), "N": 5}
        given = [ctypes.c_int64(sizes[size]) for size in made.sizes]
        for array in arrays:
            given += [ctypes.c_void_p(array.ctypes.data), *[ctypes.c_int64(0)] * (array.ndim - 1) * (not dense)]
        return int(function(*given))

    x, y, a, b = arrays = data(6, 5, dtype)
    a[:] = np.minimum(a, 4)
    expected = [values.copy() for values in arrays]
    reference(made, tuple(expected))
    assert call(arrays) == CODES["OK"]
    np.testing.assert_allclose(y, expected[1])
    for place, bad in (((2, 4), 6), ((4, 2), 200 if dtype == "u8" else -2)):
        kept, a[place] = a[place], bad
        before = y.copy()
        assert call([x, y, a, b]) == CODES["BAD_INDEX"]
        np.testing.assert_array_equal(y, before)
        a[place] = kept
    if name == "some":
        a[0, 1] = 77
        assert call(arrays) == CODES["OK"]
        longer = [np.ones((300, 5)), y, np.full_like(a, 255), np.zeros(300, a.dtype)]
        assert call(longer) == CODES["OK"], "an array may be longer than the type of its indices counts"
