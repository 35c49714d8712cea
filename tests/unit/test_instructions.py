"""Instructions as values: the names in them, expressions put in place of names, definitions that are used, their C."""

from __future__ import annotations

import re

import pytest

from codegen.instruction_text import line
from codegen.ir.expr import Binary, Const, Load
from codegen.ir.instructions import Barrier, Call, Cell, Factor, Instruction, Let, Pointer, Table, Write
from codegen.ir.integer import Linear, compare, connected
from codegen.ir.loop_ir import For, If, below, names, substituted
from microkernels.dtypes import f32

i, j, n = map(Linear.name, ("i", "j", "n"))
ROW = Cell("row_c", i)
SCALE = Factor(Binary("*", Load("alpha", ()), Const(2)), f32)
LINES: dict[str, Instruction] = {
    "const int64_t j = 64*i;": Let("j", i * 64),
    "float *const run = C + i;": Let("run", Pointer("C", i), "float *const "),
    "int64_t offsets[6];": Table("int64_t ", "offsets", 6),
    "float tile[4] __attribute__((aligned(64)));": Table("float ", "tile", 4, aligned=True),
    "float *row_a[2] = {A, A + i};": Table("float *", "row_a", 2, (Pointer("A"), Pointer("A", i))),
    "row_c[i] = C + (j - i);": Write(ROW, Pointer("C", j - i)),
    "row_c[i] += row_c[j];": Write(ROW, Cell("row_c", j), "+", f32),
    "f(row_c[i] + j, run + row_c[i], i != n || j != 0);": Call(
        "f", (Pointer(ROW, j), Pointer("run", ROW), connected("||", (compare(i, "!=", n), compare(j, "!=", Linear()))))
    ),
    "gemm((alpha * 2.0f), 1);": Call("gemm", (SCALE, Linear.of(1))),
    "barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);": Barrier(("local", "global")),
}
KEYWORDS = {"const", "float", "int64_t", "__attribute__", "aligned", "barrier", "f", "gemm"}


@pytest.mark.parametrize("text", LINES)
def test_text(text: str) -> None:
    assert line(LINES[text]) == text


@pytest.mark.parametrize("text", LINES)
def test_names_are_those_of_the_text(text: str) -> None:
    words = {word for word in re.findall(r"[A-Za-z_]\w*", text) if not word.startswith("CLK")}
    assert names(LINES[text]) == words - KEYWORDS


@pytest.mark.parametrize("text", LINES)
def test_an_expression_in_place_of_a_name(text: str) -> None:
    """The same as the name replaced in the text; what the instruction declares and arrays keep their names."""
    made = line(substituted(LINES[text], {"i": Linear.name("other"), "C": n, "run": n}))
    assert made == re.sub(r"\bi\b", "other", text)


def test_names_in_loops_and_conditions() -> None:
    loop = For.counted("row", n, If(compare(i, "<", j), Write(ROW, Pointer("C", Linear.name("row")))))
    assert names(loop) == {"row", "n", "i", "j", "row_c", "C"}
    assert names(substituted(loop, {"j": Linear.of(3), "n": i + 1})) == {"row", "i", "row_c", "C"}


def test_definitions_that_are_used() -> None:
    """Directly, or through one that is used; each once, in their order."""
    low, step, other = Let("low", i * 6), Let("step", Linear.name("low") + 1), Let("other", Linear.name("low") + 2)
    call = Call("f", (Linear.name("step"),))
    assert below([low, step, low, other], [call]).nodes == (low, step, call)
    assert below([low, step], [Call("f", (i,))]).nodes == (Call("f", (i,)),)
