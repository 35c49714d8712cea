"""Right-hand sides and targets: Python expressions as `codegen.expr` trees."""

from __future__ import annotations

import ast
from functools import reduce

from codegen.expr import FUNCTIONS, Binary, Const, Expr, FunctionCall, Index, Load, Unary, number
from codegen.integer import Affine, Linear
from poly.errors import SpecError
from poly.frontends.affine import affine
from poly.frontends.scope import Scope

OPERATORS: dict[type[ast.operator], str] = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}
KNOWN = "exp, sqrt, tanh, abs, min and max"


def expression(node: ast.expr, scope: Scope) -> Expr:
    """A Python expression as an `Expr`; expressions of numbers alone are folded to constants, as Python evaluates them.

    Raises:
        SpecError: it has anything but numbers, names, elements, + - * / and the known functions, or a constant in it
            divides by 0 or overflows.
    """
    found = _expression(node, scope)
    try:
        value = number(found)
    except (ZeroDivisionError, OverflowError) as error:
        raise scope.source.error(
            node, f"`{ast.unparse(node)}` has no value in Python ({error})", "Write a number that Python has."
        ) from None
    return found if value is None else Const(value)


def _expression(node: ast.expr, scope: Scope) -> Expr:
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
                "Write powers as products, and integer division as separate loops.",
            )
        case ast.Call():
            return _call(node, scope)
        case ast.IfExp():
            raise scope.source.error(
                node,
                f"`{ast.unparse(node)}` chooses between values",
                "Choose by an `if` statement with an affine condition, or by max and min.",
            )
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
    if isinstance(value, Linear):
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
    if not scope.encloses(local):
        raise scope.ended(node, local)
    if local.array.name not in scope.assigned:
        remedy = f"Assign it first, outside of any `if`: `{name} = 0.0`."
        raise scope.source.error(node, f"`{name}` may be read before it has a value", remedy)
    return Load(local.array.name, local.prefix)


def _whole_array(node: ast.Name, rank: int, scope: Scope) -> SpecError:
    remedy = f"Name one element of it, such as `{_example(node.id, rank)}`, inside loops."
    return scope.source.error(node, f"`{node.id}` is a whole array", remedy)


def element(node: ast.Subscript, scope: Scope) -> Load:
    """One element of an array, `A[i, k]`.

    Raises:
        SpecError: not an array, a slice, a wrong number of indices, or an index that is not affine.
    """
    if not isinstance(node.value, ast.Name):
        raise scope.source.error(
            node.value, f"`{ast.unparse(node.value)}` is not the name of an array", "Write A[i, j], not A[i][j]."
        )
    name = node.value.id
    if name in scope.locals:
        local = scope.locals[name]
        if not scope.encloses(local):
            raise scope.ended(node.value, local)
        return Load(local.array.name, (*local.prefix, *_indices(node, local.rank, local.rank == 0, scope)))
    if name in scope.arguments:
        array = scope.arguments[name]
        return Load(name, _indices(node, len(array.shape), array.kind == "scalar", scope))
    raise scope.undeclared(node.value)


def _indices(node: ast.Subscript, rank: int, is_scalar: bool, scope: Scope) -> tuple[Affine, ...]:
    name = ast.unparse(node.value)
    if is_scalar:
        raise scope.source.error(node, f"`{name}` is a scalar and takes no index", f"Write `{name}`.")
    indices = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    for index in indices:
        if isinstance(index, ast.Slice):
            raise scope.source.error(
                index, f"`{ast.unparse(index)}` is a slice", "Write a loop over these elements instead."
            )
    if len(indices) != rank:
        raise scope.source.error(
            node,
            f"`{name}` has {_count(rank, 'dimension')}, and gets {_count(len(indices), 'index', 'indices')}",
            f"Give one index for each dimension: `{_example(name, rank)}`.",
        )
    return tuple(affine(index, scope) for index in indices)


def _example(name: str, rank: int) -> str:
    return f"{name}[{', '.join('ijklmnpq'[:rank]) or '()'}]"


def _count(number: int, noun: str, plural: str | None = None) -> str:
    return f"{number} {noun if number == 1 else plural or noun + 's'}"


def _call(node: ast.Call, scope: Scope) -> Expr:
    name = scope.functions.get(ast.unparse(node.func))
    if name is None or node.keywords:
        raise scope.source.error(
            node.func, f"`{ast.unparse(node.func)}` can't be called in a nest", f"The functions are {KNOWN}."
        )
    args = tuple(expression(arg, scope) for arg in node.args)
    arity = FUNCTIONS[name]
    if len(args) < arity or (arity == 1 and len(args) > 1):
        takes = "one argument" if arity == 1 else "two arguments or more"
        raise scope.source.error(node, f"`{name}` takes {takes}, and gets {len(args)}", f"The functions are {KNOWN}.")
    if arity == 1:
        return FunctionCall(name, args)
    return reduce(lambda left, right: FunctionCall(name, (left, right)), args)
