"""The loops as written, run by Python on NumPy arrays: the oracle of every test. No sets, no schedule, no compiler."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from codegen.affine import Affine
from codegen.expr import FUNCTIONS
from microkernels.dtypes import DType
from poly.nest import Array, Nest
from poly.sizes import fitted

PREFIX = "_poly_"
"""Before the names of what the loops get from here."""


def reference(nest: Nest, arguments: tuple[Any, ...], **keywords: Any) -> None:
    """Run the loops of a nest on its arguments; arrays are updated in place.

    Each operation has the type that NumPy gives it, each local the type that it was declared with. `keywords` are
    arguments by name, and the sizes that no array tells. Values that overflow or are no numbers go through without a
    warning.

    Raises:
        ArgumentError: the arguments don't fit the nest.
    """
    taken = fitted(nest, arguments, keywords)
    if all(taken.values[name].size == 0 for name in nest.written & taken.values.keys()):
        return  # such arrays may be as long as one likes
    values = {array.name: _argument(array, taken.values[array.name]) for array in nest.arguments}
    with np.errstate(all="ignore"):
        _function(nest, taken.sizes)(**values)


def _argument(array: Array, value: Any) -> Any:
    return _cast(array.dtype)(value) if array.kind == "scalar" else value


def _cast(dtype: DType) -> type[np.generic]:
    """The NumPy type; called, it makes a scalar of a value."""
    return np.dtype(dtype.numpy_name).type


def _function(nest: Nest, sizes: Mapping[str, int]) -> Callable[..., None]:
    """The nest's source as a Python function, with values for its free names."""
    module = _Runnable(nest).visit(ast.parse(nest.source))
    known = {**dict(nest.fixed), **sizes}
    names: dict[str, Any] = {n: v.evaluate(known) if isinstance(v, Affine) else v for n, v in nest.names}
    names |= {PREFIX + name: function for name, function in _functions().items()}
    names |= {PREFIX + array.dtype.name: _cast(array.dtype) for array in nest.arrays}
    exec(compile(ast.fix_missing_locations(module), nest.file, "exec"), names)
    function: Callable[..., None] = names[nest.name]
    return function


def _functions() -> dict[str, Callable[..., Any]]:
    """What the calls in a nest mean, and `local`, which makes a local array."""
    return {"exp": _real(np.exp), "sqrt": _real(np.sqrt), "tanh": _real(np.tanh)} | {
        "abs": abs, "min": min, "max": max, "local": _local
    }  # fmt: skip


def _real(function: np.ufunc) -> Callable[[Any], Any]:
    """The function of a NumPy scalar in its own type, and of a Python number as a Python number."""

    def apply(value: Any) -> Any:
        return function(value) if isinstance(value, np.generic) else float(function(value))

    return apply


def _local(shape: tuple[int, ...], dtype: type[np.generic]) -> np.ndarray:
    """A local array; floats start as NaN, so that a test sees an element that was read before it was written."""
    extents = [max(extent, 0) for extent in shape]
    kind = np.dtype(dtype)
    return np.full(extents, np.nan if kind.kind == "f" else 0, kind)


class _Runnable(ast.NodeTransformer):
    """The function without types and decorators; locals are made in their types, and calls go to `_functions`."""

    def __init__(self, nest: Nest) -> None:
        self._types = {array.name: array.dtype.name for array in nest.arrays}

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        arguments = [ast.arg(arg.arg) for arg in node.args.args]
        body = [self.visit(statement) for statement in node.body]
        signature = ast.arguments([], arguments, None, [], [], None, [])
        return ast.FunctionDef(node.name, signature, body, [], None)

    def visit_For(self, node: ast.For) -> ast.AST:
        node.body = [self.visit(statement) for statement in node.body]  # the bounds keep Python's min and max
        return node

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        node.value = self.visit(node.value)
        target = node.targets[0]
        if isinstance(target, ast.Name):
            node.value = self._call(self._types[target.id], [node.value])
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        assert isinstance(node.target, ast.Name), "the front end takes annotations on names alone"
        dtype = self._types.get(node.target.id)
        if dtype is None:
            return ast.Pass()
        if node.value is not None:
            return self.visit_Assign(ast.Assign([node.target], node.value))
        shape = _shape(node.annotation)
        if shape is None:
            return ast.Pass()
        return ast.Assign([node.target], self._call("local", [shape, ast.Name(PREFIX + dtype, ast.Load())]))

    def visit_Call(self, node: ast.Call) -> ast.AST:
        name = node.func.attr if isinstance(node.func, ast.Attribute) else ast.unparse(node.func)
        assert name in FUNCTIONS, "the front end takes these calls alone"
        return self._call(name, [self.visit(arg) for arg in node.args])

    def _call(self, name: str, arguments: list[ast.expr]) -> ast.Call:
        return ast.Call(ast.Name(PREFIX + name, ast.Load()), arguments, [])


def _shape(annotation: ast.expr) -> ast.expr | None:
    """The shape in `f32[M, K]` as a tuple; None for a scalar's type."""
    match annotation:
        case ast.Constant(value=str(text)):
            return _shape(ast.parse(text, mode="eval").body)
        case ast.Subscript(slice=ast.Tuple() as shape):
            return shape
        case ast.Subscript(slice=extent):
            return ast.Tuple([extent], ast.Load())
    return None
