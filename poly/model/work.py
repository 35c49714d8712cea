"""The arithmetic and the loads and stores of one instance of a statement, vectorised or scalar."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass
from math import log2, prod
from typing import NamedTuple

from codegen.elementary import vector_functions
from codegen.ir.expr import Binary, Expr, FunctionCall, Load, Node, Unary, operands, walk
from microkernels.dtypes import DType
from microkernels.isa import ISA, PORTABLE
from poly.ir.layout import step
from poly.ir.nest import Nest, Statement
from poly.ir.strides import accesses
from poly.model.core import LATENCY
from poly.model.footprint import joined

WEIGHTS: Mapping[str, float] = {
    "/": 8, "sqrt": 12, "exp": 20, "exp2": 18, "expm1": 22, "sinh": 32, "cosh": 32, "tanh": 40, "erf": 60,
    "log": 30, "log2": 35, "log10": 37, "log1p": 45, "atan": 35, "sin": 40, "cos": 40, "tan": 50, "pow": 80,
    "atan2": 40,
}  # fmt: skip
"""The cost in vector operations as implemented by vector libraries; 1 for all other operations.

Functions of whole vectors (`codegen.elementary.vector_functions`) cost what they have instead.
"""

LATENCIES: Mapping[str, float] = {
    "/": 13, "sqrt": 20, "exp": 60, "exp2": 55, "expm1": 65, "sinh": 90, "cosh": 85, "tanh": 100, "erf": 120,
    "log": 80, "log2": 90, "log10": 90, "log1p": 100, "atan": 80, "sin": 60, "cos": 60, "tan": 80, "pow": 100,
    "atan2": 85,
}  # fmt: skip
"""Latencies in cycles; that of an addition for all other operations."""

INTEGERS: Mapping[str, float] = {"*": 3, "min": 2, "max": 2, "//": 13, "%": 13}
"""The same of integers; a cycle for all other operations. An extreme is a comparison and a choice."""

MANY = 1 << 10
"""Iterations of a loop whose lanes are vectors: more than a loop that is written out has."""

NOTHING: Mapping[str, int] = {}

LOAD, STORE = 1.5, 2.5
"""Cycles of a load and of a store of whole vectors, of which half, or all, cross a cache line."""


@dataclass(frozen=True)
class InstanceWork:
    """The work of one instance in the innermost loop.

    `arithmetic` counts operations, `moves` the cycles of loads and stores of contiguous elements, both for a whole
    vector; `scattered` counts accesses of single elements. `chain` is the latency in cycles from the element written by
    the previous iteration to the result of this one. `summed` tells that all iterations add to one element.
    """

    arithmetic: float
    moves: float
    scattered: float
    chain: float
    summed: bool = False

    def vector(self, lanes: int) -> float:
        """Cycles of one vector of `lanes` instances."""
        return max(self.arithmetic, self.moves + self.scattered * lanes)

    def combining(self, lanes: int) -> float:
        """Cycles to make one result of those of the lanes: for each half of them a shuffle and an operation."""
        return 2 * log2(lanes) if self.summed else 0.0

    def scalar(self) -> float:
        """Cycles of one scalar instance; a core completes at least two of its operations per cycle."""
        return max(self.arithmetic, self.moves + self.scattered) / 2


def work(
    nest: Nest,
    statement: Statement,
    innermost: str | None,
    variables: Set[str] = frozenset(),
    around: str | None = None,
    written: Mapping[str, int] = NOTHING,
    isa: ISA = PORTABLE,
) -> InstanceWork:
    """The work of a statement in an innermost loop over the iterator `innermost`; `variables` stay in registers.

    If that is a register tile in a loop over `around`, what does not move along this one does, too. `written` has the
    extents of the iterators of loops that are written out inside: what their iterations share is accessed once.
    """
    moved, scattered, shuffles = 0.0, 0.0, 0.0
    for access in accesses(statement):
        share = _distinct(access, written)
        cycles = (STORE if access == statement.target else LOAD) * share
        if innermost is None or not _moves(access, innermost) or access.array in variables:
            continue
        if around is not None and not _moves(access, around):
            continue
        apart = step(nest.array(access.array), access, innermost).number
        if apart is not None and (
            _contiguous(nest, access, innermost, written) or _interleaved(statement, access, apart)
        ):
            moved += cycles
            shuffles += abs(apart) - 1
        else:
            scattered += share
    own = 0 if statement.op == "=" else 1
    expr, dtype = statement.expr, nest.array(statement.target.array).dtype
    arithmetic = _count(expr, isa, dtype) + own + shuffles
    if dtype.is_float:
        arithmetic -= len(_fused(expr, statement.op))
    summed = bool(own) and innermost is not None and not _moves(statement.target, innermost)
    return InstanceWork(arithmetic, moved, scattered, _chain(nest, statement, innermost), summed)


def _chain(nest: Nest, statement: Statement, innermost: str | None) -> float:
    """The latency in cycles from the result of an iteration to that of the next one, through temporaries too."""
    same = (s for s in nest.statements if s.op == "=" and s.iterators == statement.iterators)
    before = [s for s in same if s.target.array in nest.temporaries]
    read = dict.fromkeys(load for s in (statement, *before) for load in s.reads)
    delays = Delays(LATENCIES, LATENCY) if nest.array(statement.target.array).dtype.is_float else Delays(INTEGERS, 1)
    return max(
        (_passing(load, before, statement, delays) for load in read if _feeds(statement.target, load, innermost)),
        default=delays.usual,
    )


class Delays(NamedTuple):
    """The latencies in cycles of some operations, and of all others."""

    special: Mapping[str, float]
    usual: float


def _passing(source: Load, before: Iterable[Statement], last: Statement, delays: Delays) -> float:
    """The latency in cycles from an element to the result of a statement, by those before that compute temporaries."""
    known = {source: 0.0}
    for one in before:
        latency = _latency(one.expr, known, delays)
        if latency is not None:
            known[one.target] = latency
    return _latency(last.expr, known, delays) or delays.usual


def _distinct(access: Load, written: Mapping[str, int]) -> float:
    """The elements that an access reaches in loops that are written out, relative to their iterations together."""
    spans = (1 + sum(abs(i.coefficient(n)) * (extent - 1) for n, extent in written.items()) for i in access.indices)
    return min(1.0, prod(spans) / prod(written.values()))


def _contiguous(nest: Nest, access: Load, innermost: str, written: Mapping[str, int]) -> bool:
    """Whether a vector's lanes and the loops that are written out reach neighbouring elements together.

    These are loaded by vectors; of n that are interleaved, n - 1 shuffles of two make each vector of lanes.
    """
    array, extents = nest.array(access.array), {**written, innermost: MANY}
    steps = {name: step(array, access, name).number for name in extents}
    moving = [(abs(apart), extents[name]) for name, apart in steps.items() if apart]
    return None not in steps.values() and [near for near, _ in joined(moving)] == [1]


def _interleaved(statement: Statement, access: Load, apart: int) -> bool:
    """Whether a statement reads all elements between those of an access in neighbouring lanes, such as both parts."""
    *outer, last = access.indices
    reads = {load.indices for load in statement.reads if load.array == access.array and load != statement.target}
    between = {other[-1].constant for other in reads if list(other[:-1]) == outer and not other[-1].terms}
    return not last.terms and access in statement.reads and len(between) == abs(apart)


def _moves(access: Load, iterator: str) -> bool:
    return any(iterator in index.names for index in access.indices)


def _feeds(target: Load, load: Load, innermost: str | None) -> bool:
    """Whether a load reads the result of an earlier iteration of the innermost loop, as it differs only along that."""
    if load.array != target.array:
        return False
    pairs = zip(target.indices, load.indices, strict=True)
    return all(a == b or (innermost is not None and innermost in a.names) for a, b in pairs)


def _count(expr: Expr, isa: ISA, dtype: DType) -> float:
    """The operations of an expression, but for changes of sign; common subexpressions count once."""
    return sum(
        _weight(_operation(node), isa, dtype)
        for node in set(walk(expr))
        if operands(node) and not isinstance(node, Unary)
    )


def _weight(operation: str, isa: ISA, dtype: DType) -> float:
    """The cost of an operation in vector operations."""
    if vector_functions.has(isa, operation, dtype):
        return vector_functions.operations(isa, operation, dtype)
    return WEIGHTS.get(operation, 1)


def _fused(expr: Expr, op: str) -> set[Expr]:
    """The products that are added in one operation: one of each sum in an expression, and the one that all is."""
    sums = [(node.left, node.right) for node in set(walk(expr)) if isinstance(node, Binary) and node.op in "+-"]
    whole = [(expr,)] if op == "+" else []
    products = ([p for part in parts if (p := _product(part)) is not None] for parts in (*sums, *whole))
    return {found[0] for found in products if found}


def _product(expr: Expr) -> Expr | None:
    """A product, apart from its sign."""
    while isinstance(expr, Unary):
        expr = expr.operand
    return expr if isinstance(expr, Binary) and expr.op == "*" else None


def _latency(expr: Node, known: Mapping[Load, float], delays: Delays) -> float | None:
    """The latency in cycles to the value of an expression, of whose elements some are known; None if it has none."""
    if isinstance(expr, Load):
        return known.get(expr)
    found = [latency for part in operands(expr) if (latency := _latency(part, known, delays)) is not None]
    own = 0.0 if isinstance(expr, Unary) else delays.special.get(_operation(expr), delays.usual)
    return max(found) + own if found else None


def _operation(node: Node) -> str:
    match node:
        case Binary(op, _, _):
            return op
        case FunctionCall(function, _):
            return function
    return ""
