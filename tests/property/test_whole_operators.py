"""Operators of integers have NumPy's results for all operands, also those for which C's have none."""

from __future__ import annotations

import ctypes
import subprocess
from itertools import product
from pathlib import Path

import numpy as np
import pytest

import poly
from codegen.arithmetic import WHOLE, functions
from codegen.calls.numpy_types import numpy_type
from codegen.macros import definitions
from microkernels.dtypes import DTYPES
from poly import i16, u8
from poly.ir.operations import functions as operations

N = poly.sizes("N")
UFUNCS = {
    "//": np.floor_divide, "%": np.remainder, "<<": np.left_shift, ">>": np.right_shift, "&": np.bitwise_and,
    "|": np.bitwise_or, "^": np.bitwise_xor,
}  # fmt: skip
NAMES = {"//": "floordiv", "%": "mod", "<<": "lshift", ">>": "rshift", "&": "and", "|": "or", "^": "xor"}
INTEGERS = [dtype for dtype in DTYPES.values() if not dtype.is_float]


def pairs(dtype: np.dtype) -> tuple[np.ndarray, np.ndarray]:
    """All pairs of numbers near the ends of the type, near 0, and of counts near the sizes of types."""
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    near = (low, low + 1, -65, -9, -8, -7, -3, -2, -1, *range(10), 15, 16, 17, 31, 32, 33, 63, 64, 65, high - 1, high)
    every = sorted({value for value in near if low <= value <= high})
    left, right = zip(*product(every, every), strict=True)
    return np.array(left, dtype), np.array(right, dtype)


def test_the_functions_in_c_and_the_reference_have_the_values_of_numpy(tmp_path: Path) -> None:
    known = functions()
    names = [f"{word}_{dtype.name}" for dtype in INTEGERS for word in WHOLE.values()]
    helpers = [known[name] for dtype in INTEGERS for name in (f"neg_{dtype.name}",) if name in known]
    text = "\n".join([*helpers, *(known[name] for name in names)])
    calls = "\n".join(
        f"void all_{word}_{dtype.name}(int n, const {dtype.c_name} *a, const {dtype.c_name} *b, {dtype.c_name} *y)"
        f"{{ for (int i = 0; i < n; i++) y[i] = {word}_{dtype.name}(a[i], b[i]); }}"
        for dtype in INTEGERS
        for word in WHOLE.values()
    )
    (tmp_path / "all.c").write_text(f"#include <stdint.h>\n{definitions(text)}\n{text}\n{calls}\n")
    options = ("-O1", "-Wall", "-Wextra", "-Wconversion", "-Werror", "-fsanitize=undefined", "-fno-sanitize-recover")
    command = ["cc", *options, "-shared", "-fPIC", str(tmp_path / "all.c"), "-o", str(tmp_path / "all.so")]
    subprocess.run(command, check=True)
    library = ctypes.CDLL(str(tmp_path / "all.so"))
    for dtype, (symbol, word) in product(INTEGERS, WHOLE.items()):
        a, b = pairs(np.dtype(numpy_type(dtype)))
        by_c = np.zeros_like(a)
        getattr(library, f"all_{word}_{dtype.name}")(len(a), *(ctypes.c_void_p(x.ctypes.data) for x in (a, b, by_c)))
        with np.errstate(all="ignore"):
            wanted = UFUNCS[symbol](a, b)
            by_reference = [operations()[NAMES[symbol]](x, y) for x, y in zip(a, b, strict=True)]
        np.testing.assert_array_equal(by_c, wanted, f"{word} of {dtype}")
        np.testing.assert_array_equal(by_reference, wanted, f"{symbol} of {dtype}")


@poly.nest
def of_bytes(a: u8[N], b: u8[N], y: u8[N], z: u8[N]):
    for i in range(N):
        y[i] = (a[i] >> 4 & 15) + (b[i] // 3 ^ ~a[i])
        z[i] |= a[i] << 1
        z[i] %= 7


@poly.nest
def of_words(a: i16[N], b: i16[N], y: i16[N], z: i16[N]):
    for i in range(N):
        last = a[i] // b[i]
        last <<= 2
        y[i] = last if a[i] % 5 == 2 else b[i] & 12
        z[i] //= -3


@pytest.mark.parametrize("nest", [of_bytes, of_words], ids=lambda nest: nest.name)
def test_nests_have_the_values_of_numpy(nest: poly.Function) -> None:
    a, b = pairs(np.dtype(numpy_type(nest.arguments[0].dtype)))
    z = a[::-1].copy()
    with np.errstate(all="ignore"):
        if nest is of_bytes:
            wanted = (a >> 4 & 15) + (b // 3 ^ ~a), (z | a << 1) % 7
        else:
            wanted = np.where(a % 5 == 2, a // b << 2, b & 12), z // -3
    for run in (nest.reference, poly.compile(nest, target="c", records=False)):
        got = np.zeros_like(a), z.copy()
        run(a, b, *got)
        np.testing.assert_array_equal(got, wanted)
