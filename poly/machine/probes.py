"""Probes: small C loops that only multiply and add, read, or stream.

Each probe runs on `threads` OpenMP threads. They meet at a barrier, each times itself, and the slowest counts.
"""

from __future__ import annotations

import functools
from array import array
from collections.abc import Sequence
from time import sleep
from typing import Any

from codegen.toolchain.build import load
from microkernels import isa
from microkernels.dtypes import DType

SOURCE = """
#include <stdint.h>
#include <stdlib.h>
#include <time.h>
#include <omp.h>

#define VECTOR_BYTES {vector_bytes}
#define ACCUMULATORS {accumulators}
#define STREAMS 8
#define BLOCK 32 /* as many vectors as codegen/lanes/selection_loop.py looks through at a time */
#define PARTS 8
#define ROW (16448 / VECTOR_BYTES) /* vectors of some pages and a line, so that rows do not share sets of caches */

static double now(void) {{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + 1e-9 * t.tv_nsec;
}}

static double slowest(double mine, double others) {{ return mine > others ? mine : others; }}

/* ACCUMULATORS independent chains of a*x + b: they hide the latency of two FMA units, and fit the registers. */
#define DEFINE_PEAK(T)                                                                     \\
typedef T T##_vector __attribute__((vector_size(VECTOR_BYTES), aligned(VECTOR_BYTES)));   \\
static volatile T T##_half = (T)0.5, T##_sink;                                             \\
double peak_##T(int64_t iterations, int threads) {{                                        \\
    double seconds = 0;                                                                    \\
    _Pragma("omp parallel num_threads(threads) reduction(max : seconds)")                  \\
    {{                                                                                     \\
        const T half = T##_half;                                                           \\
        T##_vector factor = (T##_vector){{0}} + half, x[ACCUMULATORS];                     \\
        for (int i = 0; i < ACCUMULATORS; i++) x[i] = factor;                              \\
        _Pragma("omp barrier")                                                             \\
        double start = now();                                                              \\
        for (int64_t n = 0; n < iterations; n++)                                           \\
            _Pragma("GCC unroll 32")                                                       \\
            for (int i = 0; i < ACCUMULATORS; i++) x[i] = x[i] * factor + factor;          \\
        seconds = slowest(now() - start, seconds);                                         \\
        for (int i = 1; i < ACCUMULATORS; i++) x[0] += x[i];                               \\
        T##_sink = x[0][0];                                                                \\
    }}                                                                                     \\
    return seconds;                                                                        \\
}}
DEFINE_PEAK(float)
DEFINE_PEAK(double)

/* The least seconds of starting and joining threads: of `times` starts in a row. */
double start_threads(int64_t times, int threads) {{
    double least = 1;
    for (int64_t n = 0; n < times; n++) {{
        const double start = now();
        _Pragma("omp parallel num_threads(threads)")
        __asm__ volatile("" ::: "memory");
        const double seconds = now() - start;
        least = seconds < least ? seconds : least;
    }}
    return least;
}}

/* Each thread owns `vectors` vectors of each array, and passes over them `passes` times. */
double stream_read(int64_t vectors, int64_t passes, int threads) {{
    double seconds = 0;
    #pragma omp parallel num_threads(threads) reduction(max : seconds)
    {{
        float_vector *a = aligned_alloc(4096, vectors * VECTOR_BYTES);
        for (int64_t i = 0; i < vectors; i++) a[i] = (float_vector){{0}} + 1.0f;
        float_vector sum[STREAMS] = {{{{0}}}};
        for (int warm = 0; warm < 2; warm++) {{
            #pragma omp barrier
            double start = now();
            for (int64_t p = 0; p < (warm ? passes : 1); p++) {{
                for (int64_t i = 0; i < vectors; i += STREAMS)
                    _Pragma("GCC unroll 8")
                    for (int s = 0; s < STREAMS; s++) sum[s] += a[i + s];
                __asm__ volatile("" ::: "memory");
            }}
            seconds = now() - start;
        }}
        for (int s = 1; s < STREAMS; s++) sum[0] += sum[s];
        float_sink = sum[0][0];
        free(a);
    }}
    return seconds;
}}

double stream_triad(int64_t vectors, int64_t passes, int threads) {{
    double seconds = 0;
    #pragma omp parallel num_threads(threads) reduction(max : seconds)
    {{
        float_vector *a = aligned_alloc(4096, 3 * vectors * VECTOR_BYTES), *b = a + vectors, *c = b + vectors;
        for (int64_t i = 0; i < 3 * vectors; i++) a[i] = (float_vector){{0}} + 1.0f;
        const float_vector factor = (float_vector){{0}} + float_half;
        for (int warm = 0; warm < 2; warm++) {{
            #pragma omp barrier
            double start = now();
            for (int64_t p = 0; p < (warm ? passes : 1); p++) {{
                for (int64_t i = 0; i < vectors; i++) a[i] = b[i] + factor * c[i];
                __asm__ volatile("" ::: "memory");
            }}
            seconds = now() - start;
        }}
        float_sink = a[vectors - 1][0];
        free(a);
    }}
    return seconds;
}}

/* The least seconds in which one of PARTS parts of an array is read, a block at a time and each block twice, while what
   lies so many bytes ahead is fetched: as a loop does that looks for an extreme value, then for its place. Each sample
   reads the part behind that of the one before. */
void stream_ahead(int64_t vectors, int64_t rounds, int64_t choices, const int64_t *ahead, double *least)
{{
    float_vector *all = aligned_alloc(4096, vectors * VECTOR_BYTES), sum[BLOCK / 8] = {{{{0}}}};
    for (int64_t i = 0; i < vectors; i++) all[i] = (float_vector){{0}} + 1.0f;
    const int64_t part = vectors / PARTS;
    for (int64_t n = 0; n < rounds * choices; n++) {{
        const float_vector *const from = all + n % PARTS * part;
        const int64_t choice = n % choices, far = ahead[choice];
        const double start = now();
        for (int64_t i = 0; i < part; i += BLOCK) {{
            for (int64_t v = i; v < i + BLOCK; v += BLOCK / 8)
                _Pragma("GCC unroll 4")
                for (int s = 0; s < BLOCK / 8; s++) {{
                    if (far) __builtin_prefetch((const void *)((uintptr_t)(from + v + s) + far));
                    sum[s] += from[v + s];
                }}
            __asm__ volatile("" ::: "memory");
            for (int64_t v = i; v < i + BLOCK; v += BLOCK / 8)
                _Pragma("GCC unroll 4")
                for (int s = 0; s < BLOCK / 8; s++) sum[s] += from[v + s];
            __asm__ volatile("" ::: "memory");
        }}
        const double seconds = now() - start;
        least[choice] = n < choices || seconds < least[choice] ? seconds : least[choice];
    }}
    for (int s = 1; s < BLOCK / 8; s++) sum[0] += sum[s];
    float_sink = sum[0][0];
    free(all);
}}

/* Reads so many vectors as rows, `rows` of them at once, which must be a constant. */
static inline __attribute__((always_inline)) void read_rows(const float_vector *from, int64_t vectors, int64_t rows,
                                                            float_vector *sum)
{{
    for (const float_vector *tile = from; tile < from + vectors; tile += rows * ROW)
        for (int64_t i = 0; i < ROW; i++)
            _Pragma("GCC unroll 32")
            for (int64_t r = 0; r < rows; r++) sum[r % (BLOCK / 8)] += tile[r * ROW + i];
}}

/* The least seconds per vector in which parts of an array are read as rows, so many of them at once: as by a product of
   a matrix and a vector that takes the next elements of some rows. Each sample reads the part behind the one before. */
void stream_rows(int64_t vectors, int64_t rounds, int64_t choices, const int64_t *rows, double *least)
{{
    float_vector *all = aligned_alloc(4096, vectors * VECTOR_BYTES), sum[BLOCK / 8] = {{{{0}}}};
    for (int64_t i = 0; i < vectors; i++) all[i] = (float_vector){{0}} + 1.0f;
    const int64_t part = vectors / PARTS;
    for (int64_t n = 0; n < rounds * choices; n++) {{
        const float_vector *const from = all + n % PARTS * part;
        const int64_t choice = n % choices, step = rows[choice] * ROW, end = part / step * step;
        if (!end) continue;
        const double start = now();
        switch (rows[choice]) {{ {rows} }}
        const double seconds = (now() - start) / end;
        least[choice] = n < choices || seconds < least[choice] ? seconds : least[choice];
    }}
    for (int s = 1; s < BLOCK / 8; s++) sum[0] += sum[s];
    float_sink = sum[0][0];
    free(all);
}}
"""

DECLARATIONS = """
double peak_float(int64_t iterations, int threads);
double peak_double(int64_t iterations, int threads);
double start_threads(int64_t times, int threads);
double stream_read(int64_t vectors, int64_t passes, int threads);
double stream_triad(int64_t vectors, int64_t passes, int threads);
void stream_ahead(int64_t vectors, int64_t rounds, int64_t choices, const int64_t *ahead, double *least);
void stream_rows(int64_t vectors, int64_t rounds, int64_t choices, const int64_t *rows, double *least);
"""

TYPICAL_BYTES_PER_SECOND = 50e9
"""An estimate of the bandwidth, from which the number of passes in a given time follows."""

ASLEEP = 0.03
"""Seconds after which threads that had nothing to do sleep."""

STREAM_VECTORS = 64
"""Array lengths in vectors are multiples of this, for whole pages and whole STREAMS."""

PARTS_VECTORS = 256
"""The same, for whole blocks in whole parts."""

ROWS = (2, 4, 8, 12, 16, 24)
"""Rows of a matrix that may be read at once."""

ROUNDS = 12
"""The samples of each choice of how an array is read."""


class Probes:
    """The probes, built for one instruction set."""

    def __init__(self, target: isa.ISA) -> None:
        self.vector_bytes = target.vector_bytes
        self.accumulators = 24 if target.registers >= 32 else 12
        rows = " ".join(f"case {many}: read_rows(from, end, {many}, sum); break;" for many in ROWS)
        source = SOURCE.format(vector_bytes=self.vector_bytes, accumulators=self.accumulators, rows=rows)
        library = load(source, DECLARATIONS, ("-O3", "-fopenmp", *target.flags))
        self.lib: Any = library.lib
        self._ffi = library.ffi

    def peak(self, dtype: DType, threads: int = 1, seconds: float = 0.002) -> float:
        """GFLOP/s of fused multiply-adds in registers, on `threads` cores together, over about `seconds`."""
        probe = {"f32": self.lib.peak_float, "f64": self.lib.peak_double}[dtype.name]
        flop = 2 * self.accumulators * (self.vector_bytes // dtype.size) * threads
        iterations = max(1000, int(seconds * 2e9 / self.accumulators))
        seconds_taken: float = probe(iterations, threads)
        return flop * iterations / seconds_taken / 1e9

    def start(self, threads: int, asleep: bool = False) -> float:
        """The least seconds of starting and joining threads that have just worked, or that slept.

        Threads sleep before each sample: where the system has put two of them on one core, it moves one then.
        """
        found = []
        for _ in range(5):
            sleep(ASLEEP)
            found.append(float(self.lib.start_threads(1 if asleep else 40, threads)))
        return min(found)

    def read(self, footprint: int, threads: int = 1, seconds: float = 0.01) -> float:
        """GB/s of repeatedly reading `footprint` bytes per thread."""
        return self._stream(self.lib.stream_read, 1, footprint, threads, seconds)

    def triad(self, footprint: int, threads: int = 1, seconds: float = 0.01) -> float:
        """GB/s of `a = b + s*c` on three arrays of together `footprint` bytes per thread, each counted once."""
        return self._stream(self.lib.stream_triad, 3, footprint, threads, seconds)

    def ahead(self, footprint: int, choices: Sequence[int]) -> dict[int, float]:
        """Seconds of reading a part of `footprint` bytes while what lies so far ahead (0: nothing) is fetched."""
        return self._least(self.lib.stream_ahead, footprint, choices)

    def rows(self, footprint: int) -> dict[int, float]:
        """Seconds of a vector of `footprint` bytes, by the rows that are read at once; 0 where those are too few."""
        return self._least(self.lib.stream_rows, footprint, ROWS)

    def _least(self, probe: Any, footprint: int, choices: Sequence[int]) -> dict[int, float]:
        vectors = max(1, footprint // self.vector_bytes // PARTS_VECTORS) * PARTS_VECTORS
        wanted, least = array("q", choices), array("d", [0.0] * len(choices))
        pointers = (self._ffi.from_buffer("int64_t[]", wanted), self._ffi.from_buffer("double[]", least))
        probe(vectors, ROUNDS, len(choices), *pointers)
        return dict(zip(choices, least, strict=True))

    def _stream(self, probe: Any, arrays: int, footprint: int, threads: int, seconds: float) -> float:
        unit = STREAM_VECTORS * self.vector_bytes
        vectors = max(1, footprint // arrays // unit) * STREAM_VECTORS
        moved = arrays * vectors * self.vector_bytes * threads
        passes = max(1, int(seconds * TYPICAL_BYTES_PER_SECOND * threads / moved))
        seconds_taken: float = probe(vectors, passes, threads)
        return moved * passes / seconds_taken / 1e9


@functools.cache
def probes(target: isa.ISA) -> Probes:
    """The probes for an instruction set, built once per process."""
    return Probes(target)
