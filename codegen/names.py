"""The names of a nest as C identifiers, apart from what C and the headers of generated code already use."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

# fmt: off
KEYWORDS = frozenset({
    "asm", "auto", "break", "case", "char", "const", "continue", "default", "do", "double", "else", "enum",
    "extern", "float", "for", "goto", "if", "inline", "int", "long", "register", "restrict", "return", "short",
    "signed", "sizeof", "static", "struct", "switch", "typedef", "typeof", "typeof_unqual", "union", "unsigned", "void",
    "volatile", "while",
})
CXX_KEYWORDS = frozenset({
    "alignas", "alignof", "and", "and_eq", "bitand", "bitor", "bool", "catch", "char16_t", "char32_t", "char8_t",
    "class", "co_await", "co_return", "co_yield", "compl", "concept", "const_cast", "consteval", "constexpr",
    "constinit", "decltype", "delete", "dynamic_cast", "explicit", "export", "false", "friend", "mutable",
    "namespace", "new", "noexcept", "not", "not_eq", "nullptr", "operator", "or", "or_eq", "private", "protected",
    "public", "reinterpret_cast", "requires", "static_assert", "static_cast", "template", "this", "thread_local",
    "throw", "true", "try", "typeid", "typename", "using", "virtual", "wchar_t", "xor", "xor_eq",
})
OPENCL = frozenset({
    "constant", "generic", "global", "half", "image1d_t", "image2d_t", "image3d_t", "kernel", "local",
    "pipe", "read_only", "read_write", "uniform", "write_only",
})
FUNCTIONS = frozenset({
    "align64", "exp", "expf", "fabs", "fabsf", "floord", "imax", "imin", "omp_get_thread_num", "overlap", "sqrt",
    "sqrtf", "tanh", "tanhf",
})
VARIABLES = frozenset({
    "at", "barrier", "call", "first", "first_a", "first_c", "given", "group", "item", "lane", "lanes", "length", "mine",
    "number", "offsets", "past", "row", "row_a", "row_c", "row_offset", "run", "steps0", "steps1", "steps2",
    "this_column", "this_lane", "this_row", "thread", "threads", "tile", "tile_columns", "tile_rows", "whole",
    "workspace",
})
# fmt: on
QUOTIENT = re.compile(r".+__\d+")
"""The name of a loop variable's quotient: `i_j__28` is `i_j / 28`."""
RESERVED = KEYWORDS | CXX_KEYWORDS | OPENCL | FUNCTIONS | VARIABLES

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
    (\w+_)?([fiu]\d+x\d+)(_lanes)?       # types of vectors and functions on them
    | \w+_(f16|f32|f64|u8|u16|i8|i16|i32|i64)(_\w+)?  # functions in a type, microkernels among them
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


@lru_cache
def c_name(name: str) -> str:
    """The C identifier for a size, array, scalar or loop: the name, with `_` if C or the generated code uses it.

    Different names stay different: `double` becomes `double_`, `double_` becomes `double__`. A name that begins with
    `_` and may be the compiler's gets `_v`, since the compiler may have reserved it with any number of `_` at the end.
    """
    if COMPILERS.fullmatch(name):
        return f"{name}_v"
    plain = name.rstrip("_")
    return name + "_" if plain in RESERVED or _is_word(plain) or QUOTIENT.fullmatch(plain) else name


def function_name(name: str) -> str:
    """The C identifier for a kernel: `c_name`, with `_` also if a header declares a function of the name.

    Functions that begin with `_` may be those of headers as well as the compiler's, so that all such names get `_v`.
    """
    if name.startswith("_"):
        return f"{name}_v"
    return name + "_" if _is_function(name.rstrip("_")) else c_name(name)


def fresh(name: str, taken: frozenset[str]) -> str:
    """`name` as a C identifier, numbered if it is taken: `i`, `i_2`, `i_3`."""
    return another(c_name(re.sub(r"\W", "_", name)), taken)


def all_fresh(names: Iterable[str], taken: frozenset[str]) -> list[str]:
    """The names as C identifiers, each numbered if it is taken, or if one before it has it."""
    made: list[str] = []
    for name in names:
        made.append(fresh(name, taken.union(made)))
    return made


def another(name: str, taken: frozenset[str]) -> str:
    """`name`, numbered if it is taken, for an array or size added to a nest; as for all, its `c_name` is used in C."""
    candidate, count = name, 1
    while candidate in taken:
        count += 1
        candidate = f"{name}_{count}"
    return candidate


def _is_word(name: str) -> bool:
    """Whether the name may mean something else in generated text, in any position."""
    return any(words.fullmatch(name) for words in (MACROS, GENERATED, TYPES))


def _is_function(name: str) -> bool:
    """Whether the headers declare a function of the name, or define a macro with arguments; a variable may hide it."""
    plain = name[:-1] if name[-1:] in ("f", "l") and name[:-1] in MATH else name
    return plain in MATH or plain in STDLIB or bool(FUNCTION_MACROS.fullmatch(plain))
