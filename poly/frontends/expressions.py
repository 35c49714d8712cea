"""Right-hand sides and targets: Python expressions as `codegen.expr` trees."""

from __future__ import annotations

import ast
from functools import reduce

from codegen.expr import FUNCTIONS, Binary, Call, Const, Expr, Index, Load, Unary
from codegen.affine import Affine
from poly.frontends.affine import affine
from poly.frontends.scope import Scope

OPERATORS: dict[type[ast.operator], str] = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}
KNOWN = "exp, sqrt, tanh, abs, min and max"


def expression(node: ast.expr, scope: Scope) -> Expr:
    """The value of a Python expression.

    Raises:
        SpecError: it holds something else than numbers, names, elements, + - * / and the known functions.
    """
    match node:
        case ast.Constant(value=int(value) | float(value)) if not isinstance(value, bool):
            return Const(value)
        case ast.Name(id=name):
            return _name(node, name, scope)
        case ast.Subscript():
            return element(node, scope)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return Unary("-", expression(operand, scope))
        case ast.UnaryOp(op=ast.UAdd(), operand=operand):
            return expression(operand, scope)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in OPERATORS:
            return Binary(OPERATORS[type(op)], expression(left, scope), expression(right, scope))
        case ast.BinOp():
            raise scope.source.error(
                node,
                f"`{ast.unparse(node)}` uses an operator that is not one of + - * /",
                "Write powers as products, and integer division as loops of their own.",
            )
        case ast.Call():
            return _call(node, scope)
    raise scope.source.error(
        node,
        f"`{ast.unparse(node)}` is no value that poly knows",
        f"Use numbers, indices, elements, scalars, + - * / and {KNOWN}.",
    )


def _name(node: ast.Name, name: str, scope: Scope) -> Expr:
    if scope.is_index(name):
        return Index(Affine.name(name))
    if name in scope.locals or name in scope.arguments:
        return scalar(node, scope)
    value = scope.constants.get(name)
    if isinstance(value, Affine):
        return Index(value) if value.terms else Const(value.constant)
    if value is not None:
        return Const(value)
    raise scope.undeclared(node)


def scalar(node: ast.Name, scope: Scope) -> Load:
    """A scalar's value: an argument by value, or a local that has been assigned."""
    name = node.id
    if name in scope.arguments:
        array = scope.arguments[name]
        if array.kind == "scalar":
            return Load(name, ())
        raise _whole_array(node, len(array.shape), scope)
    local = scope.locals[name]
    if local.rank:
        raise _whole_array(node, local.rank, scope)
    if local.array.name not in scope.assigned:
        raise scope.source.error(
            node, f"`{name}` may be read before it has a value", f"Assign it first, outside of any `if`: `{name} = 0.0`."
        )
    if local.loops != scope.loops[: len(local.loops)]:
        raise outlived(node, local.loops[-1].name, scope)
    return Load(local.array.name, local.prefix)


def outlived(node: ast.Name, loop: str, scope: Scope) -> Exception:
    """A local that is used after the loop that it belongs to."""
    return scope.source.error(
        node,
        f"`{node.id}` belongs to the loop `{loop}`, which has ended here",
        f"Define `{node.id}` before that loop.",
    )


def _whole_array(node: ast.Name, rank: int, scope: Scope) -> Exception:
    element = f"{node.id}[{', '.join('ijklmnpq'[:rank])}]"
    return scope.source.error(
        node, f"`{node.id}` is a whole array", f"Name one element of it, such as `{element}`, inside loops."
    )


def element(node: ast.Subscript, scope: Scope) -> Load:
    """One element of an array, `A[i, k]`.

    Raises:
        SpecError: no array, a slice, a wrong number of indices, or an index that is not affine.
    """
    if not isinstance(node.value, ast.Name):
        raise scope.source.error(
            node.value, f"`{ast.unparse(node.value)}` is not the name of an array", "Write A[i, j], not A[i][j]."
        )
    name = node.value.id
    indices = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    for index in indices:
        if isinstance(index, ast.Slice):
            raise scope.source.error(
                index, f"`{ast.unparse(index)}` is a slice", "Write a loop over its elements instead."
            )
    if name in scope.locals:
        local = scope.locals[name]
        if local.loops != scope.loops[: len(local.loops)]:
            raise outlived(node.value, local.loops[-1].name, scope)
        array, rank, prefix = local.array.name, local.rank, local.prefix
        is_scalar = not rank
    elif name in scope.arguments:
        argument = scope.arguments[name]
        array, rank, prefix = name, len(argument.shape), ()
        is_scalar = argument.kind == "scalar"
    else:
        raise scope.undeclared(node.value)
    if is_scalar:
        raise scope.source.error(node, f"`{name}` is a scalar and takes no index", f"Write `{name}`.")
    if len(indices) != rank:
        raise scope.source.error(
            node,
            f"`{name}` has {rank} dimension{'s' * (rank != 1)}, and {len(indices)} "
            f"ind{'ices' if len(indices) != 1 else 'ex'} are given",
            f"Give one index for each dimension: {name}[{', '.join('ijklmnpq'[:rank])}].",
        )
    return Load(array, (*prefix, *(affine(index, scope) for index in indices)))


def function_name(node: ast.Call) -> str | None:
    """The function that a call means, by the last part of its name."""
    match node.func:
        case ast.Name(id=name) | ast.Attribute(value=ast.Name(), attr=name):
            return name if name in FUNCTIONS else None
    return None


def _call(node: ast.Call, scope: Scope) -> Expr:
    name = function_name(node)
    if name is None or node.keywords:
        raise scope.source.error(
            node.func, f"`{ast.unparse(node.func)}` can't be called in a nest", f"The functions are {KNOWN}."
        )
    args = tuple(expression(arg, scope) for arg in node.args)
    arity = FUNCTIONS[name]
    if len(args) < arity or (arity == 1 and len(args) > 1):
        raise scope.source.error(
            node,
            f"`{name}` takes {arity} argument{'s' * (arity != 1)}{' or more' * (arity > 1)}, and {len(args)} are given",
            f"The functions are {KNOWN}.",
        )
    if arity == 1:
        return Call(name, args)
    return reduce(lambda left, right: Call(name, (left, right)), args)
