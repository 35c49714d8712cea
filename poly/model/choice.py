"""The default schedule of a contraction, from its extents and strides and the machine's caches alone.

After Low, Igual, Smith, Quintana-Orti, "Analytical modeling is enough for high-performance BLIS" (ACM TOMS 43(2),
2016), extended to several loops in each role and to operands that are read in place. Their order is kept: the reduction
is cut so that one panel of the right operand stays in the second-level cache while rows go by, the rows so that a block
of the left operand stays there too, the columns so that the packed right operand stays within the last level.

What the caches don't tell (the weights below) was set by measurements on one AVX-512 core; none depends on its speed.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, prod

from microkernels.catalogue import Microkernel, fits, gemm
from microkernels.dtypes import DType
from microkernels.isa import ISA
from poly.roles import Axis, Roles

LATENCY, PER_CYCLE = 4, 2
"""Of a fused multiply-add: cycles until the result is there, and how many start each cycle. Also the loads each cycle.

Those of Intel's cores since Skylake, AMD's since Zen 3 and Arm's Neoverse N; they only weigh tile shapes against each
other, so that a core that differs by a cycle gets a tile nearly as good.
"""

TRAFFIC, STREAM = 0.1, 0.004
"""What a load beside each multiply-add costs, relative to it, and one more row read in place (a stream of its own)."""

POINTERS, CROWDED = 14, 0.2
"""Rows whose pointers stay in general registers, nearly all of the 16 of x86, and what it costs to have more."""

LONELY = 0.3
"""What a result of one tile alone costs: with two, one's last stores overlap the other's first loads."""

WORTHWHILE = 4_000_000
"""Multiply-adds below which threads don't pay: some tens of microseconds, a few times what starting them takes."""

LINE, PAGE = 64, 4096
"""Bytes of a cache line, and of a page that takes an entry in the TLB."""

FEW = 256
"""Rows that can pass by one panel after the other, their results lying pages apart, without many misses in the TLB."""

ASSUMED_STRIDE = 1 << 20
"""Elements between neighbours where that depends on sizes that are open: further than any cache line or page."""


@dataclass(frozen=True)
class Caches:
    """Bytes of one core's first and second level, and of its share of the last."""

    l1: int
    l2: int
    l3: int


@dataclass(frozen=True)
class Choice:
    """The model's decision for one contraction.

    `columns_cut` and `rows_cut` are the cache tiles of the flattened loops (None: not cut).
    """

    kernel: Microkernel
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


@dataclass(frozen=True)
class _Problem:
    """`m` rows (flattened) by the columns of `group` (flattened, the last the fastest), `depth` steps a call."""

    roles: Roles
    m: int
    group: tuple[Axis, ...]
    depth: int
    kernel: Microkernel
    caches: Caches
    threads: int

    @property
    def n(self) -> int:
        return prod(axis.guess for axis in self.group)

    @property
    def symbolic(self) -> bool:
        return any(axis.extent is None for axis in self.roles.columns)

    def right_bytes(self, columns: int) -> int:
        """Of the right operand's part that one pass over the rows reads, for so many columns."""
        return self.depth * columns * self.kernel.dtype.size


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
    """Structure and tile sizes for `m` rows (flattened) and the columns `columns_group` (flattened, the last fastest).

    `by_lines` says that the output's next neighbours after a short run of columns are rows: these must come first then.
    """
    kernel = tile_shape(m, prod(axis.guess for axis in columns_group), isa, dtype)
    inner, cut, depth = reduction(r.reduce, max(64, caches.l2 // 2 // (kernel.columns * dtype.size)))
    p = _Problem(r, m, columns_group, depth, kernel, caches, threads)
    pack_right = _pack_right(p)
    parallel = _parallel(p)
    columns = _columns_cut(p, pack_right, parallel)
    fits_nearby = not by_lines and _right_fits(p, columns, pack_right)
    rows = _rows_cut(p, fits_nearby, parallel)
    together = any(axis.right.constant == 1 for axis in r.columns) and p.n * dtype.size < 2 * PAGE
    return Choice(
        kernel,
        reduce_cut=cut,
        inner=inner,
        columns_cut=columns,
        rows_cut=rows,
        pack_left=_pack_left(p),
        pack_right=pack_right,
        rows_inside=not fits_nearby,
        panel_by_panel=not fits_nearby and not together and (rows is None or parallel == "rows"),
        parallel=parallel,
    )


def _columns_cut(p: _Problem, pack_right: bool, parallel: str | None) -> int | None:
    """Columns whose copy fills at most three eighths of the last level, and that give each thread its share."""
    width, most = p.kernel.columns, p.caches.l3 * 3 // 8
    cut = None
    if pack_right and (p.symbolic or p.right_bytes(p.n) > most):
        cut = max(width, most // p.right_bytes(1) // width * width)
    if parallel != "columns":
        return cut
    share = ceil(ceil(p.n / width) / p.threads) * width
    return share if cut is None else _balanced(share, cut, width)


def _right_fits(p: _Problem, columns_cut: int | None, pack_right: bool) -> bool:
    """Whether the right operand stays in half of the second level while all rows go by (their loop outside)."""
    right = p.right_bytes(min(p.n, columns_cut or p.n))
    others = prod(axis.guess for axis in p.roles.columns) // p.n
    streamed = not pack_right and p.right_bytes(p.kernel.columns) <= p.caches.l1 // 2 and 1 < p.m <= FEW
    return not p.symbolic and right * others <= p.caches.l2 // 2 and not (streamed and right > p.caches.l1)


def _rows_cut(p: _Problem, right_fits: bool, parallel: str | None) -> int | None:
    """Rows whose left operand stays in the caches while columns go by, and that give each thread its share."""
    rows = p.kernel.rows
    block = max(8, min(2 * p.caches.l2, p.caches.l3 // 8) // p.right_bytes(1) // rows) * rows
    cut = _balanced(p.m, block, rows) if not right_fits and p.m > block else None
    if parallel != "rows":
        return cut
    share = ceil(ceil(p.m / rows) / p.threads) * rows
    return share if cut is None else min(cut, share)


def tile_shape(m: int, n: int, isa: ISA, dtype: DType) -> Microkernel:
    """The register tile of the least cost for m x n results, edges counted."""
    lanes = isa.lanes(dtype)
    best: tuple[float, Microkernel] | None = None
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
    penalty = TRAFFIC * (rows + vectors) / (rows * vectors) + STREAM * rows + (CROWDED if rows > POINTERS else 0)
    cost = _tile_cycles(m, n, rows, vectors, lanes) * (1 + penalty)
    alone = rows >= m > 4 and vectors * lanes >= n
    return cost * (1 + LONELY) if alone else cost


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


def reduction(axes: tuple[Axis, ...], most: int) -> tuple[int, int | None, int]:
    """How many inner axes stay whole, the tile of the next one, and the steps of one call: at most `most`.

    The default is as many as a panel of the right operand (width x steps) that fills half of the second level: the left
    operand streams by.
    """
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


def _pack_right(p: _Problem) -> bool:
    """Where the right operand isn't contiguous along the columns it must be copied.

    Where it is, a copy pays if rows enough go by, and its lines in place lie pages apart or the whole is too large for
    the second level.
    """
    if is_scattered(p.group):
        return True
    if p.right_bytes(p.kernel.columns) <= p.caches.l1 // 2 and p.m <= FEW:
        return False
    apart = max((axis.right.constant or ASSUMED_STRIDE for axis in p.roles.reduce), default=0) * p.kernel.dtype.size
    if apart >= PAGE:
        return p.m >= 8 * p.kernel.rows and p.right_bytes(p.n) > p.caches.l1
    return p.m >= 64 * p.kernel.rows and apart >= PAGE // 4 and p.right_bytes(p.n) > p.caches.l2 // 2


def is_scattered(group: tuple[Axis, ...]) -> bool:
    """Whether neighbours in the flattened loop are not neighbours in the right operand."""
    expected = 1
    for axis in reversed(group):
        if axis.right.constant != expected:
            return True
        expected *= axis.guess
    return False


def _pack_left(p: _Problem) -> bool:
    """Whether a copy of the left operand pays: four panels or more read it, and its steps lie cache lines apart."""
    if p.n <= 3 * p.kernel.columns or p.m < p.kernel.rows:
        return False
    strides = (axis.left.constant or ASSUMED_STRIDE for axis in p.roles.reduce if axis.guess >= 8)
    nearest = min(strides, default=1)
    return nearest != 1 and nearest * p.kernel.dtype.size >= 4 * LINE


def _parallel(p: _Problem) -> str | None:
    """The role whose loop the threads share, where there is work enough for several."""
    r, threads = p.roles, p.threads
    steps = prod(axis.guess for axis in r.reduce)
    batches = prod(axis.guess for axis in r.batch)
    if threads == 1 or p.m * p.n * steps * batches < WORTHWHILE:
        return None
    if batches >= threads and r.batch:
        return "batch"
    if p.n >= threads * p.kernel.columns and p.n * 4 >= p.m:
        return "columns"
    return "rows" if p.m >= threads * p.kernel.rows else None
