"""Names that the C language and the headers of generated code already use."""

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

COMPILERS = re.compile(r"_[A-Z_]\w*|_[a-z0-9]+_\w*")
"""Names reserved for the compiler: `_Bool`, `__asm__`, `_mm512_setzero_ps`."""

MACROS = re.compile(
    r"""
    [A-Z][A-Z0-9]*(_[A-Z0-9]+)*_(?!\d+$)[A-Z0-9]+  # INT_MAX, CL_SUCCESS, PTHREAD_MUTEX_INITIALIZER, and whatever comes
    | M_(?!\d+$)[A-Z0-9_]+(l|f\d*x?)? | HUGE_VAL_?[Fl]\w* | CL_\w+ | P_tmpdir | L_(tmpnam|ctermid|cuserid)
    | E[A-Z]{2}[A-Z0-9]* | EL\d[A-Z]+ | E2BIG | W(NOHANG|UNTRACED|STOPPED|EXITED|CONTINUED|NOWAIT) | S?NAN(F\d*X?|L)?
    | NULL | INFINITY | MAXFLOAT | BUFSIZ | NFDBITS | HUGE | DOMAIN | SING | (OVER|UNDER)FLOW | [PT]LOSS | TRUE | FALSE
    | I | bool | true | false | complex | imaginary | errno | std(in|out|err) | unix | linux | i386 | alloca | assert
    | CSIGNAL | WEOF | math_errhandling | sched_priority
    """,
    re.VERBOSE,
)
"""Macros of the headers that generated text includes, by their patterns."""

GENERATED = re.compile(
    r"""
    (\w+_)?([fi]\d+x\d+)(_lanes)?       # types of vectors and functions on them
    | \w+_(f16|f32|f64|u8|i8|i16|i32|i64)(_\w+)?  # functions in a type, microkernels among them
    | (poly|POLY|pfx|PFX|try|TRY)_\w+    # the texts' own prefixes
    """,
    re.VERBOSE,
)
"""Names that generated text makes by a pattern."""

TYPES = re.compile(
    r"""
    \w+_t | FILE | cl[A-Z]\w* | cl(es)?_\w+                         # C's and POSIX's, and those of OpenCL's library
    | (u?(char|short|int|long)|half|float|double|quad|bool)(2|3|4|8|16)?
    | (get|convert|as|atomic|async)_\w+ | v(load|store)\w+
    """,
    re.VERBOSE,
)
"""Types, and OpenCL C's functions named after types."""

FUNCTION_MACROS = re.compile(
    r"""
    CMPLX\w* | W[A-Z]+(STATUS|ED|SIG) | (be|le)\d+toh | hto(be|le)\d+ | offsetof | pthread_\w+ | strn?dupa
    | is(canonical|eqsig|signaling|subnormal|zero)
    """,
    re.VERBOSE,
)
"""Macros with arguments."""


def is_word(name: str) -> bool:
    """Whether the name may mean something else in generated text, in any position."""
    return any(words.fullmatch(name) for words in (MACROS, GENERATED, TYPES))


def is_function(name: str) -> bool:
    """Whether the headers declare a function of the name, or define a macro with arguments; a variable may hide it."""
    plain = name[:-1] if name[-1:] in ("f", "l") and name[:-1] in MATH else name
    return plain in MATH or plain in STDLIB or bool(FUNCTION_MACROS.fullmatch(plain))
