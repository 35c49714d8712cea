"""Percent of the FMA peak that each register tile reaches.

`python -m microkernels.speed [ISA …]` prints the tables of docs/microkernels.md.

One C program per ISA and type holds every tile and a loop of independent multiply-adds in registers. Each sample runs
that loop and then the kernel, so both see the same clock; the figure is the median of the ratios. Operands stay in
L2: `packed` multiplies 96 rows of packed A with one panel of B, `strided` is a square product on unpacked row-major
arrays.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from microkernels.catalogue import tiles
from microkernels.ctext import specialise
from microkernels.dtypes import DType, f32, f64
from microkernels.isa import ISA, ISAS, host
from microkernels.kernel import OuterProduct

DEPTHS = (64, 128, 256, 512)
SQUARES = (64, 128, 256)

HARNESS = """
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec + 1e-9 * t.tv_nsec; }
static int rising(const void *a, const void *b) { double x = *(double *)a, y = *(double *)b; return (x > y) - (x < y); }

static __attribute__((noinline)) double peak(int64_t steps)
{
    vec_T s[12], x = broadcast_T(1), y = broadcast_T(0);
    UNROLL
    for (int i = 0; i < 12; i++) s[i] = broadcast_T(i);
    double start = now();
    for (int64_t k = 0; k < steps; k++) {
        UNROLL
        for (int i = 0; i < 12; i++) {
            s[i] = fma_T(x, y, s[i]);
            __asm__("" : "+REG"(s[i]));
        }
    }
    double seconds = now() - start;
    volatile T sink = 0;
    UNROLL
    for (int i = 0; i < 12; i++) sink += s[i][0];
    return 2.0 * 12 * LANES_T * steps / seconds;
}

static T *fresh(int64_t count)
{
    T *p = aligned_alloc(64, (count * sizeof(T) + 63) / 64 * 64);
    for (int64_t i = 0; i < count; i++) p[i] = i % 7 - 3;
    return p;
}

typedef void (*job_T)(const T *a, const T *b, T *c, int64_t k);

static double fraction(job_T job, double flop, const T *a, const T *b, T *c, int64_t k)
{
    enum { SAMPLES = 31 };
    double ratio[SAMPLES];
    int64_t times = 4e7 / flop + 1;
    for (int s = 0; s < SAMPLES; s++) {
        double best = peak(60000), start = now();
        for (int64_t t = 0; t < times; t++) job(a, b, c, k);
        ratio[s] = flop * times / (now() - start) / best;
    }
    qsort(ratio, SAMPLES, sizeof *ratio, rising);
    return 100 * ratio[SAMPLES / 2];
}
"""


def pointers(name: str, const: str, terms: Sequence[str]) -> str:
    return f"GLOBAL {const}T *const {name}[] = {{{', '.join(terms)}}};"


def jobs(kernel: OuterProduct) -> str:
    """C text of the two jobs of a kernel, packed_NAME and strided_NAME, for `specialise`."""
    rows, columns = kernel.rows, kernel.columns
    tiles = 96 // rows
    packed_a = pointers("pa", "const ", [f"a + {i}" for i in range(rows)])
    packed_c = pointers("pc", "", [f"c + {i * columns}" for i in range(rows)])
    strided_a = pointers("pa", "const ", [f"a + {i} * k" for i in range(rows)])
    strided_c = pointers("pc", "", [f"c + {i} * k + j" for i in range(rows)])
    return f"""
static __attribute__((noinline))
void packed_{kernel.c_name}(GLOBAL const T *a, GLOBAL const T *b, GLOBAL T *c, int64_t k)
{{
    for (int64_t t = 0; t < {tiles}; t++, a += {rows} * k, c += {rows * columns}) {{
        {packed_a}
        {packed_c}
        {kernel.c_name}({rows}, {columns}, pa, b, pc, k, {rows}, {columns}, 1, 0, 0, 1, 0, 0, 1, 1);
    }}
}}
static __attribute__((noinline))
void strided_{kernel.c_name}(GLOBAL const T *a, GLOBAL const T *b, GLOBAL T *c, int64_t k)
{{
    for (int64_t j = 0; j + {columns} <= k; j += {columns}) {{
        GLOBAL const T *a0 = a;
        GLOBAL T *c0 = c;
        for (int64_t i = 0; i + {rows} <= k; i += {rows}, a += {rows} * k, c += {rows} * k) {{
            {strided_a}
            {strided_c}
            {kernel.c_name}({rows}, {columns}, pa, b + j, pc, k, 1, k, 1, 0, 0, 1, 0, 0, 1, 1);
        }}
        a = a0;
        c = c0;
    }}
}}
"""


def flops(kernel: OuterProduct) -> list[tuple[str, int, int]]:
    """The columns of the table: the job, its depth, and its number of floating-point operations."""
    rows, columns = kernel.rows, kernel.columns
    packed = [("packed", k, 2 * (96 // rows * rows) * columns * k) for k in DEPTHS]
    return packed + [("strided", k, 2 * (k // rows * rows) * (k // columns * columns) * k) for k in SQUARES]


def calls(kernel: OuterProduct) -> str:
    """C text that prints the kernel's line of the table."""
    lines = [f'    printf("| {kernel.rows}x{kernel.columns} ");']
    for job, k, flop in flops(kernel):
        lines.append(f'    printf("| %.1f ", fraction({job}_{kernel.c_name}, {flop}.0, a, b, c, {k}));')
    return "\n".join([*lines, '    printf("|\\n");'])


def program(isa: ISA, dtype: DType, kernels: Sequence[OuterProduct]) -> str:
    """The C program that measures these kernels."""
    sources = "".join(kernel.source([kernel.rows], [kernel.columns]) for kernel in kernels)
    registers = "w" if isa.machine == "aarch64" else "v" if isa.name == "avx512" else "x"
    text = HARNESS.replace("REG", registers) + "".join(map(jobs, kernels))
    text += "int main(void)\n{\n    T *a = fresh(1 << 17), *b = fresh(1 << 17), *c = fresh(1 << 17);\n"
    text += "\n".join(map(calls, kernels)) + "\n}\n"
    return sources + specialise(text, isa, dtype)


def table(isa: ISA, dtype: DType, kernels: Sequence[OuterProduct], compiler: str = "gcc") -> str:
    """Lines of a Markdown table: tile, packed at each depth, strided at each size, in percent of the FMA peak."""
    with tempfile.TemporaryDirectory() as folder:
        source, binary = Path(folder, "speed.c"), Path(folder, "speed")
        source.write_text(program(isa, dtype, kernels))
        subprocess.run([compiler, "-O3", *isa.flags, str(source), "-o", str(binary)], check=True)
        return subprocess.run([str(binary)], check=True, capture_output=True, text=True).stdout


def heads() -> str:
    """The head of a table."""
    columns = ["tile", *(f"packed K={k}" for k in DEPTHS), *(f"strided {k}³" for k in SQUARES)]
    return f"| {' | '.join(columns)} |\n|{'---|' * len(columns)}"


def main(names: Sequence[str]) -> None:
    for isa in [ISAS[name] for name in names] or [host()]:
        for dtype in (f32, f64):
            print(f"\n{isa.name} {dtype}\n\n{heads()}")
            print(table(isa, dtype, tiles(isa, dtype)), end="", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
