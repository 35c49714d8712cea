"""What C statements do to an integer in each iteration of a loop."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from pycparser import c_ast

from poly.frontends.c.declarations import Uses, names_in
from poly.frontends.polynomials import Polynomial, product, total

STEPS = {"p++": 1, "++": 1, "p--": -1, "--": -1}


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
