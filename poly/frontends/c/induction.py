"""Integers that each iteration of a loop changes alike: their values in terms of its counter.

k = 0;
for (i = 0; i < n; i++) {        for i in range(n):
  x[k] = y[i];              ->       x[3*i] = y[i]
  k += 3;
}

(Wolfe, "Beyond induction variables", PLDI 1992: linear induction variables, and wrap-around variables.)
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Sequence
from copy import deepcopy
from dataclasses import dataclass

from pycparser import c_ast

from poly.frontends.c.declarations import Uses, names_in
from poly.frontends.c.polynomials import Polynomial, expression, polynomial, product, total

STEPS = {"p++": 1, "++": 1, "p--": -1, "--": -1}


@dataclass(frozen=True)
class CountedLoop:
    """The counter of a loop, its first value, its step, and the value at which it ends."""

    counter: str
    start: Polynomial
    step: int
    end: Polynomial | None
    """None if it has several ends, or one that is no sum of products."""

    def at(self, entry: ast.expr, by: Polynomial) -> ast.expr:
        """What was `entry` before the loop, at the start of an iteration, if each adds `by`."""
        apart = total({(self.counter,): 1}, _negative(self.start))
        if not any(factor % self.step for factor in by.values()):
            return plus(entry, product({key: factor // self.step for key, factor in by.items()}, apart))
        counted = apart if self.step > 0 else _negative(apart)
        done = ast.BinOp(expression(counted), ast.FloorDiv(), ast.Constant(abs(self.step)))
        return ast.BinOp(entry, ast.Add(), ast.BinOp(expression(by), ast.Mult(), done))

    def trips(self, is_natural: Callable[[ast.expr], bool]) -> Polynomial | None:
        """The number of iterations; None if it is not clear."""
        if self.end is None:
            return None
        apart = total(self.end, _negative(self.start))
        apart = apart if self.step > 0 else _negative(apart)
        if not any(apart):
            return {(): max(0, -(-apart.get((), 0) // abs(self.step)))}
        return apart if abs(self.step) == 1 and is_natural(expression(apart)) else None

    def before(self, value: ast.expr, entry: ast.expr) -> ast.expr:
        """At the start of an iteration, the value at the end of the one before, which for the first is `entry`."""
        first = ast.Compare(ast.Name(self.counter, ast.Load()), [ast.Eq()], [expression(self.start)])
        return ast.IfExp(first, entry, _Earlier(self).visit(deepcopy(value)))


class _Earlier(ast.NodeTransformer):
    """An expression of a loop's counter in the iteration before."""

    def __init__(self, loop: CountedLoop) -> None:
        self._loop = loop

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id != self._loop.counter:
            return node
        return expression(total({(node.id,): 1}, {(): -self._loop.step}))


def change(
    nodes: Iterable[c_ast.Node],
    name: str,
    amount: Callable[[c_ast.Node], Polynomial | None],
    trips: Callable[[c_ast.For], Polynomial | None],
) -> Polynomial | None:
    """What statements add to an integer on every way through them; None if they do anything else to it.

    `amount` is the value of an expression, `trips` the number of iterations of a loop.
    """
    found: Polynomial = {}
    for node in nodes:
        part = _change(node, name, amount, trips)
        if part is None:
            return None
        found = total(found, part)
    return found


def _change(
    node: c_ast.Node,
    name: str,
    amount: Callable[[c_ast.Node], Polynomial | None],
    trips: Callable[[c_ast.For], Polynomial | None],
) -> Polynomial | None:
    if not Uses.of([node]).written(name):
        return {}
    match node:
        case c_ast.Compound(block_items=items):
            return change(items or [], name, amount, trips)
        case c_ast.If(iftrue=then, iffalse=other):
            one, two = (change([part] if part is not None else [], name, amount, trips) for part in (then, other))
            return one if one == two else None
        case c_ast.For(stmt=body):
            each, count = change([body], name, amount, trips), trips(node)
            return None if each is None or count is None else product(each, count)
        case c_ast.UnaryOp(op="p++" | "++" | "p--" | "--" as op, expr=c_ast.ID(name=changed)) if changed == name:
            return {(): STEPS[op]}
    added = addend(node, name)
    by = None if added is None else amount(added[1])
    return None if added is None or by is None else product(by, {(): added[0]})


def addend(node: c_ast.Node, name: str) -> tuple[int, c_ast.Node] | None:
    """The sign and the value of what an assignment adds to a name: `j += 2`, `j = j + 2`; None for any other."""
    match node:
        case c_ast.Assignment(op="+=" | "-=" as op, lvalue=c_ast.ID(name=changed), rvalue=by) if changed == name:
            return (1 if op == "+=" else -1), by
        case c_ast.Assignment(
            op="=", lvalue=c_ast.ID(name=changed), rvalue=c_ast.BinaryOp(op="+" | "-" as op, left=left, right=right)
        ) if changed == name:
            if isinstance(left, c_ast.ID) and left.name == name:
                return (1 if op == "+" else -1), right
            if op == "+" and isinstance(right, c_ast.ID) and right.name == name:
                return 1, left
    return None


def last_value(body: c_ast.Node, name: str) -> c_ast.Node | None:
    """What every iteration sets an integer to, in terms of values at its start; None if it does anything else to it."""
    items: Sequence[c_ast.Node] = (body.block_items or []) if isinstance(body, c_ast.Compound) else [body]
    places = [at for at, item in enumerate(items) if Uses.of([item]).written(name)]
    if len(places) != 1:
        return None
    match items[places[0]]:
        case c_ast.Assignment(op="=", lvalue=c_ast.ID(name=changed), rvalue=value) if changed == name:
            before = Uses.of(list(items[: places[0]]))
            named = set(names_in([value]))
            return None if name in named or any(before.written(one) for one in named) else value
    return None


def plus(value: ast.expr, more: Polynomial) -> ast.expr:
    """A sum, as a sum of products if the value is one."""
    terms = polynomial(value)
    return ast.BinOp(value, ast.Add(), expression(more)) if terms is None else expression(total(terms, more))


def _negative(value: Polynomial) -> Polynomial:
    return product(value, {(): -1})
