"""Part a statement in two: the instances that need results of their own block of a loop, and all others.

for i:                                          for i:
  for j < i:                                      for j < i:
    X[i] -= L[i, j]*X[j]         ->                 if j in an earlier block than i:  X[i] -= L[i, j]*X[j]
                                                    else:                             X[i] -= L[i, j]*X[j]

The operands of the others are ready when their block begins, so that they can run together, before it. (Griebl,
Feautrier, Lengauer, "Index set splitting", IJPP 28(6), 2000.) Any other division is given by a condition.

A sum may be parted by its terms, so that each of several products becomes a contraction:

C[i, j] += A[i, k]*B[k, j] + D[i, k]*E[k, j]     ->     C[i, j] += A[i, k]*B[k, j]
                                                        C[i, j] += D[i, k]*E[k, j]
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial, reduce
from typing import ClassVar

import islpy as isl

from codegen.ir.expr import Binary, Expr, loads
from microkernels.errors import plain
from poly.analysis.contraction import terms
from poly.analysis.dependences import dependences, divide
from poly.errors import ScheduleError
from poly.ir.budget import QUESTION, TooCostly, limited
from poly.ir.edits import find_loop
from poly.ir.nest import Nest, Statement
from poly.ir.tree import Band, Copy, Leaf, Micro, Node, Sequence, parts, statements, walk
from poly.schedules.steps.base import Arguments, check_integer
from poly.schedules.steps.formulas import Formula, where


@dataclass(frozen=True)
class Part:
    """Some instances of `statement` become a second statement, which directly follows the first.

    These are the instances that depend on others in the same `size` iterations of `loop`, called `S_near`, or those
    for which the condition `where` holds, called `into`. With `terms`, the second statement has all instances, too, and
    adds all but the first `terms` terms of the sum.
    """

    statement: str
    loop: str | None = None
    size: int = 1
    where: Formula | None = None
    into: str | None = None
    terms: int | None = None
    name: ClassVar[str] = "part"
    reorders: ClassVar[bool] = False

    @property
    def near(self) -> str:
        """The name of the second statement."""
        return f"{self.statement}_near" if self.into is None else self.into

    def apply(self, nest: Nest, tree: Node) -> Node:
        return self.rewritten(nest, tree)[1]

    def rewritten(self, nest: Nest, tree: Node) -> tuple[Nest, Node]:
        """The nest with both statements, and the tree; both are unchanged if the nest already has the two statements.

        Raises:
            ScheduleError: no such loop or statement, a size below 1, a statement that a microkernel runs, a name that
                is taken, all instances or terms on one side, or a sum that has to be added at once.
        """
        if sum(way is not None for way in (self.loop, self.where, self.terms)) != 1:
            raise needs(self.statement)
        if (self.loop is None) != (self.into is not None):
            raise needs(self.statement)
        if self.loop is not None:
            check_integer(f"the block size of loop {self.loop}", self.size, least=1)
        if self._is_parted(nest):
            return nest, tree
        statement = self._statement(nest, tree)
        first, second = self._by_terms(nest, statement) or self._by_instances(nest, tree, statement)
        position = nest.statements.index(statement)
        moved = replace(second, name=self.near, domain=second.domain.set_tuple_name(self.near))
        every = (*nest.statements[:position], first, moved, *nest.statements[position + 1 :])
        doubled = _doubled(nest.tree, self.statement, self.near)
        parted = replace(nest, statements=every, tree=doubled, opened=nest.structure)
        if self.terms is None:
            with suppress(TooCostly), limited(QUESTION):
                divide(nest, parted, self.statement, self.near)
        return parted, _doubled(tree, self.statement, self.near)

    def _by_instances(self, nest: Nest, tree: Node, statement: Statement) -> tuple[Statement, Statement]:
        """Both statements, the second still under the name of the first."""
        second = self._second(nest, tree, statement)
        first = statement.domain.subtract(second).coalesce()
        if second.is_empty() or first.is_empty():
            raise ScheduleError(self._undivided("none" if second.is_empty() else "every one"))
        return replace(statement, domain=first), replace(statement, domain=second)

    def _by_terms(self, nest: Nest, statement: Statement) -> tuple[Statement, Statement] | None:
        """The same by terms; None if the step has no `terms`."""
        if self.terms is None:
            return None
        step, found = f"part({statement.name}, terms={self.terms})", terms(statement.expr)
        if statement.op != "+" or not nest.reassociate:
            problem = "it is no sum" if statement.op != "+" else f"{nest.name} has reassociate=False"
            raise ScheduleError(f"{step}: {problem}. Only the terms that `+=` or `-=` adds can be added one by one.")
        if len(found) < 2:
            raise ScheduleError(f"{step}: it adds one term only.")
        check_integer(f"the number of terms of {statement.name} that stay", self.terms, least=1, most=len(found) - 1)
        if any(load.array == statement.target.array for load in loads(statement.expr)):
            raise ScheduleError(f"{step}: a term reads {statement.target.array}, which the first statement changes.")
        return _adding(statement, found[: self.terms]), _adding(statement, found[self.terms :])

    def _is_parted(self, nest: Nest) -> bool:
        """Whether the nest has the second statement.

        Raises:
            ScheduleError: it has another one of that name.
        """
        both = {statement.name: statement for statement in nest.statements}
        if self.near not in both:
            return False
        if self.loop is not None:
            return True
        second, first = both[self.near], both.get(self.statement)
        if self.terms is not None and first is not None and len(terms(first.expr)) == self.terms:
            alike = replace(second, name=first.name, domain=first.domain, expr=first.expr) == first
            if alike and second.domain.set_tuple_name(first.name).is_equal(first.domain):
                return True
        if (
            self.where is not None
            and first is not None
            and replace(second, name=first.name, domain=first.domain) == first
        ):
            outside = where(nest, first, self.where).is_empty()
            if outside and second.domain.is_subset(where(nest, second, self.where)):
                return True
        raise ScheduleError(f"part({self.statement}): there is a statement {self.near} already. Remedy: another name.")

    def _statement(self, nest: Nest, tree: Node) -> Statement:
        """The statement to part.

        Raises:
            ScheduleError: no such statement, not in the loop, or a microkernel runs it.
        """
        loop = None if self.loop is None else find_loop(tree, self.loop)
        present = statements(loop or tree)
        if self.statement not in present:
            where, known = (f"loop {loop.name}", "Statements there") if loop else ("the loops", "Statements")
            raise ScheduleError(f"statement {plain(self.statement)} is not in {where}. {known}: {', '.join(present)}.")
        if any(isinstance(node, Micro) and self.statement in (node.statement, node.initial) for node in walk(tree)):
            problem = f"part({self.statement}): a microkernel runs {self.statement} already"
            raise ScheduleError(f"{problem}. Remedy: part first, then microkernel.")
        return nest.statement(self.statement)

    def _second(self, nest: Nest, tree: Node, statement: Statement) -> isl.Set:
        """The instances of the second statement."""
        if self.where is not None:
            return where(nest, statement, self.where).coalesce()
        assert self.loop is not None, "a statement is parted by a loop or by a condition"
        return _near(nest, statement, find_loop(tree, self.loop), self.size)

    def _undivided(self, which: str) -> str:
        """Why there are no two parts, if the second would have `which` instances."""
        if self.where is not None:
            return f"part({self.statement}): {self.where} holds for {which} of its instances. There is no second part."
        problem = f"{which} of its instances depends on others of the same {self.size} iterations of the loop"
        return f"part({self.statement}, {self.loop}={self.size}): {problem}. There is no second part."

    def arguments(self) -> Arguments:
        if self.loop is None:
            given = {"where": self.where, "terms": self.terms, "into": self.into}
            return (self.statement,), {name: value for name, value in given.items() if value is not None}
        return (self.statement,), {self.loop: self.size}


def needs(statement: str) -> ScheduleError:
    """The refusal of a step without a loop, a condition and a number of terms, or with several."""
    ways = "one loop and the size of its blocks, such as i=8, or a condition or a number of terms, and a name"
    return ScheduleError(f"part({plain(statement)}) needs {ways}, such as where='i > j', into='T'.")


def _adding(statement: Statement, some: list[Expr]) -> Statement:
    """The statement that adds some of its terms."""
    return replace(statement, expr=reduce(partial(Binary, "+"), some))


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
            flat = [part for child in doubled for part in parts(child)]
            return Sequence(tuple(flat))
        case Copy(body=body):
            return replace(node, body=_doubled(body, name, second))
        case Band(functions=functions, body=body) if name in dict(functions):
            renamed = isl.Map.from_pw_aff(dict(functions)[name]).set_tuple_name(isl.dim_type.in_, second)
            copied = isl.PwMultiAff.from_map(renamed).get_pw_aff(0)
            return replace(node, functions=(*functions, (second, copied)), body=_doubled(body, name, second))
    return node
