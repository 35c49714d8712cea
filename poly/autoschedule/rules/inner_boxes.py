"""The box of loops that a microkernel takes from a contraction over a domain that is none, and its orientation.

    for p, q, f:
      for r, s:
        if 0 <= p + r - 1 < P and 0 <= q + s - 1 < Q:     q, f, c, and r where p is fixed, form a box
          for c:
            O[p, q, f] += I[p+r-1, q+s-1, c] * W[r, s, c, f]

Each loop that counts results may count the columns. The box of least cost wins: lanes that are used, results that are
stored as vectors, operands that are read a line at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import ceil, inf, prod

from codegen.expr import Load
from microkernels.dtypes import DType
from microkernels.isa import ISA
from microkernels.kernel import LEVELS
from poly.analysis.contraction import Contraction, exchange, overlapping, recognise
from poly.analysis.roles import ASSUMED, expected_bytes
from poly.ir.instances import Instances, coordinates
from poly.ir.layout import step
from poly.ir.nest import Nest, Statement
from poly.lowering.calls import iterators_of
from poly.model import ASSUMED_STRIDE

LEAST = 16
"""The number of reduction steps in the box from which on a kernel call pays off, whatever its tile."""

STORE, COPY = 1.0, 1.0
"""Costs relative to the multiply-add of a vector: to store a result alone, and to copy an element into a panel."""

FETCH = 4.0
"""The same, to load an element from a cache line of its own that no near cache keeps."""

RESULT = 2.0
"""The same, to load and to store a vector of results."""

IN_FLIGHT = 8
"""Vectors of results that keep the multiply-add units busy: the units times their latency."""


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

    def cost(self, lanes: int, near: float = inf) -> float:
        """The cost of a multiply-add relative to those of whole vectors; `near` is the size of the near caches."""
        computed = _cost(self.nest, self.statement, self.contraction, self.column, self.reduction, lanes)
        waits = max(0.0, IN_FLIGHT / self.results(lanes) - 1)
        fetched = FETCH * lanes / self.extent(self.column) * self._is_scattered(near)
        return computed + waits + RESULT / self.steps + fetched

    def results(self, lanes: int) -> int:
        """The vectors of results of the box."""
        return self.extent(self.row) * ceil(self.extent(self.column) / lanes)

    def _is_scattered(self, near: float) -> bool:
        """Whether the left operand exceeds the near caches, and no loop of the box reads its neighbours together."""
        left = self.contraction.left
        used = iterators_of(self.statement, left)
        inner = used.intersection((self.row, *self.reduction))
        batches = prod(self.extent(name) for name in used.intersection(self.contraction.batch))
        large = expected_bytes(self.nest.array(left.array)) > near * batches
        return large and all(is_apart(self.nest, left, name) for name in inner)

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


def inner_box(nest: Nest, statement: Statement, isa: ISA, near: float = inf) -> InnerBox | None:
    """The contraction, oriented as a kernel for this ISA runs it, with the box of least cost; None if it has none.

    An operand of more than `near` bytes leaves the near caches before it is used again.
    """
    c = recognise(nest, statement)
    if c is None or statement.domain.is_empty():
        return None
    lanes, best = isa.lanes(nest.array(statement.target.array).dtype), None
    for least, oriented, column in _columns(nest, statement, c, lanes):
        if best is not None and best[0] <= least:
            break
        box = _box(nest, statement, oriented, column, lanes)
        cost = box.cost(lanes, near) if box else inf
        if box is not None and (best is None or cost < best[0]):
            best = cost, box
    return best[1] if best else None


def _box(nest: Nest, statement: Statement, c: Contraction, column: str, lanes: int) -> InnerBox | None:
    """The box with these columns and the longest rows and reduction; None if there is none.

    One of few steps for each result serves if there is no other, and if a call has many results next to each other.
    """
    few = None
    for box in _boxes(nest, statement, c, column):
        if box.steps >= LEAST:
            return box
        busy = 2 * box.steps >= LEAST and box.steps * box.results(lanes) >= 4 * LEAST
        if few is None and busy and not is_apart(nest, c.output, column):
            few = box
    return few


def _boxes(nest: Nest, statement: Statement, c: Contraction, column: str) -> Iterator[InnerBox]:
    """All boxes with these columns, those with the longest rows first, and of these that of the longest reduction."""
    rows = _longest(statement, c.rows)
    if distance(nest, c.output, column) != 1:
        rows.sort(key=lambda name: distance(nest, c.output, name))
    for row, reduce in product(rows, _longest(statement, c.reduce)):
        inner = row, column, reduce
        others = [i for i in (*c.batch, *c.rows, *c.columns) if i not in inner]
        overlaps = overlapping(statement, [row, column, *_longest(statement, others)])
        if not set(overlaps).intersection(inner) and _is_box(statement, inner):
            taps = tuple(i for i in c.reduce if i not in inner)
            own = tuple(i for i in others if i not in overlaps)
            yield InnerBox(nest, statement, c, *inner, own, taps, overlaps, _within(statement, inner, taps))


def _within(statement: Statement, inner: tuple[str, str, str], taps: Sequence[str]) -> tuple[str, ...]:
    """The taps that form a larger box with `inner`, as many as a kernel has loops for."""
    found: tuple[str, ...] = ()
    for tap in taps:
        if len(found) + 1 < LEVELS and _is_box(statement, (*inner, *found, tap)):
            found = (*found, tap)
    return found


def _columns(nest: Nest, statement: Statement, c: Contraction, lanes: int) -> list[tuple[float, Contraction, str]]:
    """Each loop that may count the columns, the best first: its least cost, and the contraction with it in that role.

    Of those that cost the same, a loop along which the right operand is contiguous comes first, then the longest.
    """
    ways = [(oriented, column) for oriented in (c, exchange(c)) for column in oriented.columns]
    found = [(_cost(nest, statement, *way, way[0].reduce, lanes), *way) for way in ways]
    return sorted(found, key=lambda way: (way[0], is_apart(nest, way[1].right, way[2]), -_extent(statement, way[2])))


def _cost(nest: Nest, statement: Statement, c: Contraction, column: str, reduction: Iterable[str], lanes: int) -> float:
    """The cost of a multiply-add with these columns and steps of the reduction, relative to those of whole vectors.

    Vectors may be partial; results may not be contiguous, and are then stored one by one after these steps; the right
    operand may have to be copied, once for all rows that use an element.
    """
    extents = {name: _extent(statement, name) for name in statement.iterators}
    idle = ceil(extents[column] / lanes) * lanes / extents[column]
    alone = STORE * lanes / prod(extents[name] for name in reduction)
    used = iterators_of(statement, c.right)
    copy = COPY * lanes / prod(extent for name, extent in extents.items() if name not in used)
    return idle + alone * is_apart(nest, c.output, column) + copy * is_apart(nest, c.right, column)


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
    position = statement.iterators.index(iterator)
    low, high = statement.domain.dim_min_val(position), statement.domain.dim_max_val(position)
    return high.to_python() - low.to_python() + 1 if low.is_int() and high.is_int() else ASSUMED


def _is_box(statement: Statement, inner: tuple[str, ...]) -> bool:
    """Whether these iterators take all combinations of their values for each value of the others."""
    values = coordinates(statement.domain, statement.iterators)
    others = tuple((name, value) for name, value in values.items() if name not in inner)
    return Instances("rest", statement.domain, others).is_box([values[name] for name in inner])
