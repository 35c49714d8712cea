"""Locals of which one element is written and read in each iteration of the loops around: temporary values of the body.

for i: for j:
  s[i, j] = A[i, j] + A[i, j + 1]       s is a temporary, which is best kept in a register:
  B[i, j] = s[i, j] * s[i, j]           its statements stay in one iteration
"""

from __future__ import annotations

from poly.ir.nest import Array, Nest, Statement
from poly.ir.paths import paths
from poly.ir.strides import accesses
from poly.ir.tree import Band


def temporaries(nest: Nest) -> frozenset[str]:
    """The names of these locals, with the loops as written."""
    around = {name: [id(part) for part in path if isinstance(part, Band)] for name, path in paths(nest.tree).items()}
    return frozenset(a.name for a in nest.arrays if a.kind == "local" and _is_temporary(a, nest, around))


def tied(nest: Nest) -> frozenset[tuple[str, str]]:
    """The pairs of a statement that reads a temporary, and one that writes it."""
    found = temporaries(nest)
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


def _is_temporary(array: Array, nest: Nest, around: dict[str, list[int]]) -> bool:
    uses = [(s, {load.indices for load in accesses(s) if load.array == array.name}) for s in nest.statements]
    users = [(statement, indices) for statement, indices in uses if indices]
    if not users or len({indices for _, found in users for indices in found}) > 1:
        return False
    first = users[0][0]
    return _counts_all(first, array) and all(around[s.name] == around[first.name] for s, _ in users)


def _counts_all(statement: Statement, array: Array) -> bool:
    """Whether the element differs in each iteration: each iterator is alone in an affine index."""
    access = next(load for load in accesses(statement) if load.array == array.name)
    own = frozenset(statement.iterators)
    alone = (index.names & own for index in access.indices if index.is_affine)
    return {next(iter(names)) for names in alone if len(names) == 1} == own
