"""C integer expressions in Python, against the C compiler's own answers."""

from __future__ import annotations

import functools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codegen.build import load
from codegen.integer import HELPERS
from codegen.opencl.python_text import evaluate, python_text

NAMES = ("N", "t", "lambda_")
TEXTS = [
    "N",
    "-N + 3*t",
    "(N + 7)/8",
    "(N - 7)/8*8",
    "(N - t) % 5",
    "N - t - lambda_",
    "N - (t - lambda_)",
    "N/3/2 % 4",
    "imin(N, imax(t, 4*lambda_ - 1))",
    "floord(N - 9, 4)",
    "(N > t ? N - t : (t == 3 ? 1 : -1))",
    "N > t && t >= 0 || lambda_ != 2",
    "1 + (N && t)",
    "(N == 2) + (t <= lambda_) - (N < 3 == t < 3)",
    "N > 0 ? 1 : t > 0 ? 2 : 3",
    "-(-N)/-4",
    "!(N > t)",
]


@functools.cache
def c_answers() -> Any:
    """A library with a function for each text, `f0` and so on."""
    heads = [f"int64_t f{n}(int64_t N, int64_t t, int64_t lambda_)" for n in range(len(TEXTS))]
    lines = ["#include <stdint.h>", *HELPERS.values()]
    lines += [f"{head} {{ return {text}; }}" for head, text in zip(heads, TEXTS, strict=True)]
    return load("\n".join(lines) + "\n", "".join(f"{head};\n" for head in heads), ("-fwrapv",))


@given(st.integers(-40, 40), st.integers(-40, 40), st.integers(-40, 40))
def test_values_are_those_of_c(n: int, t: int, third: int) -> None:
    library = c_answers()
    for number, text in enumerate(TEXTS):
        expected = getattr(library.lib, f"f{number}")(n, t, third)
        assert evaluate(text, {"N": n, "t": t, "lambda_": third}) == expected, text


def test_names_never_meet_python() -> None:
    assert python_text("class + None*N") == "(v_class + v_None*v_N)"


@pytest.mark.parametrize(
    "text", ["", "N +", "N + * t", "(N", "N)", "f(N)", "N = 3", "N[0]", "1.5", "imin(N, )", "N ? 1"]
)
def test_what_is_no_such_expression_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="no integer expression of C as plans have them"):
        python_text(text)
