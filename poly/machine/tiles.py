"""The speed of each register tile: the time of a reduction step, and the overhead of a call. Measured once, and kept.

Every tile runs from the first-level cache over a short and a long reduction; the time of a call is linear in the steps,
so two lengths determine both. Each sample is divided by a probe of multiply-adds in registers that runs right after it,
at the same clock frequency.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from statistics import median

from codegen.build import load
from codegen.cache import get, put
from microkernels.catalogue import fits, gemm
from microkernels.ctext import specialise
from microkernels.dtypes import DType
from microkernels.isa import ISA
from microkernels.kernel import OuterProduct
from poly.machine.description import Machine

VERSION = 2
"""Incremented when the measurement changes."""

ROWS = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 16, 20, 24, 28)
"""Rows of the register tiles that are measured."""

SHORT, LONG = 24, 96
"""Steps of the two reductions: the operands of the longer one just fit in the first-level cache."""

SAMPLES = 9

LEAST = 10.0
"""The least overhead of a call in multiply-adds, in addition to one for each vector of the tile.

The steps of a small tile wait for each other, so that in a loop of nothing but calls the overhead seems to be free.
"""

SOURCE = """
#include <time.h>

static double now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec + 1e-9 * t.tv_nsec; }

/* Seconds of one multiply-add of whole vectors, many at a time. */
double unit(int64_t steps)
{
    vec_T s[16], x = broadcast_T(1), y = broadcast_T(0);
    UNROLL
    for (int i = 0; i < 16; i++) s[i] = broadcast_T(i);
    const double start = now();
    for (int64_t k = 0; k < steps; k++) {
        UNROLL
        for (int i = 0; i < 12; i++) {
            s[i] = fma_T(x, y, s[i]);
            __asm__("" : "+REGISTER"(s[i]));
        }
    }
    const double seconds = now() - start;
    volatile T sink = 0;
    UNROLL
    for (int i = 0; i < 12; i++) sink += s[i][0];
    return seconds / (12 * steps);
}
"""

JOB = """
double {name}(const T *a, const T *b, T *c, int64_t k, int64_t calls)
{{
    const T *pa[{rows}];
    T *pc[{rows}];
    for (int64_t i = 0; i < {rows}; i++) {{
        pa[i] = a + i * ({long} + {apart});
        pc[i] = c + i * ({columns} + {apart});
    }}
    const double start = now();
    for (int64_t n = 0; n < calls; n++)
        {kernel}({rows}, {columns}, pa, b, pc, k, 1, {columns}, 1, 0, 0, 1, 0, 0, 1, 1);
    return (now() - start) / calls;
}}
"""


@dataclass(frozen=True)
class TileSpeed:
    """A register tile of `rows` x `vectors`: the time of a step and the overhead of a call, in multiply-adds."""

    rows: int
    vectors: int
    step: float
    call: float


def kept_tiles(machine: Machine, dtype: DType) -> tuple[TileSpeed, ...]:
    """The cached speeds; empty if there are none or the entry is damaged. Nothing is measured."""
    return _parse(get(_key(machine, dtype))) or ()


def tile_speeds(machine: Machine, dtype: DType) -> tuple[TileSpeed, ...]:
    """The speeds of the machine's register tiles, from the cache directory or else measured now (a few seconds).

    Raises ToolchainError if the probes cannot be built or kept.
    """
    known = kept_tiles(machine, dtype)
    if not known:
        known = _measure(machine.isa, dtype)
        put(_key(machine, dtype), json.dumps([asdict(speed) for speed in known]))
    return known


def _key(machine: Machine, dtype: DType) -> str:
    return f"tiles {machine.cpu} {machine.isa.name} {dtype.name} {VERSION}"


def _measure(isa: ISA, dtype: DType) -> tuple[TileSpeed, ...]:
    kernels = [gemm(isa, dtype, rows, vectors) for vectors in range(1, 5) for rows in ROWS if fits(isa, rows, vectors)]
    parts = [kernels[n::4] for n in range(4)]
    return tuple(speed for part in parts if part for speed in _speeds(isa, dtype, part))


def _speeds(isa: ISA, dtype: DType, kernels: list[OuterProduct]) -> Iterable[TileSpeed]:
    """Build and run a few tiles; several libraries compile faster than one with all tiles."""
    text = "".join(kernel.source([kernel.rows], [kernel.columns]) for kernel in kernels)
    register = "w" if isa.machine == "aarch64" else "v" if isa.name == "avx512" else "x"
    jobs = [
        JOB.format(name=_name(k), rows=k.rows, columns=k.columns, kernel=k.c_name, long=LONG, apart=64 // dtype.size)
        for k in kernels
    ]
    text += specialise(SOURCE.replace("REGISTER", register) + "".join(jobs), isa, dtype)
    scalar = dtype.c_name
    arguments = f"const {scalar} *a, const {scalar} *b, {scalar} *c, int64_t k, int64_t calls"
    heads = "".join(f"double {_name(k)}({arguments});\n" for k in kernels)
    library = load(text, f"double unit(int64_t steps);\n{heads}", isa.flags)
    a, b, c = (library.ffi.new(f"{scalar}[]", 32 * (LONG + 64) + 64) for _ in range(3))
    for kernel in kernels:
        job = getattr(library.lib, _name(kernel))
        short, long = (
            median(
                job(a, b, c, depth, 20000 // (kernel.rows * kernel.vectors * depth // 64 + 1)) / library.lib.unit(4000)
                for _ in range(SAMPLES)
            )
            for depth in (SHORT, LONG)
        )
        size = float(kernel.rows * kernel.vectors)
        step = max(size, (long - short) / (LONG - SHORT))
        yield TileSpeed(kernel.rows, kernel.vectors, step, max(size + LEAST, long - LONG * step))


def _name(kernel: OuterProduct) -> str:
    return f"job_{kernel.rows}_{kernel.vectors}"


def _parse(text: str | None) -> tuple[TileSpeed, ...] | None:
    """The speeds that `tile_speeds` stored; None if the text is missing or not valid."""
    try:
        return tuple(TileSpeed(**entry) for entry in json.loads(text or "")) or None
    except (ValueError, TypeError):
        return None
