"""A contraction's loops by role, with the extent and strides of each, for the model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import prod

import islpy as isl

from codegen.ir.expr import Load
from codegen.ir.integer import Int
from poly.analysis.contraction import Contraction, exchange, overlapping, recognise
from poly.ir.instances import box_extents, coordinate
from poly.ir.layout import step
from poly.ir.nest import Array, Nest, Statement

ASSUMED = 1024
"""The extent that the model assumes for a loop whose size is symbolic."""
FEWER = 64
"""The same of a size that others are reduced by: nothing would run in `for x in range(W - R)` if both were equal."""


def assumed(nest: Nest) -> dict[str, int]:
    """The values that the model assumes for open sizes: ASSUMED, or FEWER if they leave loops nothing otherwise."""
    usual = dict.fromkeys(nest.sizes, ASSUMED)
    small = _subtracted(nest) if usual else frozenset[str]()
    forms = (usual, usual | dict.fromkeys(small, FEWER)) if small else ()
    domains = [statement.domain for statement in nest.statements]
    return next((one for one in forms if all(_has_several(domain, one) for domain in domains)), usual)


def _has_several(domain: isl.Set, values: Mapping[str, int]) -> bool:
    """Whether loops have more than one iteration each for some sizes."""
    for name, value in values.items():
        at = domain.find_dim_by_name(isl.dim_type.param, name)
        domain = domain if at < 0 else domain.fix_val(isl.dim_type.param, at, isl.Val(value))
    return not domain.is_empty() and min(box_extents(domain), default=2) > 1


def _subtracted(nest: Nest) -> frozenset[str]:
    """The open sizes that are subtracted in bounds of loops, or that these start from."""
    found = set[str]()

    def look(constraint: isl.Constraint) -> None:
        own = range(constraint.get_space().dim(isl.dim_type.set))
        if any(constraint.involves_dims(isl.dim_type.set, at, 1) for at in own):
            for at in range(constraint.get_space().dim(isl.dim_type.param)):
                if constraint.get_coefficient_val(isl.dim_type.param, at).is_neg():
                    found.add(constraint.get_dim_name(isl.dim_type.param, at) or "")

    for statement in nest.statements:
        statement.domain.foreach_basic_set(lambda part: part.foreach_constraint(look))
    return frozenset(found)


def expected_bytes(array: Array) -> int:
    """The bytes of an array, with open sizes at assumed values."""
    return prod(n.constant if not n.terms else ASSUMED for n in array.shape) * array.dtype.size


@dataclass(frozen=True)
class Axis:
    """One loop of a contraction."""

    iterator: str
    extent: int | None
    """The number of iterations; None if it depends on an open size."""
    output: Int
    left: Int
    right: Int
    """The strides along the loop in `output`, `left` and `right`, in elements."""

    @property
    def guess(self) -> int:
        """The extent, or the assumed one."""
        return ASSUMED if self.extent is None else self.extent


@dataclass(frozen=True)
class Roles:
    """The axes by role. Loops of extent 1 are left out.

    `overlaps` are the loops of the output that stay outside all others except the batch loops, since inside a tile two
    of their iterations would add to one element: the taps of a transposed convolution.
    """

    contraction: Contraction
    rows: tuple[Axis, ...]
    columns: tuple[Axis, ...]
    reduce: tuple[Axis, ...]
    batch: tuple[Axis, ...]
    overlaps: tuple[Axis, ...] = ()


def roles(nest: Nest, statement: Statement) -> Roles | None:
    """The axes of a contraction over a box that starts at 0; None for anything else."""
    contraction = recognise(nest, statement)
    extents = _extents(statement) if contraction else None
    return None if contraction is None or extents is None else _roles(nest, statement, contraction, extents)


def enclosing_roles(nest: Nest, statement: Statement) -> Roles | None:
    """The axes of the box around a contraction's domain, wherever it begins; None for anything else."""
    contraction = recognise(nest, statement)
    return None if contraction is None else roles_around(nest, statement, contraction)


def roles_around(nest: Nest, statement: Statement, contraction: Contraction) -> Roles | None:
    """The same for a contraction that is known; None if it has no iterations."""
    return None if statement.domain.is_empty() else _roles(nest, statement, contraction, _lengths(statement))


def _roles(nest: Nest, statement: Statement, contraction: Contraction, extents: Mapping[str, int | None]) -> Roles:
    def axis(iterator: str) -> Axis:
        def along(access: Load) -> Int:
            return step(nest.array(access.array), access, iterator)

        c = contraction
        return Axis(iterator, extents[iterator], along(c.output), along(c.left), along(c.right))

    outside = overlapping(statement, counted(contraction, extents))

    def axes(iterators: tuple[str, ...]) -> tuple[Axis, ...]:
        return tuple(axis(i) for i in iterators if extents[i] != 1 and i not in outside)

    return _oriented(
        Roles(
            contraction,
            axes(contraction.rows),
            axes(contraction.columns),
            axes(contraction.reduce),
            axes(contraction.batch),
            tuple(axis(i) for i in outside),
        )
    )


def counted(c: Contraction, extents: Mapping[str, int | None]) -> list[str]:
    """The loops of the output in order of their value in a tile: rows and columns, longest first, then batch loops.

    Loops of one iteration are left out.
    """
    lengths = {name: ASSUMED if extent is None else extent for name, extent in extents.items()}
    own = [*sorted((*c.rows, *c.columns), key=lambda name: -lengths[name]), *c.batch]
    return [name for name in own if lengths[name] != 1]


def _extents(statement: Statement) -> dict[str, int | None] | None:
    """The extent of each iterator (None if symbolic), or None if the domain is not a box that starts at 0."""
    extents: dict[str, int | None] = {}
    domain = statement.domain
    box = isl.Set.universe(domain.get_space())
    for position, iterator in enumerate(statement.iterators):
        high = domain.dim_max(position)
        pieces = high.get_pieces()
        if not pieces:
            return None
        constant = len(pieces) == 1 and pieces[0][1].is_cst()
        extents[iterator] = int(pieces[0][1].get_constant_val().to_python()) + 1 if constant else None
        above = box.lower_bound_val(isl.dim_type.set, position, isl.Val(0))
        box = above.intersect(_at_most(domain, position, high))
    return extents if domain.is_equal(box.intersect_params(domain.params())) else None


def _lengths(statement: Statement) -> dict[str, int | None]:
    """The number of values from the least to the greatest of each iterator; None if it depends on sizes."""
    ends = [
        (statement.domain.dim_min_val(at), statement.domain.dim_max_val(at)) for at in range(len(statement.iterators))
    ]
    lengths = (high.to_python() - low.to_python() + 1 if low.is_int() and high.is_int() else None for low, high in ends)
    return dict(zip(statement.iterators, lengths, strict=True))


def _at_most(domain: isl.Set, position: int, high: isl.PwAff) -> isl.Set:
    """The points whose coordinate is at most `high`, a function of the sizes alone."""
    bound = high.project_domain_on_params().insert_domain(domain.get_space())
    return coordinate(domain, position).le_set(bound)


def _oriented(r: Roles) -> Roles:
    """The roles with the operands exchanged, if only then the output is contiguous along a column loop."""

    def contiguous(axes: tuple[Axis, ...]) -> bool:
        return any(axis.output.number == 1 for axis in axes)

    if contiguous(r.columns) or not (contiguous(r.rows) or (r.rows and not r.columns)):
        return r

    def swapped(axes: tuple[Axis, ...]) -> tuple[Axis, ...]:
        return tuple(replace(axis, left=axis.right, right=axis.left) for axis in axes)

    return Roles(
        exchange(r.contraction),
        rows=swapped(r.columns),
        columns=swapped(r.rows),
        reduce=swapped(r.reduce),
        batch=swapped(r.batch),
        overlaps=swapped(r.overlaps),
    )
