"""`for i in range(...)` as an affine loop."""

from __future__ import annotations

import ast
from collections.abc import Collection
from functools import reduce

import islpy as isl

from codegen.ir.integer import Affine, Int
from poly.frontends import names
from poly.frontends.affine import affine, integer
from poly.frontends.scope import Loop, Scope
from poly.ir.sets import function, number, zero


def loop_of(node: ast.For, scope: Scope, sizes: Collection[str]) -> Loop:
    """The loop of a `for` statement.

    The lower bound may be a `max`, and the upper bound a `min`, of affine expressions and quotients of these.

    Raises:
        SpecError: not a range, a bound that is not affine, a step that is not constant, or a name already in use.
    """
    name = _target(node, scope, sizes)
    arguments = _range_arguments(node, scope)
    start, stop = (None, arguments[0]) if len(arguments) == 1 else (arguments[0], arguments[1])
    step = affine(arguments[2], scope) if len(arguments) == 3 else Affine.of(1)
    if step.terms or step.constant == 0:
        raise scope.source.error(
            arguments[2],
            f"the step `{ast.unparse(arguments[2])}` is not a nonzero constant",
            "Use a literal or a global integer as the step.",
        )
    if step.constant > 0:
        lower = _bounds(start, "max", scope) if start else (Affine.of(0),)
        loop = Loop(name, lower, _bounds(stop, "min", scope), step.constant)
        first = loop.lower
    else:
        assert start is not None, "a step comes after a start"
        first = _bounds(start, "min", scope)
        lower = tuple(bound + 1 for bound in _bounds(stop, "max", scope))
        loop = Loop(name, lower, tuple(bound + 1 for bound in first), step.constant)
    if abs(loop.step) > 1 and len(first) > 1:
        raise scope.source.error(
            node.iter,
            "a loop with a step starts at more than one bound",
            "Start at one bound, and put an `if` inside.",
        )
    return loop


def values(loop: Loop, outer: isl.Set, indices: tuple[str, ...]) -> isl.Set:
    """The domain of the loop's body: `outer`, the domain of the loop, with one more dimension for the loop's index."""
    domain = outer.add_dims(isl.dim_type.set, 1).set_dim_name(isl.dim_type.set, len(indices), loop.name)
    space = domain.get_space()
    own = function(space, Affine.name(loop.name), (*indices, loop.name))

    def bound(value: Int) -> isl.Aff:
        return function(space, value, indices)

    sides = [*(own.ge_set(bound(low)) for low in loop.lower), *(own.lt_set(bound(high)) for high in loop.upper)]
    if abs(loop.step) > 1:
        sides.append(own.sub(bound(loop.first)).mod_val(number(abs(loop.step))).eq_set(zero(space)))
    return reduce(isl.Set.intersect, sides, domain)


def _target(node: ast.For, scope: Scope, sizes: Collection[str]) -> str:
    if not isinstance(node.target, ast.Name):
        raise scope.source.error(node.target, "a loop counts one index", "Write `for i in range(N):`.")
    name = node.target.id
    names.check(name, node.target, scope.source)
    if scope.is_index(name):
        raise scope.source.error(node.target, f"`{name}` is the index of a loop around this one", "Use another name.")
    if name in scope.arguments or name in scope.locals or name in sizes:
        raise scope.source.error(node.target, f"`{name}` is already a size, argument or local", "Use another name.")
    if node.orelse:
        raise scope.source.error(
            node.orelse[0], "a loop has no `else` in a nest", "Write the statement after the loop."
        )
    return name


def _range_arguments(node: ast.For, scope: Scope) -> list[ast.expr]:
    match node.iter:
        case ast.Call(func=ast.Name(id="range"), args=arguments, keywords=[]) if 1 <= len(arguments) <= 3:
            return arguments
    raise scope.source.error(
        node.iter,
        f"`{ast.unparse(node.iter)}` is no range",
        "Loop over `range(end)`, `range(first, end)` or with a step.",
    )


def _bounds(node: ast.expr, function: str, scope: Scope) -> tuple[Int, ...]:
    match node:
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if name == function and args:
            return tuple(bound for arg in args for bound in _bounds(arg, function, scope))
        case ast.Call(func=ast.Name(id="min" | "max")):
            raise scope.source.error(
                node,
                f"with `{ast.unparse(node)}` here, the loop's values are not an interval",
                "The first value takes max, the end takes min; put anything else in an `if` inside the loop.",
            )
    return (integer(node, scope),)
