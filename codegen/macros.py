"""What gcc and clang spell differently in generated code: a few macros, defined where they are used.

A header defines them all, under its own prefix.
"""

from __future__ import annotations

import re

EACH_VECTOR = "POLY_SIMD"
"""What stands before a loop whose iterations are independent: the compiler needs no proof to run it in vectors.

One vector at a time: cores overlap iterations by themselves, and clang's four at once leave long rests of rows.
"""
EACH_LANE = "POLY_LANES"
"""What stands before a loop over the lanes of one vector: it is to become one vector operation, and no more."""
IN_ORDER = "POLY_IN_ORDER"
"""What stands in a loop whose iterations gcc 12 confuses: it leaves a loop with an asm as it is.

Of floats that are added to one element several times an iteration, it loads the terms as a vector, in their order in
memory, and then adds some of them twice. Of elements such as x[i + j] that an iteration writes twice, it forgets that
other iterations write them too, and exchanges the loops.
"""
WRAPS = "POLY_WRAPS"
"""What stands before a function that means its integers to wrap around: clang's sanitizer for integers is told so."""
ROOTS = {"f32": "POLY_SQRTF", "f64": "POLY_SQRT"}
"""The square root that does nothing but take the root: C's own may set errno, which no vector operation does."""

CLANG_VECTOR = "clang loop vectorize(assume_safety) interleave(disable)"
CLANG_LANE = "clang loop vectorize(assume_safety) unroll(disable)"
"""The same two in clang's words."""

LOOPS = f"""#if defined(__clang__)
#define {EACH_VECTOR} _Pragma("{CLANG_VECTOR}")
#define {EACH_LANE} _Pragma("{CLANG_LANE}")
#elif defined(__GNUC__)
#define {EACH_VECTOR} _Pragma("GCC ivdep")
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

MACROS = {
    (EACH_VECTOR, EACH_LANE): LOOPS,
    (IN_ORDER,): ORDERED,
    tuple(ROOTS.values()): SQUARE_ROOTS,
    (WRAPS,): WRAPPING,
}
"""Their definitions, by names."""


def definitions(code: str) -> str:
    """The definitions that a code needs."""
    words = set(re.findall(r"POLY_\w+", code))
    return "\n".join(text for names, text in MACROS.items() if words & set(names))
