"""Statements that share temporaries: values of the body of their loops, which are best kept in registers."""

from __future__ import annotations

from poly.ir.nest import Nest


def tied(nest: Nest) -> frozenset[tuple[str, str]]:
    """The pairs of a statement that reads a temporary, and one that writes it."""
    found = nest.temporaries
    writers = [s for s in nest.statements if s.target.array in found]
    readers = [(s.name, {load.array for load in s.reads}) for s in nest.statements]
    return frozenset((name, w.name) for w in writers for name, read in readers if w.target.array in read)


def groups(nest: Nest) -> tuple[frozenset[str], ...]:
    """The statements that share temporaries, directly or through others."""
    found: list[frozenset[str]] = []
    for pair in map(frozenset, tied(nest)):
        joined = pair.union(*(group for group in found if group & pair))
        found = [*(group for group in found if not group & pair), joined]
    return tuple(found)
