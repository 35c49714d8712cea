"""Recognition of contractions: the roles of loops in products of every kind, and what is no product."""

from __future__ import annotations

from dataclasses import replace

import pytest
from contractions import Contraction as Loops

import poly
from codegen.ir.expr import Binary, Const, Expr, Load
from poly import Nest, f32
from poly.analysis.contraction import Contraction, exchange, recognise
from poly.frontends.python import parse_text
from poly.frontends.source import Source

SIZES = dict(zip("MNKHPQRS", poly.sizes("M N K H P Q R S"), strict=True))
ALPHA = Load("alpha", ())
TYPES = {"f32": poly.f32, "f64": poly.f64, "i32": poly.i32, "i64": poly.i64}


def nest(text: str) -> Nest:
    return parse_text(Source(text, "nest.py", 1), {**SIZES, **TYPES})


def recognised(made: Nest) -> Contraction | None:
    """What the nest's last statement is."""
    return recognise(made, made.statements[-1])


def roles(found: Contraction | None) -> tuple[str, str, str, str]:
    """Rows, columns, reduction and batch, each as one word."""
    assert found is not None
    return "".join(found.rows), "".join(found.columns), "".join(found.reduce), "".join(found.batch)


def body(statement: str, arrays: str = "A: f32[M, M], B: f32[M, M], C: f32[M, M]") -> Nest:
    """A statement in three loops i, j, k up to M."""
    head = f"def product({arrays}):\n"
    loops = "    for i in range(M):\n        for j in range(M):\n            for k in range(M):\n"
    return nest(f"{head}{loops}                {statement}\n")


@pytest.mark.parametrize("spec", ["ik,kj->ij", "ki,kj->ij", "ik,jk->ij", "ki,jk->ij"])
@pytest.mark.parametrize("form", ["+=", "-=", "alpha", "="])
def test_matmul_in_all_transposes(spec: str, form: str) -> None:
    found = recognised(Loops(spec, f32, form).nest())
    assert found is not None
    assert roles(found) == ("i", "j", "k", "")
    assert (found.output.array, found.left.array, found.right.array) == ("C", "A", "B")


@pytest.mark.parametrize(
    ("spec", "expected", "left"),
    [
        ("ik,kj->ji", ("j", "i", "k", ""), "B"),
        ("kj,ik->ij", ("i", "j", "k", ""), "B"),
        ("bik,bkj->bij", ("i", "j", "k", "b"), "A"),
        ("ik,k->i", ("", "i", "k", ""), "B"),
        ("k,kj->j", ("", "j", "k", ""), "A"),
        ("bik,bk->bi", ("", "i", "k", "b"), "B"),
        ("i,j->ij", ("i", "j", "", ""), "A"),
        ("i,i->i", ("", "", "", "i"), "A"),
        ("dbea,ec->abcd", ("c", "abd", "e", ""), "B"),
        ("dfgb,geac->abcdef", ("ace", "bdf", "g", ""), "B"),
        ("abc,cbd->ad", ("a", "d", "bc", ""), "A"),
        ("iik,kj->ij", ("i", "j", "k", ""), "A"),
        ("ikk,kj->ij", ("i", "j", "k", ""), "A"),
        ("ak,bm->ab", ("a", "b", "km", ""), "A"),
    ],
)
def test_roles_of_any_einsum(spec: str, expected: tuple[str, str, str, str], left: str) -> None:
    found = recognised(Loops(spec).nest())
    assert tuple("".join(sorted(role)) for role in roles(found)) == expected
    assert found is not None
    assert found.left.array == left


NCHW = """\
def convolution(A: f32[H, M, P + R - 1, Q + S - 1], W: f32[N, M, R, S], O: f32[H, N, P, Q]):
    for h in range(H):
        for f in range(N):
            for p in range(P):
                for q in range(Q):
                    for c in range(M):
                        for r in range(R):
                            for s in range(S):
                                O[h, f, p, q] += A[h, c, p + r, q + s] * W[f, c, r, s]
"""
NHWC = """\
def convolution(A: f32[H, P + R - 1, Q + S - 1, M], W: f32[R, S, M, N], O: f32[H, P, Q, N]):
    for h in range(H):
        for p in range(P):
            for q in range(Q):
                for f in range(N):
                    for r in range(R):
                        for s in range(S):
                            for c in range(M):
                                O[h, p, q, f] += A[h, p + r, q + s, c] * W[r, s, c, f]
"""


def test_a_convolution_channels_first_has_pixels_as_columns() -> None:
    found = recognised(nest(NCHW))
    assert found is not None
    assert roles(found) == ("f", "hpq", "crs", "")
    assert (found.left.array, found.right.array) == ("W", "A")


def test_a_convolution_channels_last_has_filters_as_columns() -> None:
    found = recognised(nest(NHWC))
    assert found is not None
    assert roles(found) == ("hpq", "f", "rsc", "")
    assert (found.left.array, found.right.array) == ("A", "W")


@pytest.mark.parametrize(
    ("statement", "factor"),
    [
        ("C[i, j] += A[i, k] * B[k, j]", Const(1)),
        ("C[i, j] -= A[i, k] * B[k, j]", Const(-1)),
        ("C[i, j] += -A[i, k] * B[k, j]", Const(-1)),
        ("C[i, j] += alpha * A[i, k] * B[k, j]", ALPHA),
        ("C[i, j] += A[i, k] * (alpha * 2) * B[k, j]", Binary("*", ALPHA, Const(2))),
        ("C[i, j] -= A[i, k] * B[k, j] * alpha", Binary("*", Const(-1), ALPHA)),
    ],
)
def test_constants_and_scalars_become_one_factor(statement: str, factor: Expr) -> None:
    found = recognised(body(statement, "A: f32[M, M], B: f32[M, M], C: f32[M, M], alpha: f32"))
    assert found is not None
    assert found.factor == factor


def test_an_array_may_be_multiplied_by_itself() -> None:
    found = recognised(body("C[i, j] += A[i, k] * A[k, j]", "A: f32[M, M], C: f32[M, M]"))
    assert roles(found) == ("i", "j", "k", "")
    assert found is not None
    assert [str(index) for index in found.left.indices] == ["i", "k"]


def test_parts_of_one_array_that_never_meet_are_a_product() -> None:
    text = body("C[i, j] += C[i, M + k] * B[k, j]", "B: f32[M, M], C: f32[M, 2 * M]")
    assert roles(recognised(text)) == ("i", "j", "k", "")


@pytest.mark.parametrize(
    ("statement", "family"),
    [
        ("C[i, j] = max(C[i, j], A[i, k] * B[k, j])", "max_mul"),
        ("C[i, j] = min(C[i, j], A[i, k] + B[k, j])", "min_add"),
        ("C[i, j] += A[i, k] + B[k, j]", "sum_add"),
        ("C[i, j] += (A[i, k] - B[k, j]) ** 2", "sum_square"),
        ("C[i, j] += abs(A[i, k] - B[k, j])", "sum_distance"),
    ],
)
def test_contractions_by_other_operations(statement: str, family: str) -> None:
    found = recognised(body(statement, "A: f32[M, M], B: f32[M, M], C: f32[M, M], alpha: f32"))
    assert found is not None
    assert found.product.family == family


@pytest.mark.parametrize(
    "statement",
    [
        "C[i, j] = A[i, k] * B[k, j]",
        "C[i, j] *= A[i, k] * B[k, j]",
        "C[i, j] += A[i, k]",
        "C[i, j] += A[i, k] * B[k, j] * A[k, k]",
        "C[i, j] += A[i, k] * B[k, j] + 1",
        "C[i, j] += A[i, k] / B[k, j]",
        "C[i, j] += abs(A[i, k]) * B[k, j]",
        "C[i, j] += A[i, k] * B[k, j] * k",
        "C[i, j] += A[i, k] * C[k, j]",
        "C[i, j] += C[i, j] * B[k, j]",
        "C[i, j] += 2 * alpha",
    ],
)
def test_what_is_no_contraction(statement: str) -> None:
    assert recognised(body(statement, "A: f32[M, M], B: f32[M, M], C: f32[M, M], alpha: f32")) is None


def test_integers_make_a_contraction_with_sums_of_i32() -> None:
    text = "C[i, j] += A[i, k] * B[k, j]"
    kinds = {kind: f"A: {kind}[M, M], B: {kind}[M, M], C: {kind}[M, M]" for kind in ("i32", "i64")}
    assert {kind: recognised(body(text, arrays)) is not None for kind, arrays in kinds.items()} == {
        "i32": True,
        "i64": False,
    }
    floats = "A: f32[M, M], B: i32[M, M], C: i32[M, M]"
    assert recognised(body("C[i, j] += i32(A[i, k]) * B[k, j]", floats)) is None


@pytest.mark.parametrize("array", ["A", "B", "C"])
def test_mixed_types_are_no_contraction(array: str) -> None:
    plain = body("C[i, j] += A[i, k] * B[k, j]")
    arrays = tuple(replace(a, dtype=poly.f64) if a.name == array else a for a in plain.arrays)
    assert recognised(replace(plain, arrays=arrays)) is None


def test_exchanging_twice_changes_nothing() -> None:
    found = recognised(Loops("dbea,ec->abcd").nest())
    assert found is not None
    assert exchange(found).rows == found.columns
    assert isinstance(exchange(found).left, Load)
    assert exchange(exchange(found)) == found
