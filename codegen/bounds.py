"""Assertions that accesses stay inside their arrays: `PFX_IN(index, extent);`, a macro of headers.

A[i, k + 1] of A: f32[M, K]     ->      PFX_IN(i, M); PFX_IN(k + 1, K);
"""

from __future__ import annotations

from collections.abc import Iterable

import cgen

from codegen.instruction_text import line
from codegen.ir.expr import Load, loads
from codegen.ir.instructions import Call, index_inside, instruction_names
from codegen.ir.program import Assign, Buffer, Program
from codegen.scalar import StatementPrinter
from codegen.style import Line


def checks(statement: Assign, program: Program, printer: StatementPrinter) -> list[cgen.Generable]:
    """Assertions for each index of each access of a statement; for a workspace array, for the offset in it."""
    buffers = {buffer.name: buffer for buffer in program.buffers}
    counts = {workspace.name: workspace.count for workspace in program.workspaces}
    lines: dict[str, frozenset[str]] = {}
    for access in dict.fromkeys((statement.target, *loads(statement.expr))):
        element = printer.at(access)
        if access.array in counts:
            count = counts[access.array]
            lines[f"PFX_IN({printer.offset(element)}, {count});"] = printer.offset_names(element) | count.names
        else:
            calls = _by_dimension(access, buffers[access.array], printer)
            lines |= {line(call): instruction_names(call) for call in calls}
    return [Line(" ".join(lines), frozenset().union(*lines.values()))] if lines else []


def _by_dimension(access: Load, buffer: Buffer, printer: StatementPrinter) -> Iterable[Call]:
    indices = printer.at(access).indices
    return (call for index, extent in zip(indices, buffer.shape, strict=True) for call in index_inside(index, extent))
