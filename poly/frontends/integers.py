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
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from codegen.integer import Linear
from poly.frontends.counted import CountedLoop, plus
from poly.frontends.polynomials import Polynomial, polynomial, product, total
from poly.frontends.rewriting import moved, substituted
from poly.frontends.source import Source

SIGNS: Mapping[type[ast.operator], int] = {ast.Add: 1, ast.Sub: -1}
ARITHMETIC = (ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.Mod)
Values = dict[str, ast.expr | None]
"""The values of integers here, None where they are not known."""


def with_values(function: ast.FunctionDef, source: Source, environment: Mapping[str, Any]) -> ast.FunctionDef | None:
    """The function without such integers; None if it has none.

    Raises:
        SpecError: an integer is used where its value is not known.
    """
    names = _integers(function)
    if not names:
        return None
    body = _Integers(names, source, environment).block(function.body, {})
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
    todo = [name for place in places for name in _names(place)]
    found = set[str]()
    while todo:
        name = todo.pop()
        if name not in found:
            found.add(name)
            todo += [other for value in values.get(name, ()) for other in _names(value)]
    return found


def _names(node: ast.AST) -> Iterator[str]:
    return (part.id for part in ast.walk(node) if isinstance(part, ast.Name))


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
        case ast.Subscript(value=ast.Name(id=array)):
            return array not in written
    return False


class _Integers:
    """Replaces `names` in a function's statements."""

    def __init__(self, names: frozenset[str], source: Source, environment: Mapping[str, Any]) -> None:
        self._names = names
        self._source = source
        self._natural = {name: _is_natural(value) for name, value in environment.items()}

    def block(self, body: Iterable[ast.stmt], values: Values) -> list[ast.stmt]:
        """The statements without the integers, whose `values` change."""
        return [made for statement in body for made in self._statement(statement, values)]

    def _statement(self, node: ast.stmt, values: Values) -> list[ast.stmt]:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if name in self._names:
                values[name] = self._value(value, values)
                return []
            case ast.AugAssign(target=ast.Name(id=name), op=op, value=value) if name in self._names:
                before, by = values.get(name), self._value(value, values)
                more = polynomial(by)
                if before is not None:
                    added = ast.BinOp(before, op, by)
                    values[name] = added if more is None else plus(before, product(more, {(): SIGNS[type(op)]}))
                return []
            case ast.For():
                return [self._for(node, values)]
            case ast.If():
                test, then, other = self._value(node.test, values), dict(values), dict(values)
                body, orelse = self.block(node.body, then), self.block(node.orelse, other)
                values.update(_common(then, other))
                return [ast.copy_location(ast.If(test, body or [ast.Pass()], orelse), node)]
        return [self._value(node, values)]

    def _value(self, node: Any, values: Values) -> Any:
        """A node with the values of integers in it."""
        for part in ast.walk(node):
            if isinstance(part, ast.Name) and part.id in self._names and values.get(part.id) is None:
                why = f"the value of `{part.id}` is not known here: not all ways to here and iterations change it alike"
                raise self._source.error(part, why, "Write its value in terms of the loops' indices and the sizes.")
        known = {name: moved(value, node) for name, value in values.items() if value is not None}
        return substituted(node, known) if known else node

    def _for(self, node: ast.For, values: Values) -> ast.For:
        names = {name for name in self._names if _writes(node.body, name)}
        head, entry = self._value(node.iter, values), {name: values.get(name) for name in names}
        inside: Values = {**values, **dict.fromkeys(names)}
        loop = _loop(node.target, head)
        behind: Values = dict.fromkeys(names)
        if loop is not None:
            natural = self._natural.get(loop.counter, False)
            last = None if loop.end is None else total(loop.end, {(): 1})
            self._natural[loop.counter] = self._is_natural(loop.start if loop.step > 0 else last)
            count = loop.trips(lambda trips: self._is_natural(polynomial(trips)))
            changes = {name: self._change(node.body, name, inside, loop.counter) for name in names}
            for name, by in changes.items():
                before = entry[name]
                if before is not None and by is not None:
                    inside[name] = loop.at(before, by)
                    behind[name] = None if count is None else plus(before, product(by, count))
            self._wrap(node.body, loop, entry, inside)
        body = self.block(node.body, inside)
        if loop is not None:
            self._natural[loop.counter] = natural
        values.update(behind)
        made = ast.For(node.target, head, body or [ast.Pass()], node.orelse)
        return ast.copy_location(made, node)

    def _wrap(self, body: list[ast.stmt], loop: CountedLoop, entry: Values, inside: Values) -> None:
        """Set the values at the start of an iteration of integers that are what the one before has set."""
        for _ in entry:  # one may be what another was
            for name, before in entry.items():
                value = _last(body, name) if inside[name] is None and before is not None else None
                used = set(_names(value)) & self._names if value is not None else set()
                if value is not None and before is not None and all(inside.get(one) is not None for one in used):
                    inside[name] = loop.before(self._value(value, inside), before)

    def _change(self, body: Iterable[ast.stmt], name: str, values: Values, counter: str) -> Polynomial | None:
        """What statements add to an integer on every way through them, the same in all iterations; or None."""
        found: Polynomial = {}
        for node in body:
            part = self._change_of(node, name, values, counter) if _writes([node], name) else {}
            if part is None:
                return None
            found = total(found, part)
        return found

    def _change_of(self, node: ast.stmt, name: str, values: Values, counter: str) -> Polynomial | None:
        match node:
            case ast.AugAssign(op=op, value=value):
                return self._amount(value, values, counter, SIGNS[type(op)])
            case ast.Assign(value=ast.BinOp(left=ast.Name(id=own), op=ast.Add() | ast.Sub() as op, right=by)) if (
                own == name
            ):
                return self._amount(by, values, counter, SIGNS[type(op)])
            case ast.Assign(value=ast.BinOp(left=by, op=ast.Add(), right=ast.Name(id=own))) if own == name:
                return self._amount(by, values, counter, 1)
            case ast.If(body=body, orelse=orelse):
                one, two = (self._change(side, name, values, counter) for side in (body, orelse))
                return one if one == two else None
            case ast.For(target=target, iter=head, body=body):
                used = set(_names(head)) & self._names
                loop = _loop(target, substituted(head, {n: v for n in used if (v := values.get(n)) is not None}))
                count = None if loop is None else loop.trips(lambda trips: self._is_natural(polynomial(trips)))
                each = self._change(body, name, values, counter)
                varies = count is None or each is None or any(counter in key for key in count)
                return None if varies or count is None or each is None else product(each, count)
        return None

    def _amount(self, node: ast.expr, values: Values, counter: str, sign: int) -> Polynomial | None:
        if any(values.get(name) is None for name in _names(node) if name in self._names):
            return None
        found = polynomial(self._value(node, values))
        return None if found is None or any(counter in key for key in found) else product(found, {(): sign})

    def _is_natural(self, value: Polynomial | None) -> bool:
        if value is None:
            return False
        return all(factor >= 0 and all(self._natural.get(name, False) for name in key) for key, factor in value.items())


def _is_natural(value: Any) -> bool:
    """Whether a name outside of the function is a size or an integer that can't be negative."""
    if isinstance(value, Linear):
        return value.constant >= 0 and all(factor >= 0 for _, factor in value.terms)
    return isinstance(value, int) and value >= 0


def _common(one: Values, other: Values) -> Values:
    """The values that are the same behind both sides of an `if`."""
    same = {name for name in one.keys() & other.keys() if _text(one[name]) == _text(other[name])}
    return {name: one[name] if name in same else None for name in one.keys() | other.keys()}


def _text(value: ast.expr | None) -> str:
    return "" if value is None else ast.unparse(value)


def _writes(body: Iterable[ast.stmt], name: str) -> bool:
    every = (part for node in body for part in ast.walk(node))
    return any(isinstance(part, ast.Name) and part.id == name and isinstance(part.ctx, ast.Store) for part in every)


def _last(body: list[ast.stmt], name: str) -> ast.expr | None:
    """What every iteration sets an integer to, in terms of values at its start; None if it does anything else to it."""
    places = [at for at, node in enumerate(body) if _writes([node], name)]
    if len(places) != 1:
        return None
    match body[places[0]]:
        case ast.Assign(targets=[ast.Name()], value=value):
            used = set(_names(value))
            before = body[: places[0]]
            return None if name in used or any(_writes(before, one) for one in used) else value
    return None


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
