"""Operands of a contraction that are more than elements, computed before.

for i: for j: for k:                            for i: for k: t[i, k] = A[i, k]*d[k]
  C[i, j] += A[i, k]*d[k]*B[k, j]        ->     for i: for j: for k: C[i, j] += t[i, k]*B[k, j]

The product of two elements has microkernels. Each operand has fewer loops than the sum, so that it is computed once for
all rows, or for all columns.
"""

from __future__ import annotations

from collections.abc import Iterator

from codegen.ir.expr import Binary, Cast, Const, Expr, Index, Load, Unary, loads, walk
from poly.analysis.contraction import recognise
from poly.autoschedule.rules.attempt import attempt, with_free_name
from poly.ir.nest import Nest, Statement
from poly.schedules.schedule import Schedule, schedule
from poly.schedules.steps import Materialize
from poly.schedules.steps.materialize import text


def materialized(nest: Nest) -> Schedule | None:
    """The schedule in which such statements are contractions; None if there are none."""
    made = schedule(nest)
    for statement in nest.statements:
        made = _contracted(made, statement) or made
    return made if made.steps else None


def _contracted(made: Schedule, statement: Statement) -> Schedule | None:
    """The schedule in which a statement is a contraction of locals; None if it can't be one, or is one as it is."""
    if statement.op != "+" or recognise(made.nest, statement) is not None:
        return None
    sides = _sides(made.nest, statement.expr)
    if sides is None or not _is_product(made.nest, statement, sides):
        return None
    found: Schedule | None = made
    for side in dict.fromkeys(sides):
        if found is not None and not isinstance(side, Load):
            step = Materialize(statement.name, text(side))
            found = attempt(found, [with_free_name(found.nest, step)])
    return found if found is not None and recognise(found.nest, found.nest.statement(statement.name)) else None


def _sides(nest: Nest, expr: Expr) -> tuple[Expr, Expr] | None:
    """The two factors of a product, beside numbers; None if it is none."""
    match expr:
        case Unary("-", operand):
            return _sides(nest, operand)
        case Binary("*", left, right):
            if _is_number(nest, left):
                return _sides(nest, right)
            if _is_number(nest, right):
                return _sides(nest, left)
            return left, right
    return None


def _is_number(nest: Nest, expr: Expr) -> bool:
    return not isinstance(expr, Index) and all(
        isinstance(part, Const) or (isinstance(part, Load) and nest.array(part.array).kind == "scalar")
        for part in walk(expr)
        if not isinstance(part, Unary | Binary | Cast)
    )


def _is_product(nest: Nest, statement: Statement, sides: tuple[Expr, Expr]) -> bool:
    """Whether each side lacks a loop of the other one, and each subscript in it is of one loop.

    Of windows of an image there are many more than of its elements.
    """
    left, right = (frozenset(_iterators(statement, side)) for side in sides)
    indices = (index for load in loads(statement.expr) for index in load.indices)
    plain = all(len(index.names & {*statement.iterators}) <= 1 for index in indices)
    target = {name for index in statement.target.indices for name in index.names}
    return plain and bool((left - right) & target and (right - left) & target and (left & right) - target)


def _iterators(statement: Statement, side: Expr) -> Iterator[str]:
    for part in walk(side):
        found = part.indices if isinstance(part, Load) else (part.value,) if isinstance(part, Index) else ()
        yield from (name for index in found for name in index.names if name in statement.iterators)
