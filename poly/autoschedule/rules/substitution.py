"""Compute again what one iteration hands to the next in a local, so that iterations can have lanes.

for i:                                     a[0] = b[0]*c[0] + 0.0
  s = b[i]*c[i]                            for i > 0:
  a[i] = s + t                    ->         a[i] = b[i]*c[i] + b[i-1]*c[i-1]
  t = s            (t = 0.0 before)

The first iterations, which take their values from elsewhere, become a part of their own.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

import islpy as isl

from codegen.ir.integer import PYTHON, Affine
from codegen.names import fresh
from poly.analysis.legality import carried, chained, lane_conflict
from poly.analysis.values import ValueFlow
from poly.autoschedule.rules.attempt import applied, attempt
from poly.autoschedule.rules.shapes import innermost
from poly.errors import ScheduleError
from poly.ir.budget import QUESTION, TooCostly, limited
from poly.ir.nest import Statement
from poly.ir.sets import PARAM, SET, integer
from poly.schedules.schedule import Schedule
from poly.schedules.steps import Part, Substitute
from poly.schedules.steps.formulas import Formula
from poly.schedules.steps.substitute import writers

PARTS = 4
"""The most parts that the reads of a local are divided into."""


def substituted(made: Schedule) -> Schedule | None:
    """The schedule without locals that innermost loops carry; None if no loop gets lanes by that.

    None as well if it takes too much work to find out.
    """
    with suppress(TooCostly), limited(QUESTION):
        found, before = made, _waiting(made)
        while before and (other := next(_others(found), None)) is not None:
            found = other
        return found if found is not made and len(_waiting(found)) < len(before) else None
    return None


def _waiting(made: Schedule) -> list[str]:
    """The innermost loops that could have lanes if iterations handed on no locals: they are no recurrences."""
    nest, tree, loops = made.nest, made.tree, innermost(made.tree) if _locals(made) else ()
    waiting = (band.name for band in loops if lane_conflict(nest, tree, band.name) is not None)
    return [name for name in waiting if not chained(nest, tree, name)]


def _others(made: Schedule) -> Iterator[Schedule]:
    """The schedule without one of the locals that such loops carry."""
    every = (d.array for loop in _waiting(made) for d in carried(made.nest, made.tree, loop))
    for name in dict.fromkeys(every):
        other = without(made, name) if name in _locals(made) else None
        if other is not None:
            yield other


def _locals(made: Schedule) -> frozenset[str]:
    return frozenset(array.name for array in made.nest.arrays if array.kind == "local")


def without(made: Schedule, local: str) -> Schedule | None:
    """The schedule without a local, whose reads are parted by where they take its values from; None if it stays."""
    parted = _parted(made, local)
    return parted and attempt(made, [*parted.steps[len(made.steps) :], Substitute(local)])


def _parted(made: Schedule, local: str) -> Schedule | None:
    """The schedule in which each read of the local takes the values of one statement; None if it can't be so."""
    for _ in range(PARTS):
        step = next(_parts(made, local), None)
        if step is None:
            return made
        try:
            made = applied(made, [step])
        except ScheduleError:
            return None
    return None


def _parts(made: Schedule, local: str) -> Iterator[Part]:
    """The steps that part a statement by where it takes the local's values from."""
    nest, flow = made.nest, ValueFlow(made.nest)
    taken = frozenset(statement.name for statement in nest.statements)
    for statement in nest.statements:
        for load in dict.fromkeys(load for load in statement.reads if load.array == local):
            found = flow.read(statement.name, load)
            sources = writers(found) if found is not None else ()
            ordered = (*sources[-1:], *sources[:-1]) if len(sources) > 1 else ()
            texts = (_text(statement, pair.domain()) for pair in ordered)
            text = next((text for text in texts if text is not None), None)
            if text is not None:
                yield Part(statement.name, where=Formula(text), into=fresh(f"{statement.name}_behind", taken))


def _text(statement: Statement, instances: isl.Set) -> str | None:
    """The condition for some instances of a statement; None if it is more than comparisons of affine functions."""
    found = instances.gist(statement.domain).coalesce().get_basic_set_list()
    if found.n_basic_set() != 1:
        return None
    constraints = found.get_at(0).get_constraints()
    if not constraints or found.get_at(0).dim(isl.dim_type.div):
        return None
    return " and ".join(_comparison(statement, constraint) for constraint in constraints)


def _comparison(statement: Statement, constraint: isl.Constraint) -> str:
    names = [(SET, at, name) for at, name in enumerate(statement.iterators)]
    names += [(PARAM, at, constraint.get_dim_name(PARAM, at) or "") for at in range(constraint.dim(PARAM))]
    terms = [(name, integer(constraint.get_coefficient_val(kind, at))) for kind, at, name in names]
    value = Affine.make(terms, integer(constraint.get_constant_val()))
    return f"{PYTHON.integer(value)} {'==' if constraint.is_equality() else '>='} 0"
