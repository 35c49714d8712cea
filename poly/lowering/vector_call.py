"""A matrix-vector kernel's call: the matrix contiguous along the columns (`gemvn`) or along the reduction (`gemvt`)."""

from __future__ import annotations

from itertools import starmap

from codegen.instructions import Call, Let, Value
from codegen.program import Instructions
from microkernels.kernel import MatrixVector
from poly.lowering.calls import RoutineCall
from poly.lowering.corners import operand_checks
from poly.lowering.tile import KernelTile


def vector_call(tile: KernelTile, kernel: MatrixVector) -> RoutineCall:
    """The call of a matrix-vector kernel for all columns and steps of a tile."""
    left, right, output, node = tile.left, tile.right, tile.output, tile.node
    column, reduced = node.columns, node.reduce[0]
    assert column is not None, "a matrix-vector kernel has columns"
    x, matrix, y = map(tile.start, (left, right, output))
    operands: tuple[Value, ...]
    if kernel.contract.contiguous("right") == kernel.contract.columns:
        operands = (x, left.stride(reduced.name), matrix, right.stride(reduced.name), y)
    else:
        operands = (matrix, right.stride(column.name), x, y, output.stride(column.name))
    extents = (tile.count(column), tile.count(reduced))
    call = Call(kernel.function, (*extents, *operands, tile.factor, tile.accumulate))
    definitions = tuple(starmap(Let, tile.lows.items()))
    body = Instructions((call,), operand_checks((left, right, output), tile.values), definitions)
    return RoutineCall(tile.instances.name, tile.instances.names, tile.instances.domain, body, "gemv")
