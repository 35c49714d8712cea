"""What statements do to integers, and so which values these have in each iteration of a loop and behind it.

k = 0                             k = 0
for i in range(n):                for i in range(n):
  x[k] = y[i]               ->      x[3*i] = y[i]
  j = k + 1                         j = 3*i + 1
  k = j + 2                         k = 3*i + 3
                                  k = 3*n

Statements of any language become effects. A loop's body is run once, with a symbol for what each integer is at the
start of an iteration. One that ends as its symbol plus the same amount in all iterations is linear in the counter; one
that ends as something without its symbol is at the next start what this iteration has made of it. (Wolfe, "Beyond
induction variables", PLDI 1992: linear induction variables, and wrap-around variables; Haghighat and Polychronopoulos,
"Symbolic analysis for parallelizing compilers", TOPLAS 1996: the symbolic run.)
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from poly.frontends.counted import CountedLoop, plus
from poly.frontends.polynomials import Polynomial, expression, polynomial, product, total
from poly.frontends.rewriting import substituted

Values = Mapping[str, ast.expr | None]
"""The values of integers at one place, None where they are not known."""
IsNatural = Callable[[ast.expr], bool]
"""Whether an expression can't be negative."""
REMEDY = "Write the value in terms of the loops' counters and the sizes here."


def lost(name: str) -> str:
    """Why an integer can't be used."""
    return f"the value of `{name}` is not known here: not all ways to here and iterations change it alike"


@dataclass(frozen=True)
class Assigned:
    """An integer gets a value, in terms of integers before; None if poly can't follow it."""

    name: str
    value: ast.expr | None


@dataclass(frozen=True)
class Chosen:
    """One of two sides runs."""

    one: Effects
    other: Effects


@dataclass(frozen=True)
class Repeated:
    """A loop runs its body; `loop` is None if it is no counted one."""

    loop: CountedLoop | None
    body: Effects


@dataclass(frozen=True)
class Scoped:
    """A block with integers of its own, which hide others of their names."""

    own: frozenset[str]
    body: Effects


Effect = Assigned | Chosen | Repeated | Scoped
Effects = tuple[Effect, ...]


def written(effects: Effects) -> Iterator[str]:
    """The integers that effects may change."""
    for effect in effects:
        match effect:
            case Assigned(name):
                yield name
            case Chosen(one, other):
                yield from written((*one, *other))
            case Repeated(_, body):
                yield from written(body)
            case Scoped(own, body):
                yield from set(written(body)) - own


def evaluated(name: str, value: ast.expr | None, values: Values) -> ast.expr | None:
    """The value that an integer gets; a sum of products in one form if it adds to what the integer was."""
    used = [] if value is None else list(names_in(value))
    if value is None or any(values.get(one, value) is None for one in used):
        return None
    made = substituted(value, {one: known for one in used if (known := values.get(one)) is not None})
    terms = polynomial(made) if name in used else None
    return made if terms is None else expression(terms)


def joined(one: Values, other: Values) -> dict[str, ast.expr | None]:
    """The values that are the same on both ways to a place."""
    return {name: one.get(name) if _is_same(one.get(name), other.get(name)) else None for name in {**one, **other}}


def after(effects: Effects, values: Values, is_natural: IsNatural) -> dict[str, ast.expr | None]:
    """The values of integers after effects."""
    found = dict(values)
    for effect in effects:
        match effect:
            case Assigned(name, value):
                found[name] = evaluated(name, value, found)
            case Chosen(one, other):
                found = joined(*(after(side, found, is_natural) for side in (one, other)))
            case Repeated(loop, body):
                found |= iterated(loop, body, found, is_natural)[1]
            case Scoped(own, body):
                inner = after(body, {**found, **dict.fromkeys(own)}, is_natural)
                found = {**inner, **{name: found.get(name) for name in own}}
    return found


def iterated(
    loop: CountedLoop | None, body: Effects, values: Values, is_natural: IsNatural
) -> tuple[dict[str, ast.expr | None], dict[str, ast.expr | None]]:
    """The values of the integers that a loop changes: at the start of each iteration, and behind the loop."""
    changed = set(written(body))
    inside: dict[str, ast.expr | None] = dict.fromkeys(changed)
    behind = dict(inside)
    loop = None if loop is None else loop.at_values(values)
    if loop is None:
        return inside, behind
    symbols = {name: f"{name}·{loop.counter}" for name in changed}
    starts = {name: ast.Name(symbol, ast.Load()) for name, symbol in symbols.items()}
    ends = after(body, {**values, **starts, loop.counter: ast.Name(loop.counter, ast.Load())}, is_natural)
    varying, count = {loop.counter, *symbols.values()}, loop.trips(is_natural)
    for name in changed:
        before, by = values.get(name), _added(ends[name], symbols[name])
        if before is not None and by is not None and not any(varying.intersection(key) for key in by):
            inside[name] = loop.at(before, by)
            behind[name] = None if count is None else plus(before, product(by, count))
    for _ in changed:  # one may be what another was
        for name in changed:
            before, end = values.get(name), ends[name]
            if inside[name] is None and before is not None and end is not None:
                at_start = evaluated(name, end, {symbols[one]: known for one, known in inside.items()})
                inside[name] = None if at_start is None else loop.before(at_start, before)
    return inside, behind


def names_in(node: ast.AST) -> Iterator[str]:
    """The names in an expression."""
    return (part.id for part in ast.walk(node) if isinstance(part, ast.Name))


def _added(end: ast.expr | None, symbol: str) -> Polynomial | None:
    """What is added to a symbol."""
    terms = None if end is None else polynomial(end)
    return None if terms is None else total(terms, {(symbol,): -1})


def _is_same(one: ast.expr | None, other: ast.expr | None) -> bool:
    if one is None or other is None:
        return False
    first, second = polynomial(one), polynomial(other)
    return first == second if first is not None and second is not None else ast.dump(one) == ast.dump(other)
