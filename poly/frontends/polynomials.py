"""Sums of products of names, for subscripts such as `i*n + j` of arrays that are stored in one dimension."""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from math import gcd
from typing import Any

from poly.frontends.rewriting import Copier, substituted

Polynomial = Mapping[tuple[str, ...], int]
"""The factor of each product, which is a sorted tuple of names; the constant is that of the empty tuple."""
Range = tuple[str, ast.expr, ast.expr]
"""A loop's index, and its least and greatest value."""
Stride = tuple[str, int]
"""A size, and how many times it is the number of elements from row to row."""
LARGE = 1 << 20
"""A size by which indices are compared, if it does not follow from them which one is greatest."""


def polynomial(node: ast.expr) -> Polynomial | None:
    """A Python expression of integers as a polynomial; None if it is none."""
    match node:
        case ast.Constant(value=int(value)):
            return _clean({(): value})
        case ast.Name(id=name):
            return {(name,): 1}
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            inner = polynomial(operand)
            return None if inner is None else product(inner, {(): -1})
        case ast.BinOp(left=left, op=op, right=right):
            first, second = polynomial(left), polynomial(right)
            if first is None or second is None:
                return None
            match op:
                case ast.Add():
                    return total(first, second)
                case ast.Sub():
                    return total(first, product(second, {(): -1}))
                case ast.Mult():
                    return product(first, second)
    return None


@dataclass(frozen=True)
class Named:
    """A polynomial in which names stand for what is none: choices, quotients and remainders."""

    terms: Polynomial
    values: Mapping[str, ast.expr]

    def ranges(self, loops: Iterable[Range]) -> list[Range]:
        """The loops around it, then the names with the least and greatest values that they have where sizes are large.

        Those without clear ends are missing.
        """
        around = list(loops)
        ends = ((name, end(value, around, -1), end(value, around, 1)) for name, value in self.values.items())
        clear = (
            (name, expression(low), expression(high))
            for name, low, high in ends
            if low is not None and high is not None
        )
        return [*around, *clear]

    def greatest(self, index: Polynomial, loops: Iterable[Range]) -> Polynomial | None:
        """The greatest value of a polynomial in the same names, in terms of sizes; None if it is not clear."""
        found = greatest(index, self.ranges(loops))
        return None if found is None or any(name in self.values for key in found for name in key) else found

    def expression(self, terms: Polynomial) -> ast.expr:
        """A polynomial in the same names as a Python expression, with what they stand for."""
        return substituted(expression(terms), self.values)


def named(node: ast.expr) -> Named | None:
    """A Python expression of integers, with names for its choices, quotients and remainders; None if it has others."""
    taken = {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
    values: dict[str, ast.expr] = {}

    class Namer(Copier):
        def visit(self, part: ast.AST) -> Any:
            if isinstance(part, ast.expr) and _is_part(part):
                return ast.Name(self._name(part), ast.Load())
            return self.generic_visit(part)

        def _name(self, part: ast.expr) -> str:
            known = next((name for name, value in values.items() if ast.dump(value) == ast.dump(part)), None)
            if known is None:
                known = next(name for n in range(len(taken) + 1) if (name := f"part{n}") not in taken)
                taken.add(known)
                values[known] = part
            return known

    terms = polynomial(Namer().visit(node))
    return None if terms is None else Named(terms, values)


def _is_part(node: ast.expr) -> bool:
    return isinstance(node, ast.IfExp) or (isinstance(node, ast.BinOp) and isinstance(node.op, ast.FloorDiv | ast.Mod))


def end(node: ast.expr, loops: list[Range], sign: int) -> Polynomial | None:
    """The greatest value of an expression (`sign` 1) or the least (-1) where sizes are large; None if it is not clear.

    It may be further away: of a choice it is that of one side, which need not be chosen there.
    """
    terms = polynomial(node)
    if terms is not None:
        found = greatest(product(terms, {(): sign}), loops)
        return None if found is None else product(found, {(): sign})
    match node:
        case ast.IfExp(body=body, orelse=other):
            first, second = end(body, loops, sign), end(other, loops, sign)
            if first is None or second is None:
                return None
            nearer = min if sign > 0 else max
            return nearer(first, second, key=at_large) if _extreme(node) is nearer else _further(first, second, sign)
        case ast.BinOp(left=left, op=ast.FloorDiv(), right=ast.Constant(value=int(by))) if by > 0:
            dividend = end(left, loops, sign)
            if dividend is None or any(factor % by for key, factor in dividend.items() if key):
                return None
            return {key: factor // by for key, factor in dividend.items()}
        case ast.BinOp(op=ast.Mod(), right=ast.Constant(value=int(by))) if by > 0:
            return {(): by - 1 if sign > 0 else 0}
    return None


def _further(first: Polynomial, second: Polynomial, sign: int) -> Polynomial | None:
    """The further of two ends, moved until the other one is behind it for all sizes from 1 on; None if it never is."""
    end, other = sorted((first, second), key=lambda one: sign * at_large(one), reverse=True)
    apart = product(total(end, negative(other)), {(): sign})
    if any(factor < 0 for key, factor in apart.items() if key):
        return None
    return total(end, {(): sign * max(0, -sum(apart.values()))})


def _extreme(node: ast.IfExp) -> Callable[..., Any] | None:
    """`min` or `max` if a choice is one of these of two values: `a if a < b else b`."""
    match node:
        case ast.IfExp(test=ast.Compare(left=left, ops=[op], comparators=[right]), body=body, orelse=other):
            picked, sides = ([ast.dump(one) for one in pair] for pair in ((body, other), (left, right)))
            is_less, is_greater = isinstance(op, ast.Lt | ast.LtE), isinstance(op, ast.Gt | ast.GtE)
            if picked in (sides, sides[::-1]) and (is_less or is_greater):
                return min if is_less == (picked == sides) else max
    return None


def at_large(terms: Polynomial) -> int:
    """The value of a polynomial where all sizes are LARGE."""
    return sum(factor * LARGE ** len(key) for key, factor in terms.items())


def total(first: Polynomial, second: Polynomial) -> Polynomial:
    return _clean({key: first.get(key, 0) + second.get(key, 0) for key in {**first, **second}})


def product(first: Polynomial, second: Polynomial) -> Polynomial:
    found: dict[tuple[str, ...], int] = {}
    for one, factor in first.items():
        for other, by in second.items():
            key = tuple(sorted((*one, *other)))
            found[key] = found.get(key, 0) + factor * by
    return _clean(found)


def negative(terms: Polynomial) -> Polynomial:
    return {key: -factor for key, factor in terms.items()}


def _clean(terms: Mapping[tuple[str, ...], int]) -> Polynomial:
    return {key: factor for key, factor in terms.items() if factor}


def split(offsets: Iterable[Polynomial], sizes: Collection[str], whole: bool = False) -> tuple[Stride, ...]:
    """The strides, outermost first, by which the offsets of an array are indices of several dimensions.

    Every product of two names or more has a size as a factor, and this size is the extent of the last dimension; or
    with `whole`, as in `(i*w + j)*3 + c`, as many times the size as is a factor of all these products.
    """
    several = list(offsets)
    products = {key: gcd(*(offset.get(key, 0) for offset in several)) for o in several for key in o if len(key) > 1}
    if not products:
        return ()
    for size in sorted(set(next(iter(products))).intersection(sizes)):
        if all(size in key for key in products):
            stride = size, gcd(*products.values()) if whole else 1
            return (*split([divided(offset, stride)[0] for offset in several], sizes, whole), stride)
    return ()


def divided(offset: Polynomial, stride: Stride) -> tuple[Polynomial, Polynomial]:
    """The quotient and the rest of an offset by a stride."""
    size, times = stride
    quotient: dict[tuple[str, ...], int] = {}
    rest: dict[tuple[str, ...], int] = {}
    for key, factor in offset.items():
        if size in key and not factor % times:
            left = list(key)
            left.remove(size)
            quotient[tuple(left)] = factor // times
        else:
            rest[key] = factor
    return quotient, rest


def indices(offset: Polynomial, strides: Iterable[Stride], loops: Iterable[Range] = ()) -> list[Polynomial]:
    """The index of each dimension, outermost first.

    One that is never 0 or more counts from the row before: `(i + 1)*n - 1 - j` is the element `n - 1 - j` of row `i`.
    """
    found: list[Polynomial] = []
    around = list(loops)
    for size, times in reversed(list(strides)):
        offset, rest = divided(offset, (size, times))
        most = greatest(rest, around)
        if most is not None and most.keys() == {()} and most[()] < 0:
            offset, rest = total(offset, {(): -1}), total(rest, {(size,): times})
        found.insert(0, rest)
    return [offset, *found]


def expression(value: Polynomial) -> ast.expr:
    """A polynomial as a Python expression."""
    text = " + ".join(
        "*".join([str(factor), *key]) if factor != 1 or not key else "*".join(key) for key, factor in value.items()
    )
    return ast.parse(text or "0", mode="eval").body


def greatest(index: Polynomial, loops: Iterable[Range]) -> Polynomial | None:
    """The greatest value of an index over the loops around it, in terms of sizes; None if it is not clear."""
    for name, least, most in reversed(list(loops)):
        factor = index.get((name,), 0)
        if any(name in key and key != (name,) for key in index):
            return None
        end = polynomial(most if factor > 0 else least)
        if factor and end is None:
            return None
        rest = {key: value for key, value in index.items() if key != (name,)}
        index = total(rest, product(end or {}, {(): factor}))
    return index
