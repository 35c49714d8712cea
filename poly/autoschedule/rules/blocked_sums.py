"""Sums over all results before, in blocks: what earlier blocks contribute to a block is added in lanes.

for i:                                      for i_tile:
  w[i] = c                                    for i in the tile: w[i] = c
  for k < i:                        ->        for k: for i_2 in the tile:  # vectorize
    w[i] += b[k, i] * w[i-k-1]                  if i_2-k-1 is before the tile: w[i_2] += b[k, i_2] * w[i_2-k-1]
                                              for i_3 in the tile: for k_2 < i_3:
                                                if i_3-k_2-1 is in the tile: w[i_3] += b[k_2, i_3] * w[i_3-k_2-1]

The same division as that of a triangular solve (rules/factorisations.py), for a single right-hand side: the far terms
need no result of their block.
"""

from __future__ import annotations

from codegen.ir.integer import PYTHON, Int
from codegen.names import fresh
from microkernels.isa import ISA
from poly.analysis.legality import lane_conflict
from poly.autoschedule.rules.attempt import applied, attempt
from poly.errors import ScheduleError
from poly.ir.edits import find_loop, parent
from poly.ir.paths import paths
from poly.ir.strides import accesses, extent, is_contiguous, moved_iterator, strided_cost
from poly.ir.tree import Band, Leaf, bands, parts, statements
from poly.schedules.schedule import Schedule
from poly.schedules.steps import Distribute, Interchange, Part, Split, Step
from poly.schedules.steps.formulas import Formula

VECTORS = 4
"""The vectors of a block: as many sums as hide the latency of one addition."""


def blocked_sums(made: Schedule, isa: ISA) -> Schedule | None:
    """The schedule with such sums in blocks; None if there are none."""
    found = made
    for outer in bands(made.tree):
        for inner in parts(outer.body):
            if isinstance(inner, Band):
                found = _blocked(found, outer, inner, isa) or found
    return found if found is not made else None


def _distance(made: Schedule, outer: Band, inner: Band) -> Int | None:
    """How far a sum in an inner loop looks back at sums before, in iterations of the outer loop.

    None if the inner loop is no such sum, or its accesses do not go from element to element along the outer loop.
    """
    nest, found = made.nest, paths(made.tree)
    statement = nest.statement(inner.body.statement) if isinstance(inner.body, Leaf) else None
    if statement is None or statement.op == "=":
        return None
    target, *read = accesses(statement)
    own = [load for load in read if load.array == target.array]
    along, across = (moved_iterator(statement, found[statement.name], band.name) for band in (outer, inner))
    if len(own) != 1 or along is None or across is None or not is_contiguous(nest, statement, along):
        return None
    if strided_cost(nest, statement, along) >= strided_cost(nest, statement, across):
        return None
    differing = [to - back for to, back in zip(target.indices, own[0].indices, strict=True) if to != back]
    return differing[0] if len(differing) == 1 and differing[0].is_affine else None


def _blocked(made: Schedule, outer: Band, inner: Band, isa: ISA) -> Schedule | None:
    """The schedule with such a sum in blocks; None if it is none, has less than two blocks, or that is illegal."""
    distance = _distance(made, outer, inner)
    if distance is None:
        return None
    (name,) = statements(inner)
    statement = made.nest.statement(name)
    row = moved_iterator(statement, paths(made.tree)[name], outer.name)
    size = VECTORS * isa.lanes(made.nest.array(statement.target.array).dtype)
    whole = extent(made.nest, outer)
    if whole is not None and whole < 2 * size:
        return None
    near = Formula(f"{row} - ({PYTHON.integer(distance)}) >= {size} * ({row} // {size})")
    behind = fresh(f"{name}_near", frozenset(one.name for one in made.nest.statements))
    parted: list[Step] = [Part(name, where=near, into=behind), Distribute(inner.name)]
    steps = [*parted, Split(((outer.name, size),)), Distribute(outer.name)]
    try:
        divided = applied(made, steps)
    except ScheduleError:
        return None
    lanes = parent(divided.tree, find_loop(divided.tree, inner.name))
    assert isinstance(lanes, Band), "the far terms have loops of their own"
    turned = attempt(made, [*steps, Interchange(lanes.name, inner.name)])
    return turned if turned and lane_conflict(turned.nest, turned.tree, lanes.name) is None else None
