"""The names of a nest as C identifiers."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from codegen.c_words import COMPILERS, is_function, is_word

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


@lru_cache
def c_name(name: str) -> str:
    """The C identifier for a size, array, scalar or loop: the name, with `_` if C or the generated code uses it.

    Different names stay different: `double` becomes `double_`, `double_` becomes `double__`. A name that begins with
    `_` and may be the compiler's gets `_v`, since the compiler may have reserved it with any number of `_` at the end.
    """
    if COMPILERS.fullmatch(name):
        return f"{name}_v"
    plain = name.rstrip("_")
    return name + "_" if plain in RESERVED or is_word(plain) or QUOTIENT.fullmatch(plain) else name


def function_name(name: str) -> str:
    """The C identifier for a kernel: `c_name`, with `_` also if a header declares a function of the name.

    Functions that begin with `_` may be those of headers as well as the compiler's, so that all such names get `_v`.
    """
    if name.startswith("_"):
        return f"{name}_v"
    return name + "_" if is_function(name.rstrip("_")) else c_name(name)


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
