"""Nests for arrays of which views are passed, such as the transposes of matrices."""

from __future__ import annotations

from dataclasses import replace

from codegen.calls.turning import ArrayView, Views
from codegen.ir.expr import Load, looked_up, map_loads
from codegen.ir.integer import Linear
from poly.ir.nest import Array, Nest


def turned(nest: Nest, views: Views) -> Nest:
    """The same nest on views: with `{"A": ArrayView((1, 0))}`, it reads `A[k, i]` where it read `A[i, k]`.

    Its text stays that of the loops as written. The dimension of complex numbers' parts stays the last one.
    """
    shapes = {array.name: array.shape for array in nest.arrays}

    def turn(load: Load) -> Load:
        if load.array not in views:
            return load
        view, shape = views[load.array], shapes[load.array]
        ends = {axis: shape[axis] - 1 - load.indices[axis] for axis in view.backwards}
        indices = (ends.get(axis, load.indices[axis]) for axis in view.axes)
        return Load(load.array, (*indices, *(Linear(),) * view.apart, *load.indices[len(view.axes) :]))

    arrays = tuple(_seen(array, views[array.name]) if array.name in views else array for array in nest.arrays)
    statements = tuple(replace(s, target=turn(s.target), expr=map_loads(s.expr, turn)) for s in nest.statements)
    return replace(nest, arrays=arrays, statements=statements, opened="")


def can_turn(nest: Nest, views: Views) -> bool:
    """Whether the arrays are arguments without strides of their own, and no indices.

    One in which elements are looked up cannot be passed backwards: its indices are checked as they are.
    """
    loads = [load for statement in nest.statements for load in (statement.target, *statement.reads)]
    indices = {found.array for load in loads for found in looked_up(load)}
    dense = {array.name for array in nest.arguments if array.shape and array.strides is None}
    into = {load.array for load in loads if looked_up(load)}
    return views.keys() <= dense - indices and not any(views[name].backwards for name in views.keys() & into)


def _seen(array: Array, view: ArrayView) -> Array:
    extents = (*(array.shape[axis] for axis in view.axes), *(Linear.of(1),) * view.apart)
    return replace(array, shape=(*extents, *array.shape[len(view.axes) :]))
