"""Calls of functions and nests inside nests: random ones give what Python gives when it calls them."""

from __future__ import annotations

import linecache
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import Phase, assume, given, settings
from hypothesis import strategies as st

import poly
from poly import Nest, f32, f64, i32

M, N = poly.sizes("M N")


def module(text: str, **names: Any) -> dict[str, Any]:
    """The names of a module given as text, whose functions have their lines."""
    file = f"<inlining {zlib.crc32(text.encode())}>"
    linecache.cache[file] = len(text), None, text.splitlines(keepends=True), file
    made = {"__name__": "inlining", **names}
    exec(compile(text, file, "exec"), made)
    return made


def helpers() -> ModuleType:
    """A module whose SCALE is another one than that of the nests."""
    made = ModuleType("helpers")
    vars(made).update(module("SCALE = 1.0\ndef less(v):\n    return v - SCALE\n"))
    return made


def loops(text: str, **names: Any) -> Nest:
    """The last nest, `whole`, of a module."""
    known = {"poly": poly, "np": np, "f64": f64, "f32": f32, "i32": i32, "M": M, "N": N, "helpers": helpers(), **names}
    return poly.nest(module(text, **known)["whole"])


def in_python(text: str, sizes: dict[str, int], *arguments: Any) -> None:
    """Run the same text as Python does: sizes are integers, and decorators and types mean nothing."""
    plain = {"poly": SimpleNamespace(nest=lambda function: function), "np": np, "helpers": helpers(), **sizes}
    text = text.replace("p: f64[N]", "p = np.zeros(N)")
    module("from __future__ import annotations\n" + text, **plain)["whole"](*arguments)


NAMES = ("t", "i", "x", "s", "N_2")
"""Names of locals and loops, which meet those of other functions."""
FORMS = (
    "({0} + {1})", "({0} - {1})", "SCALE * {0}", "max({0}, {1})", "({0} if {0} < {1} else {1})", "helpers.less({1})",
)  # fmt: skip


def draw_value(draw: st.DrawFn, leaves: list[str], calls: list[str], depth: int = 2) -> str:
    """An expression of numbers, whose calls take one argument or two."""
    if not depth or draw(st.integers(0, 3)) == 0:
        return draw(st.sampled_from([*leaves, "SCALE", "1.0"]))
    inner = [draw_value(draw, leaves, calls, depth - 1) for _ in range(2)]
    call = [f"{name}({{0}}, {{1}})" for name in calls] + [f"{name}(b={{1}}, a={{0}})" for name in calls]
    call += [f"{name}({{0}})" for name in calls]
    return draw(st.sampled_from([*FORMS, *call, *call])).format(*inner)


def draw_function(draw: st.DrawFn, number: int) -> str:
    """A function of values, which may call the earlier ones."""
    calls = [f"value{at}" for at in range(number)]
    default, local = draw(st.sampled_from(["0.5", "SCALE", "2"])), draw(st.sampled_from(NAMES))
    lines = [f"{local} = {draw_value(draw, ['a', 'b'], calls)}"]
    leaves = ["a", "b", local]
    if draw(st.booleans()):
        lines += [f"if {draw_value(draw, leaves, calls, 1)} > b:", f"    return {draw_value(draw, leaves, calls, 1)}"]
    if draw(st.booleans()):
        lines += [f"if a < {local}:", f"    {local} += {draw_value(draw, leaves, calls, 1)}", "else:", "    a = b"]
    lines.append(f"return {draw_value(draw, leaves, calls)}")
    return "\n    ".join([f"def value{number}(a, b={default}):", *lines])


@st.composite
def modules(draw: st.DrawFn) -> str:
    values = [draw_function(draw, number) for number in range(draw(st.integers(1, 3)))]
    calls = [f"value{at}" for at in range(len(values))]
    index, local = (draw(st.sampled_from(["t", "i", "s", "N_2"])) for _ in range(2))
    local = local if local != index else "r"
    update = draw_value(draw, [f"u[{index}]", local, "v"], calls)
    total = f"""
def total(u, v):
    {local} = v - v
    for {index} in range({draw(st.sampled_from(["N", "half(N)", "min(N, 3)"]))}):
        {local} += {update}
    return {local} + v"""
    part = f"""
{draw(st.sampled_from(["@poly.nest", ""]))}
def part(x: f64[N], y: f64[N, N + 1], v: f64):
    for {index} in range(half(N)):
        {local} = {draw_value(draw, [f"x[{index}]", f"y[{index}, wrapped({index} - 1)]", "v"], calls)}
        y[{index}, {index} + 1] = {local}
        x[wrapped({index} + 1)] {draw(st.sampled_from(["=", "+="]))} {local} - v"""
    calls_of_part = ["part(p, y, 1.5)", "part(v=x[0], x=x, y=y)", "part(x, y, v)", "part(p, y, value0(v))"]
    leaves = ["x[i]", "x[wrapped(i + 1)]", "y[i, half(i)]", "v", "t"]
    once = draw(st.sampled_from(calls_of_part))
    return "\n".join(
        [
            *values,
            total,
            part,
            f"""
def whole(x: f64[N], y: f64[N, N + 1], v: f64):
    p: f64[N]
    for s in range(N):
        p[s] = {draw_value(draw, ["x[s]", "v"], calls)}
    {once}
    for i in range(N):
        t = {draw_value(draw, leaves[:-1], calls)}
        if {draw_value(draw, leaves, calls, 1)} < t:
            y[i, i] = {draw_value(draw, leaves, calls)}
    t = total({draw(st.sampled_from(["x", "p"]))}, {draw(st.sampled_from(["v", "x[N - 1]"]))})
    for i in range(half(N), N):
        x[i] {draw(st.sampled_from(["=", "+="]))} {draw_value(draw, leaves, calls)}
""",
        ]
    )


def data(size: int) -> list[Any]:
    rng = np.random.default_rng(size)
    return [*(rng.integers(-4, 5, shape).astype(np.float64) for shape in ((size,), (size, size + 1))), 3.0]


@contextmanager
def assumed_small() -> Iterator[None]:
    """Reject what repeats its arguments too often."""
    try:
        yield
    except poly.SpecError as error:
        assume("too many parts" not in str(error))
        raise


HEAD = """
SCALE = 2.0
def half(k):
    return (k + 1) // 2
def wrapped(k):
    return k % N
"""


@settings(max_examples=15, deadline=None, phases=[Phase.generate])
@given(modules(), st.sampled_from([1, 2, 7]))
def test_calls_give_what_python_gives(text: str, size: int) -> None:
    with assumed_small():
        made = loops(HEAD + text)
    arrays, expected = data(size), data(size)
    made(*arrays)
    in_python(HEAD + text, {"N": size}, *expected)
    for got, wanted in zip(arrays, expected, strict=True):
        np.testing.assert_array_equal(got, wanted)


REFUSED = {
    "recursion": ("def f(v):\n    return f(v)", "x[i] = f(x[i])", "`f` calls itself", "without recursion"),
    "mutual": ("def f(v):\n    return g(v)\ndef g(v):\n    return f(v)", "x[i] = f(x[i])", "`f` calls itself", ""),
    "missing": ("def f(a, b):\n    return a", "x[i] = f(x[i])", "missing a required argument: 'b'", "Give one value"),
    "unknown": ("def f(a):\n    return a", "x[i] = f(c=x[i])", "the arguments don't fit `f(a)`", "Give one value"),
    "starred": ("def f(*a):\n    return a", "x[i] = f(x[i])", "there is a `*`", "Give one value"),
    "loop in a value": (
        "def f(a):\n    for i in range(3):\n        a += i\n    return a",
        "x[i] += f(1.0)",
        "`f` does more",
        "",
    ),
    "no value": ("def f(a):\n    b = a", "x[i] = f(1.0)", "`f` returns nothing", "has assignments to names"),
    "one side": (
        "def f(a):\n    if a > 0:\n        t = a\n    return t",
        "x[i] = f(x[i])",
        "`t` in `f` may be read",
        "",
    ),
    "undefined": ("def f(a):\n    return a + t", "t = 1.0; x[i] = f(x[i])", "`t` in `f` is not defined", "Define it"),
    "own log": (
        "def f(a):\n    return np.log(a) + log(a)",
        "log = 1.0; x[i] = f(log)",
        "calls `log`, which stands for",
        "",
    ),
    "too large": (
        "def f(a):\n" + "    a = a * a\n" * 30 + "    return a",
        "x[i] = f(x[i])",
        "too many parts",
        "in scalars",
    ),
    "too many ifs": (
        "def f(a):\n" + "    if a > 1:\n        a = 1 - a\n" * 40 + "    return a",
        "x[i] = f(x[i])",
        "too many parts",
        "",
    ),
    "a nest's value": (
        "@poly.nest\ndef f(a: f64[N]):\n    a[0] = 1.0",
        "x[i] = f(x)",
        "has no value",
        "as a statement",
    ),
    "shape": (
        "@poly.nest\ndef f(a: f64[N, N]):\n    a[0, 0] = 1.0",
        "f(x)",
        "`x` is f64[N], which is no a: f64[N, N]",
        "",
    ),
    "type": ("@poly.nest\ndef f(a: f32[N]):\n    a[0] = 1.0", "f(x)", "which is no a: f32[N] of `f`", "Give an array"),
    "order": (
        "@poly.nest(reassociate=False)\ndef f(a: f64[N]):\n    a[0] += 1.0",
        "f(x)",
        "keeps the order of its updates",
        "",
    ),
    "open size": (
        "@poly.nest\ndef f(a: f64[N]):\n    for t in range(M):\n        a[0] += 1.0",
        "f(x)",
        "`M` of `f` does not follow",
        "Give it by keyword: `M=...`.",
    ),
    "decorated": (
        "import functools\ndef f(a):\n    return a\n@functools.wraps(f)\ndef f(a):\n    return a",
        "x[i] = f(x[i])",
        "`f` is decorated",
        "plain function",
    ),
    "lambda": ("f = lambda a: a", "x[i] = f(x[i])", "the text of `f` can't be read", "Write it with `def`"),
    "parameter": ("def f(a):\n    a = 1.0", "f(x[i])", "`f` assigns its parameter `a`", "Assign a local"),
}


@pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED)
def test_what_can_not_be_put_in_place_is_refused(case: tuple[str, str, str, str]) -> None:
    text, line, why, remedy = case
    whole = f"\ndef whole(x: f64[N]):\n    for i in range(N):\n        {line}\n"
    with pytest.raises(poly.SpecError) as caught:
        loops(text + whole)
    assert why in str(caught.value)
    assert remedy in str(caught.value)
    assert f"    {line}" in str(caught.value), "the place is that of the call"


def test_scalars_of_a_nest_are_converted_and_sizes_follow() -> None:
    text = """
@poly.nest
def scaled(A: f32[M, N + 1], alpha: f32):
    for i in range(M):
        for j in range(N):
            A[i, j] = alpha * A[i, j]
def whole(B: f32[N, M], x: f64[N]):
    scaled(B, x[0])
"""
    made = loops(text)
    rng = np.random.default_rng(1)
    one, x = rng.normal(size=(3, 5)).astype(np.float32), np.array([0.1, 2, 3])
    expected = one.copy()
    expected[:, :4] *= np.float32(0.1)
    made(one, x)
    np.testing.assert_array_equal(one, expected)


def test_a_nest_that_calls_another_is_the_same_kernel_as_one_that_is_written_out() -> None:
    text = """
@poly.nest
def product(A: f64[N, N], B: f64[N, N], C: f64[N, N]):
    for i in range(N):
        for j in range(N):
            for k in range(N):
                C[i, j] += A[i, k] * B[k, j]
def whole(A: f64[N, N], B: f64[N, N], C: f64[N, N]):
    product(A, B, C)
"""
    made = loops(text)
    written = loops(text.replace("@poly.nest", "").replace("whole", "other").replace("product(A: ", "whole(A: "))
    assert made.structure == written.structure
    assert "for k in range(N):" in made.source


def test_a_function_of_the_users_own_is_what_a_name_stands_for() -> None:
    made = loops("def exp(v):\n    return v + 1.0\ndef whole(x: f64[N]):\n    x[0] = exp(x[1])\n")
    x = np.array([5.0, 2.0])
    made(x)
    assert x.tolist() == [3.0, 2.0]
