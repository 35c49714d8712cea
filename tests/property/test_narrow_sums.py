"""Sums of small integers a block at a time in narrow types: as exact as one by one, for any number of iterations."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from contractions import guarded
from headers import CLANG, GCC, Toolchain
from programs import M, N, band, built, i, j, scan

from codegen.c import source
from codegen.ir.expr import Expr, FunctionCall, Load, Predicate, Ternary
from codegen.ir.loop_ir import LoopMark
from codegen.ir.program import Assign, Buffer, PrintedStatement, Program
from codegen.ir.promotion import limits
from microkernels.dtypes import DType, i8, i16, i32, i64, u8, u16
from microkernels.isa import AVX2, AVX512, ISA

ROWS = 2
X, Y = Load("x", (i, j)), Load("y", (i, j))
VALUES: dict[str, Expr] = {
    "element": X,
    "greatest": FunctionCall("max", (X, Y)),
    "chosen": Ternary(Predicate("<", X, Y), X, Y),
}


def rows_summed(value: Expr, dtype: DType, total: DType, isa: ISA) -> Program:
    """`s[i] += value`, of elements `x[i, j]` and `y[i, j]`, with `j` in lanes."""
    domain = "[M, N] -> { S[i, j] : 0 <= i < M and 0 <= j < N }"
    tree = band("i", "[M, N] -> { S[i, j] -> [i] }", band("j", "[M, N] -> { S[i, j] -> [j] }"))
    buffers = (*(Buffer(name, dtype, (M, N), "in") for name in "xy"), Buffer("s", total, (M,), "inout"))
    statements = {"S": PrintedStatement(("i", "j"), Assign(Load("s", (i,)), "+", value))}
    return Program("rows", ("M", "N"), buffers, scan(domain, tree, LoopMark("j", vectorize=True)), statements, isa=isa)


@pytest.mark.parametrize("compiler", [GCC, CLANG], ids=str)
@pytest.mark.parametrize("isa", [AVX512, AVX2], ids=lambda isa: isa.name)
@pytest.mark.parametrize(("dtype", "total"), [(u8, i32), (i8, i64), (i16, i64), (u16, i64)], ids=str)
def test_blocks(dtype: DType, total: DType, isa: ISA, compiler: Toolchain, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of random elements, and of the extreme ones, whose sums a block's type only just has."""
    rng = Random(f"{dtype} {isa.name} {compiler}")
    name = rng.choice(list(VALUES))
    program = rows_summed(VALUES[name], dtype, total, isa)
    assert "s_part" in source(program)
    call = built(program, compiler, monkeypatch)
    block = 1024 if dtype in (i16, u16) else 256
    for columns in (0, 1, block - 1, block, block + 1, 2 * block, rng.randrange(3 * block)):
        low, high = limits(dtype)
        for least, most in ((low, high), (low, low), (high, high)):
            draw = np.random.default_rng(columns)
            x, y = (draw.integers(least, most + 1, (ROWS, columns)).astype(dtype.numpy_name) for _ in range(2))
            taken = {"element": x, "greatest": np.maximum(x, y), "chosen": np.where(x < y, x, y)}[name]
            start = limits(total)[1]
            expected = start + taken.sum(axis=1, dtype=total.numpy_name)
            s, whole = guarded(np.full(ROWS, start, total.numpy_name), 7)
            call(guarded(x, most)[0], guarded(y, most)[0], s)
            np.testing.assert_array_equal(s, expected)
            assert (np.delete(whole, np.s_[whole.size // 2 - 1 : whole.size // 2 + 1]) == 7).all()
