"""Budgets for isl's work: some queries on sets would take isl unbounded time, and most of the memory.

Budgets count isl's operations, not time, so that results don't depend on the machine's load. They nest: operations
inside a budget are charged to the enclosing ones too. A public call has one budget for all its queries, and each costly
query a smaller one; when that is spent, a cheaper answer is used that is still safe.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache, wraps
from typing import Any, ParamSpec, TypeVar, cast

import islpy as isl

from poly.errors import PolyError

CALL = 24_000_000
"""The operations of one public call: a few seconds."""

QUESTION = 1_000_000
"""The operations of one query, less than a second. isl can't be interrupted, so Ctrl-C takes up to that long."""

LOCALS = 16
"""The most local variables of a set that loops are generated for. To eliminate them isl compares pairs of bounds again
and again, without counting operations: for forty-eight variables that bound each other, this took minutes."""

Key = TypeVar("Key")
Answer = TypeVar("Answer")
Given = ParamSpec("Given")

GAUGE = isl.Set("{ [i] : 0 <= i < 10 and (exists k : i = 3k + 1) }")
"""A query on this set fails if and only if the operations are spent."""


class TooCostly(PolyError):
    """isl could not answer within its budget of operations."""

    def __init__(self) -> None:
        super().__init__(
            "the loops' sets are too complicated: what was asked takes more work than poly spends on it. Remedy: "
            "simpler conditions (no `or`, `%` or `//`), fewer statements in one nest, fewer steps, or known sizes."
        )


@dataclass
class _Budget:
    """A number of operations, how many of them are spent, and whether no enclosing budget pays for them."""

    whole: int
    apart: bool
    spent: int = 0

    @property
    def left(self) -> int:
        return self.whole - self.spent

    def without(self, reserve: int) -> int:
        """The operations left, less `reserve` percent of the whole budget."""
        return self.left - self.whole * reserve // 100

    def pay(self, operations: int) -> None:
        self.spent += operations


_current: _Budget | None = None
"""The innermost budget in force."""

_asking = threading.RLock()
"""Held while a budget is in force, since isl counts the operations of all threads together."""

_forget: list[Callable[[], None]] = []
"""What empties the caches of answers from one public call."""


def forgotten(answers: dict[Key, Answer]) -> dict[Key, Answer]:
    """A dictionary that is emptied where the next outermost budget begins, that of a public call."""
    _forget.append(answers.clear)
    return answers


def kept(most: int) -> Callable[[Callable[Given, Answer]], Callable[Given, Answer]]:
    """Keep up to so many answers of a function until the next outermost budget, that of a public call, begins.

    An answer from a call before would be free: what is left of the budget, and thus results, would depend on it. So
    would they on one found for a cached result, `apart`: it may be there already.
    """

    def decorated(function: Callable[Given, Answer]) -> Callable[Given, Answer]:
        cache = lru_cache(most)(function)
        known = cast("Callable[Given, Answer]", cache)
        _forget.append(cache.cache_clear)

        @wraps(function)
        def answer(*given: Given.args, **named: Given.kwargs) -> Answer:
            return function(*given, **named) if _current and _current.apart else known(*given, **named)

        return answer

    return decorated


@contextmanager
def limited(operations: int, apart: bool = False, reserve: int = 0) -> Iterator[None]:
    """Limit isl to this number of operations inside the context, and to what is left of the enclosing budget.

    With `apart` the enclosing budget is neither a limit nor charged: for cached results, which must not depend on the
    first caller. `reserve` percent of the enclosing budget are withheld, so that one of many queries leaves enough for
    the cheaper answers.

    Raises:
        TooCostly: the operations did not suffice.
    """
    global _current
    with _asking:
        around = _current
        if around is not None:
            _refuse_spent()
            around.pay(_used())
            operations = operations if apart else min(operations, around.without(reserve))
        else:
            for forget in _forget:
                forget()
        _current = budget = _Budget(operations, apart or (around is not None and around.apart))
        _count()
        try:
            yield
            _refuse_spent()
        except TooCostly:
            raise
        except isl.Error as error:
            raise TooCostly from error  # or an error inside isl, for which the cheaper answer serves as well
        except Exception as error:
            _refuse_spent(error)
            raise
        finally:
            _current = around  # first, since Ctrl-C may come at any time
            try:
                budget.pay(_used())
                if around is not None and not apart:
                    around.pay(budget.spent)
            finally:
                _count()


@contextmanager
def unlimited() -> Iterator[None]:
    """Suspend the limit inside the context; isl still counts its operations.

    isl crashes if its operations run out while it prints a set, which itself takes few.
    """
    with _asking:
        context = isl.DEFAULT_CONTEXT
        limit = context.get_max_operations()
        context.set_max_operations(0)
        try:
            yield
        finally:
            context.set_max_operations(limit)


def printed(value: Any) -> str:
    """isl's text of a set or a map, safe while a limit is in force."""
    with unlimited():
        return str(value)


def refuse_tangled(points: isl.Set) -> None:
    """Raise TooCostly for a set with more than `LOCALS` local variables: a limit doesn't bound isl's work on it."""
    pieces = points.get_basic_set_list()
    if any(pieces.get_at(at).dim(isl.dim_type.div) > LOCALS for at in range(pieces.n_basic_set())):
        raise TooCostly


def _count() -> None:
    """Restart isl's counter, with a limit of what is left of the budget."""
    context = isl.DEFAULT_CONTEXT
    context.reset_operations()
    context.set_max_operations(0 if _current is None else max(1, min(QUESTION, _current.left)))


def _refuse_spent(error: Exception | None = None) -> None:
    """Raise TooCostly if the limit is reached: islpy may have returned None, or no pieces, instead of an error."""
    if _is_spent():
        raise TooCostly from error


def _is_spent() -> bool:
    """Whether isl has reached its limit."""
    try:
        GAUGE.sample_point()
    except isl.Error:
        return True
    return False


def _used() -> int:
    """The operations since the counter's restart, overestimated by up to 2x: isl only tells if a limit is reached."""
    low, high = 3, 12
    while _reaches(1 << high):
        low, high = high, high + 4
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if _reaches(1 << middle) else (low, middle)
    isl.DEFAULT_CONTEXT.set_max_operations(1 << high)  # not one that is spent
    return 1 << high


def _reaches(limit: int) -> bool:
    """Whether isl has used this number of operations since the counter's restart."""
    isl.DEFAULT_CONTEXT.set_max_operations(limit)
    return _is_spent()


def _in_child() -> None:
    """Reset the lock and the budget in a forked child, which has no other threads."""
    global _asking, _current
    _asking, _current = threading.RLock(), None
    _count()


os.register_at_fork(after_in_child=_in_child)
