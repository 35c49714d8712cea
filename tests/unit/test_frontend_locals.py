"""Local scalars and arrays: expanded over the loops around them, and meaning what they mean in Python."""

from __future__ import annotations

import textwrap
from typing import Any

import numpy as np
import pytest
from evaluate import Cells, interpret
from hypothesis import given, settings
from hypothesis import strategies as st

from codegen.ir.expr import Load
from codegen.ir.integer import Affine
from microkernels.dtypes import f32, f64
from poly.analysis.bounds import check
from poly.errors import SpecError
from poly.frontends.python import parse_text
from poly.frontends.source import Source
from poly.ir.nest import Nest
from poly.ir.reference import reference

N, M = Affine.name("N"), Affine.name("M")
i, j = Affine.name("i"), Affine.name("j")


def read(body: str) -> Nest:
    text = "def nest(A: f64[M, N], x: f64[M], y: f64[N]):\n" + textwrap.indent(textwrap.dedent(body), "    ")
    return parse_text(Source(text, "nest.py", 1), {"f32": f32, "f64": f64, "M": M, "N": N})


def shapes(nest: Nest) -> dict[str, tuple[Affine, ...]]:
    return {array.name: array.shape for array in nest.arrays if array.kind == "local"}


def test_a_scalar_has_one_copy_for_each_iteration_around_its_definition() -> None:
    nest = read("""
        for i in range(M):
            acc = 0.0
            for j in range(N):
                acc += A[i, j]
            x[i] = acc
    """)
    assert shapes(nest) == {"acc": (M,)}
    assert [s.target for s in nest.statements] == [Load("acc", (i,)), Load("acc", (i,)), Load("x", (i,))]
    assert [s.op for s in nest.statements] == ["=", "+", "="]


def test_loops_that_depend_on_outer_ones_make_the_box_around_them() -> None:
    nest = read("""
        for i in range(1, M):
            for j in range(i, 2*i + 1):
                t = 1.0
                x[i] += t
    """)
    assert shapes(nest) == {"t": (M - 1, M * 2 - 2)}
    assert nest.statements[0].target == Load("t", (i - 1, j - 1))
    check(nest)


def test_a_loop_that_counts_down_has_the_same_box() -> None:
    nest = read("""
        for i in range(M - 1, -1, -1):
            t = 1.0
            x[i] = t
    """)
    assert shapes(nest) == {"t": (M,)}


def test_a_local_array_in_a_loop_is_one_for_each_iteration() -> None:
    nest = read("""
        for i in range(M):
            row: f64[N]
            for j in range(N):
                row[j] = A[i, j]
            for j in range(N):
                A[i, j] = row[N - 1 - j]
    """)
    assert shapes(nest) == {"row": (M, N)}
    assert nest.statements[1].reads == (Load("row", (i, N - 1 - j)),)


def test_a_scalar_that_restarts_in_a_loop_belongs_to_it() -> None:
    nest = read("""
        t = 0.0
        for i in range(M):
            t = A[i, 0]
            x[i] = t
    """)
    assert shapes(nest) == {"t": (), "t_2": (M,)}
    assert nest.statements[2].reads == (Load("t_2", (i,)),)


def test_a_scalar_that_carries_a_value_stays_one() -> None:
    nest = read("""
        t = 0.0
        for i in range(M):
            x[i] = t
            t = A[i, 0]
    """)
    assert shapes(nest) == {"t": ()}


def test_a_name_used_again_in_a_later_loop_is_another_local() -> None:
    nest = read("""
        for i in range(M):
            t = A[i, 0]
            x[i] = t
        for j in range(N):
            t = A[0, j]
            y[j] = t
    """)
    assert shapes(nest) == {"t": (M,), "t_2": (N,)}


def test_both_branches_give_a_value() -> None:
    nest = read("""
        for i in range(M):
            if i > 0:
                t = 1.0
            else:
                t = 2.0
            x[i] = t
    """)
    assert shapes(nest) == {"t": (M,)}


def test_a_scalar_has_the_type_of_what_it_is_made_from_or_was_declared_with() -> None:
    text = """
def nest(a: f64[N], b: f32[N]):
    for i in range(N):
        t = a[i]
        u: f32 = 0.5
        m = -float("inf")
        m = max(m, b[i])
        a[i] = t + 1.0
        b[i] = u + m
        p = f32(a[i]) - f32(a[i] + 1.0)
        q = 0.0
        q += f64(b[i]) * a[i]
        b[i] += p + f32(q)
"""
    nest = parse_text(Source(text.strip(), "nest.py", 1), {"f32": f32, "f64": f64, "N": N})
    assert [nest.array(name).dtype for name in "tumpq"] == [f64, f32, f32, f32, f64]
    with pytest.raises(SpecError, match="the type of `t` is not clear"):
        parse_text(Source(text.strip().replace("t = a[i]", "t = 0.0"), "nest.py", 1), {"f32": f32, "f64": f64, "N": N})


@st.composite
def blocks(draw: st.DrawFn, indices: tuple[str, ...] = ()) -> list[str]:
    """Lines that assign, update and read the scalars s and t, and record them in x and y; many are refused."""
    lines: list[str] = []
    value = st.sampled_from(["s", "t", "A[0, 1]", "2.0", *indices])
    for _ in range(draw(st.integers(1, 3))):
        kind = draw(st.sampled_from(["=", "=", "+=", "x", "y", "for", "for", "if"]))
        if kind in ("=", "+="):
            lines.append(f"{draw(st.sampled_from('st'))} {kind} {draw(value)} + 0.5")
        elif kind in ("x", "y"):
            place = "1" if not indices else indices[-1]
            lines.append(f"{kind}[{place}] = {kind}[0]*0.5 + {draw(value)}")
        elif kind == "for" and len(indices) < 2:
            index = "ij"[len(indices)]
            lines.append(f"for {index} in range({draw(st.sampled_from(['2', '1, 3', '2, -1, -1']))}):")
            lines += ["    " + line for line in draw(blocks((*indices, index)))]
        elif kind == "if" and indices:
            lines.append(f"if {indices[-1]} != 1:")
            lines += ["    " + line for line in draw(blocks((*indices, "1")[: len(indices)]))]
    return lines or ["x[0] = 1.0"]


@settings(deadline=None, max_examples=200)
@given(blocks(), blocks())
def test_expanded_locals_mean_what_they_mean_in_python(first: list[str], second: list[str]) -> None:
    try:
        nest = read("\n".join(["s = 3.0", *first, *second])).with_sizes({"M": 3, "N": 3})
    except SpecError as error:
        assert any(word in str(error) for word in ("not declared", "before it has", "does not run")), str(error)
        return
    check(nest)
    arrays: list[Any] = [np.arange(9.0).reshape(3, 3), np.arange(3.0), np.arange(3.0) + 10]
    cells: Cells = {(name, at): v for name, a in zip("Axy", arrays, strict=True) for at, v in np.ndenumerate(a)}
    interpret(nest, cells)
    reference(nest, tuple(arrays))
    for name, array in zip("Axy", arrays, strict=True):
        for at, value in np.ndenumerate(array):
            assert cells[name, at] == value, nest.source
