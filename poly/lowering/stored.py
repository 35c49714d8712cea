"""The types of a program for a CPU: half precision as its bits, which is all that C has of it."""

from __future__ import annotations

from dataclasses import replace

from codegen.expr import Cast, NodeT, map_operands
from codegen.program import Assign, PrintedStatement, Program
from microkernels.dtypes import in_c


def with_stored_types(program: Program) -> Program:
    """The program with the types of C in place of those that it lacks: of arrays, scratch memory and conversions."""
    return replace(
        program,
        buffers=tuple(replace(buffer, dtype=in_c(buffer.dtype)) for buffer in program.buffers),
        workspaces=tuple(replace(memory, dtype=in_c(memory.dtype)) for memory in program.workspaces),
        statements={name: _converting(statement) for name, statement in program.statements.items()},
    )


def _converting(statement: PrintedStatement) -> PrintedStatement:
    body = statement.body
    if not isinstance(body, Assign):
        return statement
    return replace(statement, body=replace(body, expr=_casts(body.expr)))


def _casts(node: NodeT) -> NodeT:
    below: NodeT = map_operands(node, _casts)
    return replace(below, dtype=in_c(below.dtype)) if isinstance(below, Cast) else below
