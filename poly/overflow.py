"""Proof that the integers of the loops made fit in 64 bits, at the sizes given or else at the largest there may be.

What is generated is looked at, not what was asked for: each expression of isl's syntax tree gets the interval of its
values, from the intervals of sizes and of the loops around.

    for c0 in 0 … floor((N + 63)/64):         N: [0, 2**48]      c0: [0, 2**42]
      for c1 in 64*c0 … min(N, 64*c0 + 64):   c1: [0, 2**48]
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from math import prod

import islpy as isl

from codegen.integer import Atom, Choice, Int, Op
from codegen.isl_ast import COMPARISONS, CONNECTIVES, arguments, children, kind, operation
from codegen.program import Workspace
from codegen.promotion import LARGEST_INDEX
from microkernels.errors import shown
from poly.errors import ScheduleError
from poly.guards import Conditions
from poly.nest import Nest
from poly.sets import PARAM, at_least, number, set_space

MOST = (1 << 62) - 1
"""No integer is larger, so that none overflows when a step or a line's length is added to it."""

MOST_KNOWN = 1 << 40
"""The product of the numbers in the extents of a copy that depends on sizes."""
Interval = tuple[int, int]


def prove(ast: isl.AstNode, nest: Nest, conditions: Conditions) -> None:
    """Refuse loops in which an integer may leave 64 bits, and conditions of statements in them.

    Raises:
        ScheduleError: which loop or statement, and how large the integer may be.
    """
    _Proof(nest, conditions, "the loops", largest_sizes(nest)).node(ast)


def check_room(workspaces: Iterable[Workspace]) -> None:
    """Refuse copies of which the known part alone is larger than all memory, so that no product of it overflows.

    Raises:
        ScheduleError: which copy.
    """
    for workspace in workspaces:
        known = _known(workspace.count) * workspace.dtype.size
        if known > (MOST_KNOWN if workspace.count.terms else LARGEST_INDEX):
            raise ScheduleError(f"{workspace.name} would take {shown(known)} bytes or more. Remedy: smaller blocks.")


def _known(count: Int) -> int:
    """The product of the numbers in a product: 8*64 for `8*N*min(64, N)`."""
    parts = (abs(c) * _known_part(atom) for atom, c in count.terms)
    return max(abs(count.constant), *parts, 1)


def _known_part(atom: Atom) -> int:
    if isinstance(atom, Choice):
        return max(_known(atom.then), _known(atom.other))
    return prod(map(_known, atom.args)) if isinstance(atom, Op) else 1


def largest_sizes(nest: Nest) -> dict[str, Interval]:
    """The interval of each open size: no array is larger than all memory, as if each extent of 0 were 1."""
    allowed = nest.context
    for array in nest.arrays:
        known = prod((max(extent.constant, 1) for extent in array.shape if not extent.terms), start=array.dtype.size)
        opened = [LARGEST_INDEX // known - extent for extent in array.shape if extent.terms]
        allowed = allowed.intersect(at_least(nest.sizes, opened, 0)) if known <= LARGEST_INDEX else allowed
    space = set_space(nest.sizes, 0).params()
    for at in range(len(nest.sizes)):
        allowed = allowed.intersect(isl.Set.universe(space).upper_bound_val(PARAM, at, number(LARGEST_INDEX)))
    values = allowed.move_dims(isl.dim_type.set, 0, PARAM, 0, len(nest.sizes)) if nest.sizes else allowed
    return {size: (0, _greatest(values, at)) for at, size in enumerate(nest.sizes)}


def _greatest(values: isl.Set, dimension: int) -> int:
    most = values.dim_max_val(dimension)
    return int(most.to_python()) if most.is_int() else 0


@dataclass(frozen=True)
class _Proof:
    """What is known at a place of the tree: the intervals of names, and what to call it."""

    nest: Nest
    conditions: Conditions
    place: str
    intervals: Mapping[str, Interval]

    def node(self, node: isl.AstNode) -> None:
        match kind(node):
            case "mark":
                what, _, name = node.mark_get_id().get_name().partition(":")
                place = f"loop {name}" if what == "loop" else self.place
                replace(self, place=place).node(node.mark_get_node())
            case "for_":
                self._for(node)
            case "if_":
                self.value(node.if_get_cond())
                self.node(node.if_get_then_node())
                if node.if_has_else_node():
                    self.node(node.if_get_else_node())
            case "block":
                for child in children(node):
                    self.node(child)
            case _:
                called, *values = arguments(node.user_get_expr())
                self._statement(called.get_id().get_name(), values)

    def _statement(self, name: str, values: list[isl.AstExpr]) -> None:
        inside = replace(self, place=f"statement {name}")
        found = [inside.value(value) for value in values]
        if name in self.conditions:
            own = dict(zip(self.nest.statement(name).iterators, found, strict=False))  # more are of copies
            replace(inside, intervals={**self.intervals, **own}).value(self.conditions[name])

    def _for(self, node: isl.AstNode) -> None:
        """The loop's variable goes from its first value up to the bound in its condition."""
        name = node.for_get_iterator().get_id().get_name()
        low, high = self.value(node.for_get_init())
        if not node.for_is_degenerate():
            step = self.value(node.for_get_inc())[1]
            unbounded = replace(self, intervals={**self.intervals, name: (low, MOST)})
            high = max(high, unbounded.bound(node.for_get_cond(), name))
            self._checked((low, high + step))
        replace(self, intervals={**self.intervals, name: (low, high)}).node(node.for_get_body())

    def bound(self, condition: isl.AstExpr, variable: str) -> int:
        """The greatest value of a loop's variable for which its condition may hold."""
        op = operation(condition)
        if op in ("and_", "and_then"):
            return min(self.bound(part, variable) for part in arguments(condition))
        if op in ("or_", "or_else"):
            return max(self.bound(part, variable) for part in arguments(condition))
        if op in ("le", "lt"):
            left, right = arguments(condition)
            if operation(left) == "" and self._is(left, variable):
                return self.value(right)[1] - (op == "lt")
            if operation(left) == "mul":
                factor, other = arguments(left)
                if self._is(other, variable):
                    return (self.value(right)[1] - (op == "lt")) // self.value(factor)[0]
        return MOST

    @staticmethod
    def _is(expr: isl.AstExpr, name: str) -> bool:
        return isl.ast_expr_type(expr.get_type()) == isl.ast_expr_type.id and expr.get_id().get_name() == name

    def value(self, expr: isl.AstExpr) -> Interval:
        """The interval of an integer expression; of a condition, (0, 1)."""
        what = isl.ast_expr_type(expr.get_type())
        if what == isl.ast_expr_type.int:
            constant = int(expr.get_val().to_python())
            return self._checked((constant, constant))
        if what == isl.ast_expr_type.id:
            return self.intervals[expr.get_id().get_name()]
        return self._checked(self._operation(operation(expr), [self.value(arg) for arg in arguments(expr)]))

    def _operation(self, op: str, of: list[Interval]) -> Interval:
        if op in COMPARISONS or op in CONNECTIVES:
            return (0, 1)
        match op, of:
            case (("cond" | "select"), [_, first, second]):
                return min(first[0], second[0]), max(first[1], second[1])
            case "min", _:
                return min(low for low, _ in of), min(high for _, high in of)
            case "max", _:
                return max(low for low, _ in of), max(high for _, high in of)
            case "add", [(a, b), (c, d)]:
                return a + c, b + d
            case "sub", [(a, b), (c, d)]:
                return a - d, b - c
            case "minus", [(a, b)]:
                return -b, -a
            case "mul", [(a, b), (c, d)]:
                corners = (a * c, a * d, b * c, b * d)
                return min(corners), max(corners)
            case (("fdiv_q" | "pdiv_q" | "div"), [(a, b), (c, _)]) if c > 0:
                return a // c, b // c
            case (("pdiv_r" | "zdiv_r"), [_, (_, d)]) if d > 0:
                return 0, d - 1
        raise AssertionError(f"isl made an operation that has no interval: {op}")

    def _checked(self, interval: Interval) -> Interval:
        low, high = interval
        if low >= -MOST and high <= MOST:
            return interval
        most = max(-low, high)
        sizes = ", at sizes up to 2**48" if self.nest.sizes else ""
        raise ScheduleError(
            f"{self.place} of {self.nest.name} would count up to {shown(most)}{sizes}, and 2**62 is the most."
            f" Remedy: smaller factors, blocks or constants{', or known sizes' if self.nest.sizes else ''}."
        )
