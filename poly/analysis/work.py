"""The work of one call of a nest, which turns a time into a rate: operations, and the fewest bytes that it moves."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import islpy as isl

from codegen.ir.expr import Binary, FunctionCall, Index, Unary, walk
from poly.ir.budget import TooCostly, limited
from poly.ir.counting import points
from poly.ir.nest import Nest, Statement

AFFORDABLE = 3_000_000
"""Operations that isl may use to count the points of one domain: about a second."""


@dataclass(frozen=True)
class Work:
    """`flop` counts arithmetic, function calls and reductions; `bytes` the arguments read, and those written."""

    flop: int
    bytes: int


def work(nest: Nest) -> Work | None:
    """The work of a nest whose sizes are all fixed; None if counting a domain's points takes too much work."""
    try:
        flop = sum(_operations(statement) * _points(statement.domain) for statement in nest.statements)
    except TooCostly:
        return None
    moved = 0
    for array in nest.arguments:
        size = array.dtype.size * prod(extent.constant for extent in array.shape)
        ways = (array.name in nest.written) + any(
            load.array == array.name for statement in nest.statements for load in statement.reads
        )
        moved += ways * size
    return Work(flop, moved)


def _operations(statement: Statement) -> int:
    """The arithmetic operations of one instance, without index arithmetic."""
    nodes = [node for node in walk(statement.expr) if not isinstance(node, Index)]
    return sum(isinstance(node, Binary | Unary | FunctionCall) for node in nodes) + (statement.op != "=")


def _points(domain: isl.Set) -> int:
    if domain.is_empty():
        return 0
    if domain.is_box():
        spans = [domain.dim_max_val(d) - domain.dim_min_val(d) + 1 for d in range(domain.dim(isl.dim_type.set))]
        return prod(int(span.to_python()) for span in spans)
    with limited(AFFORDABLE):
        return points(domain)
