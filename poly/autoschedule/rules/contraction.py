"""Contractions over a box: a microkernel, cache tiles around it and packed operands, as the model chooses.

for i:                      for j_tile:                            (columns cut for the last-level cache or threads)
  for j:                      for k_tile:                          (the reduction cut for the second level)
    for k:           ->         pack B
      C[i, j] += …              for i_tile:                        (rows cut for the last level)
                                  for j_tile2: for i_tile2:        (register tiles)
                                    microkernel over i, j, k
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from math import prod

from microkernels.cached import cached_property
from microkernels.dot import fitting
from microkernels.dtypes import DType
from poly.analysis.roles import Axis, Roles
from poly.autoschedule.rules.form import legal
from poly.autoschedule.spaces.space import Family, Knob, Point, Structure, Values
from poly.model import Choice, tile_shape
from poly.model.contraction import ContractionView, Model
from poly.model.core import Target
from poly.model.grid import Grid, TileStructure
from poly.model.grouping import column_group, contiguous, nearest, row_group
from poly.schedules.schedule import Schedule
from poly.schedules.steps import Distribute, Flatten, Order, Pack, Parallel, Split, Step, Tensorize

LIBRARY: Values = {"depth": 256, "columns": None, "block": 192}
"""Steps, columns and rows of the blocks that libraries pack, on many CPUs (Low et al., see poly/model/choice.py)."""

KNOWN = 256
"""The choices that are kept."""

RUN = 128
"""Bytes of contiguous output below which the order of the other loops must make full use of its cache lines."""


def planned_steps(
    r: Roles,
    dtype: DType,
    loops: Mapping[str, str],
    target: Target,
    initial: str | None,
    choice: Choice | None = None,
) -> list[Step] | None:
    """The steps for a contraction over a box; None without columns or a reduction. `choice` overrides the model's."""
    outline = outlined(r, dtype, target)
    return Planner(outline, choice or Tilings(outline, target).usual, loops, initial).steps() if outline else None


@dataclass(frozen=True)
class Tilings:
    """All ways to tile a contraction for a target: the structures and grids of the model (poly/model/grid.py)."""

    outline: Outline
    target: Target

    def grid(self, coarse: bool) -> Grid:
        """The grid of sizes; `coarse` thins it to some hundreds of points, the model's choice always among them."""
        return Grid(self.outline.work, self.target, self.outline.by_lines, coarse)

    @cached_property
    def model(self) -> Model:
        return Model(self.outline.work, self.target)

    @property
    def usual_point(self) -> tuple[TileStructure, Values]:
        """The structure and values that the model expects to be fastest."""
        alike = replace(self.outline, work=self.outline.work.anonymous)
        return _usual_point(replace(self, outline=alike))

    @property
    def usual(self) -> Choice:
        return self.grid(coarse=True).choice(*self.usual_point)

    def family(self, coarse: bool, made: Callable[[Choice], Schedule | None]) -> Family:
        """The structures; `made` gives the schedule of a choice, None if it is illegal."""
        grid = self.grid(coarse)
        kinds = list(grid.structures())
        structures = tuple(self._structure(grid, kind, made) for kind in kinds)
        kind, values = self.usual_point
        number = kinds.index(kind)
        return Family(structures, Point(number, structures[number].at(values)), tuple(self._steady(kinds, structures)))

    def _steady(self, kinds: Sequence[TileStructure], structures: Sequence[Structure]) -> Iterator[Point]:
        """The points with both operands packed whole, in the blocks of libraries and with the usual register tile.

        What a copy costs is much the same on every CPU; what it saves is hard to foresee.
        """
        work, parallel = self.outline.work, self.usual.parallel
        kernel = tile_shape(work.m, work.n, work.isa, work.dtype, by=work.by)
        for number, kind in enumerate(kinds):
            whole = kind.pack_left and kind.pack_right and not kind.panel_by_panel
            at = structures[number].nearest({**LIBRARY, "rows": kernel.rows, "vectors": kernel.vectors})
            if whole and kind.rows_inside and kind.parallel == parallel and at is not None:
                yield Point(number, at)

    def _structure(self, grid: Grid, kind: TileStructure, made: Callable[[Choice], Schedule | None]) -> Structure:
        def scheduled(values: Values) -> Schedule:
            return legal(made(grid.choice(kind, values)), values)

        return Structure(
            kind.traits,
            tuple(Knob(name, values) for name, values in grid.knobs(kind).items()),
            partial(grid.allows, kind),
            scheduled,
            lambda values: self.model.predict(grid.choice(kind, values)),
        )


@lru_cache(KNOWN)
def _usual_point(tilings: Tilings) -> tuple[TileStructure, Values]:
    """The same, kept for rules that try one contraction in several nests, and for nests with like contractions."""
    return tilings.grid(coarse=True).best(tilings.model)


@dataclass(frozen=True)
class Outline:
    """A contraction's groups of axes, and what follows from the memory layout of its operands."""

    work: ContractionView
    by_lines: bool
    """Whether the output continues along the rows after a short run of columns, and other columns have no loop."""


def outlined(r: Roles, dtype: DType, target: Target) -> Outline | None:
    """The groups of axes that suit the operands' cache lines; None without columns or a reduction."""
    if not r.columns or not r.reduce:
        return None
    if all(axis.extent is not None for axis in (*r.rows, *r.columns, *r.reduce)):
        r = replace(r, reduce=tuple(sorted(r.reduce, key=lambda axis: -(axis.left.number or 0))))
    m, n, k = (prod(axis.guess for axis in axes) for axes in (r.rows, r.columns, r.reduce))
    lanes, neighbours = target.isa.lanes(dtype), contiguous(r.columns)
    short = prod(axis.guess for axis in neighbours) * dtype.size < RUN
    far = n * k * dtype.size > target.caches.l2 // 2
    columns, extra_columns = column_group(r.columns, lanes, k, "output" if short and m > k else "right", far)
    rows, extra_rows = row_group(r.rows, "output" if short and n > k else "left")
    others = [axis for axis in r.columns if axis not in neighbours]
    by_lines = short and n > k and nearest(r.rows) < nearest(others) and not extra_columns
    flat, together = rows.axes if rows else (), lanes if far else None
    dot = fitting(target.isa, dtype, *r.contraction.elements, target.features)
    together = None if dot else together  # words are packed panel by panel
    view = ContractionView(r, flat, extra_rows, columns.axes, extra_columns, target.isa, dtype, together, dot)
    return Outline(view, by_lines)


@dataclass(frozen=True)
class Planner:
    """Turns a contraction's outline and choice into steps; `loops` names the loop of each iterator.

    `taken` are the names of loops that are there already. If another statement is in the same loops (`beside`), each
    tile runs it first.
    """

    outline: Outline
    choice: Choice
    loops: Mapping[str, str]
    initial: str | None
    taken: frozenset[str] = frozenset()
    beside: bool = False

    @property
    def work(self) -> ContractionView:
        return self.outline.work

    @property
    def roles(self) -> Roles:
        return self.work.roles

    @property
    def rows(self) -> tuple[Axis, ...]:
        return self.work.rows

    @property
    def columns(self) -> tuple[Axis, ...]:
        return self.work.columns

    def steps(self) -> list[Step]:
        """The steps: flatten, split, reorder, pack, tensorize, parallelise."""
        flat = self._flattened()
        splits, cuts = self._splits()
        order = self._order(cuts)
        steps = [*flat, *splits, Order(tuple(order))]
        c, statement = self.roles.contraction, self.roles.contraction.statement
        if self.beside:
            steps.append(Distribute(self._loop(self.rows or self.columns), last=statement))
        several = c.left.array == c.right.array or c.output.array in (c.left.array, c.right.array)
        if self.choice.pack_right:
            place = self._innermost(order, self._right_place(cuts))
            steps.append(Pack(c.right.array, place, statement, "right" if several else None))
        if self.choice.pack_left:
            place = self._innermost(order, self._left_place(cuts))
            steps.append(Pack(c.left.array, place, statement, "left" if several else None))
        steps.append(Tensorize(self.choice.kernel.name, statement, self.initial))
        shared = self._shared(cuts)
        return [*steps, Parallel(shared)] if shared else steps

    def _name(self, axis: Axis) -> str:
        return self.loops[axis.iterator]

    def _names(self, axes: tuple[Axis, ...]) -> list[str]:
        return [self._name(axis) for axis in axes]

    def _loop(self, axes: tuple[Axis, ...]) -> str:
        """The name of the loop that the axes are flattened into."""
        return "_".join(self._names(axes))

    def _flattened(self) -> list[Step]:
        """The steps that flatten the axes of each group into one loop; all other loops go outside."""
        groups = [axes for axes in (self.rows, self.columns) if len(axes) > 1]
        if not groups:
            return []
        inside = [self._name(axis) for axes in groups for axis in axes]
        order = [loop for loop in self.loops.values() if loop not in inside] + inside
        return [Order(tuple(order)), *(Flatten(tuple(self._names(axes))) for axes in groups)]

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
            wanted.append(("turned", self._name(self.work.extra_columns[-1]), [self.work.together]))
        for role, loop, sizes in wanted:
            for size in sizes:
                if size is not None:
                    steps.append(Split(((loop, size),)))
                    number = len(cuts[role]) + 1 + (f"{loop}_tile" in self.taken)
                    cuts[role].append(f"{loop}_tile{number}" if number > 1 else f"{loop}_tile")
        return steps, cuts

    def _turned(self) -> Axis | None:
        """The extra column axis along which the packed right operand is contiguous."""
        return self.work.turned(self.choice.pack_right)

    def _outer_reduction(self) -> tuple[Axis, ...]:
        """The reduce axes outside the microkernel; if one is cut, it is the last."""
        return self.roles.reduce[: len(self.roles.reduce) - self.choice.inner]

    def _order(self, cuts: dict[str, list[str]]) -> list[str]:
        """All loops, outermost first."""
        choice, outside = self.choice, self._outside()
        down = [*self._names(self.work.extra_rows), *cuts["rows"][-1:]]
        beside = [name for name in self._names(self.work.extra_columns) if name not in outside]
        along = [cuts["columns"][-1], *beside] if cuts["turned"] else [*beside, cuts["columns"][-1]]
        points = self._names(self.roles.reduce[len(self.roles.reduce) - choice.inner :])
        if choice.reduce_cut is not None:
            points.insert(0, self._name(self._outer_reduction()[-1]))
        then = [] if choice.parallel == "rows" else cuts["rows"][:-1]
        tiles = [*along, *down] if choice.rows_inside or cuts["turned"] else [*down, *along]
        named = [*self._blocks(cuts), *outside, *cuts["turned"], *then, *tiles]
        inner = [*([self._loop(self.rows)] if self.rows else []), self._loop(self.columns), *points]
        grouped = {axis.iterator for axis in (*self.rows, *self.columns)}
        idle = [loop for i, loop in self.loops.items() if i not in grouped and loop not in (*named, *inner)]
        return [*idle, *named, *inner]

    def _blocks(self, cuts: dict[str, list[str]]) -> list[str]:
        """The loops above all copies: batches, overlaps, and blocks of rows for threads, columns and the reduction."""
        apart, outer = self._names((*self.roles.batch, *self.roles.overlaps)), self._outer_reduction()
        whole = self._names(outer[:-1] if self.choice.reduce_cut is not None else outer)
        first = cuts["rows"][:-1] if self.choice.parallel == "rows" else []
        return [*apart, *first, *cuts["columns"][:-1], *whole, *cuts["reduce"]]

    def _outside(self) -> list[str]:
        """The loops over extra columns that stay outside the packing of the right operand.

        If the packed operand is contiguous along an extra column axis, these are all the others.
        """
        if self._turned() is not None:
            return self._names(self.work.extra_columns[:-1])
        return self._names(self.work.extra_columns) if self.choice.rows_inside else []

    def _innermost(self, order: list[str], place: list[str]) -> str | None:
        """The innermost of the loops in `place`; None if there are none, since the copy is then made once."""
        return max(place, key=order.index) if place else None

    def _right_place(self, cuts: dict[str, list[str]]) -> list[str]:
        """The loops around the packing of the right operand: all above the blocks of rows.

        If all rows visit one panel after the other, each panel may be packed just before its use.
        """
        above = [*self._blocks(cuts), *self._outside(), *cuts["turned"]]
        return [*above, cuts["columns"][-1]] if cuts["turned"] or self.choice.panel_by_panel else above

    def _left_place(self, cuts: dict[str, list[str]]) -> list[str]:
        """The loops around the packing of the left operand: all above the register tiles."""
        return [*self._blocks(cuts), *cuts["rows"][:-1]]

    def _shared(self, cuts: dict[str, list[str]]) -> str | None:
        """The name of the parallel loop, if any."""
        match self.choice.parallel:
            case "batch":
                return self._name(self.roles.batch[0])
            case "columns":
                return cuts["columns"][0]
            case "rows":
                return cuts["rows"][0]
        return None
