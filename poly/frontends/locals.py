"""Locals as arrays over the loops around them, so that no iteration waits for another one's copy.

    for i in range(M):                 for i in range(M):
        acc = 0.0                          acc[i] = 0.0
        for k in range(K):      is         for k in range(K):
            acc += A[i, k]                     acc[i] += A[i, k]
        x[i] = acc                         x[i] = acc[i]
"""

from __future__ import annotations

import ast

from codegen.affine import Affine
from microkernels.dtypes import DType
from poly.frontends.scope import Local, Loop
from poly.nest import Array


def expand(name: str, dtype: DType, shape: tuple[Affine, ...], loops: tuple[Loop, ...]) -> Local:
    """A local of `shape` (empty for a scalar), with one leading dimension for each of `loops`."""
    prefix, extents = [], []
    ranges: dict[str, tuple[Affine, Affine]] = {}
    for loop in loops:
        low = _extreme(loop.lower[0], ranges, highest=False)
        high = _extreme(loop.upper[0], ranges, highest=True)
        ranges[loop.name] = (low, high - 1)
        prefix.append(Affine.name(loop.name) - low)
        extents.append(high - low)
    return Local(Array(name, dtype, (*extents, *shape), "local"), loops, tuple(prefix), len(shape))


def _extreme(bound: Affine, ranges: dict[str, tuple[Affine, Affine]], highest: bool) -> Affine:
    """A bound's lowest or highest value in terms of sizes, with each outer index at the end that gives it."""
    ends = {name: ends[(bound.coefficient(name) > 0) == highest] for name, ends in ranges.items()}
    return bound.substitute(ends)


def restarts(name: str, statement: ast.stmt, loop: ast.For, function: ast.FunctionDef) -> bool:
    """Whether every pass of `loop` starts with a new value of the scalar `name`, assigned by `statement`.

    So it is when `statement` stands directly in the loop, is the first there to name the scalar, and nothing outside of the loop
    reads the scalar. Then the scalar belongs to the loop, whatever was assigned to it before.
    """
    if statement not in loop.body:
        return False
    inside = [n for n in ast.walk(loop) if isinstance(n, ast.Name) and n.id == name]
    own = {id(n) for n in ast.walk(statement)}
    before = [n for n in inside if id(n) not in own and n.lineno <= statement.lineno]
    reads = [n for n in inside if id(n) in own and isinstance(n.ctx, ast.Load)]
    within = {id(n) for n in inside}
    outside = [n for n in ast.walk(function) if isinstance(n, ast.Name) and n.id == name and id(n) not in within]
    augmented = {id(n.target) for n in ast.walk(function) if isinstance(n, ast.AugAssign)}
    used = any(isinstance(n.ctx, ast.Load) or id(n) in augmented for n in outside)
    return not before and not reads and not used
