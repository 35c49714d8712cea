"""What the Python front end makes of a function: sizes, arrays, statements, reductions, the loop tree."""

from __future__ import annotations

import math

import islpy as isl
import numpy as np
import pytest

from codegen.ir.expr import Binary, Const, FunctionCall, Index, Load, Unary
from codegen.ir.integer import Affine
from microkernels.dtypes import DType, f32, f64, i32
from poly.frontends.python import parse, parse_text
from poly.frontends.source import Source
from poly.ir.nest import Array, Nest, Statement
from poly.ir.tree import Band, Leaf, Sequence

M, N, K = map(Affine.name, "MNK")
i, j = Affine.name("i"), Affine.name("j")
WIDTH = 3
SCALE = 0.25


def test_a_matrix_product() -> None:
    def matmul(A: f32[M, K], B: f32[K, N], C: f32[M, N]):
        for i in range(M):
            for j in range(N):
                for k in range(K):
                    C[i, j] += A[i, k] * B[k, j]

    nest = parse(matmul)
    k = Affine.name("k")
    assert (nest.name, nest.sizes) == ("matmul", ("M", "K", "N"))
    assert nest.arrays == (Array("A", f32, (M, K)), Array("B", f32, (K, N)), Array("C", f32, (M, N)))
    (statement,) = nest.statements
    assert str(statement.domain) == "[M, K, N] -> { S0[i, j, k] : 0 <= i < M and 0 <= j < N and 0 <= k < K }"
    assert (statement.target, statement.op) == (Load("C", (i, j)), "+")
    assert statement.expr == Binary("*", Load("A", (i, k)), Load("B", (k, j)))
    assert statement.reads == (Load("C", (i, j)), Load("A", (i, k)), Load("B", (k, j)))
    assert statement.text == "C[i, j] += A[i, k] * B[k, j]"
    assert nest.file == __file__
    assert statement.place == f"{__file__}:{matmul.__code__.co_firstlineno + 4}"
    assert nest.context.is_equal(isl.Set("[M, K, N] -> { : M >= 0 and K >= 0 and N >= 0 }"))


def test_the_tree_of_statements_at_different_depths() -> None:
    def rows(A: f32[M, N], x: f32[M]):
        for i in range(M - 1, -1, -1):
            x[i] = 0.0
            for j in range(N):
                x[i] += A[i, j]

    outer = parse(rows).tree
    assert isinstance(outer, Band)
    assert (outer.name, str(outer.function("S0"))) == ("i", "[M, N] -> { S0[i] -> [(-i)] }")
    assert isinstance(outer.body, Sequence)
    first, inner = outer.body.children
    assert first == Leaf("S0")
    assert isinstance(inner, Band)
    assert str(inner.function("S1")) == "[M, N] -> { S1[i, j] -> [(j)] }"


def test_names_from_around_the_function() -> None:
    shift = 2
    rows = Affine.name("M")

    def moved(x: f32[rows + 2], y: f32[WIDTH]):
        for i in range(rows):
            x[i + shift] = SCALE * y[WIDTH - 1] + i

    nest = parse(moved)
    assert nest.sizes == ("M",)
    assert dict(nest.names) == {"rows": M, "shift": Affine.of(2), "SCALE": 0.25, "WIDTH": Affine.of(3)}
    assert nest.statements[0].target == Load("x", (i + 2,))
    value = Binary("*", Const(0.25), Load("y", (Affine.of(2),)))
    assert nest.statements[0].expr == Binary("+", value, Index(i))


def test_types_that_only_annotations_name_are_found_where_the_function_is_defined() -> None:
    from microkernels.dtypes import f64 as real

    columns = Affine.name("N")

    def fill(x: real[columns]):
        x[0] = 1.0

    assert parse(fill).arrays == (Array("x", f64, (N,)),)


def statement(line: str, dtype: DType = f32) -> Statement:
    text = f"def one(x: real[N], y: real[N], s: real):\n    for i in range(N):\n        {line}\n"
    known = {"real": dtype, "N": N, "math": math, "np": np, "abs": abs, "max": max, "min": min}
    return parse_text(Source(text, "one.py", 1), known).statements[0]


x, y, s = Load("x", (i,)), Load("y", (i,)), Load("s", ())


@pytest.mark.parametrize(
    ("line", "op", "expr"),
    [
        ("x[i] = y[i]", "=", y),
        ("x[i] += y[i]", "+", y),
        ("x[i] -= y[i]", "+", Unary("-", y)),
        ("x[i] *= s", "*", s),
        ("x[i] /= s", "=", Binary("/", x, s)),
        ("x[i] = x[i] + y[i]", "+", y),
        ("x[i] = y[i] + x[i]", "+", y),
        ("x[i] = y[i] * x[i]", "*", y),
        ("x[i] = x[i] - y[i]", "+", Unary("-", y)),
        ("x[i] = y[i] - x[i]", "=", Binary("-", y, x)),
        ("x[i] = max(x[i], y[i])", "max", y),
        ("x[i] = min(x[i], y[i])", "min", y),
        ("x[i] = max(y[i], x[i])", "=", FunctionCall("max", (y, x))),
        ("x[i] += x[i] * s", "=", Binary("+", x, Binary("*", x, s))),
        ("x[i] *= x[i]", "=", Binary("*", x, x)),
        ("x[i] += x[0]", "+", Load("x", (Affine.of(0),))),
    ],
)
def test_reductions_are_told_apart(line: str, op: str, expr: object) -> None:
    assert (statement(line).op, statement(line).expr) == (op, expr)


@pytest.mark.parametrize("sides", [("x[i]", "y[i]"), ("y[i]", "x[i]")], ids=" ".join)
@pytest.mark.parametrize("text", ["{0} if {0} {1} {2} else {2}", "{2} if {0} {1} {2} else {0}", "max({0}, {2})"])
@pytest.mark.parametrize("relation", ["<", "<=", ">", ">=", "=="])
def test_a_choice_of_the_greater_is_a_reduction_if_a_nan_cannot_tell(
    text: str, relation: str, sides: tuple[str, str]
) -> None:
    """Of integers any choice of the greater or less one is a reduction, of floats one that keeps x beside a NaN."""
    first, second = sides
    line = "x[i] = " + text.format(first, relation, second)

    def chosen(left: float, right: float) -> float:
        return eval(line[len("x[i] = ") :], {"x": [left], "y": [right], "i": 0})

    values = [(0, 1), (1, 0), (1, 1), (-2, -1)]
    same = [op for op in ("max", "min") if all(chosen(*v) == eval(op)(v) for v in values)]
    assert statement(line, i32).op == (same[0] if same else "=")
    unlike = [(1.0, math.nan), (math.nan, 1.0), (0.0, -0.0), (-0.0, 0.0)]
    exact = [op for op in same if all(str(chosen(*v)) == str(eval(op)(*v)) for v in unlike)]
    assert statement(line).op == (exact[0] if exact else "=")


@pytest.mark.parametrize(
    ("text", "expr"),
    [
        ("math.exp(y[i])", FunctionCall("exp", (y,))),
        ("np.tanh(y[i])", FunctionCall("tanh", (y,))),
        ("sqrt(abs(y[i]))", FunctionCall("sqrt", (FunctionCall("abs", (y,)),))),
        ("max(y[i], s, 1)", FunctionCall("max", (FunctionCall("max", (y, s)), Const(1)))),
        ("-y[i] + N", Binary("+", Unary("-", y), Index(N))),
        ("+y[2*i - i]", y),
    ],
)
def test_values(text: str, expr: object) -> None:
    assert statement(f"x[i] = {text}").expr == expr


def domain(*lines: str) -> str:
    body = "".join(f"{'    ' * depth}{line}\n" for depth, line in enumerate(lines, 1))
    nest = parse_text(Source(f"def one(x: f32[N]):\n{body}", "one.py", 1), {"f32": f32, "N": N})
    return str(nest.statements[0].domain)


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["for i in range(2, N, 3):"], "(1 + i) mod 3 = 0 and 2 <= i < N"),
        (["for i in range(N - 1, 0, -2):"], "(1 + N + i) mod 2 = 0 and 0 < i < N"),
        (["for i in range(max(1, N - 4), min(N, 9)):"], "i >= -4 + N and 0 < i < N and i <= 8"),
        (["for i in range(N):", "if 2 <= i < 5 or i == 7:"], "0 <= i < N and (2 <= i <= 4 or i = 7)"),
        (["for i in range(N):", "if not i % 2 == 0:"], "(1 + i) mod 2 = 0 and 0 <= i < N"),
        (["for i in range(N):", "if i // 2 == 1:"], "2 <= i <= 3 and i < N"),
        (["for i in range(N):", "if False:"], "false"),
    ],
)
def test_domains(lines: list[str], expected: str) -> None:
    found = isl.Set(domain(*lines, "x[i] = 0.0"))
    assert found.is_equal(isl.Set(f"[N] -> {{ S0[i] : {expected} }}"))


def test_statements_do_not_take_the_name_of_an_array() -> None:
    text = "def one(S0: f32[N]):\n    S0[0] = 1.0\n"
    nest = parse_text(Source(text, "one.py", 1), {"f32": f32, "N": N})
    assert [one.name for one in nest.statements] == ["S_0"]


def test_integers() -> None:
    def count(x: i32[N]):
        for i in range(N):
            x[i] += i * 2

    nest: Nest = parse(count)
    assert nest.statements[0].expr == Binary("*", Index(i), Const(2))
