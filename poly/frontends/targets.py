"""The targets of assignments: elements of arrays, and locals, which their first assignment defines."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any

from codegen.ir.expr import Expr, Load
from codegen.ir.integer import Affine, lookups
from codegen.ir.promotion import type_of
from microkernels.dtypes import DTYPES, DType
from poly.errors import SpecError
from poly.frontends import names
from poly.frontends.expressions import element, scalar
from poly.frontends.locals import Locals, restarts
from poly.frontends.scope import Local, Scope


class Targets:
    """The assignments of one function; `locals` collects the locals that they define."""

    def __init__(self, definition: ast.FunctionDef, locals_: Locals, environment: Mapping[str, Any]) -> None:
        self.locals = locals_
        self._definition = definition
        self._environment = environment

    def declare(self, node: ast.AnnAssign, target: ast.Name, scope: Scope) -> None:
        """Declare a local: `tmp: f32[N]` defines an array; `acc: f32` sets the type of a scalar.

        Raises:
            SpecError: the name or type can't be that of a local, or an array is given a value.
        """
        kind = names.annotation(node.annotation, scope.source, self._environment)
        self._check_name(target, scope)
        if isinstance(kind, DType):
            self._check_same(target, kind, 0, scope)
            self.locals.declared[target.id] = kind
            return
        if node.value is not None:
            raise scope.source.error(
                node.value, "a local array is declared without a value", "Fill it with loops after the declaration."
            )
        shape = tuple(Affine.of(extent) for extent in kind.shape)
        if not shape:
            remedy = f"Declare a scalar: `{target.id}: {kind.dtype.name}`."
            raise scope.source.error(node.annotation, "a local array has at least one dimension", remedy)
        self._check_same(target, kind.dtype, len(shape), scope)
        self.locals.define(target.id, kind.dtype, shape, scope.loops)

    def assigned(self, node: ast.stmt, target: ast.expr, expr: Expr, scope: Scope, around: ast.For | None) -> Load:
        """The element that `target = expr` assigns; a scalar that is new, or restarts in the loop `around`, is defined.

        Raises:
            SpecError: the target can't be assigned.
        """
        match target:
            case ast.Subscript():
                return _direct(target, scope)
            case ast.Name():
                local = self._scalar(node, target, expr, scope, around)
                return Load(local.array.name, local.prefix)
        raise _unassignable(target, scope)

    def updated(self, target: ast.expr, scope: Scope) -> Load:
        """The element that `target += expr` updates.

        Raises:
            SpecError: the target can't be assigned, or has no value yet.
        """
        match target:
            case ast.Subscript():
                return _direct(target, scope)
            case ast.Name():
                self._check_name(target, scope)
                if target.id not in scope.locals:
                    raise scope.undeclared(target)
                return scalar(target, scope)
        raise _unassignable(target, scope)

    def _scalar(self, node: ast.stmt, target: ast.Name, expr: Expr, scope: Scope, around: ast.For | None) -> Local:
        self._check_name(target, scope)
        local = scope.locals.get(target.id)
        if local is not None and local.rank:
            raise _whole(target, scope)
        if local is not None and scope.encloses(local):
            outside = around is not None and len(local.loops) < len(scope.loops)
            if not (outside and around and restarts(target.id, node, around, self._definition)):
                return local
        return self.locals.define(target.id, self._type(target, expr, scope), (), scope.loops)

    def _type(self, target: ast.Name, expr: Expr, scope: Scope) -> DType:
        """A scalar's type: as declared, else that of its value, or of the elements in what it is assigned elsewhere.

        Without any, it is the one type of all arguments.
        """
        if target.id in self.locals.declared:
            return self.locals.declared[target.id]
        own = type_of(expr, lambda array: self.type_of(array, scope))
        if isinstance(own, DType):
            return own
        types = self._assigned_types(target.id, scope) or {a.dtype for a in scope.arguments.values()}
        if len(types) != 1:
            raise scope.source.error(
                target, f"the type of `{target.id}` is not clear", f"Declare it: `{target.id}: f32 = ...`."
            )
        return types.pop()

    def _assigned_types(self, name: str, scope: Scope) -> set[DType]:
        """The types of the arguments' elements in all that a scalar is assigned."""
        found = set[DType]()
        for node in ast.walk(self._definition):
            match node:
                case ast.Assign(targets=[ast.Name(id=own)], value=value) | ast.AugAssign(ast.Name(id=own), value=value):
                    found |= _types_in(value, scope) if own == name else set()
        return found

    def type_of(self, name: str, scope: Scope) -> DType:
        """The type of an array's elements."""
        arrays = (*scope.arguments.values(), *self.locals.arrays)
        return next(array.dtype for array in arrays if array.name == name)

    def _check_name(self, target: ast.Name, scope: Scope) -> None:
        name = target.id
        names.check(name, target, scope.source)
        if scope.is_index(name):
            raise scope.source.error(target, f"`{name}` is the index of a loop", "Assign a local of another name.")
        if name in self.locals.sizes:
            raise scope.source.error(target, f"`{name}` is a size", "Assign a local of another name.")
        if name not in scope.arguments:
            return
        if scope.arguments[name].kind == "scalar":
            raise scope.source.error(target, f"`{name}` is a scalar passed by value", "Assign a local of another name.")
        raise _whole(target, scope)

    def _check_same(self, target: ast.Name, dtype: DType, rank: int, scope: Scope) -> None:
        local = scope.locals.get(target.id)
        if local is not None and (local.array.dtype, local.rank) != (dtype, rank):
            raise scope.source.error(target, f"`{target.id}` changes its type", "Use another name for the second one.")


def _types_in(node: ast.expr, scope: Scope) -> set[DType]:
    """The types of the arguments' elements in an expression, and those that it converts values to."""
    match node:
        case ast.Call(func=func, args=args):
            function = scope.functions.get(ast.unparse(func), "")
            return {DTYPES[function]} if function in DTYPES else set().union(*(_types_in(arg, scope) for arg in args))
        case ast.Subscript(value=array):
            return _types_in(array, scope)
        case ast.Name(id=name):
            return {scope.arguments[name].dtype} if name in scope.arguments else set()
    parts = (part for part in ast.iter_child_nodes(node) if isinstance(part, ast.expr))
    return set().union(*(_types_in(part, scope) for part in parts))


def _direct(target: ast.Subscript, scope: Scope) -> Load:
    """An element that is written, whose subscripts look up nothing."""
    found = element(target, scope)
    if any(lookups(index) for index in found.indices):
        why = f"`{ast.unparse(target)}` is written where an array's elements tell: two iterations may write one element"
        raise scope.source.error(target, why, "Loop over the elements that are written, and look up what is read.")
    return found


def _whole(target: ast.Name, scope: Scope) -> SpecError:
    name = target.id
    return scope.source.error(target, f"`{name}` is a whole array", f"Assign its elements: `{name}[...] = ...`.")


def _unassignable(target: ast.expr, scope: Scope) -> SpecError:
    return scope.source.error(
        target, f"`{ast.unparse(target)}` can't be assigned", "Assign an element `A[i, j]` or a local scalar."
    )
