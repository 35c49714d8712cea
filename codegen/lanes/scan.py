"""Loops that scan: each iteration takes what all of those before it have combined.

s += A[j]; B[j] = s;        or        B[j] = B[j - 1] + A[j];
"""

from __future__ import annotations

from dataclasses import dataclass

from codegen.elements import Element
from codegen.ir.expr import Binary, Expr, FunctionCall, Load, Unary, accessed, loads
from codegen.ir.integer import Linear, lookups
from codegen.ir.loop_ir import Block, Comment, Node, Run
from codegen.ir.program import Assign, Program
from codegen.ir.promotion import type_of
from codegen.lanes.selection import Update
from codegen.lanes.simd import OFFSETS, Use, declared, is_apart, placed_assign, uses
from codegen.names import c_name
from microkernels.dtypes import DType

CALLS = ("min", "max")


@dataclass(frozen=True)
class Recurrence:
    """`target = before op value`, where `before` is the element that an earlier iteration has set."""

    before: Load
    op: str
    value: Expr


def recurrence(update: Update, loop: str) -> Recurrence | None:
    """The update as a recurrence over a loop: its target's element of the previous iteration, combined with a value.

    The value may be the target's old one, and is made of nothing else of that array.
    """
    target = update.target
    before = Load(target.array, tuple(i.substitute({loop: Linear.name(loop) - 1}) for i in target.indices))
    if before == target:
        return None
    match update.op, update.expr:
        case ("+" | "*" | "min" | "max") as op, Load() as load if load == before and op not in CALLS:
            found = Recurrence(before, op, target)
        case "=", Binary(("+" | "*") as op, left, right) if before in (left, right):
            found = Recurrence(before, op, right if left == before else left)
        case "=", Binary(("+" | "-" | "*") as op, left, right) if (rest := _rest(left, before, op)) is not None:
            found = Recurrence(before, "*" if op == "*" else "+", Binary(op, rest, right))
        case "=", FunctionCall(("min" | "max") as op, (left, right)) if left == before:
            found = Recurrence(before, op, right)
        case _:
            return None
    others = [load for load in accessed(found.value) if load != target]
    return None if any(load.array == target.array for load in others) else found


def _rest(expr: Expr, first: Load, op: str) -> Expr | None:
    """What a sum or product that begins with `first` adds to it, or multiplies it by; None if it has one term only."""
    match expr:
        case Binary(own, left, right) if (own == "*") == (op == "*") and own in "+-*":
            if left == first:
                return Unary("-", right) if own == "-" else right
            rest = _rest(left, first, op)
            return None if rest is None else Binary(own, rest, right)
    return None


@dataclass(frozen=True)
class Scan:
    """The scan of a loop: the statement that combines, and the nodes before and after it in the loop's body.

    `element` is what it combines into: one that all iterations share, or the previous iteration's.
    """

    statement: str
    op: str
    value: Expr
    element: Element
    dtype: DType
    stores: bool
    """Whether each iteration stores its result in an element of its own."""
    before: tuple[Node, ...]
    after: tuple[Node, ...]

    @property
    def root(self) -> str:
        """The prefix of the names of its variables."""
        return c_name(self.element.array)


def scan(body: Node, program: Program, variable: str) -> Scan | None:
    """The scan of a loop's `body` over its `variable`; None if there is none, or more than that is shared.

    A reduction that no other statement looks at is none. Nor is one of smaller numbers, which gcc converts one by one.

    A mark `vectorize` requires a proof that the other statements' iterations are independent of each other.
    """
    nodes = _nodes(body)
    if declared(body) or any(use.nested or use.conditional for use in uses(body)):
        return None
    found = [at for at, node in enumerate(nodes) if _combines(node, program, variable)]
    if len(found) != 1:
        return None
    (at,) = found
    return _scan(nodes[:at], nodes[at], nodes[at + 1 :], program, variable)


def is_chained(body: Node, program: Program, variable: str) -> bool:
    """Whether a loop's iterations need elements of the previous ones, so that lanes must scan."""
    pairs = ((use, program.statements[use.statement].body) for use in uses(body))
    assigns = (placed_assign(use, assign, program) for use, assign in pairs if isinstance(assign, Assign))
    return any(recurrence(assign, variable) is not None for assign in assigns)


def _scan(
    before: tuple[Node, ...], node: Node, after: tuple[Node, ...], program: Program, variable: str
) -> Scan | None:
    (use,) = uses(node)
    assign = program.statements[use.statement].body
    assert isinstance(assign, Assign), "_combines() has said so"
    own = placed_assign(use, assign, program)
    found = recurrence(own, variable)
    target = own.target.array
    dtypes = {buffer.name: buffer.dtype for buffer in program.buffers}
    dtype, value = dtypes[target], own.expr if found is None else found.value
    before_it = own.target if found is None else found.before
    looked_up = any(map(lookups, (*own.target.indices, *(i for load in loads(own.expr) for i in load.indices))))
    if dtype not in OFFSETS or type_of(value, dtypes.__getitem__) != dtype or looked_up:
        return None
    others = [other for one in (*before, *after) for other in uses(one)]
    if any(_writes(other.statement, program) in (None, target) for other in others):
        return None
    if found is None and not any(_reads(other, own.target, program) for other in others):
        return None
    earlier = {_writes(other.statement, program) for one in before for other in uses(one)}
    if any(load.array in earlier for load in accessed(value)):
        return None
    op = own.op if found is None else found.op
    if any(dtypes[load.array].size != dtype.size for load in loads(value)):
        return None
    return Scan(use.statement, op, value, Element(target, before_it.indices), dtype, found is not None, before, after)


def _nodes(body: Node) -> tuple[Node, ...]:
    match body:
        case Block(nodes):
            return tuple(inner for node in nodes for inner in _nodes(node))
        case Comment(body=inner):
            return _nodes(inner)
    return (body,)


def _combines(node: Node, program: Program, variable: str) -> bool:
    """Whether a node is a statement whose iterations need one another's results."""
    if not isinstance(node, Run):
        return False
    statement = program.statements[node.statement]
    if not isinstance(statement.body, Assign) or statement.where is not None:
        return False
    (use,) = uses(node)
    own = placed_assign(use, statement.body, program)
    shared = all(variable not in index.names for index in own.target.indices)
    return (shared and own.op != "=") or recurrence(own, variable) is not None


def _reads(use: Use, element: Load, program: Program) -> bool:
    """Whether a statement may read an element, in the same iteration."""
    body = program.statements[use.statement].body
    if not isinstance(body, Assign):
        return False
    return any(not is_apart(load, element) for load in accessed(placed_assign(use, body, program).expr))


def _writes(statement: str, program: Program) -> str | None:
    """The array that a statement writes; None for one that is no plain assignment."""
    found = program.statements[statement]
    return found.body.target.array if isinstance(found.body, Assign) and found.where is None else None
