"""Sums to which the newest results are added last, so that an iteration waits for the one before by one addition.

a[i] = a[i] + a[i-1]*b[i] + a[i-2]*c[i]     ->     a[i] = a[i] + a[i-2]*c[i] + a[i-1]*b[i]

An update by several terms, `a[i] += …; a[i] += …`, is a reduction, whose order is free unless the nest keeps it.
"""

from __future__ import annotations

from dataclasses import replace
from functools import reduce

from codegen.ir.expr import Binary, Expr, Unary, loads
from poly.analysis.contraction import terms
from poly.ir.nest import Nest, Statement


def with_late_terms(nest: Nest) -> Nest:
    """The nest with the terms of such sums in this order."""
    if not nest.reassociate:
        return nest
    return replace(nest, statements=tuple(_ordered(s) if _is_float(nest, s) else s for s in nest.statements))


def _is_float(nest: Nest, statement: Statement) -> bool:
    return nest.array(statement.target.array).dtype.is_float


def _ordered(statement: Statement) -> Statement:
    target, added = statement.target, terms(statement.expr)
    others = [term for term in added if term != target]
    if statement.op != "=" or len(others) != len(added) - 1 or any(target in loads(term) for term in others):
        return statement
    ages = {at: _age(statement, term) for at, term in enumerate(others)}
    order = sorted(ages, key=lambda at: ages[at], reverse=True)
    return statement if order == [*ages] else replace(statement, expr=_sum(target, [others[at] for at in order]))


def _age(statement: Statement, term: Expr) -> tuple[float, ...]:
    """How far back the newest result of the statement lies that a term reads, in each subscript; infinitely if none."""
    target = statement.target
    own = [load.indices for load in loads(term) if load.array == target.array]
    apart = [[(to - back).number for to, back in zip(target.indices, indices, strict=True)] for indices in own]
    ages = [tuple(abs(by) for by in one if by is not None) for one in apart if None not in one]
    return min(ages, default=(float("inf"),))


def _sum(first: Expr, others: list[Expr]) -> Expr:
    def added(before: Expr, term: Expr) -> Expr:
        return Binary("-", before, term.operand) if isinstance(term, Unary) else Binary("+", before, term)

    return reduce(added, others, first)
