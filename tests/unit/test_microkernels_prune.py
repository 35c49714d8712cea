"""Text without what nothing in it needs."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from microkernels.catalogue import gemm, gemv_source, pack_source, scatter_source
from microkernels.dtypes import DType, f32, f64
from microkernels.isa import ISA, ISAS, host
from microkernels.prune import defined, items_of, pruned

PART = """#ifndef POLY_PART
#define POLY_PART
/* The part. */
#include <stdint.h>

enum { FEW = 3, MANY = 2 * FEW };
enum { OTHER = 5 }; /* not used */
typedef float four __attribute__((vector_size(4 * sizeof(float)), may_alias));

/* A pair; two lines
   of comment. */
typedef struct {
    int64_t low, high; /* in { elements */
} pair;

static const int32_t turns[] = {1, 2, 3};

static inline __attribute__((always_inline)) int64_t
first(pair x)
{
    return x.low + turns[0];
}

/* Nobody calls it. */
static void lonely(four *x)
{
    *x = *x + OTHER;
}
static int64_t least(pair x) { return first(x) < MANY ? first(x) : MANY; }
#endif
"""


def test_what_a_root_needs_stays_in_its_order() -> None:
    assert (
        pruned(PART, {"least"})
        == """/* The part. */
#include <stdint.h>

enum { FEW = 3, MANY = 2 * FEW };

/* A pair; two lines
   of comment. */
typedef struct {
    int64_t low, high; /* in { elements */
} pair;

static const int32_t turns[] = {1, 2, 3};

static inline __attribute__((always_inline)) int64_t
first(pair x)
{
    return x.low + turns[0];
}
static int64_t least(pair x) { return first(x) < MANY ? first(x) : MANY; }
"""
    )


def test_a_comment_goes_with_what_it_is_about() -> None:
    assert "Nobody calls it" in pruned(PART, {"lonely"})
    assert "A pair" not in pruned(PART, {"lonely"})
    assert "The part" not in pruned(PART + "int alone(void) { return 0; }\n", {"alone"})


def test_a_part_that_comes_again_is_kept_once() -> None:
    user = "static int64_t user(pair x) { return least(x); }\n"
    assert pruned(PART + user + PART, {"user"}) == pruned(PART + user, {"user"})


def test_two_definitions_of_a_name_are_an_error() -> None:
    other = "#ifndef POLY_PART\n#define POLY_PART\nstatic int64_t least(int64_t x) { return x; }\n#endif\n"
    with pytest.raises(ValueError, match="the text defines least in two ways"):
        pruned(PART + other, {"least"})


def test_a_prototype_is_no_second_definition() -> None:
    text = "static int f(int x);\nint g(int x) { return f(x); }\nstatic int f(int x) { return x; }\n"
    assert pruned(text + 'int h(void) { return "{"[0]; }\n', {"g"}) == text


def test_a_root_that_is_not_there_is_an_error() -> None:
    with pytest.raises(ValueError, match="the text does not define nowhere"):
        pruned(PART, {"least", "nowhere"})


def test_a_text_that_breaks_off_is_an_error() -> None:
    with pytest.raises(ValueError, match=re.escape("the text ends within 'int f(void)'")):
        pruned("int f(void)\n{\n    return 0;\n", {"f"})


def test_directives_stay_where_something_may_depend_on_them() -> None:
    text = """#pragma once
#define HALF(x) \\
    ((x) / 2)
#define DOUBLE(x) (2 * (x))
#if defined(__GNUC__)
float expf(float);
#else
float expf(float x) { return x; }
#endif
#ifdef NAME
#include <math.h>
#endif
#pragma once
float used(float x) { return HALF(x); }
"""
    assert pruned(text, {"used"}) == text.replace("#define DOUBLE(x) (2 * (x))\n", "").replace(
        text[text.index("#if defined") : text.index("#ifdef NAME")], ""
    )
    assert "float expf(float);\n#else" in pruned(text + "float e(void) { return expf(1); }\n", {"e"})


def test_an_if_that_defines_is_kept_once_where_it_is_used() -> None:
    choice = """#ifdef WIDE
typedef double word;
#define ask(p) (*(const word *)(p))
#else
#define ask(p) \\
    first(p)
#endif
"""
    user = "static double get(const void *p) { return ask(p); }\n"
    assert pruned(choice + choice + user, {"get"}) == choice + user
    assert pruned(choice + "int f(void) { return 1; }\n", {"f"}) == "int f(void) { return 1; }\n"


@pytest.mark.parametrize(
    ("code", "names"),
    [
        ("enum { A = 64 / sizeof(float), B };", {"A", "B"}),
        ("typedef T loose __attribute__((vector_size(16), may_alias, aligned(sizeof(T))));", {"loose"}),
        ("typedef struct { int64_t at[LANES]; } tail;", {"tail"}),
        ("static __attribute__((noinline, unused)) void edge(int64_t m, T *const *c) { f(m); }", {"edge"}),
        ("struct place { int x; };", {"place"}),
        ("static const int32_t table[2] = {1, 2};", {"table"}),
        ('_Pragma("omp declare simd") static float curve(float x) { return x; }', {"curve"}),
        ("#define TWICE(x) ((x) + (x))", {"TWICE"}),
        ("#include <stdint.h>", set()),
    ],
)
def test_what_an_item_defines(code: str, names: set[str]) -> None:
    assert defined(code) == names


def everything(isa: ISA, dtype: DType) -> str:
    kernels = [gemm(isa, dtype, 4, 2).source(), gemm(isa, dtype, 2, 1).source([2], [1])]
    return "".join([*kernels, pack_source(isa, dtype), gemv_source(isa, dtype), scatter_source(isa, dtype)])


@pytest.mark.parametrize("dtype", [f32, f64])
@pytest.mark.parametrize("isa", ISAS.values(), ids=lambda isa: isa.name)
def test_every_function_of_ours_can_be_a_root(isa: ISA, dtype: DType) -> None:
    """The text is cut into items without loss, and all of it is reached from all names."""
    text = everything(isa, dtype)
    names = frozenset().union(*(item.names for item in items_of(text)))
    functions = set(re.findall(r"^(?:static|typedef)[^={;]*?(\w+)\(int64_t|^ *\} (\w+);", text, re.MULTILINE))
    assert {name for pair in functions for name in pair if name} <= names
    whole = pruned(text, names)
    assert set(whole.splitlines()) >= {line for line in text.splitlines() if not line.startswith("#")}


@pytest.mark.slow
def test_the_rest_compiles_for_each_root(tmp_path: Path) -> None:
    """One program: all that one function needs, for each function of the microkernels; gcc finds nothing missing.

    The intrinsics, which are long, are read once.
    """
    isa = host()
    text = everything(isa, f32)
    functions = sorted(set(re.findall(r"^static [^\n]*? (?:void|int64_t) (\w+)\(", text, re.MULTILINE)))
    assert len(functions) > 15
    files = []
    for function in functions:
        files.append(tmp_path / f"{function}.c")
        files[-1].write_text(pruned(text, {function}))
    (tmp_path / "first.h").write_text("".join(re.findall(r"^#include <immintrin\.h>\n", text, re.MULTILINE)[:1]))
    command = ["gcc", "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-Wno-unused-function", *isa.flags]
    subprocess.run([*command, "first.h"], check=True, cwd=tmp_path)
    every = [*command, "-include", "first.h", "-fsyntax-only", *map(str, files)]
    subprocess.run(every, check=True, cwd=tmp_path)
