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

from codegen.integer import Test, connected
from codegen.isl_ast import condition
from poly.ir.budget import TooCostly, limited, refuse_tangled
from poly.ir.nest import Nest, Statement

SIMPLE = 200_000
"""Operations that isl may take to make one condition short; else it has all pieces of the domain, one by one."""

GUARDED = 1_000_000
"""Operations that isl may take for the conditions of all statements."""

Conditions = Mapping[str, Test]
"""Of statements by name, in their iterators and the sizes."""

NONE: Conditions = {}


def without_conditions(nest: Nest) -> Nest:
    """The nest whose statements run in all of the hulls of their domains; itself where they do so already."""
    simple = tuple(map(unconditional, nest.statements))
    return nest if simple == nest.statements else replace(nest, statements=simple)


@limited(GUARDED)
def guarded(nest: Nest) -> tuple[Nest, Conditions]:
    """The nest without conditions, and those under which each of its statements runs, where it has any.

    Raises:
        TooCostly: even that takes too much work.
    """
    simple = without_conditions(nest)
    pairs = zip(nest.statements, simple.statements, strict=True)
    return simple, {s.name: _condition(s, other.domain) for s, other in pairs if other is not s}


def unconditional(statement: Statement) -> Statement:
    """The statement in all of the hull of its domain; itself where it runs there already."""
    around = _hull(statement.domain)
    return statement if around.is_equal(statement.domain) else replace(statement, domain=around)


def _hull(domain: isl.Set) -> isl.Set:
    """A bounded set without existentials that holds a bounded set: one piece, where that is bounded.

    `l < M or l < N` has no bound from above that is one piece.
    """
    refuse_tangled(domain)
    flat = domain.remove_divs()
    whole = isl.Set.from_basic_set(flat.simple_hull())
    return whole if whole.is_bounded() else flat


def _condition(statement: Statement, around: isl.Set) -> Test:
    """What tells of a point of `around` whether it is an instance."""
    try:
        with limited(SIMPLE):
            return _expression(statement, statement.domain.gist(around))
    except TooCostly:
        pieces = statement.domain.get_basic_set_list()
    every = (isl.Set.from_basic_set(pieces.get_at(at)) for at in range(pieces.n_basic_set()))
    return connected("||", [_expression(statement, piece) for piece in every])


def _expression(statement: Statement, points: isl.Set) -> Test:
    for at, name in enumerate(statement.iterators):
        points = points.set_dim_name(isl.dim_type.set, at, name)
    sizes, count = points.dim(isl.dim_type.param), len(statement.iterators)
    held = points.move_dims(isl.dim_type.param, sizes, isl.dim_type.set, 0, count).params()
    return condition(isl.AstBuild.from_context(isl.Set("{ : }")).expr_from_set(held), {})
