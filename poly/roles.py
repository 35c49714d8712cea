"""A contraction's loops with what the model needs of each: extent and strides."""

from __future__ import annotations

from dataclasses import dataclass, replace

import islpy as isl

from codegen.expr import Load
from poly.contraction import Contraction, exchange, recognise
from poly.layout import step
from poly.nest import Nest, Statement
from poly.polynomial import Polynomial

ASSUMED = 1024
"""The extent that the model assumes for a loop whose size is symbolic."""


@dataclass(frozen=True)
class Axis:
    """One loop of a contraction: its iterator, extent (None: symbolic), and the elements between neighbours in each operand."""

    iterator: str
    extent: int | None
    output: Polynomial
    left: Polynomial
    right: Polynomial

    @property
    def guess(self) -> int:
        """The extent, or the assumed one."""
        return ASSUMED if self.extent is None else self.extent


@dataclass(frozen=True)
class Roles:
    """The axes by role. Loops of extent 1 are left out: they are no loops.

    `exchanged` says that the operands of `recognise` have changed sides.
    """

    contraction: Contraction
    rows: tuple[Axis, ...]
    columns: tuple[Axis, ...]
    reduce: tuple[Axis, ...]
    batch: tuple[Axis, ...]
    exchanged: bool = False


def roles(nest: Nest, statement: Statement) -> Roles | None:
    """The axes of a contraction over a box that starts at 0; None for anything else."""
    contraction = recognise(nest, statement)
    if contraction is None:
        return None
    extents: dict[str, int | None] = {}
    box = isl.Set.universe(statement.domain.get_space())
    for position, iterator in enumerate(statement.iterators):
        high = statement.domain.dim_max(position)
        pieces = high.get_pieces()
        if not pieces:
            return None
        constant = len(pieces) == 1 and pieces[0][1].is_cst()
        extents[iterator] = int(pieces[0][1].get_constant_val().to_python()) + 1 if constant else None
        box = box.lower_bound_val(isl.dim_type.set, position, isl.Val(0)).intersect(_at_most(statement.domain, position, high))
    if not statement.domain.is_equal(box.intersect_params(statement.domain.params())):
        return None

    def axis(iterator: str) -> Axis:
        def along(access: Load) -> Polynomial:
            return step(nest.array(access.array), access, iterator)

        return Axis(iterator, extents[iterator], along(contraction.output), along(contraction.left), along(contraction.right))

    def axes(iterators: tuple[str, ...]) -> tuple[Axis, ...]:
        return tuple(axis(i) for i in iterators if extents[i] != 1)

    c = contraction
    return _oriented(Roles(c, axes(c.rows), axes(c.columns), axes(c.reduce), axes(c.batch)))


def _at_most(domain: isl.Set, position: int, high: isl.PwAff) -> isl.Set:
    """The points whose coordinate is at most `high`, a function of the sizes alone."""
    space = domain.get_space()
    variable = isl.PwAff.var_on_domain(isl.LocalSpace.from_space(space), isl.dim_type.set, position)
    return variable.le_set(high.project_domain_on_params().insert_domain(space))


def _oriented(r: Roles) -> Roles:
    """Operands exchanged where only so the output is contiguous along a column loop."""

    def contiguous(axes: tuple[Axis, ...]) -> bool:
        return any(axis.output.constant == 1 for axis in axes)

    if contiguous(r.columns) or not (contiguous(r.rows) or (r.rows and not r.columns)):
        return r

    def swapped(axes: tuple[Axis, ...]) -> tuple[Axis, ...]:
        return tuple(replace(axis, left=axis.right, right=axis.left) for axis in axes)

    return Roles(
        exchange(r.contraction), swapped(r.columns), swapped(r.rows), swapped(r.reduce), swapped(r.batch), exchanged=True
    )
