"""Loops over sets that are simpler than the statements' own, where isl would take too long for those.

for i in range(N):                            for i in range(N):
  if i % 7 == 0 or i % 5 == 3:       ->         S0 where i % 7 == 0 or i % 5 == 3
    S0                                          S1 where i % 3 == 1
  if i % 3 == 1:
    S1

isl cuts loops up until no statement needs a condition, and there may be too many pieces.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import islpy as isl

from poly.budget import TooCostly, limited
from poly.nest import Nest
from poly.scan import scan
from poly.tree import Node

SIMPLE = 200_000
"""Operations that isl may take to leave out of one condition what the loops around see to."""

Conditions = Mapping[str, isl.AstExpr]
"""Of statements by name, in their iterators and the sizes."""

NONE: Conditions = {}


def hull(domain: isl.Set) -> isl.Set:
    """A bounded set without existentials that holds a bounded set: one piece, where that is bounded.

    `l < M or l < N` has no bound from above that is one piece.
    """
    flat = domain.remove_divs()
    whole = isl.Set.from_basic_set(flat.simple_hull())
    return whole if whole.is_bounded() else flat


def without_conditions(nest: Nest) -> Nest:
    """The nest whose statements run in all of the hulls of their domains."""
    return replace(nest, statements=tuple(replace(s, domain=hull(s.domain)) for s in nest.statements))


def guarded(
    domains: Mapping[str, isl.Set], iterators: Mapping[str, tuple[str, ...]], tree: Node, context: isl.Set
) -> tuple[isl.AstNode, Conditions]:
    """The loops over the hulls of some domains, and the conditions under which each statement runs in them.

    Raises:
        TooCostly: even these take too much work.
    """
    hulls = {name: hull(domain) for name, domain in domains.items()}
    conditions = {
        name: _condition(domain, hulls[name], iterators[name])
        for name, domain in domains.items()
        if name in iterators and not hulls[name].is_equal(domain)
    }
    return scan(hulls, tree, context), conditions


def guarded_loops(nest: Nest, tree: Node) -> tuple[isl.AstNode, Conditions]:
    """The same for the statements of a nest in the order of a tree."""
    domains = {s.name: s.domain for s in nest.statements}
    return guarded(domains, {s.name: s.iterators for s in nest.statements}, tree, nest.context)


def _condition(domain: isl.Set, around: isl.Set, iterators: tuple[str, ...]) -> isl.AstExpr:
    """What tells of a point of `around` whether it is in the domain."""
    try:
        with limited(SIMPLE):
            domain = domain.gist(around)
    except TooCostly:
        pass
    for at, name in enumerate(iterators):
        domain = domain.set_dim_name(isl.dim_type.set, at, name)
    sizes, count = domain.dim(isl.dim_type.param), len(iterators)
    points = domain.move_dims(isl.dim_type.param, sizes, isl.dim_type.set, 0, count).params()
    return isl.AstBuild.from_context(isl.Set("{ : }")).expr_from_set(points)
