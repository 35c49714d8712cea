"""A bound on isl's work: some questions about sets take it for ever, and most of memory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import islpy as isl


class TooCostly(Exception):
    """isl could not answer with the operations that it was given."""


@contextmanager
def limited(operations: int) -> Iterator[None]:
    """Let isl do at most so many operations inside (three million take about a second).

    Raises:
        TooCostly: they did not suffice.
    """
    context = isl.DEFAULT_CONTEXT
    before = context.get_max_operations()
    context.reset_operations()
    context.set_max_operations(operations)
    try:
        yield
    except isl.Error as error:  # its text tells only now and then that the operations were spent
        raise TooCostly from error
    finally:
        context.reset_operations()
        context.set_max_operations(before)
