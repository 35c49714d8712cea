"""A point of a contraction's space as the parts that the model prices, without querying isl.

structure and tiles    ->    the loops over tiles in the order of the rule for contractions, with their footprints
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil, prod

from codegen.ir.expr import Const, Load
from codegen.ir.integer import Affine
from microkernels.dot import DotProduct
from microkernels.dtypes import DType
from microkernels.isa import ISA
from microkernels.product import StepOperation
from poly.analysis.contraction import Contraction
from poly.analysis.roles import Axis, Roles
from poly.model.choice import ASSUMED_STRIDE, Choice, call_steps
from poly.model.core import Target
from poly.model.cost import Cost
from poly.model.footprint import ArrayAccesses, Dimension, spread
from poly.model.grouping import turned
from poly.model.parts import CopiedOperand, LoopPart, ScheduleParts, Side
from poly.model.price import arithmetic, price
from poly.model.tiles import Pitches, TileCalls

LEFT, RIGHT = 1, 2
"""The operands' numbers; the output is 0."""

SIDES: tuple[Side, ...] = ("output", "left", "right")

NAMELESS, UNKNOWN = Load("", ()), Affine.name("")


@dataclass(frozen=True)
class ContractionView:
    """A contraction with its axes grouped into the loops of its schedule.

    `rows` and `columns` are flattened into one loop each; `extra_rows` and `extra_columns` keep their own loops.
    `together` is the number of panels packed at a time if the right operand is contiguous from one to the next.
    """

    roles: Roles
    rows: tuple[Axis, ...]
    extra_rows: tuple[Axis, ...]
    columns: tuple[Axis, ...]
    extra_columns: tuple[Axis, ...]
    isa: ISA
    dtype: DType
    together: int | None = None
    dot: DotProduct | None = None
    """What multiplies and adds the elements of several steps at a time, if the operands' types and the CPU allow it."""

    @property
    def anonymous(self) -> ContractionView:
        """The same without the names of the nest, so that contractions which are alike to the model are equal."""
        renamed = {axis: _renamed(axis, f"axis{at}") for at, axis in enumerate(self.axes)}
        c, r = self.roles.contraction, self.roles

        def plain(axes: tuple[Axis, ...]) -> tuple[Axis, ...]:
            return tuple(renamed[axis] for axis in axes)

        alike = Contraction("", NAMELESS, NAMELESS, NAMELESS, Const(1), (), (), (), (), c.dtype, c.elements, c.product)
        own = Roles(alike, plain(r.rows), plain(r.columns), plain(r.reduce), plain(r.batch), plain(r.overlaps))
        rows, columns = (plain(self.rows), plain(self.extra_rows)), (plain(self.columns), plain(self.extra_columns))
        return ContractionView(own, *rows, *columns, self.isa, self.dtype, self.together, self.dot)

    @property
    def axes(self) -> tuple[Axis, ...]:
        r = self.roles
        return (*r.batch, *r.overlaps, *r.rows, *r.columns, *r.reduce)

    @property
    def m(self) -> int:
        return prod(axis.guess for axis in self.rows)

    @property
    def n(self) -> int:
        return prod(axis.guess for axis in self.columns)

    @property
    def by(self) -> StepOperation:
        """What a microkernel does in a step."""
        return self.dot or self.roles.contraction.product

    @property
    def word(self) -> int:
        """The steps of the innermost reduction loop in an element of a panel."""
        return self.dot.steps if self.dot else 1

    @property
    def copied(self) -> frozenset[str]:
        """The operands that have to be copied: those that are converted, and where panels have words, both."""
        return frozenset({"left", "right"}) if self.dot else self.roles.contraction.converted

    def words(self, steps: float) -> float:
        """The words of so many steps: of each value of the outer reduction loops, the innermost loop has whole ones."""
        innermost = self.roles.reduce[-1].guess if self.roles.reduce else 1
        alone = min(steps, innermost)
        return steps / alone * ceil(alone / self.word)

    def operand(self, side: Side) -> ArrayAccesses:
        size = self.dtype.size // (1 if side == "output" else self.word)
        moving = [(axis, stride) for axis in self.axes if (stride := _stride(axis, side))]
        dimensions = (Dimension(((axis.iterator, 1),), stride) for axis, stride in moving)
        return ArrayAccesses(tuple(dimensions), size, side == "output")

    def turned(self, packed: bool) -> Axis | None:
        """The extra column axis along which the packed right operand is contiguous."""
        return turned(self.extra_columns, ()) if packed and self.together else None


def _renamed(axis: Axis, name: str) -> Axis:
    """The axis with another name; strides that depend on open sizes are all the same to the model."""
    output, left, right = (UNKNOWN if one.number is None else one for one in (axis.output, axis.left, axis.right))
    return Axis(name, axis.extent, output, left, right)


def _stride(axis: Axis, side: Side) -> int:
    stride = {"output": axis.output, "left": axis.left, "right": axis.right}[side].number
    return ASSUMED_STRIDE if stride is None else abs(stride)  # backwards, the same lines are touched


@dataclass
class _Level:
    """A loop over tiles: its trip count, the counts of the nest's own loops in one iteration, and its copies."""

    loop: str
    trips: float
    counts: dict[str, float]
    copies: list[CopiedOperand]


@dataclass(frozen=True)
class FlatLoop:
    """The loop that axes are flattened into: its name, the axes' extents, and the number of iterations."""

    name: str
    extents: tuple[tuple[str, int], ...]
    whole: int

    @staticmethod
    def of(*axes: Axis) -> FlatLoop:
        extents = tuple((axis.iterator, axis.guess) for axis in axes)
        return FlatLoop("_".join(name for name, _ in extents), extents, prod(extent for _, extent in extents))


class _Walk:
    """Collects the loops over tiles, entered from the outermost inwards; the first level is the whole nest."""

    def __init__(self, axes: Sequence[Axis]) -> None:
        self.levels = [_Level("", 1.0, {axis.iterator: axis.guess for axis in axes}, [])]
        self._block: dict[str, float] = {}
        self._runs = 1.0
        self.starts: dict[str, float] = {}
        """The number of times that each loop starts, at its outermost level."""

    @property
    def here(self) -> _Level:
        return self.levels[-1]

    def enter(self, loop: str, trips: float, changed: Mapping[str, float]) -> None:
        self.starts.setdefault(loop, self._runs)
        if trips > 1:
            self._runs *= ceil(trips)
            self.levels.append(_Level(loop, trips, {**self.here.counts, **changed}, []))

    def each(self, axes: Sequence[Axis]) -> None:
        """Enter a loop over every value of each axis."""
        for axis in axes:
            self.enter(axis.iterator, self.here.counts[axis.iterator], {axis.iterator: 1})

    def blocks(self, loop: FlatLoop, cut: int | None) -> None:
        """Enter a loop over blocks of `cut` iterations of another; none if `cut` is None."""
        if cut is not None:
            whole = self._block.get(loop.name, loop.whole)
            self._block[loop.name] = min(whole, cut)
            self.enter(loop.name, whole / cut, spread(loop.extents, cut))


class Model:
    """The cost model of one contraction on one target: `predict` gives the cost of a choice."""

    def __init__(self, work: ContractionView, target: Target) -> None:
        self._work, self._target = work, target
        self._rows, self._columns = FlatLoop.of(*work.rows), FlatLoop.of(*work.columns)
        self._operands = [work.operand(side) for side in SIDES]
        self._across = [any(o.stride(axis.iterator) == 1 for axis in work.roles.reduce) for o in self._operands]

    def predict(self, choice: Choice) -> Cost:
        """The cost of one call, with its arrays wherever the previous call has left them."""
        return price(self.form(choice), self._target)

    def least(self, choice: Choice) -> float:
        """A lower bound of `predict`'s seconds that is found sooner: those of the arithmetic, less any rounding."""
        return arithmetic((self._tiles(choice, {}),), self._target) * (1 - 1e-9)

    def form(self, choice: Choice) -> ScheduleParts:
        """The choice as parts that can be priced."""
        walk = self._walk(choice)
        below: tuple[LoopPart, ...] = ()
        packed = ((LEFT, choice.pack_left), (RIGHT, choice.pack_right))
        copied = frozenset(number for number, is_packed in packed if is_packed)
        footprints = [one.copied if n in copied else one.touched for n, one in enumerate(self._operands)]
        for level in reversed(walk.levels):
            touched = {number: footprint(level.counts) for number, footprint in enumerate(footprints)}
            below = (LoopPart(level.loop, level.trips, touched, below, tuple(level.copies)),)
        computed = self._tiles(choice, walk.starts)
        return ScheduleParts(below[0], (computed,), copied, dict(enumerate(SIDES)))

    def _walk(self, choice: Choice) -> _Walk:
        """The loops over tiles in the order of `poly.autoschedule.rules.contraction`."""
        work, c = self._work, choice
        r, walk, along = work.roles, _Walk(work.axes), work.turned(c.pack_right)
        inside = c.rows_inside or along is not None
        walk.each((*r.batch, *r.overlaps))
        walk.blocks(self._rows, c.rows_cut if c.parallel == "rows" else None)
        walk.blocks(self._columns, c.columns_cut)
        outer = r.reduce[: len(r.reduce) - c.inner]
        walk.each(outer if c.reduce_cut is None else outer[:-1])
        walk.blocks(FlatLoop.of(*outer[-1:]), c.reduce_cut)
        left = walk.here
        walk.each(work.extra_columns[:-1] if along else work.extra_columns if inside else ())
        walk.blocks(FlatLoop.of(*work.extra_columns[-1:]), work.together if along else None)
        right = walk.here
        if c.parallel != "rows" and c.rows_cut is not None:
            walk.blocks(self._rows, c.rows_cut)
            left = walk.here if walk.here is not right else left
        if not inside:
            walk.each(work.extra_rows)
            walk.blocks(self._rows, c.kernel.rows)
            walk.each(work.extra_columns)
        walk.blocks(self._columns, c.kernel.columns)
        if c.panel_by_panel or along:
            right = walk.here
        if inside:
            walk.each(work.extra_columns[-1:] if along else ())
            walk.each(work.extra_rows)
            walk.blocks(self._rows, c.kernel.rows)
        if c.pack_right:
            right.copies.append(CopiedOperand(RIGHT, self._across[RIGHT]))
        if c.pack_left:
            left.copies.append(CopiedOperand(LEFT, self._across[LEFT]))
        return walk

    def _tiles(self, choice: Choice, starts: Mapping[str, float]) -> TileCalls:
        """The calls of the register tile."""
        w, c = self._work, choice
        others = (*w.extra_rows, *w.extra_columns, *w.roles.batch, *w.roles.overlaps)
        return TileCalls(
            w.dtype,
            w.m,
            w.n,
            w.words(prod(axis.guess for axis in w.roles.reduce)),
            prod(axis.guess for axis in others),
            rows=tuple(cut for cut in (c.rows_cut, c.kernel.rows) if cut is not None),
            columns=tuple(cut for cut in (c.columns_cut, c.kernel.columns) if cut is not None),
            steps_a_call=w.words(call_steps(w.roles.reduce, c)),
            pitches=self._pitches(c),
            shared=(self._shared(c),),
            starts=starts.get(self._parallel(c), 1.0) if c.parallel else 0.0,
            operations=w.roles.contraction.product.operations,
            dot=w.dot,
        )

    def _parallel(self, choice: Choice) -> str:
        """The name of the parallel loop."""
        if choice.parallel == "batch":
            return FlatLoop.of(*self._work.roles.batch[:1]).name
        return (self._columns if choice.parallel == "columns" else self._rows).name

    def _pitches(self, choice: Choice) -> Pitches:
        w, size = self._work, self._work.dtype.size
        if not w.rows:
            return Pitches(0, 0, 0)
        row, step = w.rows[-1].iterator, w.roles.reduce[-1].iterator
        output, left, right = self._operands
        return Pitches(
            0 if choice.pack_left else left.stride(row) * size,
            0 if choice.pack_right else right.stride(step) * size,
            output.stride(row) * size,
            not (choice.pack_left or left.is_even(self._rows.extents)),
            0 if choice.pack_left else left.stride(step) * size,
        )

    def _shared(self, choice: Choice) -> float:
        """The iterations of the parallel loop, the last of which may be a partial one."""
        w, c = self._work, choice
        match c.parallel:
            case "batch":
                return w.roles.batch[0].guess if w.roles.batch else 1
            case "columns":
                return w.n / (c.columns_cut or c.kernel.columns)
            case "rows":
                return w.m / (c.rows_cut or c.kernel.rows)
        return 1
