"""What is known of integers at one place in C: sums of products that are not negative there."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from pycparser import c_ast

from codegen.ir.integer import Affine
from poly.frontends.polynomials import Polynomial, Range, negative, polynomial, product, total
from poly.ir.nest import Nest
from poly.ir.sets import at_least

OPPOSITE = {"<": ">=", ">=": "<", ">": "<=", "<=": ">", "==": "!=", "!=": "=="}
"""The comparisons, and what holds where one does not."""
ZERO = c_ast.Constant("int", "0")


@dataclass(frozen=True)
class KnownSums:
    """Sums of products that are at least 0 here."""

    known: tuple[Polynomial, ...] = ()

    def more(self, found: Iterable[Polynomial]) -> KnownSums:
        return KnownSums((*self.known, *found))

    def prove(self, goal: Polynomial) -> bool:
        """Whether a sum is at least 0, too, whatever the products in all of them are."""
        if all(key == () and factor >= 0 for key, factor in goal.items()):
            return True
        below = negative(total(goal, {(): 1}))
        return _is_empty(tuple(tuple(sorted(terms.items())) for terms in (*self.known, below)))


@lru_cache(4096)
def _is_empty(sums: tuple[tuple[tuple[tuple[str, ...], int], ...], ...]) -> bool:
    """Whether no integers make all sums at least 0."""
    products = sorted({key for terms in sums for key, _ in terms if key})
    place = {key: f"p{at}" for at, key in enumerate(products)}
    rows = [sum((Affine.name(place[key]) * f if key else Affine.of(f) for key, f in terms), Affine()) for terms in sums]
    return bool(at_least(tuple(place.values()), rows, 0).is_empty())


def implied(
    node: c_ast.Node, holds: bool, facts: KnownSums, integer: Callable[[c_ast.Node], Polynomial | None]
) -> Iterator[Polynomial]:
    """What a condition tells that holds, or does not; `integer` is an expression as a sum, None if it is none."""
    match node:
        case c_ast.UnaryOp(op="!", expr=inner):
            yield from implied(inner, not holds, facts, integer)
        case c_ast.BinaryOp(op="&&" | "||" as op, left=left, right=right):
            if (op == "&&") == holds:
                yield from implied(left, holds, facts, integer)
                yield from implied(right, holds, facts, integer)
        case c_ast.BinaryOp(op=op, left=left, right=right) if op in OPPOSITE:
            first, second = integer(left), integer(right)
            if first is not None and second is not None:
                yield from _compared(total(first, negative(second)), op if holds else OPPOSITE[op], facts)
        case c_ast.ID():
            yield from implied(c_ast.BinaryOp("!=", node, ZERO), holds, facts, integer)


def _compared(apart: Polynomial, op: str, facts: KnownSums) -> Iterator[Polynomial]:
    """What `apart op 0` tells."""
    if op == "!=":
        op = ">" if facts.prove(apart) else "<" if facts.prove(negative(apart)) else op
    if op in (">", ">=", "=="):
        yield total(apart, {(): -1 if op == ">" else 0})
    if op in ("<", "<=", "=="):
        yield total(negative(apart), {(): -1 if op == "<" else 0})


def upper_bound(terms: Polynomial, loops: Sequence[Range], natural: Callable[[str], bool]) -> Polynomial | None:
    """What a sum is at most in the loops around it, in terms of sizes; None if it is not clear.

    A counter in a product becomes its greatest or least value, as all else in it is at least 0.
    """
    for name, least, most in reversed(loops):
        found: Polynomial = {}
        for key, by in terms.items():
            if name in key:
                rest = tuple(other for other in key if other != name)
                end = polynomial(most if by > 0 else least)
                if end is None or len(rest) < len(key) - 1 or not all(map(natural, rest)):
                    return None
                found = total(found, product(end, {rest: by}))
            else:
                found = total(found, {key: by})
        terms = found
    return terms


def at_sizes(nest: Nest, sums: Iterable[Polynomial]) -> Nest:
    """The nest at those sizes alone at which sums of them are at least 0; it depends on no other sizes."""
    plain = [terms for terms in sums if is_affine(terms)]
    values = [Affine.make({name: by for key, by in terms.items() for name in key}, terms.get((), 0)) for terms in plain]
    own = [value for value in values if {name for name, _ in value.terms} <= {*nest.sizes}]
    return replace(nest, context=nest.context.intersect(at_least(nest.sizes, own, 0))) if own else nest


def is_affine(terms: Polynomial) -> bool:
    return all(len(key) < 2 for key in terms)


def large_products(terms: Polynomial) -> str:
    """C text of a test that a sum of products of sizes, all of them 0 or more, is at least 0: it asks for no less.

    Rounding loses nothing: what is not exact as a double is far larger than any unsigned int.
    """
    below = [f"{-by}.0*" + "*".join(f"(double)({name})" for name in key) for key, by in terms.items() if key and by < 0]
    return f"{' + '.join(below)} <= {terms.get((), 0)}.0"
