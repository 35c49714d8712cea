"""Part a statement in two: the instances that need results of their own block of a loop, and all others.

for i:                                          for i:
  for j < i:                                      for j < i:
    X[i] -= L[i, j]*X[j]         ->                 if j in an earlier block than i:  X[i] -= L[i, j]*X[j]
                                                    else:                             X[i] -= L[i, j]*X[j]

The operands of the others are ready when their block begins, so that they can run together, before it. (Griebl,
Feautrier, Lengauer, "Index set splitting", IJPP 28(6), 2000.)
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import islpy as isl

from microkernels.errors import plain
from poly.analysis.dependences import dependences
from poly.errors import ScheduleError
from poly.ir.edits import find_loop
from poly.ir.nest import Nest, Statement
from poly.ir.tree import Band, Copy, Leaf, Micro, Node, Sequence, walk
from poly.schedules.steps.base import Arguments, check_integer


@dataclass(frozen=True)
class Part:
    """The instances of `statement` that depend on others in the same `size` iterations of a loop become `S_near`."""

    statement: str
    loop: str
    size: int
    name: ClassVar[str] = "part"
    reorders: ClassVar[bool] = False

    @property
    def near(self) -> str:
        """The name of the second statement, which directly follows the first."""
        return f"{self.statement}_near"

    def apply(self, nest: Nest, tree: Node) -> Node:
        return self.parted(nest, tree)[1]

    def parted(self, nest: Nest, tree: Node) -> tuple[Nest, Node]:
        """The nest with both statements, and the tree; both are unchanged if the nest already has the two statements.

        Raises:
            ScheduleError: no such loop or statement, a size below 1, a statement that a microkernel runs, or all
                instances on one side.
        """
        check_integer(f"the block size of loop {self.loop}", self.size, least=1)
        if any(statement.name == self.near for statement in nest.statements):
            return nest, tree
        loop = find_loop(tree, self.loop)
        if self.statement not in dict(loop.functions):
            around = ", ".join(name for name, _ in loop.functions)
            raise ScheduleError(
                f"statement {plain(self.statement)} is not in loop {self.loop}. Statements there: {around}."
            )
        if any(isinstance(node, Micro) and self.statement in (node.statement, node.initial) for node in walk(tree)):
            problem = f"part({self.statement}): a microkernel runs {self.statement} already"
            raise ScheduleError(f"{problem}. Remedy: part first, then microkernel.")
        statement = nest.statement(self.statement)
        near = _near(nest, statement, loop, self.size)
        far = statement.domain.subtract(near).coalesce()
        if near.is_empty() or far.is_empty():
            which = "none" if near.is_empty() else "every one"
            problem = f"{which} of its instances depends on others of the same {self.size} iterations of the loop"
            raise ScheduleError(f"part({self.statement}, {self.loop}={self.size}): {problem}. There is no second part.")
        second = replace(statement, name=self.near, domain=near.set_tuple_name(self.near))
        position = nest.statements.index(statement)
        both = (replace(statement, domain=far), second)
        statements = (*nest.statements[:position], *both, *nest.statements[position + 1 :])
        doubled = _doubled(nest.tree, self.statement, self.near)
        parted = replace(nest, statements=statements, tree=doubled, opened=nest.structure)
        return parted, _doubled(tree, self.statement, self.near)

    def arguments(self) -> Arguments:
        return (self.statement,), {self.loop: self.size}


def _near(nest: Nest, statement: Statement, loop: Band, size: int) -> isl.Set:
    """The instances that depend on other instances in the same block of the loop."""
    near = isl.Set.empty(statement.domain.get_space())
    sink = _block(loop, statement.name, size)
    for dependence in dependences(nest).binding:
        if dependence.sink == statement.name and dependence.source in dict(loop.functions):
            same = _block(loop, dependence.source, size).eq_map(sink)
            near = near.union(dependence.relation.intersect(same).range())
    return near.intersect(statement.domain).coalesce()  # rough dependences may leave the domain


def _block(loop: Band, statement: str, size: int) -> isl.PwAff:
    return loop.function(statement).scale_down_val(isl.Val(size)).floor()


def _doubled(node: Node, name: str, second: str) -> Node:
    """The tree with the leaf `second` after the leaf `name`, in the same loops."""
    match node:
        case Leaf(statement) if statement == name:
            return Sequence((node, Leaf(second)))
        case Sequence(nodes):
            doubled = [_doubled(child, name, second) for child in nodes]
            flat = [part for child in doubled for part in (child.children if isinstance(child, Sequence) else (child,))]
            return Sequence(tuple(flat))
        case Copy(body=body):
            return replace(node, body=_doubled(body, name, second))
        case Band(functions=functions, body=body) if name in dict(functions):
            renamed = isl.Map.from_pw_aff(dict(functions)[name]).set_tuple_name(isl.dim_type.in_, second)
            copied = isl.PwMultiAff.from_map(renamed).get_pw_aff(0)
            return replace(node, functions=(*functions, (second, copied)), body=_doubled(body, name, second))
    return node
