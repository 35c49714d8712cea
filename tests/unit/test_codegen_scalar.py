"""Expressions: their text, their types, and that C computes what NumPy does."""

from __future__ import annotations

import operator
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from programs import N, compiled, i, single

from codegen.ir.expr import (
    Binary,
    Cast,
    Const,
    Expr,
    FunctionCall,
    Index,
    Load,
    Logic,
    Predicate,
    Ternary,
    Truth,
    Unary,
)
from codegen.ir.integer import Affine
from codegen.ir.program import Assign, Buffer
from codegen.ir.promotion import join, type_of
from codegen.scalar import StatementPrinter, function_name
from codegen.typed_text import literal
from microkernels.dtypes import DType, f32, f64, i8, i32, i64

BUFFERS = {name: Buffer(name, dtype, (N,), "in") for name, dtype in {"x": f32, "d": f64, "n": i32, "b": i8}.items()}
X, D, INT, BYTE = (Load(name, (i,)) for name in "xdnb")
VALUES = {"i": Affine.name("i"), "N": Affine.name("N")}


def text(expr: Expr, op: str = "=", dtype: DType = f32) -> str:
    """The C statement `y[i] op= expr`."""
    body = StatementPrinter({**BUFFERS, "y": Buffer("y", dtype, (N,), "inout")}, VALUES)
    return body.assign(Assign(Load("y", (i,)), op, expr)).removeprefix("y[i] ")


def plus(a: Expr, b: Expr) -> Expr:
    return Binary("+", a, b)


def minus(a: Expr, b: Expr) -> Expr:
    return Binary("-", a, b)


def times(a: Expr, b: Expr) -> Expr:
    return Binary("*", a, b)


def over(a: Expr, b: Expr) -> Expr:
    return Binary("/", a, b)


@pytest.mark.parametrize(
    ("expr", "expected"),
    [
        (plus(times(X, X), X), "= x[i] * x[i] + x[i];"),
        (times(plus(X, X), X), "= (x[i] + x[i]) * x[i];"),
        (minus(X, minus(X, X)), "= x[i] - (x[i] - x[i]);"),
        (minus(minus(X, X), X), "= x[i] - x[i] - x[i];"),
        (over(X, times(X, X)), "= x[i] / (x[i] * x[i]);"),
        (Unary("-", plus(X, X)), "= -(x[i] + x[i]);"),
        (minus(X, Unary("-", X)), "= x[i] - -x[i];"),
        (Unary("-", Unary("-", X)), "= -(-x[i]);"),
        (times(Const(2), X), "= 2.0f * x[i];"),
        (times(Const(0.1), D), "= (float)(0.1 * d[i]);"),
        (plus(X, D), "= (float)(x[i] + d[i]);"),
        (times(Const(-0.5), X), "= -0.5f * x[i];"),
        (FunctionCall("exp", (X,)), "= exp_f32(x[i]);"),
        (FunctionCall("exp", (D,)), "= (float)exp_f64(d[i]);"),
        (FunctionCall("sqrt", (INT,)), "= (float)sqrt_f64(n[i]);"),
        (FunctionCall("abs", (X,)), "= fabsf(x[i]);"),
        (FunctionCall("abs", (INT,)), "= (float)abs_i32(n[i]);"),
        (FunctionCall("pow", (X, Const(3))), "= pow_f32(x[i], 3.0f);"),
        (FunctionCall("floor", (D,)), "= (float)floor_f64(d[i]);"),
        (Cast(f64, X), "= (float)((double)x[i]);"),
        (times(Cast(f64, X), Const(0.1)), "= (float)((double)x[i] * 0.1);"),
        (Ternary(Predicate("<", X, Const(0)), X, Const(2)), "= choose_f32(x[i] < 0.0f, x[i], 2.0f);"),
        (times(Ternary(Predicate("<", INT, D), X, D), X), "= (float)(choose_f64(n[i] < d[i], x[i], d[i]) * x[i]);"),
        (Ternary(Predicate("<", X, D), X, INT), "= (float)choose_f64(x[i] < d[i], (double)x[i], (double)n[i]);"),
        (Cast(i32, over(Cast(f32, BYTE), Const(0.75))), "= (float)((int32_t)((float)b[i] / 0.75f));"),
        (Cast(i8, times(Cast(f32, BYTE), Const(1.5))), "= to_i8_of_f32((float)b[i] * 1.5f);"),
        (Cast(i32, over(Const(1.0), Cast(f32, BYTE))), "= (float)to_i32_of_f32(1.0f / (float)b[i]);"),
        (FunctionCall("max", (X, Const(0))), "= max_f32(x[i], 0.0f);"),
        (FunctionCall("min", (X, D)), "= (float)min_f64(x[i], d[i]);"),
        (over(INT, INT), "= (float)((double)n[i] / n[i]);"),
        (plus(INT, Const(0.5)), "= (float)(n[i] + 0.5);"),
        (times(Index(Affine.name("i") + 1), X), "= (float)(i + 1) * x[i];"),
        (times(over(Index(i), Index(N)), X), "= (float)((double)i / (double)N) * x[i];"),
        (Const(float("inf")), "= INFINITY;"),
        (Const(float("-inf")), "= -INFINITY;"),
        (Const(float("nan")), "= NAN;"),
        (Const(1e30), "= 1e+30f;"),
    ],
)
def test_text(expr: Expr, expected: str) -> None:
    assert text(expr) == expected


def test_operators() -> None:
    assert text(X, "+") == "+= x[i];"
    assert text(plus(X, X), "*") == "*= x[i] + x[i];"
    assert text(Unary("-", plus(X, X)), "+") == "-= (x[i] + x[i]);"
    assert text(Unary("-", times(X, X)), "+") == "-= x[i] * x[i];"
    assert text(X, "max") == "= max_f32(y[i], x[i]);"
    assert text(BYTE, "+", i32) == "= add_i32(y[i], b[i]);"


def test_conversions_that_may_change_a_value_are_written_out() -> None:
    """As C does them anyway: the value is reckoned in the wider type, and then converted."""
    assert text(plus(X, D), "+") == "= (float)(y[i] + (x[i] + d[i]));"
    assert text(Unary("-", D), "+") == "= (float)(y[i] - d[i]);"
    assert text(times(D, D), "*") == "= (float)(y[i] * (d[i] * d[i]));"
    assert text(Index(i), "*") == "*= (float)i;"
    assert text(D, "max") == "= max_f32(y[i], (float)d[i]);"
    assert text(BYTE, "+", i8) == "= add_i8(y[i], b[i]);"
    assert text(times(BYTE, Const(3)), "=", i8) == "= mul_i8(b[i], 3);"
    assert text(BYTE, "=", i8) == "= b[i];"
    assert text(plus(INT, Index(i)), "=", i32) == "= add_i32(n[i], (int32_t)i);"
    assert text(Index(i), "=", f64) == "= (double)i;"
    assert text(plus(D, Index(Affine.of(3))), "=", f64) == "= d[i] + 3.0;"
    assert text(INT, "+", f64) == "+= n[i];"


def vectors(dtype: type) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(5)
    return {
        "x": rng.normal(size=33).astype(np.float32),
        "d": rng.normal(size=33),
        "n": rng.integers(-9, 9, 33).astype(np.int32) | 1,
        "y": rng.normal(size=33).astype(dtype),
    }


def by_numpy(expr: Expr, arrays: dict[str, np.ndarray], index: int, size: int) -> object:
    """The expression as Python computes it with NumPy's scalars."""
    match expr:
        case Const(value):
            return value
        case Index(affine):
            return affine.evaluate({"i": index, "N": size})
        case Load(name):
            return arrays[name][index]
        case Unary(_, operand):
            return -by_numpy(operand, arrays, index, size)
        case Binary(op, left, right):
            a, b = by_numpy(left, arrays, index, size), by_numpy(right, arrays, index, size)
            return {"+": lambda: a + b, "-": lambda: a - b, "*": lambda: a * b, "/": lambda: a / b}[op]()
        case FunctionCall(function, args):
            values = [by_numpy(arg, arrays, index, size) for arg in args]
            known = {"max": max, "min": min, "abs": abs, "pow": np.power}
            return (known.get(function) or getattr(np, function))(*values)
        case Cast(dtype, operand):
            return np.dtype(dtype.numpy_name).type(by_numpy(operand, arrays, index, size))
        case Ternary(test, then, other):
            chosen = by_numpy(then if holds(test, arrays, index, size) else other, arrays, index, size)
            kinds = [type_of(e, lambda name: BUFFERS[name].dtype) for e in (then, other)]
            joined = join(*kinds)
            return np.dtype(joined.numpy_name).type(chosen) if isinstance(joined, DType) else chosen


def holds(test: Truth, arrays: dict[str, np.ndarray], index: int, size: int) -> bool:
    match test:
        case Predicate(op, left, right):
            first, second = by_numpy(left, arrays, index, size), by_numpy(right, arrays, index, size)
            return bool(COMPARISONS[op](first, second))
        case Logic("not", (part,)):
            return not holds(part, arrays, index, size)
        case Logic(op, parts):
            return (all if op == "and" else any)(holds(part, arrays, index, size) for part in parts)


COMPARISONS = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq, "!=": operator.ne,
}  # fmt: skip
LEAVES = st.sampled_from([X, D, INT, Const(2), Const(0.75), Index(i), Index(N - i)])
FLOATS = st.sampled_from([X, D])


def truths() -> st.SearchStrategy[Truth]:
    """Comparisons of values that rounding does not decide, and some of them joined."""
    several = st.lists(
        st.builds(Predicate, st.sampled_from(sorted(COMPARISONS)), LEAVES, LEAVES), min_size=1, max_size=2
    )
    joined = st.builds(lambda op, parts: Logic(op, tuple(parts)), st.sampled_from(["and", "or"]), several)
    return st.one_of(joined, joined.map(lambda test: Logic("not", (test,))))


EXPRESSIONS = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.builds(Binary, st.sampled_from("+-*"), inner, inner),
        st.builds(lambda a, b: over(a, plus(FunctionCall("abs", (b,)), Const(1))), inner, inner),
        st.builds(lambda a: Unary("-", a), inner),
        st.builds(lambda f, a, b: FunctionCall(f, (a, b)), st.sampled_from(["max", "min"]), inner, inner),
        st.builds(lambda a: FunctionCall("tanh", (a,)), inner),
        st.builds(
            lambda f, a: FunctionCall(f, (Cast(f64, a),)), st.sampled_from(["sin", "cos", "floor", "ceil"]), inner
        ),
        st.builds(lambda a: FunctionCall("log", (plus(FunctionCall("abs", (Cast(f64, a),)), Const(0.5)),)), inner),
        st.builds(lambda a, b: FunctionCall("pow", (plus(FunctionCall("abs", (a,)), Const(0.5)), b)), FLOATS, FLOATS),
        st.builds(Cast, st.sampled_from([f32, f64, i64]), inner),
        st.builds(Ternary, truths(), inner, inner),
    ),
    max_leaves=6,
)


@settings(max_examples=25)
@given(EXPRESSIONS, st.sampled_from([f32, f64]))
@pytest.mark.slow
def test_c_computes_what_numpy_does(expr: Expr, dtype: DType) -> None:
    numpy_type = np.dtype(dtype.numpy_name)
    arrays = vectors(numpy_type.type)
    with np.errstate(all="ignore"):
        expected = np.array([by_numpy(expr, arrays, n, 33) for n in range(33)]).astype(numpy_type)
    buffers = [BUFFERS["x"], BUFFERS["d"], BUFFERS["n"], Buffer("y", dtype, (N,), "out")]
    compiled(single(expr, buffers))(arrays["x"], arrays["d"], arrays["n"], arrays["y"])
    scale = np.abs(expected).max() + 1
    tolerance = 1e-4 if f32 in (dtype, BUFFERS["x"].dtype) else 1e-12
    np.testing.assert_allclose(arrays["y"], expected, rtol=tolerance, atol=tolerance * scale)


@pytest.mark.parametrize("function", ["max", "min"])
def test_nan_goes_through_as_in_python(function: str) -> None:
    """`max(a, b)` is `a` unless `b > a`."""
    a = np.array([np.nan, 1, np.inf, -np.inf, -0.0, 0.0], np.float32)
    b = np.array([1, np.nan, np.nan, 2, 0.0, -0.0], np.float32)
    y = np.empty(6, np.float32)
    buffers = [Buffer("a", f32, (N,), "in"), Buffer("b", f32, (N,), "in"), Buffer("y", f32, (N,), "out")]
    compiled(single(FunctionCall(function, (Load("a", (i,)), Load("b", (i,)))), buffers))(a, b, y)
    python = {"max": max, "min": min}[function]
    expected = np.array([python(*pair) for pair in zip(a, b, strict=True)], np.float32)
    np.testing.assert_array_equal(y.view(np.int32), expected.view(np.int32))


def test_64_bit_integers_and_indices() -> None:
    y = np.zeros(3, np.int64)
    big = Const(2**40)
    compiled(single(plus(times(Index(i), big), Const(1)), [Buffer("y", i64, (N,), "out")]))(y)
    assert y.tolist() == [1, 2**40 + 1, 2**41 + 1]


def test_types_are_told_by_value() -> None:
    """A type that went to another process and came back is the same type."""
    twin = pickle.loads(pickle.dumps(f32))
    assert literal(0.5, twin) == literal(0.5, f32)
    assert function_name("exp", twin) == "exp_f32"
