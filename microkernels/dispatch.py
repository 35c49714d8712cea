"""The C function of a GEMM microkernel: it dispatches m rows and n columns to an instance of the tile.

Each (rows, vectors) that can occur is an instance of `gemm_tile_T`, unrolled in registers. With known sizes only
those are emitted; else the whole tile is inlined at the call, and an outlined function serves the edges.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product

PARAMETERS = (
    "int64_t m, int64_t n, A_SPACE const T *const *a, B_SPACE const T *b, C_SPACE T *const *c, "
    "int64_t K, int64_t a0, int64_t b0, int64_t K1, int64_t a1, int64_t b1, int64_t K2, int64_t a2, int64_t b2, "
    "T alpha, int accumulate"
)
REST = "K, a0, b0, K1, a1, b1, K2, a2, b2, alpha, accumulate"
MAX_INSTANCES = 9
CORNER_ROWS = 6


def tile(rows: int, vectors: int, last: str, a: str = "a", b: str = "b", c: str = "c") -> str:
    """A call of an instance whose last vector holds `last` columns ("0": it is full)."""
    return f"gemm_tile_T({rows}, {vectors}, {int(last != '0')}, {last}, {a}, {b}, {c}, {REST});"


def gemm_function(
    name: str, rows: int, columns: int, lanes: int, m_values: Iterable[int] | None, n_values: Iterable[int] | None
) -> str:
    """C text of the function `name` for a tile of rows x columns, for the values of m and n given (None: any)."""
    ms = sorted(m_values if m_values is not None else range(1, rows + 1), reverse=True)
    ns = sorted(n_values if n_values is not None else range(1, columns + 1), reverse=True)
    bad = [f"m = {m}" for m in ms if not 1 <= m <= rows] + [f"n = {n}" for n in ns if not 1 <= n <= columns]
    if bad:
        raise ValueError(f"{name} serves 1 to {rows} rows and 1 to {columns} columns, not {', '.join(bad)}")
    by_vectors: dict[int, list[int]] = {}
    for n in ns:
        by_vectors.setdefault(-(-n // lanes), []).append(n)
    if len(ms) * len(by_vectors) <= MAX_INSTANCES:
        return known_edges(name, ms, by_vectors, lanes)
    return any_edges(name, rows, columns // lanes)


def known_edges(name: str, ms: list[int], by_vectors: dict[int, list[int]], lanes: int) -> str:
    """One instance for each m and number of vectors."""
    lines = [f"INLINE void {name}({PARAMETERS})", "{", "    (void)m, (void)n;"]
    for m, (vectors, ns) in product(ms, by_vectors.items()):
        conditions = [f"m == {m}"] if len(ms) > 1 else []
        if len(by_vectors) > 1:
            conditions.append(f"n > {(vectors - 1) * lanes}")
        last = str(ns[0] % lanes) if len(ns) == 1 else f"n - {(vectors - 1) * lanes}"
        guard = f"if ({' && '.join(conditions)}) " if conditions else ""
        lines += [f"    {guard}{{", f"        {tile(m, vectors, last)}", "        return;", "    }"]
    return "\n".join([*lines, "}"])


def any_edges(name: str, rows: int, vectors: int) -> str:
    """The whole tile inlined, and a function for the edges.

    A tile with all its rows has an instance for each number of vectors, a tile with all its vectors one for each
    number of rows; the corner is computed one vector of columns at a time, in groups of rows that keep the
    multiply-add units busy.
    """
    whole = [f"        case {v}: {tile(rows, v, 'last')} return;" for v in range(1, vectors + 1)]
    fewer = [f"        case {r}: {tile(r, vectors, 'last')} return;" for r in range(1, rows)]
    return "\n".join(
        [
            f"NOINLINE void {name}_edge({PARAMETERS})",
            "{",
            "    const int64_t vectors = (n + LANES_T - 1) / LANES_T;",
            "    const int64_t last = n - (vectors - 1) * LANES_T;",
            f"    if (m == {rows}) {{",
            "        switch (vectors) {",
            *whole,
            "        }",
            "    }",
            f"    if (vectors == {vectors}) {{",
            "        switch (m) {",
            *fewer,
            "        }",
            "    }",
            *(_corner(min(CORNER_ROWS, rows - 1)) if vectors > 1 and rows > 1 else []),
            "}",
            f"INLINE void {name}({PARAMETERS})",
            "{",
            f"    if (m == {rows} && n == {vectors} * LANES_T)",
            f"        {tile(rows, vectors, '0')}",
            "    else",
            f"        {name}_edge(m, n, a, b, c, {REST});",
            "}",
        ]
    )


def _corner(group: int) -> list[str]:
    """The lines for tiles with neither all rows nor all vectors, in groups of so many rows."""
    single = [f"            case {r}: {tile(r, 1, 'part', 'a + i', 'b + j', 'cj')} break;" for r in range(1, group + 1)]
    return [
        "    for (int64_t j = 0; j < n; j += LANES_T) {",
        "        const int64_t part = least_T(n - j, LANES_T);",
        f"        for (int64_t i = 0; i < m; i += {group}) {{",
        f"            const int64_t some = least_T(m - i, {group});",
        f"            C_SPACE T *cj[{group}];",
        "            for (int64_t r = 0; r < some; r++)",
        "                cj[r] = c[i + r] + j;",
        "            switch (some) {",
        *single,
        "            }",
        "        }",
        "    }",
    ]
