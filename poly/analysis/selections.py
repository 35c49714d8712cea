"""Loops that select: of all iterations, the index or another value that belongs to the least or the greatest key.

where[0] = i if x[i] < best[0] else where[0]
best[0] = min(best[0], x[i])
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from codegen.lanes.selection import Extreme, extreme, follows
from poly.analysis.dependences import Dependence
from poly.ir.nest import Nest, Statement
from poly.ir.paths import Path, loop_names, paths
from poly.ir.strides import moved_iterator
from poly.ir.tree import Node


@dataclass(frozen=True)
class Selected:
    """The statements of a loop that select together, and the arrays that they set."""

    statements: frozenset[str] = frozenset()
    arrays: frozenset[str] = frozenset()

    def covers(self, dependence: Dependence) -> bool:
        """Whether a dependence is one between the selection's iterations."""
        return {dependence.source, dependence.sink} <= self.statements and dependence.array in self.arrays


def selected_in(nest: Nest, tree: Node, loop: str) -> Selected:
    """The selection directly in a loop, into elements that all of its iterations share; empty if there is none."""
    found = paths(tree)
    inside = directly_in(nest, found, loop)
    for position, last in enumerate(inside):
        kept = extreme(last)
        if kept is None:
            continue
        group = (*_payload(inside[:position], kept), last)
        if len(group) > 1 and not any(varies(one, found[one.name], loop) for one in group):
            return Selected(frozenset(one.name for one in group), frozenset(one.target.array for one in group))
    return Selected()


def directly_in(nest: Nest, found: Mapping[str, Path], loop: str) -> list[Statement]:
    """The statements in a loop and in no loop inside it, in textual order."""
    return [nest.statement(name) for name, path in found.items() if _innermost(path) == loop]


def _payload(before: list[Statement], kept: Extreme) -> tuple[Statement, ...]:
    return tuple(other for other in before if follows(other, kept))


def _innermost(path: Path) -> str | None:
    around = loop_names(path)
    return around[-1] if around else None


def varies(statement: Statement, path: Path, loop: str) -> bool:
    """Whether a statement's element may depend on a loop."""
    moved = moved_iterator(statement, path, loop)
    return moved is None or any(moved in index.names for index in statement.target.indices)
