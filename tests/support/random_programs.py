"""Random contractions and nests as users write them, and checks that compiled ones compute the same as the loops."""

from __future__ import annotations

import linecache
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np
from hypothesis import strategies as st

import poly
from poly import f64

Array = np.ndarray[Any, Any]
GUARD = 64
_files = count()


@dataclass(frozen=True)
class Guarded:
    """An array in the middle of a buffer whose ends hold a pattern."""

    buffer: Array
    array: Array

    @staticmethod
    def of(values: Array) -> Guarded:
        buffer = np.full(values.nbytes + 2 * GUARD, 0xA5, np.uint8)
        array = buffer[GUARD : GUARD + values.nbytes].view(values.dtype).reshape(values.shape)
        array[...] = values
        return Guarded(buffer, array)

    @property
    def intact(self) -> bool:
        return bool((self.buffer[:GUARD] == 0xA5).all() and (self.buffer[len(self.buffer) - GUARD :] == 0xA5).all())


@dataclass(frozen=True)
class Product:
    """A two-operand einsum with the extents of its letters."""

    left: str
    right: str
    output: str
    extents: dict[str, int]

    @property
    def text(self) -> str:
        return f"{self.left},{self.right}->{self.output}"

    def shape(self, letters: str) -> tuple[int, ...]:
        return tuple(self.extents[letter] for letter in letters)


@st.composite
def products(draw: st.DrawFn) -> Product:
    """Up to two letters in each role, in any order in each operand, with awkward extents."""
    counts = [draw(st.integers(0, 2)) for _ in range(4)]
    letters = iter("abcdefgh")
    rows, columns, reduce, batch = ["".join(next(letters) for _ in range(n)) for n in counts]
    extents = {letter: draw(st.sampled_from([1, 2, 3, 5, 7, 8, 13, 17])) for letter in rows + columns + reduce + batch}
    wide = draw(st.sampled_from(sorted(extents) or [""]))
    if wide:
        extents[wide] = draw(st.sampled_from([31, 64, 67, 130]))

    def mixed(letters: str) -> str:
        return "".join(draw(st.permutations(letters)))

    return Product(
        mixed(rows + reduce + batch), mixed(columns + reduce + batch), mixed(rows + columns + batch), extents
    )


ONES = Product("abdef", "cdef", "fbca", {"a": 1, "b": 2, "c": 2, "d": 31, "e": 1, "f": 1})
"""Loops of one iteration, along which everything seems contiguous."""


STRIDES = [
    "for i in range(0, M):",
    "    for j in range(0, i + 1):",
    "        for k in range(i, M, 2):",
    "            x[k + 3] = 0.25 * A[i + 0, i + 0] + 0.5 * x[i + 0]",
    "        for k in range(0, M):",
    "            x[k + 0] = 0.25 * A[i + 0, i + 0] + 0.5 * A[i + 0, i + 0]",
]
"""A nest whose exact dependences isl fails to find."""


def check_contraction(product: Product, dtype: poly.DType, known: bool, compiled: Callable[..., Any]) -> None:
    """Assert that the kernel that `compiled(nest, …)` makes agrees with float64 sums up to rounding."""
    rng = np.random.default_rng(0)
    left, right = (
        Guarded.of(rng.random(product.shape(letters)).astype(dtype.numpy_name) - 0.25)
        for letters in (product.left, product.right)
    )
    output = Guarded.of(np.full(product.shape(product.output), np.nan, dtype.numpy_name))
    nest = poly.einsum(product.text, dtype=dtype, **(product.extents if known else {}))
    compiled(nest)(left.array, right.array, output.array)
    exact = np.einsum(product.text, left.array.astype(np.float64), right.array.astype(np.float64))
    scale = np.einsum(product.text, np.abs(left.array).astype(np.float64), np.abs(right.array).astype(np.float64))
    length = np.prod([product.extents[letter] for letter in set(product.left) - set(product.output)], initial=1)
    bound = (length + 2) * np.finfo(dtype.numpy_name).eps * scale
    assert (np.abs(output.array - exact) <= bound).all()
    assert left.intact and right.intact and output.intact


MARGIN = 3


NAMES = "ijk"


@st.composite
def bounds(draw: st.DrawFn, outer: str) -> str:
    """`range(…)` with values from 0 to below the larger size."""
    low = draw(st.sampled_from(["0", "1", *outer]))
    high = draw(st.sampled_from(["M", "N", "N - 1", *(f"{name} + 1" for name in outer)]))
    step = draw(st.sampled_from(["", "", "", ", 2", ", 3"]))
    return f"range({low}, {high}{step})"


@st.composite
def elements(draw: st.DrawFn, loops: str) -> str:
    """An element of `x` (a vector) or `A`, `B` (matrices), at most MARGIN away from the loops."""

    def index() -> str:
        base = draw(st.sampled_from([*loops] or ["0"]))
        return f"{base} + {draw(st.integers(0, 2 * MARGIN - 1))}"

    name = draw(st.sampled_from("ABx"))
    return f"x[{index()}]" if name == "x" else f"{name}[{index()}, {index()}]"


@st.composite
def statements(draw: st.DrawFn, loops: str) -> str:
    """An assignment or a reduction of positive terms, so that no digits cancel."""
    operator = draw(st.sampled_from(["=", "=", "+="]))
    target = draw(elements(loops))
    first, second = draw(elements(loops)), draw(elements(loops))
    value = draw(
        st.sampled_from(
            [
                f"0.25 * {first} + 0.5 * {second}",
                f"0.125 * {first} * {second}",
                f"max({first}, 0.5 * {second})",
                f"min({first}, {second})",
                "1.5",
                f"sqrt({first})",
            ]
        )
    )
    return f"{target} {operator} {value}"


@st.composite
def bodies(draw: st.DrawFn, loops: str = "", depth: int = 0) -> list[str]:
    """Lines of loops and statements, at most three loops deep."""
    lines: list[str] = []
    for _ in range(draw(st.integers(1, 2 if depth else 3))):
        if depth < len(NAMES) and (depth == 0 or draw(st.booleans())):
            name = NAMES[depth]
            lines.append(f"for {name} in {draw(bounds(loops))}:")
            lines += [f"    {line}" for line in draw(bodies(loops + name, depth + 1))]
        elif draw(st.integers(0, 4)) == 0:
            lines += [f"if {draw(st.sampled_from([*loops]))} + 2 < M:", f"    {draw(statements(loops))}"]
        else:
            lines.append(draw(statements(loops)))
    return lines


def nest_of(lines: list[str]) -> poly.Nest:
    """The nest with this body."""
    file = f"<random nest {next(_files)}>"
    shape = f"f64[M + N + {2 * MARGIN}, M + N + {2 * MARGIN}]"
    text = "\n".join(
        [
            "@poly.nest",
            f"def random_nest(A: {shape}, B: {shape}, x: f64[M + N + {2 * MARGIN}], size: f64[M, N]):",
            *(f"    {line}" for line in lines),
        ]
    )
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    M, N = poly.sizes("M N")
    namespace: dict[str, Any] = {"poly": poly, "f64": f64, "M": M, "N": N, "__name__": "random_nest"}
    namespace["sqrt"] = np.sqrt
    exec(compile(text, file, "exec"), namespace)
    return namespace["random_nest"]


def check_nest(lines: list[str], m: int, n: int, known: bool, compiled: Callable[..., Any]) -> None:
    """Assert that the kernel that `compiled(nest, …)` makes computes the same as the loops as written."""
    nest = nest_of(lines)
    rng = np.random.default_rng(0)
    side = m + n + 2 * MARGIN
    inputs = [0.5 + rng.random(shape) for shape in ((side, side), (side, side), (side,), (m, n))]
    expected = [values.copy() for values in inputs]
    nest.reference(*expected)
    ours = [Guarded.of(values) for values in inputs]
    compiled(nest, **({"M": m, "N": n} if known else {}))(*(guarded.array for guarded in ours))
    for our, their in zip(ours, expected, strict=True):
        np.testing.assert_allclose(our.array, their, rtol=1e-9)
        assert our.intact
