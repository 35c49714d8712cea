"""Macros for what gcc and clang spell differently in generated code; each text defines those that it uses.

A header defines them all, under its own prefix.
"""

from __future__ import annotations

import re

EACH_VECTOR = "POLY_SIMD"
"""Precedes a loop with independent iterations, which the compiler then vectorises without a proof.

gcc writes four vectors out, whose counters and branches would take a third of the time of short iterations. clang takes
one at a time, since its interleaving of four leaves long remainders.
"""
EACH_LANE = "POLY_LANES"
"""Precedes a loop over the lanes of one vector, which should become exactly one vector operation."""
IN_ORDER = "POLY_IN_ORDER"
"""Stands in a loop that gcc 12 would miscompile: it does not transform a loop that contains an asm.

If an iteration adds several floats to one element, gcc 12 loads the terms as a vector, in their order in memory, and
then adds some of them twice. For two more reasons, see `codegen.lanes.overwriting` and `codegen.lanes.straight`.
"""
HIDDEN = "POLY_HIDDEN"
"""Hides the value of a variable. Where gcc 12 knows that a condition on lanes fails in the first or the last one alone,
it takes this lane out of the loop, and makes scalars of the others.
"""
WRAPS = "POLY_WRAPS"
"""Precedes a function whose integers wrap around on purpose: clang's integer sanitizer then ignores it."""
IN_LANES = f"{WRAPS} static inline __attribute__((always_inline))"
"""Precedes a function that loops with lanes call: compilers give lanes to no loop that is left with a call."""
SHUFFLE = "POLY_SHUFFLE"
"""Gives a vector the lanes of two others, by their numbers."""
ROOTS = {"f32": "POLY_SQRTF", "f64": "POLY_SQRT"}
"""The square root without side effects: C's own may set errno, which no vector operation does."""

CLANG_VECTOR = "clang loop vectorize(assume_safety) interleave(disable)"
CLANG_LANE = "clang loop vectorize(assume_safety) unroll(disable)"
"""Clang's pragmas for EACH_VECTOR and EACH_LANE."""

LOOPS = f"""#if defined(__clang__)
#define {EACH_VECTOR} _Pragma("{CLANG_VECTOR}")
#define {EACH_LANE} _Pragma("{CLANG_LANE}")
#elif defined(__GNUC__)
#define {EACH_VECTOR} _Pragma("GCC ivdep") _Pragma("GCC unroll 4")
#define {EACH_LANE} _Pragma("GCC ivdep") _Pragma("GCC unroll 1")
#else
#define {EACH_VECTOR}
#define {EACH_LANE}
#endif"""

ORDERED = f"""#if defined(__GNUC__) && !defined(__clang__)
#define {IN_ORDER} __asm__ volatile ("");
#else
#define {IN_ORDER}
#endif"""

HIDING = f"""#if defined(__GNUC__) && !defined(__clang__)
#define {HIDDEN}(x) __asm__ ("" : "+r" (x));
#else
#define {HIDDEN}(x)
#endif"""

SQUARE_ROOTS = f"""#if defined(__clang__)
#if __has_builtin(__builtin_elementwise_sqrt)
#define {ROOTS["f32"]} __builtin_elementwise_sqrt
#define {ROOTS["f64"]} __builtin_elementwise_sqrt
#else
#define {ROOTS["f32"]} sqrtf
#define {ROOTS["f64"]} sqrt
#endif
#elif defined(__GNUC__)
#if defined(__cplusplus)
extern "C" {{
#endif
float __builtin_sqrtf(float) __attribute__((const));
double __builtin_sqrt(double) __attribute__((const));
#if defined(__cplusplus)
}}
#endif
#define {ROOTS["f32"]} __builtin_sqrtf
#define {ROOTS["f64"]} __builtin_sqrt
#else
#define {ROOTS["f32"]} sqrtf
#define {ROOTS["f64"]} sqrt
#endif"""

WRAPPING = f"""#if defined(__clang__)
#define {WRAPS} __attribute__((no_sanitize("integer")))
#else
#define {WRAPS}
#endif"""

SHUFFLING = f"""#if defined(__clang__)
#define {SHUFFLE}(to, a, b, numbers, ...) to = __builtin_shufflevector(a, b, __VA_ARGS__);
#else
#define {SHUFFLE}(to, a, b, numbers, ...) {{ const numbers at = {{__VA_ARGS__}}; to = __builtin_shuffle(a, b, at); }}
#endif"""

MACROS = {
    (EACH_VECTOR, EACH_LANE): LOOPS,
    (IN_ORDER,): ORDERED,
    (HIDDEN,): HIDING,
    tuple(ROOTS.values()): SQUARE_ROOTS,
    (WRAPS,): WRAPPING,
    (SHUFFLE,): SHUFFLING,
}
"""The definitions, by the names of the macros."""


def definitions(code: str) -> str:
    """The definitions that `code` needs."""
    words = set(re.findall(r"POLY_\w+", code))
    return "\n".join(text for names, text in MACROS.items() if words & set(names))
