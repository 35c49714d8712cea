"""Loops that count, and integers in terms of their counters."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from poly.frontends.polynomials import Polynomial, expression, polynomial, product, total
from poly.frontends.rewriting import substituted


@dataclass(frozen=True)
class CountedLoop:
    """The counter of a loop, its first value, its step, and the value at which it ends."""

    counter: str
    start: Polynomial
    step: int
    end: Polynomial | None
    """None if it has several ends, or one that is no sum of products."""

    def at_values(self, values: Mapping[str, ast.expr | None]) -> CountedLoop | None:
        """The loop with values in place of names; None if where it starts is not known, or no sum of products."""
        start, end = _at_values(self.start, values), None if self.end is None else _at_values(self.end, values)
        return None if start is None else replace(self, start=start, end=end)

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
        earlier = expression(total({(self.counter,): 1}, {(): -self.step}))
        return ast.IfExp(first, entry, substituted(value, {self.counter: earlier}))


def plus(value: ast.expr, more: Polynomial) -> ast.expr:
    """A sum, as a sum of products if the value is one."""
    terms = polynomial(value)
    return ast.BinOp(value, ast.Add(), expression(more)) if terms is None else expression(total(terms, more))


def _at_values(terms: Polynomial, values: Mapping[str, ast.expr | None]) -> Polynomial | None:
    used = {name: values[name] for key in terms for name in key if name in values}
    known = {name: value for name, value in used.items() if value is not None}
    return polynomial(substituted(expression(terms), known)) if len(known) == len(used) else None


def _negative(value: Polynomial) -> Polynomial:
    return product(value, {(): -1})
