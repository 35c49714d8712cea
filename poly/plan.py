"""From the model's choice to the steps of a contraction's schedule.

    for i:                      for j_tile:                            (columns cut for the last-level cache or threads)
      for j:                      for k_tile:                          (the reduction cut for the second level)
        for k:           ->         pack B
          C[i, j] += …              for i_tile:                        (rows cut for the last level)
                                      for j_tile2: for i_tile2:        (register tiles)
                                        microkernel over i, j, k
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil, prod
from typing import Literal

from microkernels.isa import ISA
from poly.matrix_vector import matrix_vector_steps
from poly.model import ASSUMED_STRIDE, Caches, Choice, choose
from poly.nest import Nest, Statement
from poly.polynomial import Polynomial
from poly.ragged import ragged_steps
from poly.roles import Axis, Roles, roles
from poly.steps import Flatten, Microkernel, Order, Pack, Parallel, Split, Step

RUN = 128
"""Bytes of contiguous results below which the order of the other loops must use up the output's cache lines, not an operand's."""

WASTE = 1.03
"""How much of the vectors may stay empty before columns that are not contiguous share a tile."""


@dataclass(frozen=True)
class Group:
    """Axes that become one loop, the last the fastest, and how many iterations it has."""

    axes: tuple[Axis, ...]

    @property
    def extent(self) -> int:
        return prod(axis.guess for axis in self.axes)


def contraction_steps(
    nest: Nest, statement: Statement, loops: Mapping[str, str], isa: ISA, caches: Caches, threads: int, initial: str | None
) -> list[Step] | None:
    """The steps for a contraction that has its loops for itself; None where it is none, or has no columns to speak of.

    `loops` maps its iterators to the names of their loops, outermost first; `initial` names a statement that sets the output to 0
    before, which the microkernel then takes over.
    """
    r = roles(nest, statement)
    if r is None:
        return ragged_steps(nest, statement, loops, isa, threads)
    if not r.rows:
        streamed = matrix_vector_steps(r, loops, isa, threads, initial)
        if streamed is not None:
            return streamed
    if not r.columns or not r.reduce:
        return None
    if all(axis.extent is not None for axis in (*r.rows, *r.columns, *r.reduce)):
        r = replace(r, reduce=tuple(sorted(r.reduce, key=lambda axis: -(axis.left.constant or 0))))
    dtype = nest.array(statement.target.array).dtype
    m, n, k = (prod(axis.guess for axis in axes) for axes in (r.rows, r.columns, r.reduce))
    short = prod(axis.guess for axis in _contiguous(r.columns)) * dtype.size < RUN
    side: Side = "output" if short and m > k else "right"
    far = n * k * dtype.size > caches.l2 // 2
    columns, extra_columns = _column_group(r.columns, isa.lanes(dtype), side, far)
    rows, extra_rows = _row_group(r.rows, "output" if short and n > k else "left")
    by_lines = short and n > k and _nearest(r.rows) < _nearest(tuple(a for a in r.columns if a not in _contiguous(r.columns)))
    choice = choose(r, rows.extent if rows else 1, columns.axes, dtype, isa, caches, threads, by_lines)
    return _Planner(r, choice, dict(loops), rows, columns, extra_rows, extra_columns, initial, isa.lanes(dtype) if far else None).steps()


Side = Literal["output", "left", "right"]


def _stride(axis: Axis, side: Side) -> int:
    """The distance between neighbours along the axis in an operand, as far as it is known."""
    strides: dict[Side, Polynomial] = {"output": axis.output, "left": axis.left, "right": axis.right}
    return strides[side].constant or 0


def _column_group(axes: tuple[Axis, ...], lanes: int, side: Side, far: bool) -> tuple[Group, tuple[Axis, ...]]:
    """The column axes that become one loop, and those that stay loops of their own.

    The axes along which the output is contiguous come innermost. The others join them where vectors would not be full otherwise;
    a tile then has several runs of contiguous results. Their order is that in the operand `side`, so that its cache lines are used up.
    `far` says that the right operand does not fit in the second level.
    """
    inner = _contiguous(axes)
    alone = turned(axes, inner) if far else None
    if alone is not None:
        group, extra = _column_group(tuple(axis for axis in axes if axis is not alone), lanes, side, far)
        return group, (*extra, alone)
    others = sorted((a for a in axes if a not in inner), key=lambda axis: -_stride(axis, side))
    length = prod(axis.guess for axis in inner)
    if all(axis.extent is not None for axis in axes) and ceil(length / lanes) * lanes > length * WASTE:
        return Group((*others, *inner)), ()
    return Group(tuple(inner)), tuple(others)


def turned(axes: Sequence[Axis], inner: Sequence[Axis]) -> Axis | None:
    """The column axis along which the right operand is contiguous, where the output is along others: panels of neighbouring
    values are copied together, so that whole cache lines are read."""
    return next((a for a in axes if a.right.constant == 1 and a not in inner and a.extent is not None and a.extent >= 8), None)


def _contiguous(axes: tuple[Axis, ...]) -> list[Axis]:
    """The axes along which the output is contiguous, outermost first; or the one with the least stride."""
    inner = [axis for axis in axes if axis.output.constant == 1]
    inner = inner or [min(axes, key=lambda axis: axis.output.constant or ASSUMED_STRIDE)]
    while inner[0].extent is not None:
        size = prod(axis.guess for axis in inner) * (inner[-1].output.constant or 1)
        outer = next((a for a in axes if a not in inner and a.extent is not None and a.output.constant == size), None)
        if outer is None:
            break
        inner.insert(0, outer)
    return inner


def _nearest(axes: Sequence[Axis]) -> int:
    """The least distance between neighbours in the output along any of the axes."""
    return min((axis.output.constant or ASSUMED_STRIDE for axis in axes), default=ASSUMED_STRIDE)


def _row_group(axes: tuple[Axis, ...], side: Side) -> tuple[Group | None, tuple[Axis, ...]]:
    """All row axes as one loop where sizes are known, in the order of the operand `side`; otherwise the innermost."""
    if not axes:
        return None, ()
    if any(axis.extent is None for axis in axes):
        return Group(axes[-1:]), axes[:-1]
    return Group(tuple(sorted(axes, key=lambda axis: -_stride(axis, side)))), ()


@dataclass
class _Planner:
    """Collects the steps; `loops` follows the names that flattening gives."""

    roles: Roles
    choice: Choice
    loops: dict[str, str]
    rows: Group | None
    columns: Group
    extra_rows: tuple[Axis, ...]
    extra_columns: tuple[Axis, ...]
    initial: str | None
    together: int | None
    """The panels that are copied together where the right operand is contiguous from one to the next."""

    def steps(self) -> list[Step]:
        """Flatten, split, order, pack, put the kernel in, share out among threads."""
        flat = self._flattened()
        splits, cuts = self._splits()
        order = self._order(cuts)
        steps = [*flat, *splits, Order(tuple(order))]
        c, statement = self.roles.contraction, self.roles.contraction.statement
        twice = c.left.array == c.right.array
        if self.choice.pack_right:
            steps.append(Pack(c.right.array, self._above(order, self._right_place(cuts)), statement, "right" if twice else None))
        if self.choice.pack_left:
            steps.append(Pack(c.left.array, self._above(order, self._left_place(cuts)), statement, "left" if twice else None))
        steps.append(Microkernel(self.choice.kernel.name, statement, self.initial))
        shared = self._shared(cuts)
        return [*steps, Parallel(shared)] if shared else steps

    def _name(self, axis: Axis) -> str:
        return self.loops[axis.iterator]

    def _loop(self, group: Group) -> str:
        return "_".join(self._name(axis) for axis in group.axes)

    def _flattened(self) -> list[Step]:
        """Steps that bring the axes of each group together and make one loop of them; loops without iterations to speak of go outside."""
        groups = [group for group in (self.rows, self.columns) if group and len(group.axes) > 1]
        if not groups:
            return []
        inside = [self._name(axis) for group in groups for axis in group.axes]
        order = [loop for loop in self.loops.values() if loop not in inside] + inside
        return [Order(tuple(order)), *(Flatten(tuple(self._name(axis) for axis in group.axes)) for group in groups)]

    def _splits(self) -> tuple[list[Step], dict[str, list[str]]]:
        """The splits, and for each role the names of the loops over tiles, outermost first."""
        choice, outer = self.choice, self._outer_reduction()
        wanted = [("columns", self._loop(self.columns), [choice.columns_cut, choice.kernel.columns])]
        if self.rows:
            wanted.insert(0, ("rows", self._loop(self.rows), [choice.rows_cut, choice.kernel.rows]))
        if choice.reduce_cut is not None:
            wanted.append(("reduce", self._name(outer[-1]), [choice.reduce_cut]))
        steps: list[Step] = []
        cuts: dict[str, list[str]] = {"rows": [], "columns": [], "reduce": [], "turned": []}
        if self._turned() is not None:
            wanted.append(("turned", self._name(self.extra_columns[-1]), [self.together]))
        for role, loop, sizes in wanted:
            for size in sizes:
                if size is not None:
                    steps.append(Split(((loop, size),)))
                    cuts[role].append(f"{loop}_tile{len(cuts[role]) + 1}" if cuts[role] else f"{loop}_tile")
        return steps, cuts

    def _turned(self) -> Axis | None:
        """The extra column axis along which a packed right operand is contiguous."""
        return turned(self.extra_columns, ()) if self.choice.pack_right and self.together else None

    def _outer_reduction(self) -> tuple[Axis, ...]:
        """The reduce axes outside of the microkernel; the last is the one that is cut, where one is."""
        return self.roles.reduce[: len(self.roles.reduce) - self.choice.inner]

    def _order(self, cuts: dict[str, list[str]]) -> list[str]:
        """All loops, outermost first."""
        choice, outer = self.choice, self._outer_reduction()
        batch = [self._name(axis) for axis in self.roles.batch]
        down = [*(self._name(a) for a in self.extra_rows), *cuts["rows"][-1:]]
        before = self._outside()
        beside = [n for a in self.extra_columns if (n := self._name(a)) not in before]
        along = [cuts["columns"][-1], *beside] if cuts["turned"] else [*beside, cuts["columns"][-1]]
        whole = [self._name(axis) for axis in (outer[:-1] if choice.reduce_cut is not None else outer)]
        points = [self._name(axis) for axis in self.roles.reduce[len(self.roles.reduce) - choice.inner :]]
        if choice.reduce_cut is not None:
            points.insert(0, self._name(outer[-1]))
        blocks_of_rows = cuts["rows"][:-1]
        first = blocks_of_rows if choice.parallel == "rows" else []
        then = [] if choice.parallel == "rows" else blocks_of_rows
        tiles = [*along, *down] if choice.rows_inside or cuts["turned"] else [*down, *along]
        named = [*batch, *first, *cuts["columns"][:-1], *whole, *cuts["reduce"], *self._outside(), *cuts["turned"], *then, *tiles]
        inner = [*([self._loop(self.rows)] if self.rows else []), self._loop(self.columns), *points]
        grouped = {axis.iterator for group in (self.rows, self.columns) if group for axis in group.axes}
        idle = [loop for i, loop in self.loops.items() if i not in grouped and loop not in (*named, *inner)]
        return [*idle, *named, *inner]

    def _outside(self) -> list[str]:
        """The loops over extra columns that stay outside of a copy of the right operand: where rows come first, all but one that
        is turned."""
        if self._turned() is not None:
            return [self._name(axis) for axis in self.extra_columns[:-1]]
        return [self._name(axis) for axis in self.extra_columns] if self.choice.rows_inside else []

    def _above(self, order: list[str], place: list[str]) -> str | None:
        """The innermost of the loops in `place`, or the last loop before everything of the contraction; None: no loop at all."""
        return max(place, key=order.index) if place else None

    def _right_place(self, cuts: dict[str, list[str]]) -> list[str]:
        """The loops that a copy of the right operand lies in: all above the blocks of rows.

        Where all rows pass by one panel after the other, each panel may be copied just before.
        """
        outer = self._outer_reduction()
        whole = [self._name(axis) for axis in (outer[:-1] if self.choice.reduce_cut is not None else outer)]
        first = cuts["rows"][:-1] if self.choice.parallel == "rows" else []
        above = [*(self._name(axis) for axis in self.roles.batch), *first, *cuts["columns"][:-1], *whole, *cuts["reduce"]]
        above += [*self._outside(), *cuts["turned"]]
        return [*above, cuts["columns"][-1]] if cuts["turned"] or self.choice.panel_by_panel else above

    def _left_place(self, cuts: dict[str, list[str]]) -> list[str]:
        """The loops that a copy of the left operand lies in: all above the register tiles."""
        outer = self._outer_reduction()
        whole = [self._name(axis) for axis in (outer[:-1] if self.choice.reduce_cut is not None else outer)]
        batch = [self._name(axis) for axis in self.roles.batch]
        return [*batch, *cuts["columns"][:-1], *whole, *cuts["reduce"], *cuts["rows"][:-1]]

    def _shared(self, cuts: dict[str, list[str]]) -> str | None:
        """The parallel loop."""
        match self.choice.parallel:
            case "batch":
                return self._name(self.roles.batch[0])
            case "columns":
                return cuts["columns"][0]
            case "rows":
                return cuts["rows"][0]
        return None
