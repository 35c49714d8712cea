"""Words that the C language and the headers of generated code use already."""

from __future__ import annotations

import re

MATH = frozenset(
    re.findall(
        r"\w+",
        """
        acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh drem erf erfc exp exp2 expm1 fabs fdim finite
        floor fma fmax fmin fmod frexp gamma hypot ilogb isinf isnan j0 j1 jn ldexp lgamma lgamma_r llrint llround log
        log10 log1p log2 logb lrint lround modf nan nearbyint nextafter nexttoward pow remainder remquo rint round scalb
        scalbln scalbn significand sin sinh sqrt tan tanh tgamma trunc y0 y1 yn
        fpclassify isfinite isgreater isgreaterequal isless islessequal islessgreater isnormal isunordered signbit
        """,
    )
)
"""The functions of math.h; each may end in `f` or `l`."""
STDLIB = frozenset(
    re.findall(
        r"\w+",
        """
        abort abs aligned_alloc alloca atexit atof atoi atol atoll bsearch calloc div exit free getenv labs ldiv llabs
        lldiv main malloc mblen mbstowcs mbtowc memcpy memmove memset on_exit posix_memalign qsort quick_exit rand
        random realloc select setenv srand srandom strtod strtof strtol strtoll strtoul strtoull system unsetenv valloc
        wcstombs wctomb
        """,
    )
)
MACROS = re.compile(
    r"""
    M_\w+ | FP_\w+ | HUGE_VAL[FL]? | INFINITY | NAN | NULL | MATH_ERR\w+ | EXIT_(SUCCESS|FAILURE)
    | U?INT\w*_(MAX|MIN|C) | (SIZE|PTRDIFF|RAND|WCHAR|WINT|SIG_ATOMIC)_(MAX|MIN) | (BIG|LITTLE|PDP)_ENDIAN | BYTE_ORDER
    | bool | __\w* | _[A-Z]\w*
    """,
    re.VERBOSE,
)
"""Constants of the headers, and what C keeps for compilers: `_Bool`, `__asm__`."""


VECTORS = re.compile(r"(\w+_)?[fi]\d+x\d+(_lanes)?|POLY_\w+")
"""Generated types of vectors, functions on them, and macros."""


def is_macro(name: str) -> bool:
    """Whether the name may mean something else to the compiler, wherever it stands."""
    return bool(MACROS.fullmatch(name) or VECTORS.fullmatch(name))


def is_function(name: str) -> bool:
    """Whether the headers declare a function of the name; a variable may hide it."""
    return name in MATH or (name[-1:] in ("f", "l") and name[:-1] in MATH) or name in STDLIB
