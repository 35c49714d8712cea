"""Loops over simplified domains, with conditions on the statements, where isl would take too long for exact loops.

for i in range(N):                            for i in range(N):
  if i % 7 == 0 or i % 5 == 3:       ->         S0 where i % 7 == 0 or i % 5 == 3
    S0                                          S1 where i % 3 == 1
  if i % 3 == 1:
    S1

isl separates loops until no statement needs a condition, which may make too many pieces.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import islpy as isl

from codegen.ir.integer import Test, connected
from codegen.ir.isl_ast import condition
from poly.ir.budget import TooCostly, limited, refuse_tangled
from poly.ir.nest import Nest, Statement
from poly.ir.paths import paths
from poly.ir.tree import Band

SIMPLE = 200_000
"""Operations that isl may use to simplify one condition; beyond them, it lists all pieces of the domain."""

GUARDED = 1_000_000
"""Operations that isl may use for the conditions of all statements."""

Conditions = Mapping[str, Test]
"""The conditions of statements, by name, in terms of their iterators and the sizes."""

NONE: Conditions = {}


def without_conditions(nest: Nest) -> Nest:
    """The nest with hulls of the statements' domains as domains, one for all below the same loops.

    Itself if nothing changes.
    """
    loops = {
        name: tuple(id(part) for part in path if isinstance(part, Band)) for name, path in paths(nest.tree).items()
    }
    joined: dict[tuple[int, ...], isl.Set] = {}
    for s in nest.statements:
        domain = s.domain.reset_tuple_id()
        joined[loops[s.name]] = joined[loops[s.name]].union(domain) if loops[s.name] in joined else domain
    hulls = {around: _hull(domain) for around, domain in joined.items()}
    simple = tuple(_within(s, hulls[loops[s.name]].set_tuple_name(s.name)) for s in nest.statements)
    return nest if simple == nest.statements else replace(nest, statements=simple)


@limited(GUARDED)
def guarded(nest: Nest) -> tuple[Nest, Conditions]:
    """The nest without conditions, and the conditions of the statements that have any.

    Raises:
        TooCostly: even this takes too much work.
    """
    simple = without_conditions(nest)
    pairs = zip(nest.statements, simple.statements, strict=True)
    return simple, {s.name: _condition(s, other.domain) for s, other in pairs if other is not s}


def unconditional(statement: Statement) -> Statement:
    """The statement with the hull of its domain as its domain; itself if the two are equal."""
    return _within(statement, _hull(statement.domain))


def _within(statement: Statement, around: isl.Set) -> Statement:
    return statement if around.is_equal(statement.domain) else replace(statement, domain=around)


def _hull(domain: isl.Set) -> isl.Set:
    """A bounded superset of a bounded set, without existentials; a single piece if that is bounded.

    `l < M or l < N`, for example, has no upper bound that is a single piece.
    """
    refuse_tangled(domain)
    flat = domain.remove_divs()
    whole = isl.Set.from_basic_set(flat.simple_hull())
    return whole if whole.is_bounded() else flat


def _condition(statement: Statement, around: isl.Set) -> Test:
    """The condition under which a point of `around` is an instance of the statement."""
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
