"""C loops that call a register tile, or a routine that packs its operands, which lie where the caller says.

They are built for one instruction set in several libraries side by side, which takes less time than one.
"""

from __future__ import annotations

import mmap
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from codegen.calls.clock import NOW
from codegen.toolchain.build import load
from microkernels.catalogue import pack_source, sums
from microkernels.ctext import Elements, multiply_adds, specialise, vector_constraint, vector_layer
from microkernels.dot import DotProduct, dots
from microkernels.dtypes import f32, i32
from microkernels.isa import ISA
from microkernels.kernel import OuterProduct
from poly.machine.description import PAGE

DTYPE = f32
"""The type that is measured. Tiles of another type have the same instructions, on vectors of fewer or more elements."""

SHORT, LONG = 32, 96
"""Steps of the two reductions that tell a tile's speed: the operands of the longer one fit in the first-level cache."""

BUILDS = 4
"""Libraries that the tiles are spread over."""

UNALIGNED = 16
"""Bytes behind a cache line at which NumPy's arrays begin; panels begin at one."""

Positions = NDArray[np.int64]
"""The positions of the operands at each call: in A, B and C, in elements."""

CORE = """
/* Seconds of one multiply-add of whole vectors, many at a time. */
double unit(int64_t steps)
{
    vec_T s[12], x = broadcast_T(1), y = broadcast_T(0);
    UNROLL
    for (int i = 0; i < 12; i++) s[i] = broadcast_T(i);
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

/* An instruction that depends on nothing and takes an issue slot, but no unit. Of plain nops not all take a slot. */
#if defined(__x86_64__) || defined(__i386__)
#define ISSUED() __asm__ volatile(".rept 64\\n xor %%eax, %%eax\\n .endr" ::: "eax", "cc")
#elif defined(__aarch64__)
#define ISSUED() __asm__ volatile(".rept 64\\n mov x9, #0\\n .endr" ::: "x9")
#else
#define ISSUED() __asm__ volatile(".rept 64\\n nop\\n .endr")
#endif

/* Seconds of an instruction that only takes an issue slot. */
double idle(int64_t steps)
{
    const double start = now();
    for (int64_t k = 0; k < steps; k++) ISSUED();
    return (now() - start) / (64 * steps);
}

/* Seconds of a branch, of as many as there are bytes that say which way each goes. */
double branches(const uint8_t *taken, int64_t count)
{
    const double start = now();
    for (int64_t n = 0; n < count; n++)
        if (taken[n]) __asm__ volatile("nop");
    return (now() - start) / count;
}

/* Seconds of packing a panel of `lanes` lanes: contiguous lanes, or contiguous steps (`turned`). */
double packed(T *to, int64_t lanes, const T *from, int64_t pitch, int64_t k, int64_t turned, int64_t calls,
              const int64_t *at)
{
    const double start = now();
    for (int64_t n = 0; n < calls; n++, at += 3) {
        if (turned)
            pack_along_T(to + at[0], lanes, lanes, from + at[1], pitch, k, lanes, 1, 0, 0, 1, 0, 0);
        else
            pack_across_T(to + at[0], lanes, lanes, from + at[1], k, pitch, lanes, 1, 0, 0, 1, 0, 0);
    }
    return (now() - start) / calls;
}
"""

JOB = """
/* Seconds of a call with all operands in the nearest cache. The results are four tiles in turn, so that no call waits
   for the one before. As `alpha` might not be 1, calls of few steps and of many add their results to C alike. */
double near_{name}(const T *a, const T *b, T *c, int64_t k, double alpha, int64_t calls)
{{
    const int64_t a_row = {long} + {apart}, c_row = {columns} + {apart};
    const T *const pa[{rows}] = {{{row_a}}};
    const double start = now();
    for (int64_t n = 0; n < calls; n++) {{
        T *const to = c + n % 4 * {rows} * c_row;
        T *const pc[{rows}] = {{{row_c}}};
        if (k == {short})
            {kernel}({rows}, {columns}, pa, b, pc, {short}, 1, {columns}, 1, 0, 0, 1, 0, 0, (T)alpha, 1);
        else
            {kernel}({rows}, {columns}, pa, b, pc, {long}, 1, {columns}, 1, 0, 0, 1, 0, 0, (T)alpha, 1);
    }}
    return (now() - start) / calls;
}}
"""

RUN = """
/* Seconds of a call with operands anywhere: pitches in elements, and the operands' positions at each call. */
double far_{name}(const T *a, int64_t a_row, int64_t a_step, const T *b, int64_t b_step, T *c, int64_t c_row, int64_t k,
                  int64_t calls, const int64_t *at)
{{
    const double start = now();
    for (int64_t n = 0; n < calls; n++, at += 3) {{
        const T *const from = a + at[0];
        T *const to = c + at[2];
        const T *const pa[{rows}] = {{{row_from}}};
        T *const pc[{rows}] = {{{row_c}}};
        {kernel}({rows}, {columns}, pa, b + at[1], pc, k, a_step, b_step, 1, 0, 0, 1, 0, 0, 1, 1);
    }}
    return (now() - start) / calls;
}}
"""

PRODUCT = """
/* Seconds of one multiply-add of whole vectors of integers or words, many at a time. */
double product_{name}(int64_t steps)
{{
    vec_T s[12], x = broadcast_T(1), y = broadcast_T(0);
    UNROLL
    for (int i = 0; i < 12; i++) s[i] = broadcast_T(i);
    const double start = now();
    for (int64_t k = 0; k < steps; k++) {{
        UNROLL
        for (int i = 0; i < 12; i++) {{
            s[i] = multiply_add_D(x, y, s[i]);
            __asm__("" : "+REGISTER"(s[i]), "+REGISTER"(x), "+REGISTER"(y)); /* no product is known */
        }}
    }}
    const double seconds = now() - start;
    volatile T sink = 0;
    UNROLL
    for (int i = 0; i < 12; i++) sink = (T)s[i][0];
    return seconds / (12 * steps);
}}
"""

CORE_HEADS = """
double unit(int64_t steps);
double idle(int64_t steps);
double branches(const uint8_t *taken, int64_t count);
double packed(T *to, int64_t lanes, const T *from, int64_t pitch, int64_t k, int64_t turned, int64_t calls,
              const int64_t *at);
"""

JOB_HEAD = "double near_{name}(const T *a, const T *b, T *c, int64_t k, double alpha, int64_t calls);\n"

RUN_HEAD = """
double far_{name}(const T *a, int64_t a_row, int64_t a_step, const T *b, int64_t b_step, T *c, int64_t c_row, int64_t k,
                  int64_t calls, const int64_t *at);
"""


class TileProbes:
    """The loops for an instruction set: `near` tiles run from the nearest cache, `far` ones anywhere."""

    def __init__(self, isa: ISA, near: Sequence[OuterProduct], far: Sequence[OuterProduct]) -> None:
        self._isa = isa
        parts: list[tuple[str, str]] = [(CORE.replace("REGISTER", vector_constraint(isa)), CORE_HEADS)]
        parts += [_text(JOB, JOB_HEAD, near[n::BUILDS]) for n in range(BUILDS) if near[n::BUILDS]]
        parts.append(_text(RUN, RUN_HEAD, far))
        self.products = products(isa)
        self._products: Any = load(*_product_texts(isa, self.products)).lib if self.products else None
        with ThreadPoolExecutor(2) as pool:
            self._core, *self._libraries = pool.map(self._built, parts)
        self._ones = aligned(1 << 17)

    def unit(self) -> float:
        """Seconds of a multiply-add of whole vectors, over some ten microseconds."""
        return float(self._core.lib.unit(4000))

    def idle(self) -> float:
        """Seconds of an instruction that only takes an issue slot."""
        return float(self._core.lib.idle(2000))

    def branches(self, taken: NDArray[np.uint8]) -> float:
        """Seconds of a branch, of as many as there are elements that say which way each goes."""
        return float(self._core.lib.branches(self._core.ffi.cast("uint8_t *", taken.ctypes.data), len(taken)))

    def product(self, name: str) -> float:
        """Seconds of a multiply-add of `products`, over some ten microseconds."""
        return float(getattr(self._products, f"product_{name}")(4000))

    def near(self, kernel: OuterProduct, steps: int, calls: int) -> float:
        """Seconds of a call over `steps` (SHORT or LONG) with all operands in the nearest cache: B in a panel."""
        behind = UNALIGNED // DTYPE.size
        a, b, c = (self._pointer(self._ones, first) for first in (behind, 10240, 20480 + behind))
        return float(self._routine(f"near_{kernel.c_name}")(a, b, c, steps, 1, calls))

    def far(
        self,
        kernel: OuterProduct,
        operands: tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.float32]],
        pitches: tuple[int, int, int, int],
        steps: int,
        at: Positions,
    ) -> float:
        """Seconds of a call. `pitches` are those of A's rows and steps, of B's steps, and of C's rows."""
        (a, b, c), (a_row, a_step, b_step, c_row) = (self._pointer(array) for array in operands), pitches
        routine = self._routine(f"far_{kernel.c_name}")
        return float(routine(a, a_row, a_step, b, b_step, c, c_row, steps, len(at), self._positions(at)))

    def packed(
        self,
        to: NDArray[np.float32],
        lanes: int,
        source: NDArray[np.float32],
        pitch: int,
        steps: int,
        turned: bool,
        at: Positions,
    ) -> float:
        """Seconds of packing a panel; `at` are positions in the panels and in the source."""
        places = self._pointer(to), lanes, self._pointer(source), pitch, steps, turned
        return float(self._core.lib.packed(*places, len(at), self._positions(at)))

    def _routine(self, name: str) -> Any:
        return next(getattr(one.lib, name) for one in self._libraries if hasattr(one.lib, name))

    def _pointer(self, array: NDArray[np.float32], first: int = 0) -> Any:
        return self._core.ffi.cast("float *", array.ctypes.data + first * DTYPE.size)

    def _positions(self, at: Positions) -> Any:
        return self._core.ffi.cast("int64_t *", at.ctypes.data)

    def _built(self, part: tuple[str, str]) -> Any:
        text, heads = part
        source = pack_source(self._isa, DTYPE) + NOW + text
        scalar = DTYPE.c_name
        return load(specialise(source, self._isa, DTYPE), heads.replace("T *", f"{scalar} *"), self._isa.flags)


def aligned(size: int) -> NDArray[np.float32]:
    """An array of ones that begins with a page, on small pages, as all arrays but very large ones are."""
    memory = mmap.mmap(-1, size + PAGE)
    if hasattr(mmap, "MADV_NOHUGEPAGE"):
        memory.madvise(mmap.MADV_NOHUGEPAGE)
    whole = np.frombuffer(memory, np.float32, size // DTYPE.size)
    whole[:] = 1
    return whole


def products(isa: ISA) -> dict[str, DotProduct | None]:
    """The multiply-adds other than those of floats that this CPU has, by their names."""
    words = {dot.name: dot for dot in dots(isa, i32) if not dot.extended(isa).missing()}
    return {i32.name: None, **words} if sums(isa, i32) else {}


def _product_texts(isa: ISA, found: Mapping[str, DotProduct | None]) -> tuple[str, str, tuple[str, ...]]:
    """The C text of their loops, the declarations, and the compiler's flags."""
    text, made_for = vector_layer(isa, i32) + NOW, isa
    for name, dot in found.items():
        loop = PRODUCT.format(name=name).replace("REGISTER", vector_constraint(isa))
        text += multiply_adds(isa, i32, dot) + specialise(loop, isa, i32, elements=Elements(dot=dot))
        made_for = dot.extended(made_for) if dot else made_for
    heads = "".join(f"double product_{name}(int64_t steps);\n" for name in found)
    return text, heads, tuple(dict.fromkeys(made_for.flags))


def _text(job: str, head: str, kernels: Sequence[OuterProduct]) -> tuple[str, str]:
    """The C text and the declarations of a job for each of some tiles."""
    apart = 64 // DTYPE.size
    text = "".join(kernel.source([kernel.rows], [kernel.columns]) for kernel in kernels)
    for k in kernels:
        pointers = {
            name: ", ".join(f"{first} + {row} * {pitch}" for row in range(k.rows))
            for name, first, pitch in (("row_a", "a", "a_row"), ("row_from", "from", "a_row"), ("row_c", "to", "c_row"))
        }
        sizes = {"rows": k.rows, "columns": k.columns, "short": SHORT, "long": LONG, "apart": apart}
        text += job.format(name=k.c_name, kernel=k.c_name, **sizes, **pointers)
    return text, "".join(head.format(name=k.c_name) for k in kernels)
