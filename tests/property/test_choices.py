"""Conditions on data: random loops with choices and `if`s give bitwise what Python gives for the same text."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import poly
from poly import DType, f32, f64, i8, i32
from poly.frontends.python import parse_text
from poly.frontends.source import Source
from poly.ir.nest import Nest
from poly.ir.reference import reference

N = poly.sizes("N")
ODD = (np.nan, np.inf, -np.inf, -0.0, 0.0, 0.5, -1.5, 3.0)
OPS = ("<", "<=", ">", ">=", "==", "!=")


@st.composite
def conditions(draw: st.DrawFn, affine: bool = False) -> str:
    if affine:
        return draw(st.sampled_from(["i > 1", "i % 3 == 1", "i < N - 1", "1 <= i <= 5", "not i == 2"]))
    one = f"{draw(values(0))} {draw(st.sampled_from(OPS))} {draw(values(0))}"
    form = draw(st.sampled_from(["{}", "{}", "not ({})", "{} and x[i] > 0", "{} or y[i] < 1", "{} and i > 2"]))
    return form.format(one)


@st.composite
def values(draw: st.DrawFn, depth: int) -> str:
    if not depth:
        return draw(st.sampled_from(["x[i]", "y[i]", "x[i + 1]", "s", "2", "i"]))
    left, right = draw(values(depth - 1)), draw(values(depth - 1))
    forms = [f"({left} {op} {right})" for op in "+-*"] + [f"max({left}, {right})", f"-{left}"]
    return draw(st.sampled_from([*forms, *(f"({left} if {draw(conditions(a))} else {right})" for a in (True, False))]))


@st.composite
def blocks(draw: st.DrawFn, depth: int) -> list[str]:
    lines: list[str] = []
    for _ in range(draw(st.integers(1, 2))):
        if depth and draw(st.integers(0, 2)):
            lines += [f"if {draw(conditions(draw(st.integers(0, 3)) == 0))}:", *indented(draw(blocks(depth - 1)))]
            if draw(st.booleans()):
                lines += ["else:", *indented(draw(blocks(depth - 1)))]
            continue
        target = draw(st.sampled_from(["x[i]", "y[i]", "z[0]", "s", "x[i] = z[i]"]))
        update = draw(st.sampled_from(["=", "=", "+=", "-=", "*="])) if " = " not in target else "="
        lines.append(f"{target} {update} {draw(values(2))}")
    if draw(st.integers(0, 4)) == 0:
        lines += ["if x[i] > z[0]:", "    z[0] = x[i]"]
    return lines


def indented(lines: list[str]) -> list[str]:
    return ["    " + line for line in lines]


def test_a_sum_keeps_its_negative_zero_where_the_condition_is_false() -> None:
    made = nest(["if x[i] > 0:", "    y[i] += 1"], f64)
    x, y, z = np.full(9, -1.0), np.full(9, -0.0), np.zeros(9)
    assert np.signbit(runs(made, [x, y, z])[1]).all()


def nest(lines: list[str], dtype: DType) -> Nest:
    body = [f"s: {dtype.name} = 1", "for i in range(N):", *indented(lines), "z[1] = s"]
    args = ", ".join(f"{name}: {dtype.name}[N + 2]" for name in "xyz")
    text = "\n".join([f"def choices({args}):", *indented(body)])
    return parse_text(Source(text, "choices", 1), {"N": N, dtype.name: dtype}, reassociate=False)


def data(dtype: DType, count: int, seed: int) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    drawn = rng.choice(ODD, (3, count)) if dtype.is_float else rng.integers(-3, 4, (3, count))
    return list(drawn.astype(dtype.numpy_name))


def runs(made: Nest, arrays: list[np.ndarray], **options: Any) -> list[np.ndarray]:
    results = [array.copy() for array in arrays]
    poly.compile(made, records=False, **options)(*results)
    return results


@settings(max_examples=15, deadline=None)
@given(blocks(2), st.sampled_from([f32, f64, i32, i8]), st.integers(0, 99))
def test_conditions_on_data_are_those_of_python(lines: list[str], dtype: DType, seed: int) -> None:
    try:
        made = nest(lines, dtype)
    except poly.SpecError as error:
        assert "reads one of them" in str(error)
        return
    arrays = data(dtype, 21, seed)
    expected = [array.copy() for array in arrays]
    reference(made, tuple(expected))
    for target in ("c", "c:portable"):
        for got, wanted in zip(runs(made, arrays, target=target), expected, strict=True):
            np.testing.assert_array_equal(got, wanted)
            number = ~np.isnan(wanted)
            np.testing.assert_array_equal(np.signbit(got)[number], np.signbit(wanted)[number])


@pytest.mark.parametrize("dtype", [f32, f64, i32])
@pytest.mark.parametrize("op", ["+=", "-=", "*="])
def test_an_update_below_a_condition_stays_a_reduction(op: str, dtype: DType) -> None:
    head = f"def total(x: {dtype.name}[N], y: {dtype.name}[1]):"
    text = f"{head}\n    for i in range(N):\n        if x[i] > 0:\n            y[0] {op} x[i]"
    made = parse_text(Source(text, "total", 1), {"N": N, dtype.name: dtype})
    assert made.statements[0].op == ("*" if op == "*=" else "+")
    x, y = data(dtype, 40, 3)[0], np.ones(1, dtype.numpy_name)
    x = np.where(np.isfinite(x), x, 2).astype(dtype.numpy_name)
    kept = x[x > 0]
    expected = {"+=": 1 + kept.sum(), "-=": 1 - kept.sum(), "*=": kept.prod()}[op]
    np.testing.assert_allclose(runs(made, [x, y])[1], expected, rtol=1e-6)


def test_the_idiom_of_a_maximum_is_a_reduction() -> None:
    text = "def top(x: f64[N], y: f64[1]):\n    for i in range(N):\n        if x[i] > y[0]:\n            y[0] = x[i]"
    assert parse_text(Source(text, "top", 1), {"N": N, "f64": f64}).statements[0].op == "max"
