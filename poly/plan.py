"""From the model's choice to the loop tree of a contraction.

    for i:                      for j_tile:                            (columns cut for the last-level cache or threads)
      for j:                      for k_tile:                          (the reduction cut for the second level)
        for k:           ->         pack B
          C[i, j] += …              for i_tile:                        (rows cut for the second level)
                                      for j_tile2: for i_tile2:        (register tiles)
                                        microkernel over i, j, k
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil, prod

from microkernels.isa import ISA
from poly.model import ASSUMED_STRIDE, Caches, Choice, choose
from poly.matrix_vector import matrix_vector_tree
from poly.nest import Nest, Statement
from poly.planned import Loop, band, joined
from poly.roles import Axis, Roles, roles
from poly.tree import Band, Micro, Node, Pack


def contraction_tree(nest: Nest, statement: Statement, isa: ISA, caches: Caches, threads: int, initial: str | None) -> Node | None:
    """The default loops of a contraction; None where the statement is none, or has no contiguous output.

    `initial` names a statement that sets the output to 0 before, which the microkernel then takes over.
    """
    r = roles(nest, statement)
    if r is None:
        return None
    dtype = nest.array(statement.target.array).dtype
    if not r.rows:
        streamed = matrix_vector_tree(nest, statement, r, isa, threads, initial)
        if streamed is not None:
            return streamed
    if not r.columns or not r.reduce:
        return None
    r = replace(r, reduce=tuple(sorted(r.reduce, key=lambda axis: -(axis.left.constant or 0))) if _known(r) else r.reduce)
    columns, extra_columns = _column_loop(r.columns, isa.lanes(dtype))
    rows, extra_rows = _row_loop(r.rows)
    choice = choose(r, rows.extent if rows else 1, columns.extent, dtype, isa, caches, threads)
    return _Builder(nest, statement, r, choice, rows, columns, extra_rows, extra_columns, initial).tree()


def _known(r: Roles) -> bool:
    return all(axis.extent is not None for axis in (*r.rows, *r.columns, *r.reduce))


def _column_loop(axes: tuple[Axis, ...], lanes: int) -> tuple[Loop, tuple[Axis, ...]]:
    """The column axes as one loop, and those that stay loops of their own.

    The axes along which the output is contiguous come innermost. The others join them where vectors would not be full otherwise;
    a tile then has several runs of contiguous results. Their order is that of the right operand, so that its cache lines are used up.
    """
    inner = [axis for axis in axes if axis.output.constant == 1] or [min(axes, key=lambda axis: axis.output.constant or ASSUMED_STRIDE)]
    while inner[0].extent is not None:
        size = prod(axis.guess for axis in inner)
        outer = next((a for a in axes if a not in inner and a.extent is not None and a.output.constant == size), None)
        if outer is None:
            break
        inner.insert(0, outer)
    others = sorted((a for a in axes if a not in inner), key=lambda axis: -(axis.right.constant or 0))
    length = prod(axis.guess for axis in inner)
    if all(axis.extent is not None for axis in axes) and ceil(length / lanes) * lanes > length * WASTE:
        return joined([*others, *inner]), ()
    return joined(inner), tuple(others)


WASTE = 1.03
"""How much of the vectors may stay empty before columns that are not contiguous share a tile."""


def _row_loop(axes: tuple[Axis, ...]) -> tuple[Loop | None, tuple[Axis, ...]]:
    """All row axes as one loop where sizes are known, in the order of the left operand; otherwise the innermost, and the others."""
    if not axes:
        return None, ()
    if any(axis.extent is None for axis in axes):
        return joined([axes[-1]]), axes[:-1]
    return joined(sorted(axes, key=lambda axis: -(axis.left.constant or 0))), ()


@dataclass(frozen=True)
class _Builder:
    """Makes the bands from outside in."""

    nest: Nest
    statement: Statement
    roles: Roles
    choice: Choice
    rows: Loop | None
    columns: Loop
    extra_rows: tuple[Axis, ...]
    extra_columns: tuple[Axis, ...]
    initial: str | None

    def tree(self) -> Node:
        choice, c = self.choice, self.roles.contraction
        inner = self.roles.reduce[len(self.roles.reduce) - choice.inner :]
        outer = self.roles.reduce[: len(self.roles.reduce) - choice.inner]
        points = [self._point(axis) for axis in inner]
        if choice.reduce_cut is not None:
            points.insert(0, self._point(outer[-1]))
        node: Node = Micro(
            choice.kernel.name,
            self.statement.name,
            self._band(self.rows.name, self.rows.function) if self.rows else None,
            self._band(self.columns.name, self.columns.function),
            tuple(points),
            self.roles.exchanged,
            self.initial,
        )
        node = self._register_tiles(node)
        if choice.pack_left:
            node = Pack(c.left.array, node, "left" if c.left.array == c.right.array else None)
        parallel_rows = choice.parallel == "rows"
        if choice.rows_cut is not None and self.rows and not parallel_rows:
            node = self._tile(self.rows, choice.rows_cut, 1, node)
        if choice.pack_right:
            node = Pack(c.right.array, node, "right" if c.left.array == c.right.array else None)
        node = self._outer_reduction(outer, node)
        if choice.columns_cut is not None:
            node = self._tile(self.columns, choice.columns_cut, 1, node, parallel=choice.parallel == "columns")
        if parallel_rows and choice.rows_cut is not None and self.rows:
            node = self._tile(self.rows, choice.rows_cut, 1, node, parallel=True)
        for number, axis in reversed(list(enumerate(self.roles.batch))):
            node = self._loop(axis, node, parallel=choice.parallel == "batch" and number == 0)
        return node

    def _register_tiles(self, node: Node) -> Node:
        choice = self.choice

        def down(inside: Node) -> Node:
            if self.rows:
                inside = self._tile(self.rows, choice.kernel.rows, 2 if choice.rows_cut else 1, inside)
            for axis in reversed(self.extra_rows):
                inside = self._loop(axis, inside)
            return inside

        def along(inside: Node) -> Node:
            inside = self._tile(self.columns, choice.kernel.columns, 2 if choice.columns_cut else 1, inside)
            for axis in reversed(self.extra_columns):
                inside = self._loop(axis, inside)
            return inside

        return along(down(node)) if choice.rows_inside else down(along(node))

    def _outer_reduction(self, outer: tuple[Axis, ...], node: Node) -> Node:
        whole = outer
        if self.choice.reduce_cut is not None:
            axis, whole = outer[-1], outer[:-1]
            loop = Loop(axis.iterator, axis.iterator, axis.guess)
            node = self._tile(loop, self.choice.reduce_cut, 1, node)
        for axis in reversed(whole):
            node = self._loop(axis, node)
        return node

    def _tile(self, loop: Loop, size: int, level: int, body: Node, parallel: bool = False) -> Band:
        name = f"{loop.name}_tile" + (str(level) if level > 1 else "")
        return self._band(name, f"floor(({loop.function})/{size})", body, parallel)

    def _loop(self, axis: Axis, body: Node, parallel: bool = False) -> Band:
        return self._band(axis.iterator, axis.iterator, body, parallel)

    def _point(self, axis: Axis) -> Band:
        return self._band(axis.iterator, axis.iterator)

    def _band(self, name: str, function: str, body: Node | None = None, parallel: bool = False) -> Band:
        return band(self.nest, self.statement, name, function, body, parallel)
