"""Quasi-affine formulas of a statement's iterators, as Python text: `k // 32`, `i - j + 1`, `k // 32 < j // 32`."""

from __future__ import annotations

import ast
from collections.abc import Callable
from functools import reduce
from typing import NewType

import islpy as isl

from codegen.ir.promotion import LARGEST_INDEX
from microkernels.errors import shown
from poly.errors import ScheduleError
from poly.ir.instances import coordinates
from poly.ir.nest import Nest, Statement
from poly.ir.sets import number, parameters

Formula = NewType("Formula", str)
"""The text of a value or a condition."""

LONGEST = 200
"""The most characters of a formula."""

FORM = (
    "A formula has the statement's iterators, sizes, integers, + - *, // and % by a positive integer; a condition "
    "compares such values, joined by and."
)
COMPARISONS: dict[type[ast.cmpop], Callable[[isl.PwAff, isl.PwAff], isl.Set]] = {
    ast.Lt: isl.PwAff.lt_set, ast.LtE: isl.PwAff.le_set, ast.Gt: isl.PwAff.gt_set, ast.GtE: isl.PwAff.ge_set,
    ast.Eq: isl.PwAff.eq_set, ast.NotEq: isl.PwAff.ne_set,
}  # fmt: skip


def value_of(nest: Nest, statement: Statement, text: str) -> isl.PwAff:
    """The value of a formula, as a function on the space of the statement's instances.

    Raises:
        ScheduleError: not a quasi-affine formula, or a name in it is neither an iterator nor a size.
    """
    return _Reader(nest, statement, text).value(_parsed(text))


def where(nest: Nest, statement: Statement, text: str) -> isl.Set:
    """The instances for which a condition holds.

    Raises:
        ScheduleError: not a comparison of quasi-affine formulas, or a name in it is neither an iterator nor a size.
    """
    return _Reader(nest, statement, text).condition(_parsed(text)).intersect(statement.domain)


def _parsed(text: str) -> ast.expr:
    try:
        if isinstance(text, str) and len(text) <= LONGEST:
            return ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        pass
    raise ScheduleError(f"{shown(text)} is no formula. {FORM}")


class _Reader:
    """Reads the formulas of one statement."""

    def __init__(self, nest: Nest, statement: Statement, text: str) -> None:
        space, self._text = statement.domain.get_space(), text
        self._statement = statement
        local = isl.LocalSpace.from_space(space)
        self._zero = isl.PwAff.zero_on_domain(local)
        sizes = {
            name: isl.PwAff.var_on_domain(local, isl.dim_type.param, at) for at, name in enumerate(parameters(space))
        }
        fixed = {name: self._zero.add_constant_val(number(value)) for name, value in nest.fixed}
        self._names = {**fixed, **sizes, **coordinates(statement.domain, statement.iterators)}

    def condition(self, node: ast.expr) -> isl.Set:
        match node:
            case ast.Compare(left=first, ops=ops, comparators=others) if all(type(op) in COMPARISONS for op in ops):
                terms = [self.value(term) for term in (first, *others)]
                pairs = zip(terms, ops, terms[1:], strict=False)
                return reduce(isl.Set.intersect, (COMPARISONS[type(op)](left, right) for left, op, right in pairs))
            case ast.BoolOp(op=ast.And(), values=values):
                return reduce(isl.Set.intersect, map(self.condition, values))
        raise self._refused(node)

    def value(self, node: ast.expr) -> isl.PwAff:
        match node:
            case ast.Name(id=name):
                return self._named(name)
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return self.value(operand).neg()
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                return self.value(left).add(self.value(right))
            case ast.BinOp(left=left, op=ast.Sub(), right=right):
                return self.value(left).sub(self.value(right))
            case ast.BinOp(left=left, op=ast.Mult(), right=ast.Constant() as factor):
                return self.value(left).scale_val(self._integer(factor))
            case ast.BinOp(left=ast.Constant() as factor, op=ast.Mult(), right=right):
                return self.value(right).scale_val(self._integer(factor))
            case ast.BinOp(left=left, op=ast.FloorDiv(), right=right):
                return self.value(left).scale_down_val(self._integer(right, least=1)).floor()
            case ast.BinOp(left=left, op=ast.Mod(), right=right):
                return self.value(left).mod_val(self._integer(right, least=1))
        return self._zero.add_constant_val(self._integer(node))

    def _named(self, name: str) -> isl.PwAff:
        if name not in self._names:
            known = ", ".join(self._names)
            problem = f"{shown(self._text)}: {self._statement.name} has no iterator {shown(name)}"
            raise ScheduleError(f"{problem}. Iterators and sizes: {known}.")
        return self._names[name]

    def _integer(self, node: ast.expr, least: int = -LARGEST_INDEX) -> isl.Val:
        match node:
            case ast.Constant(value=int(value)) if not isinstance(value, bool) and least <= value <= LARGEST_INDEX:
                return number(value)
        raise self._refused(node)

    def _refused(self, node: ast.expr) -> ScheduleError:
        return ScheduleError(f"{shown(ast.unparse(node))} in {shown(self._text)} is not quasi-affine. {FORM}")
