"""Results that are contiguous only in runs: the kernel writes a tile on the stack, which is brought out run by run.

    columns c_d of C[a, c, d], 30 values of d           ->      runs of 30, at C[a, c_d / 30, 0]
"""

from __future__ import annotations

from microkernels.catalogue import Microkernel
from microkernels.isa import ISA
from poly.calls import Operand, atom_lines
from poly.polynomial import Polynomial
from poly.tree import Micro


def run_length(output: Operand, node: Micro) -> int | None:
    """How many neighbouring columns are neighbours in the output, where not all are; None where all are."""
    column = node.columns.name if node.columns else ""
    if output.stride(column).constant != 1:
        return 1
    atoms = output.coordinates.atoms.items()
    used = [divisor for atom, (loop, divisor) in atoms if loop == column and atom in output.offset.names]
    return min(used, default=None)


def scatter_lines(
    node: Micro, kernel: Microkernel, isa: ISA, output: Operand, run: int, accumulate: str
) -> list[str]:
    """C lines that bring the tile on the stack to the output, run by run."""
    column, row = node.columns.name if node.columns else "", node.rows.name if node.rows else ""
    suffix = f"{kernel.dtype.name}_{isa.name}"
    by_column = _part(output, column)
    by_row = output.offset + by_column * -1
    atoms, loops = output.coordinates, frozenset(loop for loop, _ in output.coordinates.atoms.values())
    length = f"imin(tile_columns - at, {run} - {column} % {run})" if run > 1 else "1"
    return [
        f"const int64_t corner_column = {column};",
        *([f"const int64_t corner_row = {row};"] if row else []),
        f"int64_t row_offset[{kernel.rows}];",
        *atom_lines(atoms, by_row.names, loops - {row, column}),
        "for (int64_t row = 0; row < tile_rows; row++) {",
        *([f"    const int64_t {row} = corner_row + row;"] if row else []),
        *(f"    {line}" for line in atom_lines(atoms, by_row.names, frozenset({row}))),
        f"    row_offset[row] = {by_row};",
        "}",
        "for (int64_t at = 0, length; at < tile_columns; at += length) {",
        f"    const int64_t {column} = corner_column + at;",
        *(f"    {line}" for line in atom_lines(atoms, by_column.names, frozenset({column}))),
        f"    {kernel.dtype.c_name} *const run = {output.array} + {by_column};",
        f"    length = {length};",
        "    for (int64_t row = 0; row < tile_rows; row++)",
        f"        store_run_{suffix}(run + row_offset[row], tile + row * {kernel.columns} + at, length, {accumulate});",
        "}",
    ]


def _part(op: Operand, loop: str) -> Polynomial:
    """The part of an operand's offset that depends on one loop."""
    names = {loop, *(atom for atom, (of, _) in op.coordinates.atoms.items() if of == loop)}
    return Polynomial(tuple((m, c) for m, c in op.offset.terms if names & set(m)))
