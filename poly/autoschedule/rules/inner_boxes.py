"""The box of loops that a microkernel takes from a contraction over a domain that is none, and its orientation.

    for p, q, f:
      for r, s:
        if 0 <= p + r - 1 < P and 0 <= q + s - 1 < Q:     q, f, c, and r where p is fixed, form a box
          for c:
            O[p, q, f] += I[p+r-1, q+s-1, c] * W[r, s, c, f]

Each loop that counts results may count the columns. The box of least cost wins: lanes that are used, results that are
stored as vectors, operands that are read a line at a time, and panels of the right operand that stay in L2, in place or
as a copy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import ceil, prod

from codegen.ir.expr import Load
from microkernels.dtypes import DType
from microkernels.isa import ISA
from microkernels.kernel import LEVELS, OuterProduct
from poly.analysis.contraction import Contraction, exchange, overlapping, recognise
from poly.analysis.roles import ASSUMED, expected_bytes
from poly.ir.instances import Instances, coordinates
from poly.ir.layout import step
from poly.ir.nest import Nest, Statement
from poly.lowering.calls import iterators_of
from poly.machine.description import LINE
from poly.model import ASSUMED_STRIDE, tile_shapes
from poly.model.core import FULL, Target, room
from poly.model.tiles import TURN, Pitches, Stores, TileCalls, stores

LEAST = 16
"""The number of reduction steps in the box from which on a kernel call pays off, whatever its tile."""

PAYS = 0.95
"""How much of the time of what is usual something else may be expected to take: the model is no more exact."""

Cost = Callable[["InnerBox"], float]
"""The time of a box's multiply-adds relative to those of whole vectors."""


@dataclass(frozen=True)
class InnerBox:
    """A contraction whose `row`, `column` and `reduce` iterators form a box for each value of the others.

    Of the others, `own` index the results and `taps` are summed over; `overlaps` reach the same results with different
    values, so they stay outside all loops. The taps in `within` belong to the box, too.
    """

    nest: Nest
    statement: Statement
    contraction: Contraction
    row: str
    column: str
    reduce: str
    own: tuple[str, ...]
    taps: tuple[str, ...]
    overlaps: tuple[str, ...]
    within: tuple[str, ...]

    @property
    def steps(self) -> int:
        """The greatest number of steps of a call."""
        return prod(map(self.extent, self.reduction))

    @property
    def packed(self) -> bool:
        """Whether the right operand must be packed, since it is not contiguous along the columns."""
        return is_apart(self.nest, self.contraction.right, self.column)

    @property
    def is_turned(self) -> bool:
        """Whether results lie apart along the columns, so that each tile of them is turned before it is stored."""
        return is_apart(self.nest, self.contraction.output, self.column)

    def time(self, target: Target) -> float:
        """The time relative to that of multiply-adds of whole vectors with operands in the first level.

        The right operand is copied where it must be, or where that is clearly better than all that reads it in place.
        """
        lanes, n = target.isa.lanes(self.dtype), self.extent(self.column)
        right = self._computed(target, copied=True) + self._copy(target)
        if not self.packed:
            right = min(right / PAYS, self._computed(target, copied=False))
        return lanes * (right + self._lines(target) / n)

    def _copy(self, target: Target) -> float:
        """The time of a copy of the right operand, for each multiply-add."""
        line = target.line("turned copy" if self.packed else "copy", "L2")
        return line / (LINE // self.dtype.size) / self._uses_of_right()

    def _computed(self, target: Target, copied: bool) -> float:
        """The time of a call for each multiply-add, in the register tiles that take the least."""
        pitches = replace(self._pitches, right=0) if copied else self._pitches
        time = min(self._called(target, kernel, pitches) for kernel in self.kernels(target.isa))
        return time / (self.extent(self.row) * self.extent(self.column) * self.steps)

    def _called(self, target: Target, kernel: OuterProduct, pitches: Pitches) -> float:
        """The time of a call's register tiles of one shape, or in which they read the right operand."""
        m, n, steps = float(self.extent(self.row)), float(self.extent(self.column)), float(self.steps)
        calls = TileCalls(
            self.dtype, m, n, steps, 1.0, (kernel.rows,), (kernel.columns,), steps, pitches,
            operations=self.contraction.product.operations, stores=self._stores,
        )  # fmt: skip
        return max(calls.time(target), self._streamed(target, kernel, pitches.right))

    def _streamed(self, target: Target, kernel: OuterProduct, pitch: int) -> float:
        """The time in which each tile reads the right operand from the last level, if a panel exceeds L2; else 0."""
        width, caches = kernel.columns * self.dtype.size, target.caches
        if self.steps * width <= FULL * room(pitch, width, caches.l2, caches.ways[1]):
            return 0.0
        tiles = ceil(self.extent(self.row) / kernel.rows) * ceil(self.extent(self.column) / kernel.columns)
        return tiles * self.steps * width / target.rates.l3 / target.unit(self.dtype)

    def least(self, lanes: int) -> float:
        """A lower bound of `time`."""
        return _least(self.statement, self.column, lanes)

    def kernel(self, isa: ISA) -> OuterProduct:
        """The register tile that fits the box best."""
        return self.kernels(isa)[0]

    def kernels(self, isa: ISA) -> list[OuterProduct]:
        """The register tiles that fit the box best, one for each number of vectors, the best first."""
        m, n, lanes = self.extent(self.row), self.extent(self.column), isa.lanes(self.dtype)
        turned = TURN * lanes / self.steps * self.is_turned
        first = _range(self.statement, self.row)[0]
        return tile_shapes(min(m, ASSUMED), min(n, ASSUMED), isa, self.dtype, turned, self.contraction.product, first)

    def is_busy(self, lanes: int) -> bool:
        """Whether a call of few steps has many results next to each other."""
        results = self.extent(self.row) * ceil(self.extent(self.column) / lanes)
        return 2 * self.steps >= LEAST and self.steps * results >= 4 * LEAST and not self.is_turned

    @property
    def _pitches(self) -> Pitches:
        c, size = self.contraction, self.dtype.size
        right = distance(self.nest, c.right, self.reduction[-1])
        left, output = (distance(self.nest, access, self.row) for access in (c.left, c.output))
        steps = distance(self.nest, c.left, self.reduction[-1])
        return Pitches(left * size, right * size, output * size, left_steps=steps * size)

    @property
    def _stores(self) -> Stores:
        output = self.contraction.output
        along, down = (distance(self.nest, output, name) for name in (self.column, self.row))
        return stores(along, down)

    def _uses_of_right(self) -> int:
        """How often an element of the right operand is used: a copy serves all of them."""
        used = iterators_of(self.statement, self.contraction.right)
        return prod(self.extent(name) for name in self.statement.iterators if name not in used)

    def _lines(self, target: Target) -> float:
        """The time in which the left operand's lines come to the first level, for each element that a call reads.

        Loops that move it by less than a line read neighbours, or the same again: pixels and taps of a row do both.
        Other calls have read such lines lately; those of which one element is read come from where the operand is.
        """
        if self._left_bytes() <= target.caches.l1:
            return 0.0
        left, size = self.contraction.left, LINE // self.dtype.size
        used = iterators_of(self.statement, left).intersection((self.row, *self.reduction))
        apart = {name: distance(self.nest, left, name) for name in used}
        near = {name: self.extent(name) for name, by in apart.items() if by < size}
        lines = 1 + sum((n - 1) * apart[name] for name, n in near.items()) / size
        rate = target.rates.l2 if near else self._rate(target)
        return lines / prod(near.values()) * LINE / rate / target.unit(self.dtype)

    def _left_bytes(self) -> float:
        """Bytes of the left operand in one iteration of the batch loops."""
        left = self.contraction.left
        used = iterators_of(self.statement, left)
        return expected_bytes(self.nest.array(left.array)) / prod(
            self.extent(name) for name in used.intersection(self.contraction.batch)
        )

    def _rate(self, target: Target) -> float:
        """Bytes per second of the left operand from the cache that holds it."""
        bytes, caches = self._left_bytes(), target.caches
        if bytes > max(caches.l2, caches.l3):
            return target.rates.memory
        return target.rates.l3 if bytes > caches.l2 else target.rates.l2

    @property
    def dtype(self) -> DType:
        return self.nest.array(self.statement.target.array).dtype

    @property
    def work(self) -> int:
        """An upper bound of the multiply-adds."""
        return prod(self.extent(iterator) for iterator in self.statement.iterators)

    def extent(self, iterator: str) -> int:
        """The number of values that an iterator takes in total; ASSUMED if it depends on a size."""
        return _extent(self.statement, iterator)

    @property
    def reduction(self) -> tuple[str, ...]:
        """The loops of the reduction in the box, in the statement's order."""
        return tuple(i for i in self.statement.iterators if i == self.reduce or i in self.within)

    def reused(self, tiled: str) -> int:
        """Bytes of the operand that moves along `tiled`, if it does not move along `own`: each value there reads it."""
        for access in (self.contraction.left, self.contraction.right):
            used = iterators_of(self.statement, access)
            if tiled in used and not used.intersection(self.own):
                return prod(map(self.extent, used)) * self.dtype.size
        return 0


def inner_box(nest: Nest, statement: Statement, isa: ISA, cost: Cost) -> InnerBox | None:
    """The contraction, oriented as a kernel for this ISA runs it, with the box of least cost; None if it has none."""
    c = recognise(nest, statement)
    if c is None or statement.domain.is_empty():
        return None
    lanes, best = isa.lanes(nest.array(statement.target.array).dtype), None
    for least, oriented, column in _columns(nest, statement, c, lanes):
        if best is not None and best[0] <= least:
            break
        for box in _worthwhile(nest, statement, oriented, column, lanes):
            here = cost(box)
            if best is None or here < best[0]:
                best = here, box
    return best[1] if best else None


def _worthwhile(nest: Nest, statement: Statement, c: Contraction, column: str, lanes: int) -> list[InnerBox]:
    """The boxes with these columns whose calls have enough steps: fewer if they have many results in vectors."""
    return [box for box in _boxes(nest, statement, c, column) if box.steps >= LEAST or box.is_busy(lanes)]


def _boxes(nest: Nest, statement: Statement, c: Contraction, column: str) -> Iterator[InnerBox]:
    """All boxes with these columns, those with the longest rows first, and of these those of the longest reductions."""
    rows = _longest(statement, sorted(c.rows, key=lambda name: distance(nest, c.left, name)))
    if distance(nest, c.output, column) != 1:
        rows.sort(key=lambda name: distance(nest, c.output, name))
    for row, reduce in product(rows, _longest(statement, c.reduce)):
        inner = row, column, reduce
        others = [i for i in (*c.batch, *c.rows, *c.columns) if i not in inner]
        overlaps = overlapping(statement, [row, column, *_longest(statement, others)])
        if not set(overlaps).intersection(inner) and _is_box(statement, inner):
            taps = tuple(i for i in c.reduce if i not in inner)
            own = tuple(i for i in others if i not in overlaps)
            within = _within(statement, inner, taps)
            for many in range(len(within), -1, -1):
                yield InnerBox(nest, statement, c, *inner, own, taps, overlaps, within[:many])


def _within(statement: Statement, inner: tuple[str, str, str], taps: Sequence[str]) -> tuple[str, ...]:
    """The taps that form a larger box with `inner`, as many as a kernel has loops for."""
    found: tuple[str, ...] = ()
    for tap in taps:
        if len(found) + 1 < LEVELS and _is_box(statement, (*inner, *found, tap)):
            found = (*found, tap)
    return found


def _columns(nest: Nest, statement: Statement, c: Contraction, lanes: int) -> list[tuple[float, Contraction, str]]:
    """Each loop that may count the columns, the best first: its least time, and the contraction with it in that role.

    Of those that take the same, a loop along which the right operand is contiguous comes first, then the longest.
    """
    ways = [(oriented, column) for oriented in (c, exchange(c)) for column in oriented.columns]
    found = [(_least(statement, column, lanes), way, column) for way, column in ways]
    return sorted(found, key=lambda way: (way[0], is_apart(nest, way[1].right, way[2]), -_extent(statement, way[2])))


def _least(statement: Statement, column: str, lanes: int) -> float:
    """The least time of a multiply-add with these columns relative to those of whole vectors: some may be partial."""
    columns = _extent(statement, column)
    return ceil(columns / lanes) * lanes / columns


def is_apart(nest: Nest, access: Load, iterator: str) -> bool:
    """Whether consecutive values of an iterator do not access neighbours."""
    return distance(nest, access, iterator) != 1


def distance(nest: Nest, access: Load, iterator: str) -> int:
    """The stride of an access along an iterator, in elements; that of open sizes is long."""
    stride = step(nest.array(access.array), access, iterator).number
    return ASSUMED_STRIDE if stride is None else abs(stride)


def _longest(statement: Statement, iterators: Sequence[str]) -> list[str]:
    """The iterators, longest first."""
    return sorted(iterators, key=lambda name: -_extent(statement, name))


def _extent(statement: Statement, iterator: str) -> int:
    """The number of values that an iterator takes in total; ASSUMED if it depends on a size."""
    return _range(statement, iterator)[1]


def _range(statement: Statement, iterator: str) -> tuple[int, int]:
    """The least value of an iterator, and the number of them; 0 and ASSUMED if they depend on a size."""
    return statement.spans[iterator] or (0, ASSUMED)


def _is_box(statement: Statement, inner: tuple[str, ...]) -> bool:
    """Whether these iterators take all combinations of their values for each value of the others."""
    values = coordinates(statement.domain, statement.iterators)
    others = tuple((name, value) for name, value in values.items() if name not in inner)
    return Instances("rest", statement.domain, others).is_box([values[name] for name in values if name in inner])
