"""A choice for a contraction as a value, and rules for its parts: the register tile, the reduction, the threads' loop.

After Low, Igual, Smith, Quintana-Orti, "Analytical modeling is enough for high-performance BLIS" (ACM TOMS 43(2),
2016), extended to several loops in each role. What the caches don't tell (the weights below) was set by measurements on
one AVX-512 core; none depends on its speed.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, prod

from microkernels.catalogue import fits, gemm
from microkernels.dtypes import DType
from microkernels.isa import ISA
from microkernels.kernel import OuterProduct
from poly.analysis.roles import Axis, Roles
from poly.model.core import LATENCY, PER_CYCLE, POINTERS, Caches

TRAFFIC, STREAM = 0.1, 0.004
"""What a load beside each multiply-add costs, relative to it, and one more row read in place (a stream of its own)."""

CROWDED = 0.2
"""What it costs to have more rows than pointers to them stay in registers."""

LONELY = 0.3
"""What a result of one tile alone costs: with two, one's last stores overlap the other's first loads."""

WORTHWHILE = 4_000_000
"""Multiply-adds below which threads don't pay: some tens of microseconds, a few times what starting them takes."""

ASSUMED_STRIDE = (1 << 20) + 24
"""Elements between neighbours where that depends on sizes that are open: further than any cache line or page.

It is no multiple of a line, so that rows are not taken to share places in a cache.
"""


@dataclass(frozen=True)
class Choice:
    """The model's decision for one contraction.

    `columns_cut` and `rows_cut` are the cache tiles of the flattened loops (None: not cut).
    """

    kernel: OuterProduct
    reduce_cut: int | None
    """The tile of the innermost reduce axis that does not stay whole (None: all others run outside of the kernel)."""
    inner: int
    """How many of the innermost reduce axes stay whole inside the microkernel."""
    columns_cut: int | None
    rows_cut: int | None
    pack_left: bool
    """Whether the left operand is copied into panels of the microkernel's rows."""
    pack_right: bool
    """Whether the right operand is copied into panels of the microkernel's columns."""
    rows_inside: bool
    """Whether tiles go down the rows first, a panel of the right operand staying near, or along the columns."""
    panel_by_panel: bool
    """Whether each panel of the right operand is copied just before the rows pass by it, or all of them before."""
    parallel: str | None
    """The role whose outermost loop is parallel: `batch`, `columns` or `rows`."""


def tile_shape(m: int, n: int, isa: ISA, dtype: DType) -> OuterProduct:
    """The register tile of the least cost for m x n results, edges counted."""
    lanes = isa.lanes(dtype)
    best: tuple[float, OuterProduct] | None = None
    for vectors in range(1, min(4, ceil(n / lanes)) + 1):
        for rows in range(1, min(isa.registers - 1, m) + 1):
            if not fits(isa, rows, vectors):
                break
            cost = _tile_cost(m, n, rows, vectors, lanes)
            if best is None or cost < best[0]:
                best = cost, gemm(isa, dtype, rows, vectors)
    assert best is not None, "one row of one vector always fits"
    return best[1]


def _tile_cost(m: int, n: int, rows: int, vectors: int, lanes: int) -> float:
    """The cycles of all tiles, weighed by what the tile's shape costs beside them."""
    cost = _tile_cycles(m, n, rows, vectors, lanes) * (1 + shape_penalty(rows, vectors))
    alone = rows >= m > 4 and vectors * lanes >= n
    return cost * (1 + LONELY) if alone else cost


def shape_penalty(rows: int, vectors: int) -> float:
    """What a register tile's shape costs beside its multiply-adds, relative to them."""
    return TRAFFIC * (rows + vectors) / (rows * vectors) + STREAM * rows + (CROWDED if rows > POINTERS else 0)


def _tile_cycles(m: int, n: int, rows: int, vectors: int, lanes: int) -> float:
    """Cycles a reduction step for all tiles, relative to full multiply-add throughput."""
    whole = ceil(n / lanes)

    def cycles(r: int, v: int) -> float:
        return max(r * v / PER_CYCLE, LATENCY, (r + v) / PER_CYCLE) + 0.25 if r and v else 0.0

    full_rows, last_rows = divmod(m, rows)
    full_columns, last_columns = divmod(whole, vectors)
    return sum(
        a * b * cycles(r, v)
        for a, r in ((full_rows, rows), (1, last_rows))
        for b, v in ((full_columns, vectors), (1, last_columns))
    ) / (m * whole / PER_CYCLE)


def panel_steps(kernel: OuterProduct, caches: Caches) -> int:
    """Steps of a panel of the right operand that fills half of the second level: the left operand streams by."""
    return max(64, caches.l2 // 2 // (kernel.columns * kernel.dtype.size))


def call_steps(axes: tuple[Axis, ...], choice: Choice) -> int:
    """Steps of the reduction in one call of the register tile."""
    return prod(axis.guess for axis in axes[len(axes) - choice.inner :]) * (choice.reduce_cut or 1)


def reduction(axes: tuple[Axis, ...], most: int) -> tuple[int, int | None, int]:
    """How many inner axes stay whole, the tile of the next one, and the steps of one call: at most `most`."""
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
    """Whether neighbours in the flattened loop are not neighbours in the right operand."""
    expected = 1
    for axis in reversed(group):
        if axis.right.number != expected:
            return True
        expected *= axis.guess
    return False


def shared_role(r: Roles, m: int, n: int, kernel: OuterProduct, threads: int) -> str | None:
    """The role whose loop the threads share, where there is work enough for several."""
    steps = prod(axis.guess for axis in r.reduce)
    batches = prod(axis.guess for axis in r.batch)
    if threads == 1 or m * n * steps * batches < WORTHWHILE:
        return None
    if batches >= threads and r.batch:
        return "batch"
    if n >= threads * kernel.columns and n * 4 >= m:
        return "columns"
    return "rows" if m >= threads * kernel.rows else None
