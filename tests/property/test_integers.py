"""Integers that loops advance or copy: nests that name them in subscripts are those of the same loops without them."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np
import pytest
from fuzz.nests import draw_program

import poly
from microkernels.dtypes import DTYPES
from poly import f64, i32
from poly.frontends.python import parse_text
from poly.frontends.source import Source

N, M = poly.sizes("N M")


class ByHand(ast.NodeTransformer):
    """Subscripts name an integer that each iteration advances like its counter, or one that is set to the counter."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng

    def visit_For(self, node: ast.For) -> Any:
        self.generic_visit(node)
        assert isinstance(node.target, ast.Name) and isinstance(node.iter, ast.Call)
        counter, own = node.target.id, f"{node.target.id}_k"
        low, step = ("0", "1") if len(node.iter.args) == 1 else (ast.unparse(node.iter.args[0]), "1")
        step = ast.unparse(node.iter.args[2]) if len(node.iter.args) == 3 else step
        uses = [
            name
            for statement in node.body
            for part in ast.walk(statement)
            if isinstance(part, ast.Subscript)
            for name in ast.walk(part.slice)
            if isinstance(name, ast.Name) and name.id == counter
        ]
        if not uses or "m" in low:  # max or min
            return node
        for name in uses:
            name.id = own
        if self._rng.random() < 0.3:
            node.body = [ast.parse(f"{own} = {counter}").body[0], *node.body]
            return node
        advance = f"{own} += {step}" if self._rng.random() < 0.7 else f"{own} = {step} + {own}"
        node.body = [*node.body, ast.parse(advance).body[0]]
        return [ast.parse(f"{own} = {low}").body[0], node]


@pytest.mark.parametrize("seed", range(8))
def test_random_nests(seed: int) -> None:
    changed = 0
    for number in range(25):
        rng = Random(seed * 100 + number)
        program = draw_program(rng).program
        text = program.text("")
        names = {size: poly.sizes(size) for size in program.sizes}
        environment = {**names, **DTYPES}
        try:
            wanted = parse_text(Source(text, "random.py", 1), environment)
        except poly.PolyError:
            continue
        tree = ByHand(rng).visit(ast.parse(text))
        other = ast.unparse(ast.fix_missing_locations(tree))
        made = parse_text(Source(other, "random.py", 1), environment)
        changed += other != ast.unparse(ast.parse(text))
        assert [s.op for s in made.statements] == [s.op for s in wanted.statements], other
        assert [s.expr for s in made.statements] == [s.expr for s in wanted.statements], other
        assert [s.target for s in made.statements] == [s.target for s in wanted.statements], other
    assert changed > 5


def gathered(x: f64[N], idx: i32[M], y: f64[M]):
    for i in range(M):
        k = idx[i]
        y[i] += x[k] * 2


def flat(A: f64[M, N], f: f64[20 * 20]):
    k = 0
    for i in range(4):
        for j in range(7):
            f[k] += A[i, j]
            k += 1
        k = k + 13


def triangle(x: f64[4 * N + 4], y: f64[N]):
    k = N
    for i in range(N - 1, -1, -1):
        k -= 1
        first = 2 * k + 1
        y[i] += x[first] - x[k + 1]
    for i in range(0, N, 3):
        y[i] -= x[k]
        k += 6
        x[k - 6] *= 0.5


def branches(x: f64[2 * N + 2], y: f64[N]):
    k = 1
    for i in range(N):
        if i % 2 == 0:
            x[k] += y[i]
            k += 2
        else:
            k += 1
            x[k] -= y[i]
            k = 1 + k
    x[k - 1] = 5.0


def wrapped(x: f64[N], y: f64[N]):
    last = N - 1
    before = N - 2
    for i in range(N):
        y[i] = x[i] + 2 * x[last] - x[before]
        before = last
        last = i


def halves(x: f64[N], y: f64[N]):
    k = 0
    for i in range(0, N, 2):
        for j in range(3, 1, -1):
            y[k] += x[i] * j
        k += 1  # noqa: SIM113


def coupled(x: f64[2 * N + 2], y: f64[N]):
    j = -1
    for i in range(N):
        k = j + 1
        if y[i] > 0:  # noqa: SIM108
            j = k + 1
        else:
            j = 1 + k
        x[k] = y[i] + x[j]


NESTS: list[Callable[..., None]] = [gathered, flat, triangle, branches, wrapped, halves, coupled]
IN_C = {
    "gathered": """double x[N], int idx[M], double y[M]) {
        for (int i = 0; i < M; i++) { int k = idx[i]; y[i] += x[k] * 2; }""",
    "flat": """double A[M][N], double f[20*20]) {
        int k = 0;
        for (int i = 0; i < 4; i++) { for (int j = 0; j < 7; j++) { f[k] += A[i][j]; k++; } k = k + 13; }""",
    "triangle": """double x[4*N+4], double y[N]) {
        int k = N, first;
        for (int i = N - 1; i >= 0; i--) { --k; first = 2*k + 1; y[i] += x[first] - x[k+1]; }
        for (int i = 0; i < N; i += 3) { y[i] -= x[k]; k += 6; x[k-6] *= 0.5; }""",
    "branches": """double x[2*N+2], double y[N]) {
        int k = 1;
        for (int i = 0; i < N; i++) {
            if (i % 2 == 0) { x[k] += y[i]; k += 2; }
            else { k += 1; x[k] -= y[i]; k = 1 + k; }
        }
        x[k-1] = 5.0;""",
    "wrapped": """double x[N], double y[N]) {
        int last = N - 1, before = N - 2;
        for (int i = 0; i < N; i++) { y[i] = x[i] + 2 * x[last] - x[before]; before = last; last = i; }""",
    "halves": """double x[N], double y[N]) {
        int k = 0;
        for (int i = 0; i < N; i += 2) {
            for (int j = 3; j > 1; j--) { int k = i; y[k/2] += x[k] * j; }
            k++;
        }""",
    "coupled": """double x[2*N+2], double y[N]) {
        int j = -1, k;
        for (int i = 0; i < N; i++) {
            k = j + 1;
            if (y[i] > 0) j = k + 1; else { j = 1 + k; }
            x[k] = y[i] + x[j];
        }""",
}
"""The same nests; a variable of a block hides another one."""


@pytest.mark.parametrize("function", NESTS, ids=lambda function: function.__name__)
def test_nests_compute_what_python_does(function: Callable[..., None]) -> None:
    nest = poly.nest(function)
    sizes = {"N": 9, "M": 6}
    rng = np.random.default_rng(0)
    arrays = []
    for array in nest.arguments:
        shape = [extent.evaluate(sizes) for extent in array.shape]
        values = rng.integers(0, 6, shape).astype(np.int32) if array.dtype == i32 else rng.random(shape)
        arrays.append(values)
    wanted, got, known = ([values.copy() for values in arrays] for _ in range(3))
    text = textwrap.dedent(inspect.getsource(function))
    space: dict[str, Any] = {"poly": poly, "f64": f64, "i32": i32, **sizes}
    exec(f"from __future__ import annotations\n{text}", space)
    space[function.__name__](*wanted)
    nest.reference(*known)
    nest(*got)
    for one, other, third in zip(got, wanted, known, strict=True):
        np.testing.assert_array_equal(third, other)
        np.testing.assert_allclose(one, other, rtol=1e-13)


@pytest.mark.parametrize("function", NESTS, ids=lambda function: function.__name__)
def test_c_is_read_alike(function: Callable[..., None]) -> None:
    known = poly.nest(function).statements
    made = poly.from_c(f"void f(int N, int M, {IN_C[function.__name__]}\n}}").statements
    assert [(s.target, s.op, s.expr) for s in made] == [(s.target, s.op, s.expr) for s in known]
    for one, other in zip(made, known, strict=True):
        assert one.domain.align_params(other.domain.get_space()).is_equal(other.domain)


@pytest.mark.parametrize(
    ("body", "place"),
    [
        ("k = 0\n    for i in range(N):\n        if x[i] > 0:\n            k += 1\n        y[k] = x[i]", ":6"),
        ("k = 0\n    for i in range(N):\n        y[k] = x[i]\n        k += i", ":4"),
        ("for i in range(N):\n        y[k] = x[i]\n        k = i", ":3"),
        # what is restored in each iteration has another value between
        (
            "k = 0\n    m = 1\n    for i in range(N):\n        m += 1\n        k += m\n"
            "        m -= 1\n        y[k] = x[i]",
            ":8",
        ),
    ],
)
def test_integers_without_a_known_value_are_named(body: str, place: str) -> None:
    source = Source(f"def f(x: f64[N], y: f64[N]):\n    {body}\n", "text.py", 1)
    with pytest.raises(poly.SpecError, match=rf"text.py{place}: the value of `k` is not known here"):
        parse_text(source, {"N": N, "f64": f64})
