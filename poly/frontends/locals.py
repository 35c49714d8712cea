"""Locals expanded to arrays over the loops around them, so that each iteration has its own copy.

for i in range(M):                 for i in range(M):
    acc = 0.0                          acc[i] = 0.0
    for k in range(K):      is         for k in range(K):
        acc += A[i, k]                     acc[i] += A[i, k]
    x[i] = acc                         x[i] = acc[i]
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable

from codegen.ir.integer import Affine, Int, Op
from microkernels.dtypes import DType
from poly.frontends.scope import Local, Loop
from poly.ir.nest import Array


class Locals:
    """The locals of one function, collected during the walk through it."""

    def __init__(self, sizes: Collection[str], arguments: Iterable[str]) -> None:
        self.sizes = sizes
        self.current: dict[str, Local] = {}
        """The local that each name stands for at the current place of the walk."""
        self.declared: dict[str, DType] = {}
        """The declared types of scalars."""
        self.arrays: list[Array] = []
        self._taken = {*sizes, *arguments}

    def define(self, name: str, dtype: DType, shape: tuple[Affine, ...], loops: tuple[Loop, ...]) -> Local:
        """A new local that belongs to `loops`; from here on, it hides an earlier one of the same name."""
        unique, count = name, 1
        while unique in self._taken:
            count += 1
            unique = f"{name}_{count}"
        local = expand(unique, dtype, shape, loops)
        self._taken.add(unique)
        self.arrays.append(local.array)
        self.current[name] = local
        return local


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
    array = Array(name, dtype, (*extents, *shape), "local").with_sizes({})
    return Local(array, loops, tuple(prefix), len(shape))


def _extreme(bound: Int, ranges: dict[str, tuple[Affine, Affine]], highest: bool) -> Affine:
    """A bound's lowest or highest value in terms of sizes, with each outer index at the end that gives it.

    With quotients, it is a value that is no higher, or no lower.
    """
    found: Affine = Affine.of(bound.constant)
    for atom, factor in bound.terms:
        upwards = (factor > 0) == highest
        if isinstance(atom, str):
            end = ranges[atom][upwards] if atom in ranges else Affine.name(atom)
        else:
            assert isinstance(atom, Op), "a bound has names and quotients"
            end = _beyond(_extreme(atom.args[0], ranges, upwards), upwards)
        found = found + end * factor
    return found


def _beyond(dividend: Affine, highest: bool) -> Affine:
    """The positive (negative, unless `highest`) part of a sum of sizes, which bounds its quotients."""
    sign = 1 if highest else -1
    terms = {name: factor for name, factor in dividend.terms if factor * sign > 0}
    return Affine.make(terms, dividend.constant if dividend.constant * sign > 0 else 0)


def restarts(name: str, statement: ast.stmt, loop: ast.For, function: ast.FunctionDef) -> bool:
    """Whether every iteration of `loop` gives the scalar `name` a new value, assigned by `statement`.

    This is so if `statement` is directly in the loop, is the first there to name the scalar, and does not read it, and
    nothing outside the loop reads it. Then the scalar belongs to the loop, whatever was assigned to it before.
    """
    if statement not in loop.body:
        return False
    until = loop.body.index(statement)
    before = any(_uses(name, earlier) for earlier in loop.body[:until])
    inside = _reads(name, loop)
    own = _reads(name, statement)
    return not before and not own and len(_reads(name, function)) == len(inside)


def _uses(name: str, node: ast.AST) -> list[ast.Name]:
    return [n for n in ast.walk(node) if isinstance(n, ast.Name) and n.id == name]


def _reads(name: str, node: ast.AST) -> list[ast.Name]:
    """The places that read a scalar's value, including updates such as `+=`."""
    updated = [n.target for n in ast.walk(node) if isinstance(n, ast.AugAssign)]
    return [use for use in _uses(name, node) if isinstance(use.ctx, ast.Load) or use in updated]
