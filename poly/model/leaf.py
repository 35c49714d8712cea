"""The computation of a statement with its data in the nearest cache: vectors, recurrences, microkernel calls."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from math import ceil, prod
from typing import NamedTuple

from codegen.ir.expr import Load
from codegen.ir.program import MOST_VECTORS, VECTORS
from microkernels.dtypes import DType
from microkernels.isa import ISA
from microkernels.kernel import OuterProduct, TileKernel
from poly.analysis.legality import chained, recurs
from poly.analysis.scans import scanned_in
from poly.ir.nest import Statement
from poly.ir.strides import accesses
from poly.ir.tree import Band, Micro
from poly.lowering.calls import absorbed, inner_bands
from poly.model.core import PER_CYCLE, Target
from poly.model.footprint import ArrayAccesses
from poly.model.parts import Compute, Side
from poly.model.tiles import Pitches, Stores, TileCalls, stores
from poly.model.view import Sizes, View
from poly.model.work import InstanceWork, work
from poly.schedules.schedule import Schedule

START = 5.0
"""The overhead of an innermost loop in cycles: its bounds, and the mispredicted exit branch."""

CALL = 30.0
"""The overhead of a call of a matrix-vector kernel in cycles."""


class LoopTime(NamedTuple):
    """The time of a statement in an innermost loop, in vector multiply-adds.

    `busy` is that of its operations, `waiting` that for its own results of earlier iterations, during which a core does
    other operations; `starts` is the loop's overhead.
    """

    busy: float
    waiting: float
    starts: float


@dataclass(frozen=True)
class Loops:
    """A statement in plain loops; `trips` counts the iterations of the innermost that is not written out.

    `body` names the innermost loop, which other statements may share. `waiting` is the number of cycles that an
    instance waits for another if the loop is not vectorised. `in_tile` is the work if a vectorised loop of few
    iterations is a register tile (codegen/lanes/register_tile.py), None if it is none. `together`
    tells whether lanes go through loops inside a vectorised one together (codegen/outer_loops.py).
    """

    dtype: DType
    work: InstanceWork
    in_tile: InstanceWork | None
    instances: float
    trips: float
    body: str
    vectorized: bool
    unrolled: float
    waiting: float
    together: bool
    shared: tuple[float, ...]
    starts: float

    def time(self, target: Target) -> float:
        """The time on one core with no other statement in the loop, in vector multiply-adds."""
        busy, waiting, starts = self.parts(target)
        return max(busy, waiting) + starts

    def parts(self, target: Target) -> LoopTime:
        """The parts of the time on one core."""
        if not self.trips:
            return LoopTime(self.instances * self.work.scalar(), 0.0, 0.0)
        lanes, runs = target.isa.lanes(self.dtype), self.instances / self.trips
        starts = runs * START / max(1, self.unrolled)
        if self.vectorized and self.together:
            vectors = runs * ceil(self.trips / lanes)
            return LoopTime(vectors * self.work.vector(lanes), vectors * self.waiting / VECTORS, starts)
        if self.vectorized and self.in_tile and self.trips <= MOST_VECTORS * lanes:
            busy = runs * ceil(self.trips / lanes) * self.in_tile.vector(lanes)
            return LoopTime(busy, self.instances * self.waiting, 0.0)
        if self.vectorized:
            combining = runs * self.work.combining(lanes)
            return LoopTime(runs * ceil(self.trips / lanes) * self.work.vector(lanes), 0.0, starts + combining)
        return LoopTime(self.instances * self.work.scalar(), self.instances * self.waiting, starts)


@dataclass(frozen=True)
class Stream:
    """The calls of a matrix-vector kernel, each of which reads its part of the matrix once."""

    dtype: DType
    instances: float
    calls: float
    shared: tuple[float, ...]
    starts: float

    def time(self, target: Target) -> float:
        return self.instances / target.isa.lanes(self.dtype) * PER_CYCLE + self.calls * CALL


class Diagonals(NamedTuple):
    """A loop over diagonals of blocks: its position, and the blocks along and across its iterations without them."""

    loop: int
    along: int
    across: int

    @property
    def lengths(self) -> tuple[float, ...]:
        """The blocks of each diagonal."""
        count = self.along + self.across
        return tuple(float(min(n, count - n, self.along, self.across)) for n in range(1, count))

    def between(self, threads: int) -> float:
        """The fraction of blocks where the parts of two threads meet: one for each two, or all of a short diagonal."""
        return sum(min(length, threads - 1) for length in self.lengths) / sum(self.lengths)


@dataclass(frozen=True)
class PlainStatement:
    """A statement with its loops. `carried` is the position of the loop that carries a recurrence.

    `sides` are the operands of its microkernel by role; `packed` are the roles that it reads from panels.
    """

    view: View
    dtype: DType
    work: InstanceWork
    in_tile: InstanceWork | None
    bands: tuple[Band, ...]
    carried: int | None
    micro: Micro | None
    sides: Mapping[Side, ArrayAccesses]
    packed: frozenset[str]
    together: bool

    @property
    def instances(self) -> float:
        return prod(self.view.extents.values())

    def computed(self, sizes: Sizes) -> Compute:
        """The computation with blocks of these sizes."""
        if self.micro is None:
            return self._loops(sizes)
        return self._stream(self.micro, sizes) if self.micro.kernel.in_place else self._tiles(self.micro, sizes)

    def _loops(self, sizes: Sizes) -> Loops:
        last = lanes_at(self.bands)
        innermost = self.bands[last] if self.bands else None
        widths = self.view.widths(last, sizes) if self.bands else []
        return Loops(
            self.dtype,
            self.work,
            self.in_tile,
            self.instances,
            max(1.0, widths[last]) if innermost else 0.0,
            innermost.name if innermost else "",
            innermost is not None and innermost.vectorize,
            prod(widths[last + 1 :]) if last + 1 < len(self.bands) else innermost.unroll if innermost else 0,
            self._waiting(sizes),
            self.together,
            self._shared(sizes),
            self._starts(sizes),
        )

    def _waiting(self, sizes: Sizes) -> float:
        """Cycles that an instance waits for another; the iterations of loops inside the carrying one share the wait."""
        if self.carried is None:
            return 0.0
        inside = self.carried + 1
        return self.work.chain / prod(self.view.widths(inside, sizes)[inside:])

    def _stream(self, micro: Micro, sizes: Sizes) -> Stream:
        taken = len(inner_bands(micro))
        first = len(self.bands) - taken
        calls = self.instances / prod(self.view.widths(first, sizes)[first:])
        return Stream(self.dtype, self.instances, calls, self._shared(sizes), self._starts(sizes))

    def _tiles(self, micro: Micro, sizes: Sizes) -> TileCalls:
        """The calls of a register tile over its row, column and reduction loops."""
        inside = inner_bands(micro)
        first = len(self.bands) - len(inside)
        kernel = micro.kernel
        assert isinstance(kernel, TileKernel)
        at = {band.name: first + number for number, band in enumerate(inside)}
        widths = self.view.widths(first, sizes)
        (m, rows), (n, columns) = (
            (self.view.whole(at[band.name]), self.view.blocks(at[band.name], sizes)) if band else (1, ())
            for band in (micro.rows, micro.columns)
        )
        written = {name for index in self.view.statement.target.indices for name in index.names}
        steps = prod(extent for name, extent in self.view.extents.items() if name not in written)
        dot = kernel.dot if isinstance(kernel, OuterProduct) else None
        innermost = widths[at[micro.reduce[-1].name]]
        part = innermost / ceil(innermost / dot.steps) if dot else 1.0
        return TileCalls(
            self.dtype,
            m,
            n,
            steps / part,
            self.instances / (m * n * steps),
            rows=rows or (kernel.rows,),
            columns=columns or (kernel.columns,),
            steps_a_call=prod(widths[at[band.name]] for band in micro.reduce) / part,
            pitches=self._pitches(micro, at),
            shared=self._shared(sizes),
            starts=self._starts(sizes),
            operations=kernel.contract.product.operations,
            stores=self._stores(micro, at),
            dot=dot,
        )

    def _pitches(self, micro: Micro, at: Mapping[str, int]) -> Pitches:
        if micro.rows is None:
            return Pitches(0, 0, 0)
        row, step = (self.view.fastest(at[band.name]) for band in (micro.rows, micro.reduce[-1]))

        def apart(side: Side, loop: str) -> int:
            return 0 if side in self.packed else self.sides[side].stride(loop) * self.dtype.size

        even = "left" in self.packed or self.sides["left"].is_even(self.view.digits(at[micro.rows.name]))
        return Pitches(apart("left", row), apart("right", step), apart("output", row), not even, apart("left", step))

    def _stores(self, micro: Micro, at: Mapping[str, int]) -> Stores:
        def stride(band: Band | None) -> int:
            return self.sides["output"].stride(self.view.fastest(at[band.name])) if band else 0

        return stores(stride(micro.columns), stride(micro.rows))

    def _parallel(self) -> int | None:
        """The position of the parallel loop."""
        return next((position for position, band in enumerate(self.bands) if band.parallel), None)

    def _shared(self, sizes: Sizes) -> tuple[float, ...]:
        at = self._parallel()
        if at is None:
            return (1.0,)
        found = diagonals(self.view, at, sizes)
        return (max(1.0, self.view.widths(at, sizes)[at]),) if found is None else found.lengths

    def _starts(self, sizes: Sizes) -> float:
        at = self._parallel()
        if at is None:
            return 0.0
        around = [ceil(self.view.widths(depth, sizes)[depth]) for depth in range(at)]
        found = diagonals(self.view, at, sizes)
        if found is not None:
            around[found.loop] = len(found.lengths)
        return prod(around)


def diagonals(view: View, at: int, sizes: Sizes) -> Diagonals | None:
    """The diagonals that a parallel loop over blocks lies on; None if no loop around it goes along any."""
    for position, ring in enumerate(view.enclosing[:at]):
        if ring.across == at:
            blocks = (view.widths(position, sizes)[loop] for loop in (position, at))
            along, across = (max(1, ceil(count)) for count in blocks)
            return Diagonals(position, along, across)
    return None


def sides(made: Schedule, micro: Micro | None) -> dict[Side, Load]:
    """A microkernel's operands by role."""
    if micro is None:
        return {}
    contraction = absorbed(made.nest, micro)
    return {"output": contraction.output, "left": contraction.left, "right": contraction.right}


def waiting(made: Schedule, loop: str) -> frozenset[str]:
    """The statements of which iterations of a loop out of lanes wait for one another, those of a scan too."""
    waits = recurs(made.nest, made.tree, loop) or scanned_in(made.nest, made.tree, loop).combines
    return chained(made.nest, made.tree, loop) if waits else frozenset()


def lanes_at(bands: tuple[Band, ...]) -> int:
    """The position of the innermost loop, or of a vectorised one around others."""
    return next((at for at in reversed(range(len(bands))) if bands[at].vectorize), len(bands) - 1)


def leaf(
    made: Schedule,
    view: View,
    bands: tuple[Band, ...],
    micro: Micro | None,
    operands: Mapping[Side, ArrayAccesses],
    packed: frozenset[str],
    variables: frozenset[str],
    waiting: Callable[[str], frozenset[str]],
    isa: ISA,
) -> PlainStatement:
    """A statement of a schedule with all that its computation depends on.

    `variables` are the locals with a single element in each iteration; `waiting` has the statements of each loop.
    """
    dtype = made.nest.array(view.statement.target.array).dtype
    last = lanes_at(bands)
    innermost, outer = (view.determined.get(at, (None,))[-1] for at in (last, last - 1))
    written = {name: view.extents[name] for at in range(last + 1, len(bands)) for name in view.determined.get(at, ())}
    computed = partial(work, made.nest, view.statement, innermost, variables, isa=isa)
    together = any(band.unroll < 2 for band in bands[last + 1 :])
    whole = computed(around=view.determined.get(len(bands) - 1, (None,))[-1]) if together else computed(written=written)
    in_tile = computed(around=outer) if _keeps(view.statement, innermost, outer, variables) else None
    carried = None
    tiled = in_tile is not None and bands[last].vectorize and not together
    if micro is None and bands and (tiled or not bands[-1].vectorize):
        inner = range(last - 1, last) if tiled else range(len(bands) - 1, max(-1, len(bands) - 3), -1)
        carried = next((p for p in inner if view.statement.name in waiting(bands[p].name)), None)
    return PlainStatement(view, dtype, whole, in_tile, bands, carried, micro, operands, packed, together)


def _keeps(statement: Statement, innermost: str | None, outer: str | None, variables: frozenset[str]) -> bool:
    """Whether all that a statement accesses but variables belongs to one of the two innermost loops, results to the
    inner one."""
    names = {
        access: {name for index in access.indices for name in index.names}
        for access in accesses(statement)
        if access.array not in variables
    }
    apart = not any({innermost, outer} <= own for own in names.values())
    return outer is not None and apart and innermost in names.get(statement.target, {innermost})
