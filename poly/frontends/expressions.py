"""Right-hand sides and targets: Python expressions as `codegen.ir.expr` trees."""

from __future__ import annotations

import ast
from functools import reduce

from codegen.ir.expr import (
    FUNCTIONS,
    OF_MORE,
    Binary,
    Cast,
    Const,
    Expr,
    FunctionCall,
    Index,
    Load,
    Logic,
    Predicate,
    Ternary,
    Truth,
    Unary,
    number,
)
from codegen.ir.integer import Affine, Int, Linear, Lookup, lookups
from codegen.ir.promotion import LARGEST_INDEX, Weak, join, type_of
from microkernels.dtypes import DTYPES
from poly.errors import SpecError
from poly.frontends.affine import integer
from poly.frontends.scope import Scope

OPERATORS: dict[type[ast.operator], str] = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}
WHOLE: dict[type[ast.operator], str] = {
    ast.FloorDiv: "//", ast.Mod: "%", ast.LShift: "<<", ast.RShift: ">>", ast.BitAnd: "&", ast.BitOr: "|",
    ast.BitXor: "^",
}  # fmt: skip
COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=",
}  # fmt: skip
LARGEST_POWER = 64
"""The largest exponent with which an integer literal is raised to a power as Python does."""
KNOWN = f"{', '.join(list(FUNCTIONS)[:-1])} and {list(FUNCTIONS)[-1]}"


def expression(node: ast.expr, scope: Scope) -> Expr:
    """A Python expression as an `Expr`; expressions of numbers alone are folded to constants, as Python evaluates them.

    Raises:
        SpecError: it has anything but numbers, names, elements, operators, choices and the known functions, or a
            constant in it divides by 0 or overflows.
    """
    found = _expression(node, scope)
    try:
        value = number(found)
    except (ZeroDivisionError, OverflowError, ValueError, TypeError) as error:
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
        case ast.UnaryOp(op=ast.Invert(), operand=operand):
            (inner,) = _integers(node, (operand,), scope)
            return Binary("-", Unary("-", inner), Const(1))
        case ast.BinOp(left=left, op=op, right=right) if type(op) in OPERATORS:
            return Binary(OPERATORS[type(op)], expression(left, scope), expression(right, scope))
        case ast.BinOp(left=left, op=ast.Pow(), right=right):
            return _power(expression(left, scope), expression(right, scope))
        case ast.BinOp(op=ast.FloorDiv() | ast.Mod()) if not is_data(node, scope):
            whole = integer(node, scope)
            return Index(whole) if whole.terms else Const(whole.constant)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in WHOLE:
            return Binary(WHOLE[type(op)], *_integers(node, (left, right), scope))
        case ast.BinOp():
            raise scope.source.error(
                node,
                f"`{ast.unparse(node)}` uses an operator that poly has not",
                "The operators are + - * / ** and, for integers, // % << >> & | ^ ~.",
            )
        case ast.Attribute() | ast.Call() if isinstance(found := scope.constants.get(ast.unparse(node)), float):
            return Const(found)
        case ast.Call():
            return _call(node, scope)
        case ast.IfExp(test=test, body=then, orelse=other):
            return Ternary(truth(test, scope), expression(then, scope), expression(other, scope))
    raise scope.source.error(
        node,
        f"`{ast.unparse(node)}` is no value that poly knows",
        f"Use numbers, indices, elements, scalars, + - * / **, `a if c else b` and {KNOWN}.",
    )


def _integers(node: ast.expr, sides: tuple[ast.expr, ...], scope: Scope) -> tuple[Expr, ...]:
    """The operands of an operator that only integers have.

    Raises:
        SpecError: they are floats, or indices and sizes alone.
    """
    dtypes = {local.array.name: local.array.dtype for local in scope.locals.values()}
    dtypes |= {name: array.dtype for name, array in scope.arguments.items()}
    found = tuple(expression(side, scope) for side in sides)
    joined = join(*(type_of(side, dtypes.__getitem__) for side in found))
    if joined.is_float and not all(isinstance(side, Const) for side in found):
        why = f"`{ast.unparse(node)}` is an operation of integers, and has floats"
        raise scope.source.error(node, why, "Round a quotient by floor: `floor(a / b)`; convert others: `i32(x)`.")
    if isinstance(joined, Weak) and not all(isinstance(side, Const) for side in found):
        why = f"`{ast.unparse(node)}` is an operation on the bits of indices or sizes"
        raise scope.source.error(node, why, "Write it with * // and %: `i % 4` for `i & 3`, or convert: `i32(i) & j`.")
    return found


def truth(node: ast.expr, scope: Scope) -> Truth:
    """A Python condition on data.

    Raises:
        SpecError: it is no comparison by < <= > >= == !=, nor several joined by and, or, not.
    """
    match node:
        case ast.Compare(left=first, ops=ops, comparators=others):
            if not all(type(op) in COMPARISONS for op in ops):
                raise scope.unordered(node)
            values = [expression(side, scope) for side in (first, *others)]
            pairs = zip(ops, values, values[1:], strict=False)
            parts = tuple(Predicate(COMPARISONS[type(op)], left, right) for op, left, right in pairs)
            return parts[0] if len(parts) == 1 else Logic("and", parts)
        case ast.BoolOp(op=op, values=tests):
            return Logic("and" if isinstance(op, ast.And) else "or", tuple(truth(test, scope) for test in tests))
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return Logic("not", (truth(operand, scope),))
    raise scope.source.error(
        node,
        f"`{ast.unparse(node)}` is no comparison",
        "Compare values with < <= > >= == !=, joined by and, or, not: `x[i] != 0`.",
    )


def is_data(node: ast.expr, scope: Scope) -> bool:
    """Whether a condition depends on more than indices, sizes and integers."""

    def is_affine(name: str) -> bool:
        return scope.is_index(name) or not (
            name in scope.locals or name in scope.arguments or isinstance(scope.constants.get(name), float)
        )

    return any(
        isinstance(part, ast.Subscript)
        or (isinstance(part, ast.Name) and not is_affine(part.id))
        or (isinstance(part, ast.Constant) and isinstance(part.value, float))
        for part in ast.walk(node)
    )


def _power(base: Expr, exponent: Expr) -> Expr:
    """`base ** exponent`; a square is a product, which is exact for integers, too."""
    match base, exponent:
        case Const(int(number)), Const(int(times)) if 0 <= times <= LARGEST_POWER and abs(number) <= LARGEST_INDEX:
            return Const(number**times)
    return Binary("*", base, base) if exponent == Const(2) else FunctionCall("pow", (base, exponent))


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
        shape = local.array.shape[len(local.prefix) :]
        found = _indices(node, shape, local.rank == 0, scope)
        if any(lookups(index) for index in found):
            why = f"`{name}` is a local array, in which nothing is looked up by data"
            raise scope.source.error(node, why, f"Make `{name}` an argument.")
        return Load(local.array.name, (*local.prefix, *found))
    if name in scope.arguments:
        array = scope.arguments[name]
        return Load(name, _indices(node, array.shape, array.kind == "scalar", scope))
    raise scope.undeclared(node.value)


def _indices(node: ast.Subscript, shape: tuple[Affine, ...], is_scalar: bool, scope: Scope) -> tuple[Int, ...]:
    name, rank = ast.unparse(node.value), len(shape)
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
    return tuple(_index(index, extent, scope) for index, extent in zip(indices, shape, strict=True))


def _index(node: ast.expr, extent: Affine, scope: Scope) -> Int:
    """A subscript of a dimension; it may add or subtract one element of an array of integers."""
    subscript = next((part for part in ast.walk(node) if isinstance(part, ast.Subscript)), None)
    if subscript is None:
        return integer(node, scope)
    found = element(subscript, scope)
    array = scope.arguments.get(found.array)
    if array is None or array.kind != "array" or array.dtype.is_float:
        remedy = "Look up elements of an argument, such as `idx: i32[N]`."
        raise scope.source.error(subscript, f"`{ast.unparse(subscript)}` is no element of an array of integers", remedy)
    rest, sign = _beside(node, subscript, scope)
    if not sign or any(scope.is_index(name) for name in rest.names):
        why = f"`{ast.unparse(node)}` does more with an element than adding it to an integer or a size"
        remedy = "Write `A[idx[i] + 1]`, or give the array one more dimension: `A[idx[i], j]` for `A[idx[i] + j]`."
        raise scope.source.error(node, why, remedy)
    return rest + Linear(((Lookup(found.array, found.indices, extent), sign),))


def _beside(node: ast.expr, subscript: ast.Subscript, scope: Scope) -> tuple[Int, int]:
    """What is added to a subscript in a sum, and the sign of the subscript there: 0 if it is no term of it."""
    if node is subscript:
        return Linear(), 1
    match node:
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            rest, sign = _beside(operand, subscript, scope)
            return -rest, -sign
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub() as op, right=right):
            found = [_beside(side, subscript, scope) for side in (left, right) if _looks_up(side)]
            others = [side for side in (left, right) if not _looks_up(side)]
            if len(found) != 1:
                return Linear(), 0
            (rest, sign), beside, minus = found[0], integer(others[0], scope), isinstance(op, ast.Sub)
            if minus and _looks_up(right):
                return beside - rest, -sign
            return (rest - beside if minus else rest + beside), sign
    return Linear(), 0


def _looks_up(node: ast.expr) -> bool:
    return any(isinstance(part, ast.Subscript) for part in ast.walk(node))


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
    arity = FUNCTIONS.get(name, 1)
    if len(args) < arity or (name not in OF_MORE and len(args) > arity):
        takes = "one argument" if arity == 1 else f"two arguments{' or more' * (name in OF_MORE)}"
        raise scope.source.error(node, f"`{name}` takes {takes}, and gets {len(args)}", f"The functions are {KNOWN}.")
    if name in DTYPES:
        return Cast(DTYPES[name], args[0])
    if name == "pow":
        return _power(*args)
    if arity == 1:
        return FunctionCall(name, args)
    return reduce(lambda left, right: FunctionCall(name, (left, right)), args)
