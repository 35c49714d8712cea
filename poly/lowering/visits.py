"""Verify generated loops by computing the set of instances that they visit.

    for i in 0 … N - 1:
      if i % 2 == 0:            ->        { S[i] : 0 <= i < N and i mod 2 = 0 }, each once
        S(i)

isl's AST generator is wrong for some loops with divisions in conditions: it has left out instances of a strip-mined
skewed loop.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import reduce

import islpy as isl

from codegen.ir.integer import Atom, Compare, Int, Op, Select, Test, sides, walk
from codegen.ir.loop_ir import For, If, Node, Run, inside
from codegen.ir.loop_ir import walk as every
from poly.ir.sets import number

DIVISIONS = ("floordiv", "/", "%")
COMPARED = {"==": "eq_set", "!=": "ne_set", "<": "lt_set", "<=": "le_set", ">": "gt_set", ">=": "ge_set"}


def is_delicate(node: Node) -> bool:
    """Whether a condition in the loops contains a division."""
    return any(isinstance(part, If) and _divides(part.test) for part in every(node))


def visits_all(node: Node, domains: Mapping[str, isl.Set], context: isl.Set) -> bool:
    """Whether the loops visit exactly the instances in the domains, each once. Raises isl.Error."""
    found: dict[str, list[isl.Map]] = {}
    for name, visit in _Walk(context.from_params(), ()).visits(node):
        found.setdefault(name, []).append(visit)
    return all(_is_whole(found.get(name, []), domain.intersect_params(context)) for name, domain in domains.items())


def _is_whole(visits: list[isl.Map], domain: isl.Set) -> bool:
    """Whether maps from instances to loop values cover the domain, with each instance in one map and only once."""
    if not visits:
        return bool(domain.is_empty())
    seen = reduce(isl.Set.union, (visit.domain() for visit in visits))
    alone = all(visit.is_single_valued() for visit in visits)
    apart = all(a.domain().is_disjoint(b.domain()) for n, a in enumerate(visits) for b in visits[n + 1 :])
    return alone and apart and bool(seen.is_equal(domain))


def _divides(test: Test) -> bool:
    atoms = (atom for side in sides(test) for atom in walk(side))
    return any(isinstance(atom, Op) and atom.name in DIVISIONS for atom in atoms)


@dataclass(frozen=True)
class _Walk:
    """A place in the loops: the condition that holds there, with loop variables as parameters, and these variables."""

    holds: isl.Set
    variables: tuple[str, ...]

    def visits(self, node: Node) -> Iterator[tuple[str, isl.Map]]:
        """The relation `{ S[i, j] -> [variables] }` for each run of a statement in a node."""
        match node:
            case If():
                test = self.test(node.test)
                yield from self.where(test).visits(node.then)
                if node.other is not None:
                    yield from self.where(test.complement()).visits(node.other)
            case For():
                yield from self._loop(node)
            case Run():
                yield node.statement, self._visit(node)
            case _:
                for child in inside(node):
                    yield from self.visits(child)

    def where(self, test: isl.Set) -> _Walk:
        """The place inside a condition."""
        return replace(self, holds=self.holds.intersect(test))

    def _loop(self, loop: For) -> Iterator[tuple[str, isl.Map]]:
        inner = replace(self, variables=(*self.variables, loop.variable))
        value, start = inner.name(loop.variable), inner.value(loop.start)
        strided = value.sub(start).mod_val(number(loop.step)).eq_set(inner.number(0))
        begun = value.ge_set(start).intersect(strided)
        yield from inner.where(begun).where(inner.test(loop.test)).visits(loop.body)

    def _visit(self, run: Run) -> isl.Map:
        indices = isl.Map.from_domain(self.holds)
        for value in run.values:
            indices = indices.flat_range_product(isl.Map.from_pw_aff(self.value(value)))
        visit = isl.Map.from_domain(indices.range().set_tuple_name(run.statement))
        for variable in self.variables:
            at = visit.find_dim_by_name(isl.dim_type.param, variable)
            if at >= 0:
                visit = visit.move_dims(isl.dim_type.out, visit.dim(isl.dim_type.out), isl.dim_type.param, at, 1)
        return visit

    def number(self, value: int) -> isl.PwAff:
        """A number as a function of the parameters."""
        space = isl.LocalSpace.from_space(self.holds.get_space())
        return isl.PwAff.from_aff(isl.Aff.zero_on_domain(space).set_constant_val(number(value)))

    def name(self, name: str) -> isl.PwAff:
        """A size or variable as a function of the parameters."""
        space = self.holds.get_space().add_param_id(isl.Id(name))
        at = space.find_dim_by_name(isl.dim_type.param, name)
        return isl.PwAff.from_aff(isl.Aff.var_on_domain(isl.LocalSpace.from_space(space), isl.dim_type.param, at))

    def value(self, value: Int) -> isl.PwAff:
        """An integer expression as a function of the parameters."""
        terms = (self._atom(atom).scale_val(number(factor)) for atom, factor in value.terms)
        return reduce(isl.PwAff.add, terms, self.number(value.constant))

    def _atom(self, atom: Atom) -> isl.PwAff:
        if isinstance(atom, str):
            return self.name(atom)
        if isinstance(atom, Select):
            return self.test(atom.test).indicator_function().cond(self.value(atom.then), self.value(atom.other))
        assert isinstance(atom, Op), "no bound is looked up"
        left, *rest = map(self.value, atom.args)
        match atom.name:
            case "*":
                return reduce(isl.PwAff.mul, rest, left)
            case "min":
                return reduce(isl.PwAff.min, rest, left)
            case "max":
                return reduce(isl.PwAff.max, rest, left)
            case "%":
                return left.mod_val(rest[0].max_val())
        return left.scale_down_val(rest[0].max_val()).floor()

    def test(self, test: Test) -> isl.Set:
        """The parameters for which a condition holds."""
        if isinstance(test, Compare):
            compared: isl.Set = getattr(self.value(test.left), COMPARED[test.symbol])(self.value(test.right))
            return compared
        return reduce(isl.Set.intersect if test.symbol == "&&" else isl.Set.union, map(self.test, test.parts))
