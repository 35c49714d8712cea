"""Facts about a nest before it runs: how much it computes, and how its values change over repeated calls."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil, prod

from codegen.ir.expr import Binary, FunctionCall, Load, integers, loads, walk
from codegen.ir.integer import straight
from poly.ir.instances import box_extents, iterations
from poly.ir.nest import Nest, Statement

DRIFT = 8
"""The most calls in a row that each work on the last one's results; after more, values may leave the normal range."""
CALLS = 100_000
ROOTS = ("sqrt", "log", "pow")
"""Functions that have no value for negative numbers."""


@dataclass(frozen=True)
class Facts:
    """The facts about a nest that measurements need.

    `length` is the approximate number of terms of an element; a term that is added r times counts r*r times, since it
    is rounded the same way each time. `calls` is the number of calls in a row after which values are still normal.
    `delicate`: the nest divides by its data, takes roots or logarithms, or forms products over a loop. `settable` are
    the arrays that it both assigns and reads.
    """

    iterations: int
    length: int
    calls: int
    delicate: bool
    settable: frozenset[str]


def facts(nest: Nest) -> Facts:
    """The facts of a nest without open sizes."""
    assigned = frozenset(s.target.array for s in nest.statements if s.op == "=")
    read = frozenset(load.array for s in nest.statements for load in s.reads)
    return Facts(
        iterations=sum(iterations(s.domain) for s in nest.statements),
        length=sum(_length(nest, s) for s in nest.statements if not s.domain.is_empty()),
        calls=DRIFT if drifts(nest) else CALLS,
        delicate=delicate(nest),
        settable=frozenset(a.name for a in nest.arguments if a.name in assigned & read and a.dtype.is_float),
    )


def _length(nest: Nest, statement: Statement) -> int:
    """The approximate number of terms of an element of the target; see `Facts`."""
    extents = dict(zip(statement.iterators, box_extents(statement.domain), strict=True))
    target = statement.target.indices
    used = (*target, *(value for node in walk(statement.expr) for value in integers(node)))
    same = prod(extents[loop] for loop in extents if not any(loop in value.names for value in used))
    terms = ceil(prod(extents.values()) / _elements(nest, statement.target, extents))
    return terms if statement.op == "=" else terms * same


def _elements(nest: Nest, target: Load, extents: Mapping[str, int]) -> int:
    """An upper bound on the elements that a statement writes, from the array, its indices and the indices' loops."""
    whole = prod(extent.evaluate({}) for extent in nest.array(target.array).shape)
    values = prod(1 + sum(abs(c) * (extents[n] - 1) for n, c in straight(i).terms) for i in target.indices)
    loops = prod(extents[name] for name in {name for index in target.indices for name in index.names})
    return max(1, min(whole, values, loops))


def drifts(nest: Nest) -> bool:
    """Whether a second call starts from other values than the first, apart from larger sums."""
    return any(s.op == "*" or any(load.array in nest.written for load in loads(s.expr)) for s in nest.statements)


def delicate(nest: Nest) -> bool:
    """Whether the nest divides by its data, takes roots or logarithms, or forms products over a loop."""
    return any(_delicate(statement) for statement in nest.statements)


def _delicate(statement: Statement) -> bool:
    return statement.op == "*" or any(
        (isinstance(node, Binary) and node.op == "/" and bool(loads(node.right)))
        or (isinstance(node, FunctionCall) and node.function in ROOTS)
        for node in walk(statement.expr)
    )
