"""The cycles of a statement's instances: arithmetic in vector lanes or one by one, loads and stores, latencies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from codegen.expr import Binary, Call, Expr, Load, Unary
from poly.layout import step
from poly.model.choice import LATENCY
from poly.model.view import View, moves
from poly.nest import Nest

WEIGHTS: Mapping[str, float] = {
    "+": 1,
    "-": 1,
    "*": 1,
    "/": 8,
    "min": 1,
    "max": 1,
    "abs": 1,
    "sqrt": 12,
    "exp": 20,
    "tanh": 40,
}
"""Vector operations that each costs where it isn't one, as for an addition; as vector libraries make them."""

LATENCIES: Mapping[str, float] = {"/": 13, "sqrt": 20, "exp": 60, "tanh": 100}
"""Cycles until the result is there, where it isn't that of an addition."""


@dataclass(frozen=True)
class Work:
    """Of one instance, with the innermost loop's iterator as it runs.

    `arithmetic` and `moves` (loads, and stores twice) count operations, each on a whole vector where the accesses are
    neighbours; `scattered` counts those that touch one element each. `chain` is the cycles from the element that the
    statement reads of its own array to its result.
    """

    arithmetic: float
    moves: float
    scattered: float
    chain: float

    def vector(self, lanes: int) -> float:
        """Cycles of `lanes` instances in vector lanes."""
        return max(self.arithmetic, self.moves + self.scattered * lanes)

    def scalar(self) -> float:
        """Cycles of one instance on its own; a core does two or more of its operations in a cycle."""
        return max(self.arithmetic, self.moves + self.scattered) / 2


def work(nest: Nest, view: View, innermost: str | None) -> Work:
    """The work of a statement while the iterator `innermost` runs."""
    statement = view.statement
    moved, scattered = 0.0, 0.0
    for access in dict.fromkeys((statement.target, *statement.reads)):
        weight = 2.0 if access == statement.target else 1.0
        if innermost is None or not access.indices or not moves(access, innermost):
            continue
        if step(nest.array(access.array), access, innermost).constant == 1:
            moved += weight
        else:
            scattered += weight
    own = 0 if statement.op == "=" else 1
    fed = [load for load in statement.reads if _feeds(statement.target, load, innermost)]
    chain = max((_latency(statement.expr, load) or LATENCY for load in fed), default=LATENCY)
    return Work(_count(statement.expr) + own, moved, scattered, chain)


def _feeds(target: Load, load: Load, innermost: str | None) -> bool:
    """Whether a load reads what an iteration of the innermost loop before wrote: it differs along that loop alone."""
    if load.array != target.array:
        return False
    pairs = zip(target.indices, load.indices, strict=True)
    return all(a == b or (innermost is not None and a.coefficient(innermost)) for a, b in pairs)


def _count(expr: Expr) -> float:
    match expr:
        case Binary(op, left, right):
            return WEIGHTS.get(op, 1) + _count(left) + _count(right)
        case Unary(_, operand):
            return _count(operand)
        case Call(function, args):
            return WEIGHTS.get(function, 1) + sum(map(_count, args))
    return 0.0


def _latency(expr: Expr, source: Load) -> float | None:
    """Cycles from an element's value to that of an expression; None where it doesn't occur there."""

    def through(op: str, *parts: Expr) -> float | None:
        found = [latency for part in parts if (latency := _latency(part, source)) is not None]
        return max(found) + LATENCIES.get(op, LATENCY) if found else None

    match expr:
        case Load():
            return 0.0 if expr == source else None
        case Binary(op, left, right):
            return through(op, left, right)
        case Unary(_, operand):
            return _latency(operand, source)
        case Call(function, args):
            return through(function, *args)
    return None
