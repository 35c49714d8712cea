"""Sums of products of names, for subscripts such as `i*n + j` of arrays that are stored in one dimension."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Mapping

Polynomial = Mapping[tuple[str, ...], int]
"""The factor of each product, which is a sorted tuple of names; the constant is that of the empty tuple."""
Range = tuple[str, ast.expr, ast.expr]
"""A loop's index, and its least and greatest value."""


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


def split(offsets: Iterable[Polynomial], sizes: Collection[str]) -> tuple[str, ...]:
    """The strides, outermost first, by which the offsets of an array are indices of several dimensions.

    Every product of two names or more has a size as a factor, and this size is the extent of the last dimension.
    """
    several = list(offsets)
    products = [key for offset in several for key in offset if len(key) > 1]
    if not products:
        return ()
    for size in sorted(set(products[0]).intersection(sizes)):
        if all(size in key for key in products):
            return (*split([divided(offset, size)[0] for offset in several], sizes), size)
    return ()


def divided(offset: Polynomial, size: str) -> tuple[Polynomial, Polynomial]:
    """The quotient and the rest of an offset by a size."""
    quotient: dict[tuple[str, ...], int] = {}
    rest: dict[tuple[str, ...], int] = {}
    for key, factor in offset.items():
        if size in key:
            left = list(key)
            left.remove(size)
            quotient[tuple(left)] = factor
        else:
            rest[key] = factor
    return quotient, rest


def indices(offset: Polynomial, strides: Iterable[str], loops: Iterable[Range] = ()) -> list[Polynomial]:
    """The index of each dimension, outermost first.

    One that is never 0 or more counts from the row before: `(i + 1)*n - 1 - j` is the element `n - 1 - j` of row `i`.
    """
    found: list[Polynomial] = []
    around = list(loops)
    for size in reversed(list(strides)):
        offset, rest = divided(offset, size)
        most = greatest(rest, around)
        if most is not None and most.keys() == {()} and most[()] < 0:
            offset, rest = total(offset, {(): -1}), total(rest, {(size,): 1})
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
