"""Loops that scan: iterations use what those up to them have combined, as in prefix sums.

for j:                       for j:
  s += A[j]          or        B[j] = B[j-1] + A[j]
  B[j] = s
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from codegen.ir.expr import accessed
from codegen.lanes.scan import recurrence
from poly.analysis.dependences import Dependence
from poly.analysis.selections import directly_in, varies
from poly.ir.nest import Nest, Statement
from poly.ir.paths import Path, paths
from poly.ir.strides import moved_iterator
from poly.ir.tree import Band, Node


@dataclass(frozen=True)
class Scanned:
    """The statement of a loop that combines, and what it combines into."""

    combines: str = ""
    array: str = ""
    looking: frozenset[str] = frozenset()
    """The statements directly in the loop, which look at no other element of the array."""
    alone: bool = False
    """Whether the iterations have elements of their own, so that only the statement itself waits for earlier ones."""

    def covers(self, dependence: Dependence) -> bool:
        """Whether a dependence is one between the scan's iterations."""
        ends = {dependence.source, dependence.sink}
        among = ends == {self.combines} if self.alone else self.combines in ends and ends <= self.looking
        return dependence.array == self.array and among


def scanned_in(nest: Nest, tree: Node, loop: str) -> Scanned:
    """The scan directly in a loop; empty if there is none, or if its order must be kept."""
    found = paths(tree)
    inside = directly_in(nest, found, loop)
    combining = [one for one in inside if _combines(one, found[one.name], loop)]
    if len(combining) != 1:
        return Scanned()
    (one,) = combining
    alone = not _shares(one, found[one.name], loop)
    op = _operator(one, found[one.name], loop)
    exact = op in ("min", "max") or not nest.array(one.target.array).dtype.is_float
    if not (exact or nest.reassociate) or not (alone or _is_looked_at_alone(one, inside, found)):
        return Scanned()
    others = any(other.target.array == one.target.array for other in inside if other is not one)
    earlier = {other.target.array for other in inside[: inside.index(one)]}
    if any(load.array in earlier for load in accessed(one.expr)):
        return Scanned()  # a vector of what it combines is there before a vector of the other statements
    looking = frozenset(other.name for other in inside)
    return Scanned() if others else Scanned(one.name, one.target.array, looking, alone)


def _is_looked_at_alone(one: Statement, inside: list[Statement], found: Mapping[str, Path]) -> bool:
    """Whether the statements of a loop access no other element of the array than that into which one combines."""
    places = _iterators(one, found[one.name])
    for other in inside:
        read = [load for load in accessed(other.expr) if load.array == one.target.array]
        if read and (other is one or None in places or _iterators(other, found[other.name]) != places):
            return False
        if any(load != one.target for load in read):
            return False
    return True


def _iterators(statement: Statement, path: Path) -> list[str | None]:
    """The iterator that each loop around a statement advances."""
    return [moved_iterator(statement, path, band.name) for band in path if isinstance(band, Band)]


def _combines(statement: Statement, path: Path, loop: str) -> bool:
    return _shares(statement, path, loop) or _operator(statement, path, loop) is not None


def _shares(statement: Statement, path: Path, loop: str) -> bool:
    """Whether a statement reduces into one element for all iterations of a loop."""
    return statement.op != "=" and not varies(statement, path, loop)


def _operator(statement: Statement, path: Path, loop: str) -> str | None:
    if _shares(statement, path, loop):
        return statement.op
    moved = moved_iterator(statement, path, loop)
    found = None if moved is None else recurrence(statement, moved)
    return None if found is None else found.op
