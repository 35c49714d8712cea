"""Triangular solves by blocks: whatever a block of rows needs of the blocks before it is a matrix product.

    for i:                                for i_tile:
      for j < i:                            for i in the tile: for j < start of the tile: for r:
        for r:                                X[i, r] -= L[i, j]*X[j, r]          (a microkernel)
          X[i, r] -= L[i, j]*X[j, r]  ->    for i_2 in the tile:
      for r:                                  for start of the tile <= j_2 < i_2: for r_2:
        X[i, r] /= L[i, i]                      X[i_2, r_2] -= L[i_2, j_2]*X[j_2, r_2]
                                              for r_3:
                                                X[i_2, r_3] /= L[i_2, i_2]

The update becomes two statements: its far instances, whose operands were computed in earlier blocks, and its near ones.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil

import islpy as isl

from microkernels.catalogue import Microkernel as Kernel
from microkernels.catalogue import shapes
from microkernels.dtypes import DType
from microkernels.isa import ISA
from poly.contraction import Contraction, recognise
from poly.defaults.attempt import attempt, proven
from poly.defaults.contiguous import contiguous
from poly.defaults.loops import extent
from poly.defaults.strides import is_contiguous_along, moved_iterator
from poly.dependences import dependences
from poly.nest import Nest, Statement
from poly.paths import paths
from poly.schedule import Schedule, schedule
from poly.steps import Distribute, Microkernel, Order, Split
from poly.tree import Band, Leaf, Node, Sequence

LEAST = 16
"""Least rows of a block: few, since what depends on rows of the same block runs without a microkernel."""


@dataclass(frozen=True)
class _Update:
    """A contraction that reads what its own statement's array holds, with one loop in each role."""

    statement: Statement
    row: str
    column: str
    reduce: str


@dataclass(frozen=True)
class Solve:
    """The rows of a block, and the microkernel that updates it."""

    block: int
    kernel: Kernel


def usual_solve(isa: ISA, dtype: DType) -> Solve:
    """The best kernel for large operands, and the least blocks that are whole tiles of it."""
    kernel = shapes(isa, dtype)[0]
    return Solve(kernel.rows * ceil(LEAST / kernel.rows), kernel)


def blocked_solve(nest: Nest, isa: ISA, solve: Solve | None = None) -> Schedule | None:
    """A schedule with a microkernel in the first triangular update that there is; None where there is none.

    The schedule's nest has the update as two statements, `S` and `S_near`. `solve` has the sizes, where not the usual.
    """
    for statement in nest.statements:
        update = _update(nest, statement)
        if update is not None:
            made = _blocked(nest, update, solve or usual_solve(isa, nest.array(statement.target.array).dtype))
            if made is not None:
                return made
    return None


def _update(nest: Nest, statement: Statement) -> _Update | None:
    found: Contraction | None = recognise(nest, statement)
    if found is None or statement.target.array not in (found.left.array, found.right.array):
        return None
    if found.batch or not len(found.rows) == len(found.columns) == len(found.reduce) == 1:
        return None
    update = _Update(statement, found.rows[0], found.columns[0], found.reduce[0])
    return update if is_contiguous_along(nest, statement.target, update.column) else None


def _blocked(nest: Nest, update: _Update, solve: Solve) -> Schedule | None:
    size = solve.block
    name = update.statement.name
    loop, column = (_loop(schedule(nest), name, iterator) for iterator in (update.row, update.column))
    if loop is None or column is None:
        return None
    if (extent(nest, loop) or 2 * size) < 2 * size or (extent(nest, column) or LEAST) < LEAST:
        return None
    near = _near(nest, update.statement, loop, size)
    far = update.statement.domain.subtract(near).coalesce()
    if near.is_empty() or far.is_empty():
        return None
    return _scheduled(_parted(nest, update.statement, far, near), update, solve)


def _near(nest: Nest, statement: Statement, loop: Band, size: int) -> isl.Set:
    """The instances that depend on another statement's in the same block of the loop."""
    near = isl.Set.empty(statement.domain.get_space())
    sink = _block(loop, statement.name, size)
    for dependence in dependences(nest).binding:
        if dependence.sink == statement.name and dependence.source in dict(loop.functions):
            same = _block(loop, dependence.source, size).eq_map(sink)
            near = near.union(dependence.relation.intersect(same).range())
    return near.coalesce()


def _block(loop: Band, statement: str, size: int) -> isl.PwAff:
    return loop.function(statement).scale_down_val(isl.Val(size)).floor()


def _parted(nest: Nest, statement: Statement, far: isl.Set, near: isl.Set) -> Nest:
    """The nest with one statement as two, the near one right behind the far one."""
    name = f"{statement.name}_near"
    parts = (
        replace(statement, domain=far),
        replace(statement, name=name, domain=near.set_tuple_name(name)),
    )
    position = nest.statements.index(statement)
    statements = (*nest.statements[:position], *parts, *nest.statements[position + 1 :])
    return replace(nest, statements=statements, tree=_doubled(nest.tree, statement.name, name))


def _doubled(node: Node, name: str, second: str) -> Node:
    """The tree with the leaf `second` behind the leaf `name`, in the same loops."""
    match node:
        case Leaf(statement) if statement == name:
            return Sequence((node, Leaf(second)))
        case Sequence(nodes):
            doubled = [_doubled(child, name, second) for child in nodes]
            flat = [part for child in doubled for part in (child.children if isinstance(child, Sequence) else (child,))]
            return Sequence(tuple(flat))
        case Band(functions=functions, body=body) if name in dict(functions):
            renamed = isl.Map.from_pw_aff(dict(functions)[name]).set_tuple_name(isl.dim_type.in_, second)
            copied = isl.PwMultiAff.from_map(renamed).get_pw_aff(0)
            return replace(node, functions=(*functions, (second, copied)), body=_doubled(body, name, second))
    return node


def _scheduled(nest: Nest, update: _Update, solve: Solve) -> Schedule | None:
    """The blocks, and the microkernel over the far statement; None where the dependences forbid it."""
    far = update.statement.name
    made = contiguous(schedule(nest))
    around = [band.name for band in paths(made.tree)[far] if isinstance(band, Band)]
    row = _loop(made, far, update.row)
    if row is None or row.name == around[-1]:
        return None
    below = around[around.index(row.name) + 1]
    parted = attempt(made, [Distribute(below), Split(((row.name, solve.block),)), Distribute(row.name, behind=far)])
    return parted and _with_microkernel(parted, update, solve.kernel)


def _with_microkernel(made: Schedule, update: _Update, kernel: Kernel) -> Schedule | None:
    far = update.statement.name
    found = [_loop(made, far, iterator) for iterator in (update.row, update.column, update.reduce)]
    row, column, reduce = (band.name for band in found if band is not None)
    tiled = proven(made, [Split(((row, kernel.rows), (column, kernel.columns)))])
    around = [band.name for band in paths(tiled.tree)[far] if isinstance(band, Band)]
    row_tile, column_tile = (around[around.index(name) - 1] for name in (row, column))
    order = Order((column_tile, row_tile, row, column, reduce))
    return attempt(tiled, [order, Microkernel(kernel.name, far)])


def _loop(made: Schedule, statement: str, iterator: str) -> Band | None:
    """The loop that moves an iterator of a statement by one."""
    path = paths(made.tree)[statement]
    described = made.nest.statement(statement)
    loops = (band for band in path if isinstance(band, Band))
    return next((band for band in loops if moved_iterator(described, path, band.name) == iterator), None)
