"""Which iterations threads get: a triangle's are dealt out, blocks' with a short last one are not."""

from __future__ import annotations

import pytest

from codegen.balance import shares
from codegen.integer import Int, Linear, minimum
from codegen.loop_ir import For, Run

size, row, column = map(Linear.name, "Nij")


def nested(outer: Int, start: Int, end: Int, deepest: Int) -> str:
    """The schedule of `for i < outer: for j from start to end: for k < deepest`."""
    inner = For.counted("k", deepest, Run("S", (row, column, Linear.name("k"))))
    loop = For.counted("i", outer, For.counted("j", end, inner, start))
    return shares(loop, outer)


ZERO, TEN = Linear.of(0), Linear.of(10)


@pytest.mark.parametrize(
    ("loops", "expected"),
    [
        ((size, ZERO, size, TEN), "static"),
        ((size, ZERO, row + 1, TEN), "static, imax(1, N/(8*threads))"),
        ((size, row, size, TEN), "static, imax(1, N/(8*threads))"),
        ((TEN, 210 * row, minimum(2048, 210 * row + 210), size), "static"),
        ((TEN, 210 * row, minimum(2048, 210 * row + 210), column + 1), "static, imax(1, 10/(8*threads))"),
    ],
    ids=["rectangle", "lower triangle", "upper triangle", "blocks", "blocks of a triangle"],
)
def test_uneven_work_is_dealt_out(loops: tuple[Int, Int, Int, Int], expected: str) -> None:
    assert nested(*loops) == expected
