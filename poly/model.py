"""The default schedule of a contraction, from its extents and strides and the machine's caches alone.

After Low, Igual, Smith, Quintana-Orti, "Analytical modeling is enough for high-performance BLIS" (ACM TOMS 43(2), 2016), extended to
several loops in each role and to operands that are read in place. Their order is kept: the reduction is cut so that one panel
of the right operand stays in the second-level cache while rows go by, the rows so that a block of the left operand stays there too, the
columns so that the packed right operand stays within the last level.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, prod

from microkernels.catalogue import Microkernel, fits, gemm
from microkernels.dtypes import DType
from microkernels.isa import ISA
from poly.roles import Axis, Roles

LATENCY, PER_CYCLE = 4, 2
"""Of a fused multiply-add: cycles until the result is there, and how many start each cycle. Also the loads each cycle."""

TRAFFIC, STREAM = 0.1, 0.004
"""What a load beside each multiply-add costs, relative to it, and one more row read in place (a stream of its own)."""

POINTERS, CROWDED = 14, 0.2
"""Rows that can be addressed from registers, and what more of them cost."""

LONELY = 0.3
"""What a result of one tile alone costs: with two, one's last stores overlap the other's first loads."""

WORTHWHILE = 4_000_000
"""Multiply-adds below which threads don't pay."""


@dataclass(frozen=True)
class Caches:
    """Bytes of one core's first and second level, and of its share of the last."""

    l1: int
    l2: int
    l3: int


@dataclass(frozen=True)
class Choice:
    """The model's decision for one contraction.

    `rows`, `columns` and `reduce` are the cache tiles (None: not cut); `inner` is how many of the innermost reduce axes stay whole
    inside the microkernel, the next one being cut into tiles of `reduce`.
    """

    kernel: Microkernel
    reduce_cut: int | None
    inner: int
    columns_cut: int | None
    rows_cut: int | None
    pack_left: bool
    pack_right: bool
    rows_inside: bool
    """Whether the microkernel's tiles go down the rows first (a panel of the right operand stays), or along the columns."""
    panel_by_panel: bool
    """Whether each panel of the right operand is copied just before the rows pass by it, or all of them before."""
    parallel: str | None
    """The role whose outermost loop is parallel: `batch`, `columns` or `rows`."""


def choose(
    r: Roles,
    m: int,
    columns_group: tuple[Axis, ...],
    dtype: DType,
    isa: ISA,
    caches: Caches,
    threads: int,
    by_lines: bool = False,
) -> Choice:
    """Structure and tile sizes for `m` rows (flattened) and the columns of `columns_group` (flattened, the last the fastest).

    `by_lines` says that the output's next neighbours after a short run of columns are rows: these must come first then.
    """
    steps = prod(axis.guess for axis in r.reduce)
    batches = prod(axis.guess for axis in r.batch)
    n = prod(axis.guess for axis in columns_group)
    others = prod(axis.guess for axis in r.columns) // n
    kernel = tile_shape(m, n, isa, dtype)
    size = dtype.size
    inner, cut, depth = _reduction(r.reduce, kernel.columns, size, caches)
    pack_right = _pack_right(r, columns_group, m, depth, kernel, size, caches)
    pack_left = _pack_left(r, m, n, depth, kernel, size, caches)
    parallel = _parallel(m, n, steps, batches, r, kernel, threads)
    symbolic = any(axis.extent is None for axis in r.columns)
    columns = None
    if pack_right and (symbolic or depth * n * size > caches.l3 * 3 // 8):
        columns = max(kernel.columns, caches.l3 * 3 // 8 // (depth * size) // kernel.columns * kernel.columns)
    if parallel == "columns":
        share = ceil(ceil(n / kernel.columns) / threads) * kernel.columns
        columns = share if columns is None else _balanced(share, columns, kernel.columns)
    rows = None
    right = depth * min(n, columns or n) * size
    streamed = not pack_right and depth * kernel.columns * size <= caches.l1 // 2 and 1 < m <= FEW
    right_fits = not symbolic and right * others <= caches.l2 // 2 and not (streamed and right > caches.l1) and not by_lines
    block = max(8, min(2 * caches.l2, caches.l3 // 8) // (depth * size) // kernel.rows) * kernel.rows
    if not right_fits and m > block:
        rows = _balanced(m, block, kernel.rows)
    if parallel == "rows":
        share = ceil(ceil(m / kernel.rows) / threads) * kernel.rows
        rows = share if rows is None else min(rows, share)
    together = any(axis.right.constant == 1 for axis in r.columns) and n * size < 2 * PAGE
    by_panel = not right_fits and not together and (rows is None or parallel == "rows")
    return Choice(kernel, cut, inner, columns, rows, pack_left, pack_right, not right_fits, by_panel, parallel)


def tile_shape(m: int, n: int, isa: ISA, dtype: DType) -> Microkernel:
    """The register tile that takes the fewest cycles for m x n results, edges counted; ties go to the fewest loads."""
    lanes = isa.lanes(dtype)
    best: tuple[float, Microkernel] | None = None
    for vectors in range(1, min(4, ceil(n / lanes)) + 1):
        for rows in range(1, min(isa.registers - 1, m) + 1):
            if not fits(isa, rows, vectors):
                break
            cost = _tile_cycles(m, n, rows, vectors, lanes)
            cost *= 1 + TRAFFIC * (rows + vectors) / (rows * vectors) + STREAM * rows + (CROWDED if rows > POINTERS else 0)
            if rows >= m > 4 and vectors * lanes >= n:
                cost *= 1 + LONELY
            if best is None or cost < best[0]:
                best = cost, gemm(isa, dtype, rows, vectors)
    assert best is not None, "one row of one vector always fits"
    return best[1]


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


def _reduction(axes: tuple[Axis, ...], width: int, size: int, caches: Caches) -> tuple[int, int | None, int]:
    """How many inner axes stay whole, the tile of the next one, and the steps of one call.

    A panel of the right operand (width x steps) may fill half of the second level: the left operand streams by.
    """
    most = max(64, caches.l2 // 2 // (width * size))
    depth = 1
    for inner, axis in enumerate(reversed(axes)):
        if inner == 3:
            return inner, None, depth
        if axis.extent is None or depth * axis.extent > most:
            cut = _balanced(axis.guess, max(1, most // depth), 1 if depth > 1 else 8) if axis.extent else max(1, most // depth)
            return (inner, cut, depth * cut) if cut > 1 or inner == 0 else (inner, None, depth)
        depth *= axis.extent
    return min(len(axes), 3), None, depth


def _balanced(extent: int, most: int, multiple: int) -> int:
    """The tile that cuts `extent` into equal parts of at most `most`, rounded up to a multiple."""
    parts = ceil(extent / max(1, most))
    return ceil(ceil(extent / parts) / multiple) * multiple


def _pack_right(
    r: Roles, group: tuple[Axis, ...], m: int, depth: int, kernel: Microkernel, size: int, caches: Caches
) -> bool:
    """Where the right operand isn't contiguous along the columns it must be copied.

    Where it is, a copy pays if rows enough go by, and its lines in place lie pages apart or the whole is too large for the second level.
    """
    if _is_scattered(group):
        return True
    n = prod(axis.guess for axis in group)
    if depth * kernel.columns * size <= caches.l1 // 2 and m <= FEW:
        return False
    apart = max((axis.right.constant or ASSUMED_STRIDE for axis in r.reduce), default=0) * size
    if apart >= PAGE:
        return m >= 8 * kernel.rows and depth * n * size > caches.l1
    return m >= 64 * kernel.rows and apart >= PAGE // 4 and depth * n * size > caches.l2 // 2


PAGE = 4096
FEW = 256
"""Rows that can pass by one panel after the other, their results lying pages apart, without many misses in the TLB."""
ASSUMED_STRIDE = 1 << 20


def _is_scattered(group: tuple[Axis, ...]) -> bool:
    """Whether neighbours in the flattened loop are not neighbours in the right operand."""
    expected = 1
    for axis in reversed(group):
        if axis.right.constant != expected:
            return True
        expected *= axis.guess
    return False


def _pack_left(r: Roles, m: int, n: int, depth: int, kernel: Microkernel, size: int, caches: Caches) -> bool:
    reuse = ceil(n / kernel.columns)
    if reuse < 2 or m < kernel.rows:
        return False
    nearest = min((axis.left.constant or ASSUMED_STRIDE for axis in r.reduce if axis.guess >= 8), default=1)
    if nearest == 1:
        return False
    return nearest * size >= 256 and reuse >= 4


def _parallel(m: int, n: int, steps: int, batches: int, r: Roles, kernel: Microkernel, threads: int) -> str | None:
    if threads == 1 or m * n * steps * batches < WORTHWHILE:
        return None
    if batches >= threads and r.batch:
        return "batch"
    if n >= threads * kernel.columns and n * 4 >= m:
        return "columns"
    return "rows" if m >= threads * kernel.rows else None
