"""Results that are contiguous only in runs: the kernel writes a tile on the stack, which is brought out run by run.

columns c_d of C[a, c, d], 30 values of d           ->      runs of 30, at C[a, c_d / 30, 0]
"""

from __future__ import annotations

from codegen.definitions import needed
from microkernels.ctext import suffix
from microkernels.isa import ISA
from microkernels.kernel import OuterProduct
from poly.ir.tree import Micro
from poly.lowering.address_spaces import word
from poly.lowering.calls import Operand, loop_lines, moved


def run_length(output: Operand, node: Micro) -> int | None:
    """How many neighbouring columns are neighbours in the output, where not all are; None where all are."""
    column = node.columns.name if node.columns else ""
    if output.stride(column).number != 1:
        return 1
    atoms = output.coordinates.atoms.items()
    used = [divisor for atom, (loop, divisor) in atoms if loop == column and atom in output.offset.names]
    return min(used, default=None)


def scatter_lines(node: Micro, kernel: OuterProduct, isa: ISA, output: Operand, run: int, accumulate: str) -> list[str]:
    """C lines that bring the tile on the stack to the output, run by run."""
    column, row = node.columns.name if node.columns else "", node.rows.name if node.rows else ""
    by_column = output.part(column)
    column_atoms, column_offset = moved(output, by_column, column, "this_column")
    row_atoms, row_offset = moved(output, output.offset - by_column, row, "this_row")
    length = f"imin(tile_columns - at, {run} - this_column % {run})" if run > 1 else "1"
    rows = [f"const int64_t this_row = {row or '0'} + row;", *row_atoms]
    columns = [f"const int64_t this_column = {column or '0'} + at;", *column_atoms]
    return [
        f"int64_t row_offset[{kernel.rows}];",
        *loop_lines(
            "for (int64_t row = 0; row < tile_rows; row++)", needed(rows, [f"row_offset[row] = {row_offset};"])
        ),
        *loop_lines(
            "for (int64_t at = 0, length; at < tile_columns; at += length)",
            needed(
                columns,
                [
                    f"{word(isa, 'global')}{kernel.dtype.c_name} *const run = {output.array} + {column_offset};",
                    f"length = {length};",
                    "for (int64_t row = 0; row < tile_rows; row++)",
                    f"    store_run_{suffix(isa, kernel.dtype)}("
                    f"run + row_offset[row], tile + row * {kernel.columns} + at, length, {accumulate});",
                ],
            ),
        ),
    ]
