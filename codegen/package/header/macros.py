"""The few macros of the file, for what gcc and clang, or C and C++, spell differently, and for optional pragmas."""

from __future__ import annotations

import re

from codegen.macros import MACROS as SPELLINGS
from codegen.macros import WRAPPING
from microkernels.ctext import INLINE, NOINLINE, UNROLL
from microkernels.dispatch import REST

MACROS = """#if !defined(__GNUC__)
#error "this file needs gcc, clang or a compiler that knows their extensions"
#endif
#if defined(__i386__) && !defined(__SSE__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wpsabi" /* it speaks of calls, but those are all inlined */
#endif
#define PFX_RESTRICT __restrict
#define PFX_INLINE static inline __attribute__((always_inline, unused))
#define PFX_NOINLINE static __attribute__((noinline, unused))
#define PFX_UNROLL _Pragma("GCC unroll 32")
""" + WRAPPING.replace("POLY_", "PFX_")

STEPS = f"""/* The steps of a tile through its operands, which one function hands on to the next. */
#define PFX_STEPS {REST}"""

PARALLEL = """#if defined(_OPENMP)
#define PFX_PRAGMA(...) _Pragma(#__VA_ARGS__)
#define PFX_OMP(...) PFX_PRAGMA(omp __VA_ARGS__)
#else
#define PFX_OMP(...)
#endif"""

OPENMP = """#if defined(_OPENMP)
#include <omp.h>
#endif
static inline int64_t pfx_thread(void)
{
#if defined(_OPENMP)
    return (int64_t)omp_get_thread_num();
#else
    return 0;
#endif
}"""

TOKENS = {INLINE: "PFX_INLINE", NOINLINE: "PFX_NOINLINE", UNROLL: "PFX_UNROLL", REST: "PFX_STEPS"}
PATTERNS = (
    (r"\brestrict\b", "PFX_RESTRICT"),
    (r"#pragma omp (.*)", r"PFX_OMP(\1)"),
    (rf"\bPOLY_(?={'|'.join(name.removeprefix('POLY_') for names in SPELLINGS for name in names)}\b)", "PFX_"),
    (r"(\(int64_t\))?\bomp_get_thread_num\(\)", "pfx_thread()"),
)


def definitions(code: str) -> str:
    """The definitions of the macros that `code` uses."""
    words = set(re.findall(r"PFX_\w+", code))
    parts = {("PFX_STEPS",): STEPS, ("PFX_OMP",): PARALLEL, **SPELLINGS}
    found = [
        text
        for names, text in parts.items()
        if text != WRAPPING and words & {name.replace("POLY_", "PFX_") for name in names}
    ]
    return "\n".join([MACROS, *found]).replace("POLY_", "PFX_")


def replaced(text: str) -> str:
    """Our C text, with the macros in place of what they replace."""
    for plain, macro in TOKENS.items():
        text = text.replace(plain, macro)
    for pattern, macro in PATTERNS:
        text = re.sub(pattern, macro, text)
    return text
