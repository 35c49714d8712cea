"""Integers that a function computes for its subscripts and bounds, replaced by their values.

for i in range(n):                          for i in range(n):
    k = idx[i] + 1                              y[i] = x[idx[i] + 1]
    y[i] = x[k]                        ->
    for j in range(3):                          for j in range(3):
        z[m] = y[i]                                 z[3*i + j] = y[i]
        m += 1                  (m = 0 before)
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from typing import Any

from codegen.ir.integer import Linear
from poly.frontends.counted import CountedLoop
from poly.frontends.effects import (
    REMEDY,
    Assigned,
    Chosen,
    Effects,
    Repeated,
    Values,
    after,
    iterated,
    joined,
    lost,
    names_in,
)
from poly.frontends.extremes import EXTREMES
from poly.frontends.polynomials import expression, polynomial, total
from poly.frontends.rewriting import moved, substituted
from poly.frontends.source import Source

ARITHMETIC = (ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.Mod)


def with_values(function: ast.FunctionDef, source: Source, environment: Mapping[str, Any]) -> ast.FunctionDef | None:
    """The function without such integers; None if it has none.

    Raises:
        SpecError: an integer is used where its value is not known.
    """
    names = _integers(function)
    if not names:
        return None
    body, _ = _Integers(names, source, environment).block(function.body, dict.fromkeys(names))
    made = ast.FunctionDef(function.name, function.args, body or [ast.Pass()], [], None)
    return ast.fix_missing_locations(ast.copy_location(made, function))


def _integers(function: ast.FunctionDef) -> frozenset[str]:
    """The names without a declared type, of which subscripts and bounds depend on some, that get integers alone."""
    other = {arg.arg for arg in function.args.args}
    values: dict[str, list[ast.expr]] = {}
    written = set()
    for node in ast.walk(function):
        match node:
            case (
                ast.Assign(targets=[ast.Name(id=name)], value=value)
                | ast.AugAssign(target=ast.Name(id=name), op=ast.Add() | ast.Sub(), value=value)
            ):
                values.setdefault(name, []).append(value)
            case ast.AnnAssign(target=ast.Name(id=name)) | ast.For(target=ast.Name(id=name)):
                other.add(name)
            case ast.AugAssign(target=ast.Name(id=name)):
                other.add(name)
            case ast.Assign(targets=targets):
                other |= {target.id for target in targets if isinstance(target, ast.Name)}
            case ast.Subscript(value=ast.Name(id=name), ctx=ast.Store()):
                written.add(name)
    found = {name for name in _indexing(function, values) if name not in other and name in values}
    while wrong := {name for name in found if not all(_is_integer(v, written, values, found) for v in values[name])}:
        found -= wrong
    return frozenset(found)


def _indexing(function: ast.FunctionDef, values: Mapping[str, list[ast.expr]]) -> set[str]:
    """The names in subscripts and bounds, and those that are assigned to them."""
    places = [node.slice for node in ast.walk(function) if isinstance(node, ast.Subscript)]
    places += [node.iter for node in ast.walk(function) if isinstance(node, ast.For)]
    todo = [name for place in places for name in names_in(place)]
    found = set[str]()
    while todo:
        name = todo.pop()
        if name not in found:
            found.add(name)
            todo += [other for value in values.get(name, ()) for other in names_in(value)]
    return found


def _is_integer(node: ast.expr, written: set[str], values: Mapping[str, Any], found: set[str]) -> bool:
    """Whether an expression is made of integers, counters, sizes and elements of arrays that the function leaves."""
    match node:
        case ast.Constant(value=value):
            return isinstance(value, int) and not isinstance(value, bool)
        case ast.Name(id=name):
            return name not in values or name in found
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return _is_integer(operand, written, values, found)
        case ast.BinOp(left=left, op=op, right=right) if isinstance(op, ARITHMETIC):
            return all(_is_integer(side, written, values, found) for side in (left, right))
        case ast.IfExp(test=ast.Compare(left=first, comparators=others), body=one, orelse=other):
            return all(_is_integer(side, written, values, found) for side in (first, *others, one, other))
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if name in EXTREMES:
            return all(_is_integer(arg, written, values, found) for arg in args)
        case ast.Subscript(value=ast.Name(id=array)):
            return array not in written
    return False


class _Integers:
    """Replaces `names` in a function's statements."""

    def __init__(self, names: frozenset[str], source: Source, environment: Mapping[str, Any]) -> None:
        self._names = names
        self._source = source
        self._natural = {name: _is_natural(value) for name, value in environment.items()}

    def block(self, body: Iterable[ast.stmt], values: Values) -> tuple[list[ast.stmt], Values]:
        """The statements without the integers, and the values of these behind them."""
        found: list[ast.stmt] = []
        for statement in body:
            made, values = self._statement(statement, values)
            found += made
        return found, values

    def _statement(self, node: ast.stmt, values: Values) -> tuple[list[ast.stmt], Values]:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if name in self._names:
                self._value(value, values)
                return [], after(self._effects([node]), values, self._is_natural)
            case ast.AugAssign(target=ast.Name(id=name), value=value) if name in self._names:
                self._value(value, values)
                return [], after(self._effects([node]), values, self._is_natural)
            case ast.For():
                return self._for(node, values)
            case ast.If():
                test = self._value(node.test, values)
                (then, one), (orelse, other) = (self.block(side, values) for side in (node.body, node.orelse))
                made = ast.If(test, then or [ast.Pass()], orelse)
                return [ast.copy_location(made, node)], joined(one, other)
        return [self._value(node, values)], values

    def _value(self, node: Any, values: Values) -> Any:
        """A node with the values of integers in it."""
        for part in ast.walk(node):
            if isinstance(part, ast.Name) and part.id in self._names and values[part.id] is None:
                raise self._source.error(part, lost(part.id), REMEDY)
        known = {name: moved(value, node) for name, value in values.items() if value is not None}
        return substituted(node, known) if known else node

    def _for(self, node: ast.For, values: Values) -> tuple[list[ast.stmt], Values]:
        head = self._value(node.iter, values)
        loop, effects = _loop(node.target, head), self._effects(node.body)
        natural = self._natural
        if loop is not None:
            last = None if loop.end is None else expression(total(loop.end, {(): 1}))
            least = expression(loop.start) if loop.step > 0 else last
            self._natural = {**natural, loop.counter: least is not None and self._is_natural(least)}
        inside, behind = iterated(loop, effects, values, self._is_natural)
        body, _ = self.block(node.body, {**values, **inside})
        self._natural = natural
        made = ast.For(node.target, head, body or [ast.Pass()], node.orelse)
        return [ast.copy_location(made, node)], {**values, **behind}

    def _effects(self, body: Iterable[ast.stmt]) -> Effects:
        return tuple(effect for node in body for effect in self._effects_of(node))

    def _effects_of(self, node: ast.stmt) -> Effects:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if name in self._names:
                return (Assigned(name, value),)
            case ast.AugAssign(target=ast.Name(id=name), op=op, value=value) if name in self._names:
                return (Assigned(name, ast.BinOp(ast.Name(name, ast.Load()), op, value)),)
            case ast.If(body=one, orelse=other):
                return (Chosen(self._effects(one), self._effects(other)),)
            case ast.For(target=target, iter=head, body=inner):
                return (Repeated(_loop(target, head), self._effects(inner)),)
        return ()

    def _is_natural(self, node: ast.expr) -> bool:
        terms = polynomial(node)
        return terms is not None and all(
            factor >= 0 and all(self._natural.get(name, False) for name in key) for key, factor in terms.items()
        )


def _is_natural(value: Any) -> bool:
    """Whether a name outside of the function is a size or an integer that can't be negative."""
    if isinstance(value, Linear):
        return value.constant >= 0 and all(factor >= 0 for _, factor in value.terms)
    return isinstance(value, int) and value >= 0


def _loop(target: ast.expr, head: ast.expr) -> CountedLoop | None:
    """The loop `for target in range(…)`; None if it is no such loop, or starts at no sum of products."""
    match target, head:
        case ast.Name(id=counter), ast.Call(func=ast.Name(id="range"), args=args, keywords=[]) if 1 <= len(args) <= 3:
            low, high = (ast.Constant(0), args[0]) if len(args) == 1 else args[:2]
            start, step = polynomial(low), polynomial(args[2]) if len(args) == 3 else {(): 1}
            by = (step or {}).get((), 0)
            if start is not None and by and not any(step or {}):
                return CountedLoop(counter, start, by, polynomial(high))
    return None
