"""Ragged tiles: the results of a tile that a slanted bound cuts are a run of columns in each row.

for i_tile: for j_tile:                           for i_tile: for j_tile:
  for i in the tile:                                a kernel computes the whole tile on the stack
    for j in the tile, j <= i:            ->        for i in the tile:
      for k:                                          store the columns up to i
        C[i, j] += A[i, k] * B[k, j]

The kernel reads all rows and columns that have a result anywhere, with all steps of the reduction. Tiles whose box has
all results are not cut: the kernel writes these in place.
"""

from __future__ import annotations

from collections.abc import Mapping

import islpy as isl

from microkernels.contract import Side
from microkernels.kernel import OuterProduct
from poly.ir.instances import Instances
from poly.ir.nest import Statement
from poly.ir.tree import Band, Micro
from poly.lowering.calls import Loops, inner_bands, involves


def is_whole(statement: Statement, node: Micro, loops: Loops) -> bool:
    """Whether each tile is a box."""
    functions = [band.function(statement.name) for band in inner_bands(node)]
    return Instances("tile", statement.domain, loops).is_box(functions)


def is_ragged(statement: Statement, node: Micro, loops: Loops) -> bool:
    """Whether an outer product may compute a box around each tile, of which a run of columns is stored for each row.

    All rows must have the same steps of the reduction, so that the kernel reads nothing that the statement doesn't.
    """
    if not isinstance(node.kernel, OuterProduct) or node.rows is None or node.columns is None:
        return False
    if not all(_is_alone(statement, node, function) for _, function in loops):
        return False
    rows, columns = (band.function(statement.name) for band in (node.rows, node.columns))
    steps = [band.function(statement.name) for band in node.reduce]
    every = Instances("tile", statement.domain, _apart(statement, node, loops))
    if not every.is_box([rows, *steps]) or not each_row_of(statement, node, loops).is_box([columns, *steps]):
        return False
    found, kernel = _own_ranges(statement, node, loops, {}), node.kernel
    sides = ((node.rows, kernel.rows), (node.columns, kernel.columns))
    return all(never_exceeds(found[band.name].count(band.function(statement.name)), most) for band, most in sides)


def never_exceeds(count: isl.PwAff, most: int) -> bool:
    """Whether no value of a function exceeds a number."""
    limit = isl.PwAff.zero_on_domain(isl.LocalSpace.from_space(count.get_domain_space())).add_constant_val(
        isl.Val(most)
    )
    return bool(count.gt_set(limit).is_empty())


def _is_alone(statement: Statement, node: Micro, function: isl.PwAff) -> bool:
    """Whether a loop moves nothing else than rows, nothing else than columns, or neither."""
    mine = _counted(statement, function)
    sides = [_counted(statement, band.function(statement.name)) for band in (node.rows, node.columns) if band]
    return all(not mine & side or mine <= side for side in sides)


def _counted(statement: Statement, function: isl.PwAff) -> frozenset[str]:
    """The iterators on which a loop's value depends."""
    return frozenset(name for name in statement.iterators if involves(statement, function, frozenset({name})))


def each_row_of(statement: Statement, node: Micro, loops: Loops) -> Instances:
    """The instances of each row, in all tiles."""
    assert node.rows is not None, "a ragged tile has rows"
    own = (node.rows.name, node.rows.function(statement.name))
    return Instances("row", statement.domain, (*_apart(statement, node, loops), own))


def _apart(statement: Statement, node: Micro, loops: Loops) -> Loops:
    """The loops that move neither rows nor columns."""
    return tuple(loop for loop in loops if not _involved(statement, node, loop[1]))


def _involved(statement: Statement, node: Micro, function: isl.PwAff) -> tuple[str, ...]:
    """Which of a kernel's rows and columns a loop moves."""
    bands = (("rows", node.rows), ("columns", node.columns))
    return tuple(name for name, band in bands if band is not None and _share(statement, band, function))


def _share(statement: Statement, band: Band, function: isl.PwAff) -> bool:
    return bool(_counted(statement, band.function(statement.name)) & _counted(statement, function))


def uncut(statement: Statement, node: Micro, loops: Loops, found: Mapping[str, Instances]) -> isl.Set:
    """The ragged tiles in which every row has all columns; `found` has what the rows and columns range over."""
    assert node.rows is not None and node.columns is not None, "a ragged tile has rows and columns"
    tiles = Instances("tile", statement.domain, loops)
    sides = [(found[band.name], band.function(statement.name)) for band in (node.rows, node.columns)]
    box = isl.Map.from_domain(tiles.domain)
    for ranging, function in sides:
        within = tiles.groups.reverse().apply_range(ranging.groups)
        box = box.flat_range_product(within.apply_range(ranging.box([function])))
    cut = box.subtract(tiles.values([function for _, function in sides])).domain()
    return tiles.domain.subtract(cut).coalesce().gist(tiles.domain).coalesce()


def ranges(statement: Statement, node: Micro, loops: Loops, copied: Mapping[Side, int]) -> dict[str, Instances]:
    """For each loop that a kernel absorbs: the instances, grouped by loops, over which it ranges in a tile.

    In a ragged tile it ranges over what all tiles of the same rows, or columns, have; `copied` has the number of loops
    around each packed operand, which are the same for all calls that read a panel.
    """
    if is_whole(statement, node, loops):
        return dict.fromkeys((band.name for band in inner_bands(node)), Instances("tile", statement.domain, loops))
    return _own_ranges(statement, node, loops, copied)


def _own_ranges(statement: Statement, node: Micro, loops: Loops, copied: Mapping[Side, int]) -> dict[str, Instances]:
    """The same for a ragged tile."""

    def along(side: Side, across: str) -> Instances:
        inside = (loop for loop in loops[copied.get(side, 0) :] if across not in _involved(statement, node, loop[1]))
        return Instances("tile", statement.domain, (*loops[: copied.get(side, 0)], *inside))

    assert node.rows is not None and node.columns is not None, "a ragged tile has rows and columns"
    every = Instances("tile", statement.domain, _apart(statement, node, loops))
    steps = dict.fromkeys((band.name for band in node.reduce), every)
    return {node.rows.name: along("left", "columns"), node.columns.name: along("right", "rows"), **steps}
