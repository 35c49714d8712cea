"""Contractions through microkernels: which rule each statement follows, and the forms of the heaviest one.

over a box               contraction.py: tiles, copies and an outer product, chosen by the model
without rows             matrix_vector.py: a kernel that streams the matrix
over any other domain    non_rectangular.py: an outer product over loops that are a box once the others are fixed
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from microkernels.dtypes import f16
from poly.analysis.roles import roles
from poly.autoschedule.rules.contraction import planned_steps
from poly.autoschedule.rules.form import Form
from poly.autoschedule.rules.isolation import StepsOf, each_contraction, isolated
from poly.autoschedule.rules.lanes import vectorized
from poly.autoschedule.rules.matrix_vector import MatrixVector, matrix_vector_steps, streamed
from poly.autoschedule.rules.non_rectangular import NonRectangular, ragged, ragged_steps
from poly.ir.nest import Nest, Statement
from poly.model import Choice
from poly.model.core import Target
from poly.schedules.matching import zeroing
from poly.schedules.schedule import Schedule, schedule
from poly.schedules.steps import Step

Product = MatrixVector | NonRectangular
"""A contraction whose rule makes forms."""


def contracted(nest: Nest, target: Target, choices: Mapping[str, Choice] | None = None) -> Schedule:
    """The schedule with microkernels for all contractions that the dependences and loops allow; no steps without any.

    `choices` replaces the model's for some statements.
    """
    known = choices or {}
    return _contracted(nest, lambda statement, loops: _steps(nest, statement, loops, target, known.get(statement.name)))


def _contracted(nest: Nest, steps_of: StepsOf) -> Schedule:
    made = each_contraction(nest, steps_of)
    return vectorized(made) if made.steps else made


def _steps(
    nest: Nest, statement: Statement, loops: Mapping[str, str], target: Target, choice: Choice | None = None
) -> list[Step] | None:
    """The steps for a contraction that has its loops for itself; None where it is none, or has no columns to speak of.

    `loops` maps its iterators to the names of their loops, outermost first. A statement that sets the output to 0
    before is taken over by the microkernel. `choice` replaces the model's.
    """
    dtype = nest.array(statement.target.array).dtype
    if dtype == f16:
        return None  # no microkernel of one core computes with halves
    r, initial = roles(nest, statement), zeroing(nest, statement)
    if r is None:
        return ragged_steps(nest, statement, loops, target)
    streams = matrix_vector_steps(r, loops, target, initial) if choice is None and not r.rows else None
    return streams or planned_steps(r, dtype, loops, target, initial, choice)


def kernel_forms(nest: Nest, target: Target) -> Iterator[Form]:
    """The forms of the heaviest contraction that a rule here has forms for."""
    found = _heaviest(nest, target)
    if found is not None:
        yield from found[0].forms()


def usual_kernel_form(nest: Nest, target: Target) -> Form | None:
    """Its usual form, which is the default schedule; None without any."""
    found = _heaviest(nest, target)
    return found and found[1]


def _heaviest(nest: Nest, target: Target) -> tuple[Product, Form] | None:
    """The heaviest contraction that its rule's usual steps are legal for, and the form with these."""
    for product in sorted(_products(nest, target), key=lambda product: -product.work):
        usual = product.usual()
        if usual is not None:
            return product, usual
    return None


def _products(nest: Nest, target: Target) -> Iterator[Product]:
    made = schedule(nest)
    for statement in nest.statements:
        alone = isolated(made, statement)
        if alone is None or nest.array(statement.target.array).dtype == f16:
            continue
        loops, made_with = alone[1], _MadeWith(nest, statement, target)
        r = roles(nest, statement)
        box = ragged(nest, statement) if r is None else None
        if box is not None:
            yield NonRectangular(box, loops, target, made_with)
        elif r is not None and not r.rows and streamed(r):
            yield MatrixVector(r, loops, zeroing(nest, statement), target, made_with)


class _MadeWith:
    """The default schedule but for one statement, which gets steps of its own; None where they are illegal."""

    def __init__(self, nest: Nest, statement: Statement, target: Target) -> None:
        self._nest, self._statement, self._target = nest, statement, target

    def __call__(self, steps_of: Callable[[Mapping[str, str]], list[Step]]) -> Schedule | None:
        def steps(other: Statement, loops: Mapping[str, str]) -> list[Step] | None:
            if other.name == self._statement.name:
                return steps_of(loops)
            return _steps(self._nest, other, loops, self._target)

        made = _contracted(self._nest, steps)
        return made if any(getattr(step, "statement", None) == self._statement.name for step in made.steps) else None
