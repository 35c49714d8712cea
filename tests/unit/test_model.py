"""The nest as a value: how it prints, sizes that get a value, and the reference run."""

from __future__ import annotations

import islpy as isl
import numpy as np
import pytest

from codegen.errors import ArgumentError
from codegen.ir.expr import Const, Load
from codegen.ir.integer import Affine
from microkernels.dtypes import f32, f64
from poly.errors import SpecError
from poly.frontends.python import parse, parse_text
from poly.frontends.source import Source
from poly.ir.reference import reference
from poly.ir.sizes import deduce_sizes
from poly.ir.tree import bands

M, N, P, R = map(Affine.name, "MNPR")


def mean(A: f32[M, N], x: f32[M], scale: f32):
    for i in range(M):
        total = 0.0
        for j in range(N):
            total += A[i, j]
        x[i] = scale * total / N


def convolution(x: f64[P + R - 1], w: f64[R], y: f64[P]):
    for p in range(P):
        y[p] = 0.0
        for r in range(R):
            y[p] += x[p + r] * w[r]


def test_a_nest_prints_its_loops_and_relations() -> None:
    assert (
        str(parse(mean))
        == """\
mean(A: f32[M, N], x: f32[M], scale: f32), sizes M, N
    def mean(A: f32[M, N], x: f32[M], scale: f32):
        for i in range(M):
            total = 0.0
            for j in range(N):
                total += A[i, j]
            x[i] = scale * total / N
local total: f32[M]
S0: total = 0.0
    domain  { S0[i] : 0 <= i < M }
    writes  { S0[i] -> total[i] }
S1: total += A[i, j]   (reduction by +)
    domain  { S1[i, j] : 0 <= i < M and 0 <= j < N }
    writes  { S1[i, j] -> total[i] }
    reads   { S1[i, j] -> total[i] }
    reads   { S1[i, j] -> A[i, j] }
S2: x[i] = scale * total / N
    domain  { S2[i] : 0 <= i < M }
    writes  { S2[i] -> x[i] }
    reads   { S2[i] -> scale[] }
    reads   { S2[i] -> total[i] }"""
    )


def test_fixed_sizes_leave_everything() -> None:
    nest = parse(mean).with_sizes({"N": 5})
    assert (nest.sizes, nest.fixed) == (("M",), (("N", 5),))
    assert nest.context.is_equal(isl.Set("[M] -> { : M >= 0 }"))
    assert str(nest.statements[1].domain) == "[M] -> { S1[i, j] : 0 <= i < M and 0 <= j <= 4 }"
    assert str(nest.array("A")) == "A: f32[M, 5]"
    assert nest.statements[2].expr.right == Const(5)
    assert [str(band.functions[0][1]) for band in bands(nest.tree)] == [
        "[M] -> { S0[i] -> [(i)] }",
        "[M] -> { S1[i, j] -> [(j)] }",
    ]
    assert str(nest).startswith("mean(A: f32[M, 5], x: f32[M], scale: f32), sizes M, N = 5\n")
    assert str(nest.with_sizes({"M": 0}).statements[0].domain) == "{ S0[i] : false }"


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"Q": 3}, "mean has no size Q that is still open. Its open sizes: M, N."),
        ({"M": -1}, "the size M of mean must be an integer from 0 up, not -1."),
        ({"M": 2.0}, "the size M of mean must be an integer from 0 up, not 2.0."),
        ({"M": True}, "the size M of mean must be an integer from 0 up, not True."),
    ],
)
def test_sizes_that_can_not_be_fixed(values: dict[str, int], message: str) -> None:
    with pytest.raises(SpecError) as caught:
        parse(mean).with_sizes(values)
    assert str(caught.value) == message


def test_sizes_may_come_from_numpy() -> None:
    assert parse(mean).with_sizes({"N": np.int64(5)}).fixed == (("N", 5),)


def test_relations_are_bound_to_the_domain() -> None:
    statement = parse(convolution).statements[1]
    expected = "[P, R] -> { S1[p, r] -> x[p + r] : 0 <= p < P and 0 <= r < R }"
    assert str(statement.relation(Load("x", (Affine.name("p") + Affine.name("r"),)))) == expected


def test_sizes_are_read_from_plain_extents_and_composite_ones_checked() -> None:
    nest = parse(convolution)
    arrays = (np.zeros(6), np.zeros(3), np.zeros(4))
    assert deduce_sizes(nest, arrays, {}) == {"P": 4, "R": 3}
    with pytest.raises(ArgumentError, match=r"x has shape \(5,\); expected \(6,\)"):
        deduce_sizes(nest, (np.zeros(5), *arrays[1:]), {})


def test_a_size_that_no_array_tells_is_given_by_keyword() -> None:
    def repeat(x: f64[1]):
        for i in range(N):
            x[0] += i

    value = np.zeros(1)
    reference(parse(repeat), (value,), N=4)
    assert value == 0 + 1 + 2 + 3
    with pytest.raises(ArgumentError, match="N"):
        reference(parse(repeat), (value,))


def test_the_reference_runs_in_the_type_of_the_arrays() -> None:
    def total(x: f32[N], y: f32[1]):
        acc = 0.0
        for i in range(N):
            acc += x[i]
        y[0] = acc

    values = np.full(4, 2.0**24, np.float32) + np.float32([0, 2, 0, 2])
    values[1:] = 1.0
    result = np.zeros(1, np.float32)
    reference(parse(total), (values, result))
    assert result == 2.0**24, "2**24 + 1 is no float32: each sum is rounded"


FORMS = """\
def forms(x: f64[N], y: f64[N]):
    row: f64[N - 1]
    t: f64
    for i in range(N - 1, 0, -1):
        row[i - 1] = x[i] * 2
    for i in range(max(0, N - 100), min(N, 100)):
        t = np.exp(x[i])
        u: f64 = 0.5
        if 0 < i < N - 1 or i == 0:
            t = row[i] + max(t, u, -i)
        y[i] = t
"""


def test_the_reference_runs_every_form_of_local_and_loop() -> None:
    nest = parse_text(Source(FORMS, "forms.py", 1), {"f64": f64, "N": N, "np": np})
    x = np.linspace(-1, 1, 5)
    y = np.zeros(5)
    reference(nest, (x, y))
    expected = np.append(2 * x[1:] + np.maximum(np.exp(x[:-1]), 0.5), np.exp(x[-1]))
    np.testing.assert_array_equal(y, expected)


def test_the_reference_of_fixed_sizes() -> None:
    A, x = np.ones((2, 3), np.float32), np.zeros(2, np.float32)
    reference(parse(mean).with_sizes({"N": 3}), (A, x, 2.0))
    np.testing.assert_array_equal(x, [2, 2])
    with pytest.raises(ArgumentError):
        reference(parse(mean).with_sizes({"N": 4}), (A, x, 2.0))
