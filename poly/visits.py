"""The instances that loops visit: isl's abstract syntax turned back into sets, to see that its loops are right.

    for c0 in 0 … N - 1:
      if c0 mod 2 = 0:            ->        { S[i] : 0 <= i < N and i mod 2 = 0 }, each once
        S(c0)

isl's generator errs for some loops whose conditions divide: it has left out instances of a strip-mined skewed loop.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import reduce

import islpy as isl

from codegen.isl_ast import COMPARISONS, CONNECTIVES, arguments, children, kind, operation
from poly.sets import number

DIVISIONS = ("fdiv_q", "pdiv_q", "pdiv_r", "zdiv_r", "div")


def is_delicate(node: isl.AstNode) -> bool:
    """Whether a condition in the loops divides."""
    match kind(node):
        case "mark":
            return is_delicate(node.mark_get_node())
        case "for_":
            return is_delicate(node.for_get_body())
        case "block":
            return any(map(is_delicate, children(node)))
        case "if_":
            other = node.if_has_else_node() and is_delicate(node.if_get_else_node())
            return _divides(node.if_get_cond()) or is_delicate(node.if_get_then_node()) or other
    return False


def visits_all(node: isl.AstNode, domains: Mapping[str, isl.Set], context: isl.Set) -> bool:
    """Whether the loops visit each instance in the domains once, and no other. Raises isl.Error."""
    found: dict[str, list[isl.Map]] = {}
    for name, visit in _Walk(context.from_params(), ()).visits(node):
        found.setdefault(name, []).append(visit)
    return all(_is_whole(found.get(name, []), domain.intersect_params(context)) for name, domain in domains.items())


def _is_whole(visits: list[isl.Map], domain: isl.Set) -> bool:
    """Whether maps from instances to values of loops have the domain, each instance in one of them and only once."""
    if not visits:
        return bool(domain.is_empty())
    seen = reduce(isl.Set.union, (visit.domain() for visit in visits))
    alone = all(visit.is_single_valued() for visit in visits)
    apart = all(a.domain().is_disjoint(b.domain()) for n, a in enumerate(visits) for b in visits[n + 1 :])
    return alone and apart and bool(seen.is_equal(domain))


def _divides(expr: isl.AstExpr) -> bool:
    op = operation(expr)
    return op in DIVISIONS or (bool(op) and any(map(_divides, arguments(expr))))


@dataclass(frozen=True)
class _Walk:
    """A place in the tree: what holds there, and the iterators of the loops around it; these are parameters, too."""

    holds: isl.Set
    iterators: tuple[str, ...]

    def visits(self, node: isl.AstNode) -> Iterator[tuple[str, isl.Map]]:
        """For each statement below a node `{ S[i, j] -> [iterators] }`."""
        match kind(node):
            case "mark":
                yield from self.visits(node.mark_get_node())
            case "block":
                for child in children(node):
                    yield from self.visits(child)
            case "if_":
                test = self.test(node.if_get_cond())
                yield from self.where(test).visits(node.if_get_then_node())
                if node.if_has_else_node():
                    yield from self.where(test.complement()).visits(node.if_get_else_node())
            case "for_":
                yield from self._loop(node)
            case _:
                yield self._visit(node)

    def where(self, test: isl.Set) -> _Walk:
        """The place below a condition."""
        return replace(self, holds=self.holds.intersect(test))

    def _loop(self, node: isl.AstNode) -> Iterator[tuple[str, isl.Map]]:
        name = node.for_get_iterator().get_id().get_name()
        inner = replace(self, iterators=(*self.iterators, name))
        value, start = inner.name(name), inner.value(node.for_get_init())
        if node.for_is_degenerate():
            yield from inner.where(value.eq_set(start)).visits(node.for_get_body())
            return
        step = inner.value(node.for_get_inc())
        strided = value.sub(start).mod_val(step.max_val()).eq_set(inner.number(0))
        begun = value.ge_set(start).intersect(strided)
        yield from inner.where(begun).where(inner.test(node.for_get_cond())).visits(node.for_get_body())

    def _visit(self, node: isl.AstNode) -> tuple[str, isl.Map]:
        called, *values = arguments(node.user_get_expr())
        name = called.get_id().get_name()
        indices = isl.Map.from_domain(self.holds)
        for value in values:
            indices = indices.flat_range_product(isl.Map.from_pw_aff(self.value(value)))
        visit = isl.Map.from_domain(indices.range().set_tuple_name(name))
        for iterator in self.iterators:
            at = visit.find_dim_by_name(isl.dim_type.param, iterator)
            if at >= 0:
                visit = visit.move_dims(isl.dim_type.out, visit.dim(isl.dim_type.out), isl.dim_type.param, at, 1)
        return name, visit

    def number(self, value: int) -> isl.PwAff:
        """A number as a function of parameters."""
        space = isl.LocalSpace.from_space(self.holds.get_space())
        return isl.PwAff.from_aff(isl.Aff.zero_on_domain(space).set_constant_val(number(value)))

    def name(self, name: str) -> isl.PwAff:
        """A size or an iterator as a function of parameters."""
        space = self.holds.get_space().add_param_id(isl.Id(name))
        at = space.find_dim_by_name(isl.dim_type.param, name)
        return isl.PwAff.from_aff(isl.Aff.var_on_domain(isl.LocalSpace.from_space(space), isl.dim_type.param, at))

    def value(self, expr: isl.AstExpr) -> isl.PwAff:
        """An integer expression as a function of parameters."""
        match isl.ast_expr_type(expr.get_type()):
            case isl.ast_expr_type.int:
                return self.number(expr.get_val().to_python())
            case isl.ast_expr_type.id:
                return self.name(expr.get_id().get_name())
        op = operation(expr)
        if op in COMPARISONS or op in CONNECTIVES:
            return self.test(expr).indicator_function()
        if op in ("cond", "select"):
            test, then, other = arguments(expr)
            return self.test(test).indicator_function().cond(self.value(then), self.value(other))
        left, *rest = map(self.value, arguments(expr))
        match op:
            case "minus":
                return left.neg()
            case "add":
                return left.add(rest[0])
            case "sub":
                return left.sub(rest[0])
            case "mul":
                return left.mul(rest[0])
            case "min":
                return reduce(isl.PwAff.min, rest, left)
            case "max":
                return reduce(isl.PwAff.max, rest, left)
            case "pdiv_r" | "zdiv_r":
                return left.mod_val(rest[0].max_val())
        return left.scale_down_val(rest[0].max_val()).floor()

    def test(self, expr: isl.AstExpr) -> isl.Set:
        """Where a condition holds."""
        op = operation(expr)
        if op in CONNECTIVES:
            join = isl.Set.intersect if CONNECTIVES[op] == "&&" else isl.Set.union
            return reduce(join, map(self.test, arguments(expr)))
        if op not in COMPARISONS:
            return self.value(expr).ne_set(self.number(0))
        left, right = map(self.value, arguments(expr))
        compared: isl.Set = getattr(left, f"{op}_set")(right)
        return compared
