"""A choice for a contraction as a value, and rules for its parts: register tile, reduction tile, parallel loop.

After Low, Igual, Smith, Quintana-Orti, "Analytical modeling is enough for high-performance BLIS" (ACM TOMS 43(2),
2016), extended to several loops in each role. The weights below, which do not follow from the caches, were fitted to
measurements on one AVX-512 core; none depends on its speed.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import takewhile
from math import ceil, prod

from microkernels.catalogue import fits, gemm
from microkernels.dtypes import DType
from microkernels.isa import ISA
from microkernels.kernel import OuterProduct
from microkernels.product import MULTIPLY_ADD, StepOperation
from poly.analysis.roles import Axis, Roles
from poly.model.core import LATENCY, PER_CYCLE, POINTERS, Caches, Target

TRAFFIC, STREAM = 0.1, 0.004
"""Costs relative to a multiply-add: a load per multiply-add, and each row read in place (a stream of its own)."""

TOO_MANY_ROWS = 0.2
"""The relative cost of having more rows than pointers to them fit in registers."""

SINGLE_TILE = 0.3
"""The relative cost of a single tile: with two, or tiles of other results, the last stores of one overlap the other's
first loads."""

ASSUMED_STRIDE = (1 << 20) + 24
"""The assumed stride, in elements, if it depends on open sizes: longer than any cache line or page.

It is not a multiple of a line, so that rows are not assumed to conflict in a cache.
"""


@dataclass(frozen=True)
class Choice:
    """The model's decision for one contraction.

    `columns_cut` and `rows_cut` are the cache tiles of the flattened loops (None: not cut).
    """

    kernel: OuterProduct
    reduce_cut: int | None
    """The tile of the innermost reduce axis that is cut (None: the axes not inside the kernel all run outside it)."""
    inner: int
    """The number of innermost reduce axes that run entirely inside the microkernel."""
    columns_cut: int | None
    rows_cut: int | None
    pack_left: bool
    """Whether the left operand is packed into panels of the microkernel's rows."""
    pack_right: bool
    """Whether the right operand is packed into panels of the microkernel's columns."""
    rows_inside: bool
    """Whether the row tile loop is the inner one, which keeps a panel of the right operand near, or the column loop."""
    panel_by_panel: bool
    """Whether each panel of the right operand is packed just before the rows visit it, or all of them in advance."""
    parallel: str | None
    """The role whose outermost loop is parallel: `batch`, `columns` or `rows`."""


def tile_shape(
    m: int,
    n: int,
    isa: ISA,
    dtype: DType,
    by_row: float = 0.0,
    by: StepOperation = MULTIPLY_ADD,
    first: int | None = None,
) -> OuterProduct:
    """The register tile of least cost for m x n results, including partial tiles: the first of `tile_shapes`."""
    return tile_shapes(m, n, isa, dtype, by_row, by, first)[0]


def tile_shapes(
    m: int,
    n: int,
    isa: ISA,
    dtype: DType,
    by_row: float = 0.0,
    by: StepOperation = MULTIPLY_ADD,
    first: int | None = None,
) -> list[OuterProduct]:
    """The register tiles of least cost for m x n results, one for each number of vectors, the cheapest first.

    With `first`, these are some of many results: rows are counted from there, and tiles begin at multiples of theirs.
    `by_row` is what results cost beside their sums in a tile of a single row, relative to these; more rows share it.
    `dot` multiplies and adds words, if given.
    """
    lanes = isa.lanes(dtype)
    every = range(1, min(isa.registers - 1, (first or 0) + m) + 1)

    def best(vectors: int) -> tuple[float, int, int]:
        """The least cost, and its rows and vectors."""
        fitting = takewhile(lambda rows: fits(isa, rows, vectors, dtype, by), every)
        costs = ((_tile_cost(m, n, rows, vectors, lanes, first) + by_row / min(rows, lanes), rows) for rows in fitting)
        return (*min(costs), vectors)

    wide = (vectors for vectors in range(1, min(4, ceil(n / lanes)) + 1) if fits(isa, 1, vectors, dtype, by))
    found = sorted(map(best, wide), key=lambda one: one[0])
    return [gemm(isa, dtype, rows, vectors, by) for _, rows, vectors in found]


def _tile_cost(m: int, n: int, rows: int, vectors: int, lanes: int, first: int | None) -> float:
    """The relative cycles of all tiles, weighted by the overhead of the tile's shape."""
    cost = _tile_cycles(m, n, rows, vectors, lanes, first or 0) * (1 + shape_penalty(rows, vectors))
    alone = first is None and rows >= m > 4 and vectors * lanes >= n
    return cost * (1 + SINGLE_TILE) if alone else cost


def shape_penalty(rows: int, vectors: int) -> float:
    """The overhead of a register tile's shape, relative to its multiply-adds."""
    return TRAFFIC * (rows + vectors) / (rows * vectors) + STREAM * rows + (TOO_MANY_ROWS if rows > POINTERS else 0)


def _tile_cycles(m: int, n: int, rows: int, vectors: int, lanes: int, first: int) -> float:
    """Cycles of all tiles per reduction step, relative to full multiply-add throughput."""
    whole = ceil(n / lanes)

    def cycles(r: int, v: int) -> float:
        return max(r * v / PER_CYCLE, LATENCY, (r + v) / PER_CYCLE) + 0.25 if r and v else 0.0

    first_rows = min(m, -first % rows)
    full_rows, last_rows = divmod(m - first_rows, rows)
    full_columns, last_columns = divmod(whole, vectors)
    return sum(
        a * b * cycles(r, v)
        for a, r in ((1, first_rows), (full_rows, rows), (1, last_rows))
        for b, v in ((full_columns, vectors), (1, last_columns))
    ) / (m * whole / PER_CYCLE)


def panel_steps(kernel: OuterProduct, caches: Caches) -> int:
    """Steps for which a panel of the right operand fills half of the second level, past which the left one streams."""
    return max(64, caches.l2 // 2 // (kernel.columns * kernel.dtype.size) * kernel.steps)


def call_steps(axes: tuple[Axis, ...], choice: Choice) -> int:
    """Steps of the reduction in one call of the register tile."""
    return prod(axis.guess for axis in axes[len(axes) - choice.inner :]) * (choice.reduce_cut or 1)


def reduction(axes: tuple[Axis, ...], most: int) -> tuple[int, int | None, int]:
    """The number of uncut inner axes, the tile of the next one, and the steps of one call: at most `most`."""
    depth = 1
    for inner, axis in enumerate(reversed(axes)):
        if inner == 3:
            return inner, None, depth
        if axis.extent is None or depth * axis.extent > most:
            left = max(1, most // depth)
            cut = _balanced(axis.extent, left, 1 if depth > 1 else 8) if axis.extent else left
            return (inner, cut, depth * cut) if cut > 1 or inner == 0 else (inner, None, depth)
        depth *= axis.extent
    return min(len(axes), 3), None, depth


def _balanced(extent: int, most: int, multiple: int) -> int:
    """The tile that cuts `extent` into equal parts of at most `most`, rounded up to a multiple."""
    parts = ceil(extent / max(1, most))
    return ceil(ceil(extent / parts) / multiple) * multiple


def is_scattered(group: tuple[Axis, ...]) -> bool:
    """Whether the right operand is not contiguous along the flattened loop."""
    expected = 1
    for axis in reversed(group):
        if axis.right.number != expected:
            return True
        expected *= axis.guess
    return False


def shared_role(r: Roles, m: int, n: int, kernel: OuterProduct, target: Target) -> str | None:
    """The role whose loop is parallel; None if there is not enough work for several threads."""
    threads = target.threads
    steps = prod(axis.guess for axis in r.reduce)
    batches = prod(axis.guess for axis in r.batch)
    if m * n * steps * batches < target.worthwhile(kernel.dtype):
        return None
    if batches >= threads and r.batch:
        return "batch"
    if n >= threads * kernel.columns and n * 4 >= m:
        return "columns"
    return "rows" if m >= threads * kernel.rows else None
