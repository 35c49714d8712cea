"""A matrix-vector kernel's call: the matrix contiguous along the columns (`gemvn`) or along the reduction (`gemvt`)."""

from __future__ import annotations

from codegen.program import Text
from microkernels.kernel import MatrixVector
from poly.lowering.calls import RoutineCall, address, inner_bands, low_lines
from poly.lowering.corners import operand_checks
from poly.lowering.tile import KernelTile


def vector_call(tile: KernelTile, kernel: MatrixVector) -> RoutineCall:
    """The statement that calls a matrix-vector kernel for all columns and steps of a tile."""
    left, right, output, node = tile.left, tile.right, tile.output, tile.node
    column, reduced = node.columns, node.reduce[0]
    assert column is not None, "a matrix-vector kernel has columns"
    x, matrix, y = (address(op.array, tile.start(op)) for op in (left, right, output))
    if kernel.contract.contiguous("right") == kernel.contract.columns:
        middle = f"{x}, {left.stride(reduced.name)}, {matrix}, {right.stride(reduced.name)}, {y}"
    else:
        middle = f"{matrix}, {right.stride(column.name)}, {x}, {y}, {output.stride(column.name)}"
    extents = f"{tile.count(column)}, {tile.count(reduced)}"
    definitions = low_lines(tile.instances, inner_bands(node), tile.statement.name)
    lines = (f"{kernel.function}({extents}, {middle}, {tile.factor}, {tile.accumulate});",)
    text = Text(lines, operand_checks((left, right, output), tile.values), tuple(definitions))
    return RoutineCall(tile.instances.name, tile.instances.names, tile.instances.domain, text, "gemv")
