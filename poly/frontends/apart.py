"""Whether two elements of one array are different ones, from the loops around them.

for i in range(N):
    for j in range(i):
        x[i] -= L[i, j] * x[j]      # j < i: this never reads what it writes
"""

from __future__ import annotations

import ast
from collections.abc import Container, Sequence
from itertools import starmap

from poly.frontends.polynomials import Polynomial, polynomial, product, total

Bounds = tuple[Polynomial, Polynomial]
"""The least value of a loop's index, and the greatest."""
NEGATIVE: Polynomial = {(): -1}


def within(
    around: dict[str, Bounds], index: str, arguments: Sequence[ast.expr], changing: Container[str]
) -> dict[str, Bounds]:
    """The bounds of indices in a loop `for index in range(*arguments)`, the outermost first.

    Those that depend on names which may have changed meanwhile are left out: on other names that are `changing`.
    """
    known = {name: each for name, each in around.items() if name != index and index not in _names(*each)}
    if len(arguments) not in (1, 2):
        return known
    low = {} if len(arguments) == 1 else polynomial(arguments[0])
    end = polynomial(arguments[-1])
    if low is None or end is None:
        return known
    bounds = low, total(end, NEGATIVE)
    is_fixed = all(name in known or name not in changing for name in _names(*bounds))
    return {**known, index: bounds} if is_fixed else known


def are_apart(one: Sequence[ast.expr], other: Sequence[ast.expr], around: dict[str, Bounds]) -> bool:
    """Whether two elements are certain to differ in an index."""

    def differ(first: ast.expr, second: ast.expr) -> bool:
        values = polynomial(first), polynomial(second)
        if values[0] is None or values[1] is None:
            return False
        difference = total(values[0], product(values[1], NEGATIVE))
        return any(_is_positive(each, around) for each in (difference, product(difference, NEGATIVE)))

    return any(starmap(differ, zip(one, other, strict=False)))


def _is_positive(value: Polynomial, around: dict[str, Bounds]) -> bool:
    """Whether a value is certain to be above 0: its indices are replaced by their ends, innermost first."""
    for index in reversed(around):
        factor = value.get((index,), 0)
        if factor and not any(index in key for key in value if key != (index,)):
            end = product(around[index][factor < 0], {(): factor})
            value = total({key: other for key, other in value.items() if key != (index,)}, end)
    return not any(value) and value.get((), 0) > 0


def _names(*values: Polynomial) -> set[str]:
    return {name for value in values for key in value for name in key}
