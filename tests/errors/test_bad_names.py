"""Names that mean something to C, to isl or to the generated code: they work, or are refused with the line."""

from __future__ import annotations

import linecache
import re

import numpy as np
import pytest

import poly

REFUSED = (
    *("double", "register", "restrict", "struct", "int", "inline", "typeof"),
    *("mod", "floor", "exists", "rat", "min", "exp", "NAN", "INFINITY", "é", "Ω"),
)
TAKEN = (
    *("printf", "malloc", "main", "memcpy", "int64_t", "stdin", "NULL", "M_PI", "errno", "I"),
    *("threads", "workspace", "c0", "c1", "i_tile", "A_pack", "imin", "overlap", "unix"),
    *("vec_f32_avx512", "load_f32_avx512"),
)
"""Names of C's library and of the generated code: they are a user's to use."""
ROLES = ("size", "function", "array", "output", "loop")
TEMPLATE = """
import poly
from poly import f64
{size} = poly.sizes("{size}")
@poly.nest
def {function}({array}: f64[{size}, {size}], {output}: f64[{size}]):
    for {loop} in range({size}):
        for other in range({size}):
            {output}[{loop}] += {array}[{loop}, other]
"""


def run_with(**names: str) -> None:
    """Sum the rows of a matrix by a nest with these names, and check the sums."""
    names = {"size": "N", "function": "rows", "array": "A", "output": "x", "loop": "i"} | names
    text = TEMPLATE.format(**names)
    nest = poly_from(text, names["function"])
    A, x = np.random.default_rng(0).random((19, 19)), np.zeros(19)
    nest(A, x)
    np.testing.assert_allclose(x, A.sum(axis=1))


def poly_from(text: str, function: str) -> poly.Nest:
    """The nest of that name in a file's text."""
    file = f"<{function}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    namespace: dict[str, object] = {"__name__": "names"}
    exec(compile(text, file, "exec"), namespace)
    return namespace[function]


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize("role", ["size", "array", "output", "loop"])
def test_name_is_refused_with_its_line(name: str, role: str) -> None:
    with pytest.raises(poly.SpecError, match=re.escape(f"`{name}`")):
        run_with(**{role: name})


@pytest.mark.parametrize("first", range(len(TAKEN)))
def test_name_is_free_to_use(first: int) -> None:
    """Each name in each role, five names a nest."""
    run_with(**{role: TAKEN[(first + place) % len(TAKEN)] for place, role in enumerate(ROLES)})


@pytest.mark.parametrize("name", ["double", "min", "round", "y1", "fmaf", "isnan", "malloc", "bool", "__asm__"])
def test_any_name_of_a_function(name: str) -> None:
    run_with(function=name)


def test_a_variable_may_hide_a_function_of_the_library() -> None:
    kernel = poly.compile(
        poly_from(TEMPLATE.format(size="N", function="rows", array="j1", output="y1", loop="j0"), "rows")
    )
    assert "double *restrict y1" in kernel.source


def test_local_named_like_a_keyword() -> None:
    text = TEMPLATE.replace("            {output}", "            float = {array}[{loop}, other]\n            {output}")
    with pytest.raises(poly.SpecError, match="float"):
        poly_from(text.format(size="N", function="rows", array="A", output="x", loop="i"), "rows")


def test_names_of_generated_code_are_free_to_use() -> None:
    """The variables of a microkernel's call get out of the way of a nest's own names."""
    n, row_a, tile = poly.sizes("n row_a tile")

    @poly.nest
    def run(
        lanes: poly.f32[n, row_a], offsets: poly.f32[row_a, tile], tile_rows: poly.f32[n, tile], length: poly.f32
    ) -> None:
        for corner_row in range(n):
            for row in range(tile):
                for steps0 in range(row_a):
                    tile_rows[corner_row, row] += length * lanes[corner_row, steps0] * offsets[steps0, row]

    rng = np.random.default_rng(0)
    left, right = rng.random((40, 30), np.float32), rng.random((30, 50), np.float32)
    for kernel in (poly.compile(run, threads=1), poly.compile(run, n=40, row_a=30, tile=50, threads=1)):
        out = np.ones((40, 50), np.float32)
        kernel(left, right, out, 0.5)
        np.testing.assert_allclose(out, 1 + 0.5 * (left.astype(np.float64) @ right), rtol=1e-5)
