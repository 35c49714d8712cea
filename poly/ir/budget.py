"""A bound on isl's work: some questions about sets take it for ever, and most of memory.

Budgets count isl's operations, not time, so that what comes out doesn't depend on how busy the machine is. They nest:
what is spent inside of one is spent of those around it too. A public call has one for all that it asks, each costly
question a smaller one, after which a cheaper answer serves that is still safe.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import islpy as isl

from poly.errors import PolyError

CALL = 24_000_000
"""The operations of one public call: some seconds."""

QUESTION = 1_000_000
"""The most between two budgets, less than a second: isl can't be interrupted, so Ctrl-C waits that long."""

LOCALS = 16
"""The most local variables of a set that loops are made for. To eliminate them isl compares pairs of bounds over and
over, which counts as no operation: forty-eight that bound each other took it minutes."""

GAUGE = isl.Set("{ [i] : 0 <= i < 10 and (exists k : i = 3k + 1) }")
"""Whatever is asked of it tells by its failure that the operations are spent."""


class TooCostly(PolyError):
    """isl could not answer with the operations that it was given."""

    def __init__(self) -> None:
        super().__init__(
            "the loops' sets are too complicated: what was asked takes more work than poly spends on it. Remedy: "
            "simpler conditions (no `or`, `%` or `//`), fewer statements in one nest, fewer steps, or known sizes."
        )


@dataclass
class _Budget:
    """How many operations there are, and how many of them are spent."""

    whole: int
    spent: int = 0

    @property
    def left(self) -> int:
        return self.whole - self.spent

    def without(self, reserve: int) -> int:
        """What is left without so many percent of all."""
        return self.left - self.whole * reserve // 100

    def pay(self, operations: int) -> None:
        self.spent += operations


_current: _Budget | None = None
"""The innermost budget that is in force."""

_asking = threading.RLock()
"""Held while a budget is in force: isl counts for all threads together."""


@contextmanager
def limited(operations: int, apart: bool = False, reserve: int = 0) -> Iterator[None]:
    """Let isl do at most so many operations inside, and no more than are left of the budget around it.

    With `apart` the budget around doesn't count: for what is kept, and must be the same whoever asked first. `reserve`
    percent of the budget around are not for this: so one of many questions leaves enough for their cheaper answers.

    Raises:
        TooCostly: they did not suffice.
    """
    global _current
    with _asking:
        around = _current
        if around is not None:
            _refuse_spent()
            around.pay(_used())
            operations = operations if apart else min(operations, around.without(reserve))
        _current = budget = _Budget(operations)
        _count()
        try:
            yield
            _refuse_spent()
        except TooCostly:
            raise
        except isl.Error as error:
            raise TooCostly from error  # or a fault of isl's own, where the cheaper answer serves as well
        except Exception as error:
            _refuse_spent(error)
            raise
        finally:
            _current = around  # before all else: Ctrl-C may come at any time
            try:
                budget.pay(_used())
                if around is not None and not apart:
                    around.pay(budget.spent)
            finally:
                _count()


@contextmanager
def unlimited() -> Iterator[None]:
    """Let isl work without a limit inside, and count on.

    isl crashes where its operations are spent while it prints a set, which itself takes few.
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
    """isl's text of a set or a map, also where a limit is in force."""
    with unlimited():
        return str(value)


def refuse_tangled(points: isl.Set) -> None:
    """Raise TooCostly for a set with so many local variables that no count of operations bounds the work on it."""
    pieces = points.get_basic_set_list()
    if any(pieces.get_at(at).dim(isl.dim_type.div) > LOCALS for at in range(pieces.n_basic_set())):
        raise TooCostly


def _count() -> None:
    """Let isl count anew, up to what is left of the budget."""
    context = isl.DEFAULT_CONTEXT
    context.reset_operations()
    context.set_max_operations(0 if _current is None else max(1, min(QUESTION, _current.left)))


def _refuse_spent(error: Exception | None = None) -> None:
    """Believe nothing that was found beyond the limit: where isl fails, islpy may give None, no pieces or no error."""
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
    """The operations since isl began to count, up to twice as many: it only tells when a limit is reached."""
    limit = 16
    while True:
        isl.DEFAULT_CONTEXT.set_max_operations(limit)
        if not _is_spent():
            return limit
        limit *= 2


def _in_child() -> None:
    """In a child of a fork no other thread asks any more."""
    global _asking, _current
    _asking, _current = threading.RLock(), None
    _count()


os.register_at_fork(after_in_child=_in_child)
