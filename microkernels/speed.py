"""Percent of the FMA peak that each register tile reaches, on a quiet core and on a busy one.

`python -m microkernels.speed [ISA …]` prints the tables of docs/microkernels.md; `--help` lists the options.

One C program per ISA and type holds every tile. It runs all tiles in turn, round after round, so that what disturbs the
machine for a while disturbs them all alike. Speeds are per cycle of the core's clock, which a chain of dependent
operations tells beside each sample; the peak is the best that a loop of independent multiply-adds in registers reaches.
Another hardware thread of the core takes issue slots and leaves the peak as it is, so a loop of nops is timed before
and after each sample: a sample is quiet if both reach nearly their best rate, busy if both fall far below it, and else
left out. Operands stay in L2: `packed` multiplies 96 rows of packed A with one panel of B, `strided` is a square
product on unpacked row-major arrays.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import quantiles

from microkernels.catalogue import TUNED, tiles
from microkernels.ctext import specialise, vector_constraint
from microkernels.dtypes import DType
from microkernels.isa import ISA, ISAS, host
from microkernels.kernel import OuterProduct

DEPTHS = (64, 128, 256, 512)
SQUARES = (64, 128, 256)

ROUNDS = 61
QUIET, BUSY = 0.85, 0.65
"""The least issue rate of a quiet sample and the highest of a busy one, relative to the best."""
LEAST = 8
"""Fewer samples than this tell nothing."""

HARNESS = """
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec + 1e-9 * t.tv_nsec; }

/* Cycles per second: each operation needs the result of the one before. */
static __attribute__((noinline)) double clock_rate(void)
{
    enum { STEPS = 4000 };
    uint64_t x = 1, y = 3;
    double start = now();
    for (int64_t k = 0; k < STEPS; k++) {
        UNROLL
        for (int i = 0; i < 8; i++) {
            x ^= y;
            __asm__ volatile("" : "+r"(x), "+r"(y));
        }
    }
    return 8.0 * STEPS / (now() - start);
}

/* Instructions per second that need nothing but to be issued. */
static __attribute__((noinline)) double issue_rate(void)
{
    enum { STEPS = 1500 };
    double start = now();
    for (int64_t k = 0; k < STEPS; k++) {
        UNROLL
        for (int i = 0; i < 32; i++) __asm__ volatile("nop\\n\\tnop\\n\\tnop\\n\\tnop");
    }
    return 128.0 * STEPS / (now() - start);
}

/* Floating-point operations per second of independent multiply-adds. */
static __attribute__((noinline)) double peak(void)
{
    enum { STEPS = 4000 };
    vec_T s[12], x = broadcast_T(1), y = broadcast_T(0);
    UNROLL
    for (int i = 0; i < 12; i++) s[i] = broadcast_T(i);
    double start = now();
    for (int64_t k = 0; k < STEPS; k++) {
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
    return 2.0 * 12 * LANES_T * STEPS / seconds;
}

static T *fresh(int64_t count)
{
    T *p = aligned_alloc(64, (count * sizeof(T) + 63) / 64 * 64);
    for (int64_t i = 0; i < count; i++) p[i] = i % 7 - 3;
    return p;
}

typedef void (*job_T)(const T *a, const T *b, T *c, int64_t k);

/* Prints floating-point operations per cycle, and the issue rate per cycle before and after them. */
static void sample(job_T job, double flop, const T *a, const T *b, T *c, int64_t k)
{
    int64_t times = 1e7 / flop + 1;
    job(a, b, c, k);
    double clock = clock_rate(), before = issue_rate(), start = now();
    for (int64_t t = 0; t < times; t++) job(a, b, c, k);
    double seconds = now() - start, after = issue_rate();
    clock = (clock + clock_rate()) / 2;
    printf("%.4f %.4f %.4f\\n", flop * times / seconds / clock, before / clock, after / clock);
}
"""

MAIN = """
int main(int count, char **arguments)
{{
    if (count == 1)
        for (;;) issue_rate();
    T *a = fresh(1 << 17), *b = fresh(1 << 17), *c = fresh(1 << 17);
    for (int64_t round = atoi(arguments[1]); round > 0; round--) {{
        double clock = clock_rate();
        printf("%.4f\\n", 2 * peak() / (clock + clock_rate()));
{samples}
    }}
    return 0;
}}
"""
"""Without an argument the program is a neighbour that takes issue slots until it is killed."""


@dataclass(frozen=True)
class Sample:
    """Floating-point operations per cycle, and the lower and the higher of the two issue rates beside them."""

    speed: float
    least_issue: float
    most_issue: float


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


def program(isa: ISA, dtype: DType, kernels: Sequence[OuterProduct]) -> str:
    """The C program that prints, for each round, the peak and a sample of each kernel's columns."""
    sources = "".join(kernel.source([kernel.rows], [kernel.columns]) for kernel in kernels)
    registers = vector_constraint(isa)
    calls = [
        f"        sample({job}_{kernel.c_name}, {flop}.0, a, b, c, {k});"
        for kernel in kernels
        for job, k, flop in flops(kernel)
    ]
    main = MAIN.format(samples="\n".join(calls))
    return sources + specialise(HARNESS.replace("REG", registers) + "".join(map(jobs, kernels)) + main, isa, dtype)


def siblings(text: str) -> frozenset[int]:
    """The CPUs in a list of Linux such as `0-1,8`."""
    ranges = [part.split("-") for part in text.strip().split(",") if part]
    return frozenset(cpu for first, *last in ranges for cpu in range(int(first), int((last or [first])[0]) + 1))


def neighbour_of(cpu: int, others: frozenset[int]) -> int | None:
    """The other hardware thread of a CPU's core, or else any other CPU: a virtual machine may not say what shares a
    core."""
    path = Path(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list")
    listed = siblings(path.read_text()) if path.exists() else frozenset()
    return min(listed & others or others, default=None)


@contextmanager
def spinning(binary: Path, cpu: int | None) -> Iterator[None]:
    """Issue slots are taken on a CPU meanwhile; on none if it is None."""
    if cpu is None:
        yield
        return
    with subprocess.Popen([str(binary)]) as spinner:
        try:
            os.sched_setaffinity(spinner.pid, {cpu})
            yield
        finally:
            spinner.kill()


def measured(
    isa: ISA, dtype: DType, kernels: Sequence[OuterProduct], rounds: int, neighbour: int | None = None
) -> tuple[float, list[list[Sample]]]:
    """The peak in floating-point operations per cycle, and the samples of each kernel's columns, one after another."""
    with tempfile.TemporaryDirectory() as folder:
        source, binary = Path(folder, "speed.c"), Path(folder, "speed")
        source.write_text(program(isa, dtype, kernels))
        subprocess.run(["gcc", "-O3", *isa.flags, str(source), "-o", str(binary)], check=True)
        with spinning(binary, neighbour):
            done = subprocess.run([str(binary), str(rounds)], check=True, capture_output=True, text=True)
    return parsed(done.stdout)


def parsed(text: str) -> tuple[float, list[list[Sample]]]:
    """What the program printed: the upper quartile of the peaks, and the samples of each column, in rounds."""
    peaks: list[float] = []
    rounds: list[list[Sample]] = []
    for line in text.splitlines():
        speed, *issue = map(float, line.split())
        if issue:
            rounds[-1].append(Sample(speed, min(issue), max(issue)))
        else:
            peaks.append(speed)
            rounds.append([])
    return quantiles(peaks, n=4)[2], [list(column) for column in zip(*rounds, strict=True)]


def best_issue(columns: Sequence[Sequence[Sample]]) -> float:
    """The issue rate of a quiet core: nearly the highest, because the clock's probe may be disturbed, too."""
    return nearly_highest(sample.most_issue for column in columns for sample in column)


def nearly_highest(rates: Iterable[float]) -> float:
    """The rate that one in twenty exceeds: probes during which the clock changed exceed what a core can issue."""
    ordered = sorted(rates)
    return ordered[int(0.95 * (len(ordered) - 1))]


def quiet(samples: Sequence[Sample], issue: float) -> list[float]:
    """The speeds on a quiet core, given its issue rate."""
    return [sample.speed for sample in samples if sample.least_issue >= QUIET * issue]


def busy(samples: Sequence[Sample], issue: float) -> list[float]:
    """The speeds on a core whose other hardware thread is busy."""
    return [sample.speed for sample in samples if sample.most_issue <= BUSY * issue]


def cell(speeds: Sequence[float], peak: float) -> str:
    """The quartiles in percent of the peak: `97.2 97.3 97.4`; empty if there are too few samples."""
    return " ".join(f"{100 * speed / peak:.1f}" for speed in quantiles(speeds, n=4)) if len(speeds) >= LEAST else ""


def table(kernels: Sequence[OuterProduct], cells: Sequence[str]) -> str:
    """A Markdown table with the cells of each kernel's columns."""
    width = len(DEPTHS) + len(SQUARES)
    rows = [cells[width * n : width * (n + 1)] for n in range(len(kernels))]
    lines = [f"| {' | '.join((f'{k.rows}x{k.columns}', *row))} |" for k, row in zip(kernels, rows, strict=True)]
    return "\n".join([heads(), *lines])


def heads() -> str:
    """The head of a table."""
    columns = ["tile", *(f"packed K={k}" for k in DEPTHS), *(f"strided {k}³" for k in SQUARES)]
    return f"| {' | '.join(columns)} |\n|{'---|' * len(columns)}"


def report(isa: ISA, dtype: DType, kernels: Sequence[OuterProduct], rounds: int, neighbour: int | None) -> str:
    """The tables of quiet and of busy samples, as far as there were any."""
    peak, columns = measured(isa, dtype, kernels, rounds, neighbour)
    issue = best_issue(columns)
    lines = [f"{isa.name} {dtype}: {peak:.1f} operations and {issue:.1f} nops a cycle at best"]
    for name, kind in (("quiet", quiet), ("busy", busy)):
        speeds = [kind(column, issue) for column in columns]
        share = sum(map(len, speeds)) / sum(map(len, columns))
        lines.append(f"{share:.0%} of the samples are {name}")
        if any(len(some) >= LEAST for some in speeds):
            lines.append(f"\n{table(kernels, [cell(some, peak) for some in speeds])}\n")
    return "\n".join(lines)


def options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m microkernels.speed", description=__doc__.splitlines()[0])
    parser.add_argument("isa", nargs="*", metavar="ISA", help=f"of {', '.join(ISAS)}; this CPU's best if none")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="samples of each tile and column")
    parser.add_argument("--tiles", default="", help="only these, such as 6x16,4x24")
    parser.add_argument("--neighbour", action="store_true", help="keep the core's other hardware thread busy")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str]) -> None:
    given = options(arguments)
    cpu, *others = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cpu})
    neighbour = neighbour_of(cpu, frozenset(others)) if given.neighbour else None
    wanted = set(filter(None, given.tiles.split(",")))
    for isa in [ISAS[name] for name in given.isa] or [host()]:
        for dtype in TUNED:
            kernels = [k for k in tiles(isa, dtype) if not wanted or f"{k.rows}x{k.columns}" in wanted]
            if kernels:
                print(f"\n{report(isa, dtype, kernels, given.rounds, neighbour)}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
