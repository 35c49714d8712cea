"""What is known of a nest before it runs: how much it computes, and what its values do when it runs again."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, prod

from codegen.expr import Binary, Call, loads, walk
from poly.instances import iterations
from poly.nest import Nest, Statement

DRIFT = 8
"""The most calls in a row where each works on the last one's result: after more, values may leave the normal range."""
CALLS = 100_000


@dataclass(frozen=True)
class Facts:
    """What measuring needs to know of a nest.

    `length` is about how many terms an element is made of, `calls` how many calls in a row keep the values normal.
    `delicate`: it divides by its data, takes roots or multiplies up. `settable` are the arrays that it both sets and
    reads.
    """

    iterations: int
    length: int
    calls: int
    delicate: bool
    settable: frozenset[str]


def facts(nest: Nest) -> Facts:
    """The facts of a nest without open sizes."""
    counts = {s.name: iterations(s.domain) for s in nest.statements}
    lengths = (ceil(counts[s.name] / max(1, _elements(nest, s.target.array))) for s in nest.statements)
    assigned = frozenset(s.target.array for s in nest.statements if s.op == "=")
    read = frozenset(load.array for s in nest.statements for load in s.reads)
    return Facts(
        iterations=sum(counts.values()),
        length=sum(lengths),
        calls=DRIFT if drifts(nest) else CALLS,
        delicate=delicate(nest),
        settable=frozenset(a.name for a in nest.arguments if a.name in assigned & read and a.dtype.is_float),
    )


def _elements(nest: Nest, array: str) -> int:
    return prod(extent.evaluate({}) for extent in nest.array(array).shape)


def drifts(nest: Nest) -> bool:
    """A second call starts from other values than the first, and not just from larger sums."""
    return any(s.op == "*" or any(load.array in nest.written for load in loads(s.expr)) for s in nest.statements)


def delicate(nest: Nest) -> bool:
    """It divides by its data, takes roots or multiplies up."""
    return any(_delicate(statement) for statement in nest.statements)


def _delicate(statement: Statement) -> bool:
    return statement.op == "*" or any(
        (isinstance(node, Binary) and node.op == "/" and bool(loads(node.right)))
        or (isinstance(node, Call) and node.function == "sqrt")
        for node in walk(statement.expr)
    )
