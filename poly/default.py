"""The default schedule of a nest: contractions through microkernels, whatever else by its dependences.

    for i: for j:                         for i: for j:
      C[i, j] = 0                           C[i, j] = 0          (taken over by the kernel's first visit)
      for k:                      ->      …tiles, copies and the microkernel of the second statement
        C[i, j] += A[i, k] * B[k, j]

The statements are distributed into groups, each contraction one of its own, where the dependences allow it.
"""

from __future__ import annotations

from codegen.expr import Const
from microkernels.isa import ISA
from poly.contraction import recognise
from poly.legality import violations
from poly.model import Caches
from poly.nest import Nest, Statement
from poly.plan import contraction_tree
from poly.tree import Node, Sequence, restrict


def default_tree(nest: Nest, isa: ISA, caches: Caches, threads: int) -> Node:
    """The loops that poly.compile takes where no schedule is given; nothing is measured."""
    groups = _groups(nest)
    if not any(_is_contraction(nest, group) for group in groups):
        return nest.tree
    parts = [restrict(nest.tree, frozenset(s.name for s in group)) for group in groups]
    if len(groups) > 1 and violations(nest, _sequence(parts)) is not None:
        return nest.tree
    return _sequence([_scheduled(nest, group, part, isa, caches, threads) for group, part in zip(groups, parts, strict=True)])


def _sequence(parts: list[Node]) -> Node:
    return parts[0] if len(parts) == 1 else Sequence(tuple(parts))


def _groups(nest: Nest) -> list[list[Statement]]:
    """Each contraction alone, the statements between them together, in textual order."""
    groups: list[list[Statement]] = []
    for statement in nest.statements:
        alone = nest.reassociate and recognise(nest, statement) is not None
        if alone or not groups or _is_contraction(nest, groups[-1]):
            groups.append([statement])
        else:
            groups[-1].append(statement)
    return groups


def _is_contraction(nest: Nest, group: list[Statement]) -> bool:
    return nest.reassociate and len(group) == 1 and recognise(nest, group[0]) is not None


def _scheduled(nest: Nest, group: list[Statement], part: Node, isa: ISA, caches: Caches, threads: int) -> Node:
    if _is_contraction(nest, group):
        tree = contraction_tree(nest, group[0], isa, caches, threads, _initial(nest, group[0]))
        if tree is not None:
            return tree
    return part


def _initial(nest: Nest, statement: Statement) -> str | None:
    """The statement that sets the contraction's output to 0 before, if nothing comes between the two."""
    before = nest.statements[: nest.statements.index(statement)]
    touching = [s for s in before if any(load.array == statement.target.array for load in (s.target, *s.reads))]
    if not touching or touching[-1].op != "=" or touching[-1].expr not in (Const(0), Const(0.0)):
        return None
    zero = touching[-1]
    written = statement.relation(statement.target).range()
    return zero.name if written.is_subset(zero.relation(zero.target).range()) else None
