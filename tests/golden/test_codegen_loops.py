"""The C text: golden files, the loops' names, and what the marks do."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from pathlib import Path

import pytest
from programs import M, N, band, i, j, k, matmul, scaled_copy, scan, softmax

from codegen.c import link_flags, source
from codegen.ir.expr import Const, Load
from codegen.ir.instructions import Call, Cell, Write
from codegen.ir.integer import Affine
from codegen.ir.loop_ir import LoopMark
from codegen.ir.program import Assign, Buffer, Instructions, PrintedStatement, Program
from codegen.names import c_name, fresh
from microkernels.dtypes import f32, f64

PARALLEL = LoopMark("i_tile", parallel=True)
LANES = LoopMark("j", vectorize=True)
GOLDEN = {
    "matmul": matmul([PARALLEL, LANES, LoopMark("k", unroll=4)]),
    "matmul_known": matmul(size=64),
    "matmul_reduced": matmul([LoopMark("k", vectorize=True)], order="ijk"),
    "scaled_copy": scaled_copy(),
    "softmax": softmax(),
}


@pytest.mark.parametrize("name", GOLDEN)
def test_golden(name: str, project: Path) -> None:
    """The text is as kept; POLY_UPDATE_GOLDEN=1 keeps what it is now."""
    path = project / "tests" / "golden" / f"{name}.c"
    text = source(GOLDEN[name])
    if os.environ.get("POLY_UPDATE_GOLDEN"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    assert text == path.read_text(), "the text has changed; if it should, run with POLY_UPDATE_GOLDEN=1"


def filled(domain: str, function: str, target: tuple[Affine, ...], name: str = "i", **marks: LoopMark) -> Program:
    """`y[target] = 1` for the points of a set, with one loop."""
    body = Assign(Load("y", target), "=", Const(1.0))
    shape = (Affine.of(100),) * len(target)
    tree = band(name, function)
    iterators = tuple(re.findall(r"\w+", domain[domain.index("[") : domain.index("]")]))
    buffers = (Buffer("y", f32, shape, "out"),)
    return Program("fill", (), buffers, scan(domain, tree, *marks.values()), {"S": PrintedStatement(iterators, body)})


def test_a_loop_that_runs_once_is_no_loop() -> None:
    text = source(filled("{ S[i, j] : i = 3 and 0 <= j < 8 }", "{ S[i, j] -> [j] }", (i, j), "j"))
    assert "y[300 + j] = 1.0f;" in text
    assert text.count("for (") == 1


@pytest.mark.parametrize("name", ["int", "threads", "y", "a b"])
def test_loop_names_become_free_identifiers(name: str) -> None:
    text = source(filled("{ S[i] : 0 <= i < 8 }", "{ S[i] -> [i] }", (i,), name))
    variable = {"int": "int_", "threads": "threads_", "y": "y_2", "a b": "a_b"}[name]
    assert f"for (int64_t {variable} = 0; {variable} < 8; {variable} += 1)" in text


def test_reversed_and_scattered_loops() -> None:
    assert "y[-i]" in source(filled("{ S[i] : 0 <= i < 8 }", "{ S[i] -> [-i] }", (i,)))
    assert "y[8 - i]" not in source(filled("{ S[i] : 0 <= i < 8 }", "{ S[i] -> [i] }", (i,)))
    assert re.search(r"i \+= 3", source(filled("{ S[i] : 0 <= i < 60 and i mod 3 = 0 }", "{ S[i] -> [i] }", (i,))))


def test_names_stay_apart() -> None:
    assert [c_name(name) for name in ("double", "double_", "x", "_x", "M_PI")] == [
        "double_",
        "double__",
        "x",
        "_x",
        "M_PI_",
    ]
    assert fresh("i", frozenset({"i", "i_2"})) == "i_3"


def test_no_openmp_without_a_parallel_loop() -> None:
    assert link_flags(matmul([LANES])) == ("-lm",)
    assert link_flags(matmul([PARALLEL])) == ("-fopenmp", "-Wl,-z,nodelete", "-lm")
    assert link_flags(softmax()) == ("-lm",)


def test_only_the_outermost_parallel_loop_of_a_path_forks() -> None:
    text = source(matmul([PARALLEL, LoopMark("i", parallel=True)]))
    assert text.count("#pragma omp parallel") == 1


def test_a_routine_in_a_loop_keeps_it_scalar() -> None:
    program = matmul([LoopMark("j", vectorize=True)])
    step = Instructions((Write(Cell("C", i * N + j), Cell("B", k * N + j), "+", f32),))
    assert "POLY_SIMD" in source(program)
    assert "POLY_SIMD" not in source(replace(program, statements={"S": PrintedStatement(("i", "j", "k"), step)}))


def test_iterators_of_a_routine_that_are_named_like_the_loops_around_it() -> None:
    """`i` of the statement is `6*tile + i` of the loops."""
    program = matmul()
    touch = Instructions((Call("touch", (i, j, k)),))
    text = source(replace(program, statements={"S": PrintedStatement(("i", "j", "k"), touch)}))
    assert "const int64_t i_2 = i + i_tile;" in text
    assert "touch(i_2, j, k);" in text
    assert "const int64_t j" not in text


def test_a_shared_element_that_others_look_at_is_scanned() -> None:
    """`s[0] += x[i]; y[i] = s[0]`: each lane needs the sum up to it."""
    domain = "[N] -> { S[i] : 0 <= i < N; T[i] : 0 <= i < N }"
    order = "{ sequence: [ { filter: '[N] -> { S[i] }' }, { filter: '[N] -> { T[i] }' } ] }".replace("'", '"')
    ast = scan(domain, band("i", "[N] -> { S[i] -> [i]; T[i] -> [i] }", order), LoopMark("i", vectorize=True))
    total, x, y = Load("s", (Affine.of(0),)), Load("x", (i,)), Load("y", (i,))
    program = Program(
        "prefix",
        ("N",),
        (
            Buffer("x", f64, (N,), "in"),
            Buffer("s", f64, (Affine.of(1),), "inout"),
            Buffer("y", f64, (N,), "out"),
        ),
        ast,
        {"S": PrintedStatement(("i",), Assign(total, "+", x)), "T": PrintedStatement(("i",), Assign(y, "=", total))},
    )
    assert "sum_scan_f64x2(&s_lanes.all);" in source(program)
    assert "y[i + lane] = s_lanes.lane[lane];" in source(program)
    alone = replace(program, statements={**program.statements, "T": PrintedStatement(("i",), Assign(y, "=", x))})
    assert "s[0] += s_lane;" in source(alone)


def test_strides_are_texts_or_follow_from_the_shape() -> None:
    buffers = (Buffer("A", f32, (M, N), "in", ("A_stride", "1")), Buffer("y", f32, (M, N + 1, Affine.of(3)), "out"))
    domain = "[M, N] -> { S[i, j] : 0 <= i < M and 0 <= j < N }"
    ast = scan(domain, band("i", "[M, N] -> { S[i, j] -> [i] }", band("j", "[M, N] -> { S[i, j] -> [j] }")))
    body = Assign(Load("y", (i, j, Affine.of(2))), "=", Load("A", (i, j)))
    program = Program("f", ("M", "N", "A_stride"), buffers, ast, {"S": PrintedStatement(("i", "j"), body)})
    assert "y[i*(3*N + 3) + 3*j + 2] = A[i*A_stride + j];" in source(program)
