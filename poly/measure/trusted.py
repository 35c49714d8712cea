"""The kernels whose results candidates are compared with. All work in double precision, on one thread.

Best are the loops as written, plain C without a step of a schedule or a microkernel. Where these take too long, it is
the default schedule, and where elements are computed one independent of the other, as in every contraction, plain loops
over some rows of the result vouch for it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from codegen.expr import loads
from codegen.integer import Affine
from microkernels.dtypes import f64
from microkernels.isa import ISA
from poly.bounds import check
from poly.compiled import Compiled, translate
from poly.default import default_schedule
from poly.model.host import caches
from poly.nest import Nest
from poly.schedule import schedule
from poly.sets import function, index, number, set_space, zero

PLAIN = 30_000_000
"""Iterations of plain loops that are affordable: some tenths of a second."""


@dataclass(frozen=True)
class Rows:
    """Every `step`-th place along a dimension of an array, and the last one."""

    array: str
    dimension: int
    step: int

    def of(self, values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """These rows of the array's values."""
        last = values.shape[self.dimension] - 1
        places = sorted({*range(0, last + 1, self.step), last})
        return np.take(values, places, self.dimension)


@dataclass(frozen=True)
class Trusted:
    """A kernel to be trusted; `vouching` computes the rows that are to agree with it, where that is needed."""

    made: Compiled
    vouching: Compiled | None = None
    rows: Rows | None = None


def wide(nest: Nest) -> Nest:
    """The nest in double precision. Raises SpecError where it leaves its arrays."""
    arrays = tuple(replace(a, dtype=f64) if a.dtype.is_float else a for a in nest.arrays)
    return check(replace(nest, arrays=arrays))


def trusted(nest: Nest, isa: ISA, iterations: int) -> Trusted:
    """How to compute a result of a nest without open sizes that can be trusted."""
    if iterations <= PLAIN:
        return Trusted(translate(schedule(nest), isa))
    made = translate(default_schedule(nest, isa, caches(), 1), isa)
    rows = some_rows(nest, iterations)
    return Trusted(made) if rows is None else Trusted(made, translate(schedule(only(nest, rows)), isa), rows)


def some_rows(nest: Nest, iterations: int) -> Rows | None:
    """Rows of the result that plain loops can compute in time; None where elements depend on one another."""
    targets = {s.target.array for s in nest.statements}
    if len(targets) > 1 or any(load.array in targets for s in nest.statements for load in loads(s.expr)):
        return None
    (array,) = targets
    extents = [extent.evaluate({}) for extent in nest.array(array).shape]
    if not extents:
        return None
    dimension = extents.index(max(extents))
    return Rows(array, dimension, min(extents[dimension], 2 * iterations // PLAIN + 1))


def only(nest: Nest, rows: Rows) -> Nest:
    """The nest without the iterations that write other rows."""
    dimensions = len(nest.array(rows.array).shape)
    last = nest.array(rows.array).shape[rows.dimension].evaluate({}) - 1
    space = set_space((), dimensions, rows.array)
    place = index(space, rows.dimension)
    is_last = place.eq_set(function(space, Affine.of(last)))
    kept = is_last.union(place.mod_val(number(rows.step)).eq_set(zero(space)))
    return replace(
        nest,
        statements=tuple(
            replace(s, domain=s.relation(s.target).intersect_range(kept).domain()) for s in nest.statements
        ),
    )
