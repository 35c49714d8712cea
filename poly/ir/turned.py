"""Nests for arrays whose dimensions are passed in another order, such as the transposes of matrices."""

from __future__ import annotations

from dataclasses import replace

from codegen.expr import Load, looked_up, map_loads
from codegen.turning import Axes
from poly.ir.nest import Array, Nest, Statement


def turned(nest: Nest, axes: Axes) -> Nest:
    """The same nest on turned arrays: with `{"A": (1, 0)}`, it reads `A[k, i]` where it read `A[i, k]`.

    Its text stays that of the loops as written.
    """
    arrays = tuple(_turned_array(array, axes) for array in nest.arrays)
    statements = tuple(_turned_statement(statement, axes) for statement in nest.statements)
    return replace(nest, arrays=arrays, statements=statements, opened="")


def turnable(nest: Nest) -> frozenset[str]:
    """The names of the arrays that can be turned: arguments without strides of their own that are not looked up."""
    loads = (load for statement in nest.statements for load in (statement.target, *statement.reads))
    indices = {found.array for load in loads for found in looked_up(load)}
    return frozenset(a.name for a in nest.arguments if len(a.shape) > 1 and a.strides is None) - indices


def _turned_array(array: Array, axes: Axes) -> Array:
    if array.name not in axes:
        return array
    return replace(array, shape=tuple(array.shape[axis] for axis in axes[array.name]))


def _turned_statement(statement: Statement, axes: Axes) -> Statement:
    def turn(load: Load) -> Load:
        if load.array not in axes:
            return load
        return Load(load.array, tuple(load.indices[axis] for axis in axes[load.array]))

    return replace(statement, target=turn(statement.target), expr=map_loads(statement.expr, turn))
