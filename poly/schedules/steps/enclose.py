"""Put a new loop around statements, each of which runs at the iterations that a formula gives.

for i:                                   for k_tile:
  for j < i:                               for i:
    for k < j:                               for j < i:
      A[i, j] -= A[i, k]*A[k, j]   ->          for k < j:
    A[i, j] /= A[j, j]                           if k in block k_tile: A[i, j] -= A[i, k]*A[k, j]
                                               if j in block k_tile: A[i, j] /= A[j, j]

This gives loops to statements that have none in common: the blocks of an elimination are blocks of k for the updates,
and of j for the divisions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from microkernels.errors import plain
from poly.errors import ScheduleError
from poly.ir.edits import edit, find_loop
from poly.ir.nest import Nest
from poly.ir.tree import Band, Node, bands, children, statements
from poly.schedules.steps.base import Arguments
from poly.schedules.steps.formulas import Formula, value_of


@dataclass(frozen=True)
class Enclose:
    """A loop around the largest part of the tree, or of loop `at`, that has exactly the statements in `values`."""

    loop: str
    values: tuple[tuple[str, Formula], ...]
    at: str | None = None
    name: ClassVar[str] = "enclose"
    reorders: ClassVar[bool] = True

    def apply(self, nest: Nest, tree: Node) -> Node:
        if any(band.name == self.loop for band in bands(tree)):
            raise ScheduleError(f"enclose({self.loop}): there is a loop {self.loop} already. Remedy: another name.")
        place = find_loop(tree, self.at).body if self.at is not None else tree
        enclosed = _exactly(place, frozenset(name for name, _ in self.values))
        if enclosed is None:
            around = ", ".join(statements(place))
            problem = f"enclose({self.loop}): no part of the loops has exactly the statements {self._named}"
            raise ScheduleError(f"{problem}. Statements{f' in loop {self.at}' if self.at else ''}: {around}.")
        formulas = dict(self.values)
        functions = tuple((name, value_of(nest, nest.statement(name), formulas[name])) for name in statements(enclosed))
        return edit(tree, enclosed, Band(self.loop, functions, enclosed))

    @property
    def _named(self) -> str:
        return ", ".join(plain(name) for name, _ in self.values) or "of an empty list"

    def arguments(self) -> Arguments:
        return (self.loop, *(() if self.at is None else (self.at,))), dict(self.values)


def _exactly(node: Node, names: frozenset[str]) -> Node | None:
    """The largest subtree with exactly these statements."""
    found = frozenset(statements(node))
    if found == names:
        return node
    below = (_exactly(child, names) for child in children(node)) if found > names else ()
    return next((part for part in below if part is not None), None)
