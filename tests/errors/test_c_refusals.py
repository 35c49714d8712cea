"""C that is no nest: each refusal names file, line, column, the construct, and how to write it instead."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import poly
from poly import SpecError

HEAD = "void f(int n, double A[n][n], double x[n], double y[n], int k[n], double s) {\n#pragma scop\n"
LOOP = "for (int i = 0; i < n; i++) "


def refused(text: str, **options: object) -> str:
    with pytest.raises(SpecError) as caught:
        poly.from_c(text + "\n", **options)  # type: ignore[arg-type]
    return str(caught.value)


BODIES = {
    "while": ("int i = 0;\nwhile (i < n) i++;", "4:1: a `while` loop has no affine bounds", "Write `for"),
    "do": ("int i = 0;\ndo i++; while (i < n);", "4:1: a `do` loop has no affine bounds", "Write `for"),
    "goto": (LOOP + "goto end;\nend: ;", "3:29: `goto` lets the program jump", "Write loops and `if`."),
    "break": (LOOP + "{ if (x[i] > 0) break; x[i] = 1; }", "3:45: `break` lets the data decide", "Put the rest"),
    "return": ("return;", "3:1: a nest returns nothing", "Store results in an array"),
    "switch": ("switch (n) { case 0: x[0] = 1; }", "3:1: `switch` jumps", "Write it by `if`"),
    "unknown function": (LOOP + "x[i] = g(i);", "3:36: `g` is no function that poly knows", "Write its body here"),
    "call": (LOOP + "g(x);", "3:29: `g(x)` is called for its side effects", "Write its loops here"),
    "side effect": (LOOP + "x[i] = k[i]++;", "3:36: `k[i]++` has a side effect inside an expression", "Write it as"),
    "assigned condition": (LOOP + "if (x[i] = 0) y[i] = 1;", "3:33: `x[i] = 0` has a side effect", "Write it as"),
    "two counters": (
        "for (int i = 0, j = 0; i < n; i++) x[i] = 0;",
        "3:1: this loop does not start one counter",
        "Write",
    ),
    "unsigned below 0": (
        "for (unsigned i = 9; i >= 0; i--) x[i] = 0;",
        "3:1: `i` is unsigned and counts down",
        "Declare it as int",
    ),
    "unsigned difference": (
        "for (unsigned i = 0; i < 9; i++) x[i - 1] = 0;",
        "3:36: `i - 1` is unsigned, and wraps around",
        "Declare its",
    ),
    "unsigned bound": (
        "for (unsigned long i = 0; i < (unsigned long)n - 1; i++) x[i] = 0;",
        "3:31: `((unsigned long) n) - 1` is unsigned, and wraps around",
        "Declare its names as int or ptrdiff_t, or compare sums: `i + 1 < n`",
    ),
    "unsigned comparison": (
        "for (unsigned long i = 1; i < 9; i++) if (i - 2 < 3) x[i] = 0;",
        "3:43: `i - 2` is unsigned, and wraps around",
        "Declare its",
    ),
    "unsigned number": ("x[0] = -1u;", "3:9: `-1u` is unsigned, and wraps around", "Declare"),
    "unsigned and data": (
        "int q = x[0]; x[1] = q + 3u;",
        "3:22: `q + 3u` makes unsigned what may be negative",
        "Declare all its names",
    ),
    "unsigned local": ("unsigned q = k[0]; x[0] = q;", "3:10: `q` is unsigned, and wraps around", "Declare it"),
    "assembler": (LOOP + '{ x[i] = 0; __asm__ volatile("" : : "r"(x)); }', "3:41: `__asm__()` is called for its", ""),
    "scatter": (LOOP + "x[k[i]] = 0;", "3:29: `x[k[i]]` is written where an array's elements tell", "Loop over the"),
    "bound by data": (LOOP + "for (int j = 0; j < k[i]; j++) x[i] = j;", "3:49: `k[i]` is data", "Gather the elements"),
    "advanced by hand": (
        "int j = 0;\n" + LOOP + "{ if (y[i] > 0) j += 2; x[j] = 0; }",
        "4:55: the value of `j` is not known here",
        "Write the value in terms",
    ),
    "product": (LOOP + "x[i * i] = 0;", "3:31: `i * i` is not affine: it multiplies two names", "An index, bound"),
    "step": ("for (int i = 1; i < n; i *= 2) x[i] = 0;", "3:24: the loop over `i` has no constant step", "Write `i++`"),
    "no bound": ("for (int i = 0; ; i++) x[i] = 0;", "3:1: this loop has no bound", "Compare the counter itself"),
    "unequal": ("for (int i = 3; i != n; i++) x[i] = 0;", "3:17: `i != n` never ends the loop if it", "Write `<`."),
    "unequal, by 2": ("for (int i = 0; i != n; i += 2) x[i] = 0;", "3:17: `i != n` is no bound of `i`", "Compare the"),
    "short counter": (
        "for (short i = 0; i < n; i++) x[i] = 0;",
        "3:1: `i` may exceed the greatest number of its type",
        "Count by an int or long.",
    ),
    "small counter": ("for (unsigned char i = 0; i < 256; i++) x[i] = 0;", "3:1: `i` may exceed the greatest", "Count"),
    "small start": (
        "for (signed char i = 200; i > 0; i--) x[i] = 0;",
        "3:1: `i` may exc",
        "Count",
    ),
    "small counter down": ("for (signed char i = 0; i >= -128; i--) x[0] = 0;", "3:1: `i` may fall below the", "Count"),
    "unsigned down by 2": (
        "for (unsigned i = 9; i > 0; i -= 2) x[i] = 0;",
        "3:1: `i` is unsigned and counts",
        "Declare",
    ),
    "falls for ever": (
        "for (int i = n - 3; i--;) x[i] = 0;",
        "3:1: `i` may begin below 0, and go",
        "Write `i-- > 0`",
    ),
    "direction": ("for (int i = 0; i > n; i++) x[i] = 0;", "3:17: `i > n` does not end a loop", "Count up to an end"),
    "own counter": (LOOP + "i += 1;", "3:29: `i` counts a loop that runs here, and is changed", "Leave the counter"),
    "counter afterwards": (
        "int i;\nfor (i = 0; i < n; i += 2) x[i] = 0;\nx[i - 1] = 1;",
        "5:3: `i` counts a loop that does not run here",
        "Write",
    ),
    "counter twice": (LOOP + LOOP + "x[i] = 0;", "3:29: `i` counts a loop around this one", "Use another counter."),
    "counter of fractions": (
        "for (double d = 0; d < 1; d += 1) x[0] = 0;",
        "3:1: the counter `d` is no int",
        "Count by",
    ),
    "pointer": (
        "double *p = x;\n" + LOOP + "*p++ = 0;",
        "3:8: `p` is a pointer, which may point into any",
        "Index the",
    ),
    "address": (LOOP + "x[i] = *&y[i];", "3:38: `&y[i]` is no array", "Index a parameter"),
    "undeclared": (LOOP + "x[i] = q;", "3:36: `q` is not declared in this file", "Declare it"),
    "whole array": (LOOP + "x[i] = y;", "3:36: `y` is a whole array", "Name one element of it: `y[i]`."),
    "rank": (LOOP + "x[i] = A[i];", "3:36: `A` has 2 dimensions, and gets 1 subscripts", "Give one subscript"),
    "division": (LOOP + "{ long t = k[i] * k[i]; k[i] = t / 2; }", "3:60: `t / 2` divides integers", "Divide counters"),
    "negative bound": (
        LOOP + "for (int j = (i - 3) / 2; j < n; j++) x[j + 2] = 0;",
        "3:29: a bound of `j` divides what may be negative",
        "Start at max(a, b), end at min(a, b)",
    ),
    "shift": (LOOP + "k[i] = k[i] << i;", "3:36: `k[i] << i` is an operation on bits", "Use << and >> by numbers"),
    "initial values": ("static double t[2] = {0, 1};\nx[0] = t[0];", "3:15: `t` has initial values", "Fill it by"),
    "no value": (
        "double t;\n" + LOOP + "{ x[i] = t; t = y[i]; }",
        "3:8: `t` may be read before it has a value",
        "Give it one here",
    ),
    "parameter by value": ("s = 0;", "3:1: `s` is a parameter passed by value", "Assign a local"),
    "hidden": (LOOP + "{ double x = 1; y[i] = x; }", "3:38: `x` hides another `x`", "Rename one of them."),
    "hidden scalar": (
        "double t = 1;\n{ double t = 2; x[0] = t; }",
        "4:10: `t` hides another `t`",
        "Rename one of them.",
    ),
    "type": ("long double t = 0;\nx[0] = t;", "3:13: `t` has a type that poly has not", "Use double"),
    "bound that changes": (
        "int m = n;\nfor (int i = 0; i < m; i++) { x[i] = 0; m = 3; }",
        "4:21: the value of `m` is not known here",
        "Write",
    ),
    "not C": ("x[0] = ;", "3:8: error: expected expression", "The compiler refuses this."),
}


@pytest.mark.parametrize("case", BODIES)
def test_a_body_that_is_no_nest_is_refused(case: str) -> None:
    body, sentence, remedy = BODIES[case]
    message = refused(f"{HEAD}{body}\n#pragma endscop\n}}").splitlines()
    assert message[0].startswith(f"<C>:{sentence}")
    assert message[-1].startswith(remedy)


STRUCTURE = "struct S { int n, b: 3; volatile int v; union { int u; float w; }; struct T *next; double x[4], *y; };\n"
FILES = {
    "no end": ("void f(double x[3]) {\n#pragma scop\nx[0] = 1;\n}", "<C>:2:9: `#pragma scop` has no end in its block"),
    "no start": ("void f(double x[3]) {\nx[0] = 1;\n#pragma endscop\n}", "<C>:3:9: `#pragma endscop` ends no scop"),
    "aliases": ("void f(double *x, double *y) {\nx[0] = y[0];\n}", "<C>:1:15: `x` may point into `y`"),
    "pointers": ("void f(double **x) { x[0][0] = 1; }", "<C>:1:16: the rows of `x` are pointers, which may point to"),
    "bool": ("void f(_Bool in[3]) { in[0] = 1; }", "<C>:1:14: `in` is bool, a type that poly has not"),
    "bit field": (
        STRUCTURE + "void f(int n, double a[n], struct S *s) { for (int i = 0; i < n; i++) a[i] = s->b; }",
        "<C>:2:78: `s->b` is a bit field",
    ),
    "volatile member": (
        STRUCTURE + "void f(int n, double a[n], struct S *s) { for (int i = 0; i < n; i++) a[i] = s->v; }",
        "<C>:2:78: `s->v` is volatile",
    ),
    "union": (
        STRUCTURE + "void f(int n, double a[n], struct S *s) { for (int i = 0; i < n; i++) a[i] = s->u; }",
        "<C>:2:78: `s->u` is no plain member",
    ),
    "unknown structure": (
        STRUCTURE + "void f(int n, double a[n], struct S *s) { for (int i = 0; i < n; i++) a[i] = s->next->z; }",
        "<C>:2:78: the structure with the member `s->next->z` is not",
    ),
    "pointer as a value": (
        STRUCTURE + "void f(int n, double a[n], struct S *s) { for (int i = 0; i < n; i++) a[i] = s->next == 0; }",
        "<C>:2:78: `s->next` is a structure or points",
    ),
    "structure that changes": (
        STRUCTURE + "void f(int n, double a[n], struct S *s) { for (int i = 0; i < n; i++, s++) a[i] = s->n; }",
        "<C>:2:83: `s` changes in the scop",
    ),
    "members that may be the same": (
        STRUCTURE + "void f(struct S *s, struct S *t) { for (int i = 0; i < 4; i++) s->x[i] = t->x[i]; }",
        "<C>:2:64: `s->x` may point into `t->x`",
    ),
    "structures": (
        "struct S { int n; };\nvoid f(struct S s[3]) { s[0].n = 1; }",
        "<C>:2:25: `s` is an array of struct",
    ),
    "unsigned data": ("void f(unsigned in[3]) { in[0] = 1; }", "<C>:1:17: `in` holds unsigned data, which wraps"),
    "extent": (
        "void f(int n, int m, double *x) { for (int i = 0; i < n; i++) x[i] = 1; x[m] = 0; }",
        "<C>:1:29: the extent of `x` does not follow from its accesses",
    ),
    "afterwards": (
        "double f(int n, double x[n]) {\ndouble s = 0;\n#pragma scop\nfor (int i = 0; i < n; i++) s += x[i];\n"
        "#pragma endscop\nreturn s;\n}",
        "<C>:2:8: `s` is assigned in the scop and read after it",
    ),
    "quotient as extent": (
        "void f(int n, double x[n / 2]) { x[0] = 1; }",
        "<C>:1:24: the extent `n / 2` is no sum of integers, but divides",
    ),
    "complex": (
        "void f(long double _Complex x[3]) { x[0] = 1; }",
        "<C>:1:29: `x` has complex numbers of a type that poly",
    ),
    "order of complex": (
        "void f(double _Complex x[3]) { if (x[0] < 1) x[0] = 1; }",
        "<C>:1:36: `x[0]` is complex, and",
    ),
    "nothing": ("", "<C> has no function with a body."),
    "several functions": (
        "void f(double x[3]) { x[0] = 1; }\nvoid g(void) {}",
        "<C> has several functions to read: f, g.",
    ),
    "missing header": ('#include "missing.h"\nvoid f(void) {}', "<C>:1:10: fatal error: missing.h: No such file"),
}


@pytest.mark.parametrize("case", FILES)
def test_a_text_that_has_no_nest_is_refused(case: str) -> None:
    text, sentence = FILES[case]
    assert refused(text).startswith(sentence)


CALLS = {
    "recursion": (
        "void g(int *x) { g(x); } void f(int x[3]) { g(x); }",
        "<C>:1:18: `g(x)` is called for its side effects",
    ),
    "early return": (
        "void g(int n, int *x) { if (n > 3) return; x[0] = 1; } void f(int n, int x[3]) { g(n, x); }",
        "<C>:1:82: `g(n, x)` is called for its side effects",
    ),
    "moving pointer": (
        "void g(int *x) { *x++ = 1; } void f(int x[3]) { g(x); }",
        "<C>:1:49: `g(x)` is called for its side effects",
    ),
    "pointer of its own": (
        "void g(int *x) { int *c = x; *c++ = 1; } void f(int x[3]) { int c = 2; g(x); x[c] = 1; }",
        "<C>:1:22: `c` is a pointer, which may point into any array",
    ),
    "another variable of that name": (
        "int x = 2; void g(int *y) { y[0] = x; } void f(int x[3]) { g(x); }",
        "<C>:1:60: `g(x)` is called for its side effects",
    ),
    "state": (
        "void g(int *y) { static int s = 2; y[0] = s; } void f(int x[3]) { g(x); }",
        "<C>:1:67: `g(x)` is called for its side effects",
    ),
}


@pytest.mark.parametrize("case", CALLS)
def test_a_call_of_a_function_that_can_not_stand_in_its_place_is_refused(case: str) -> None:
    text, sentence = CALLS[case]
    assert refused(text, function="f").startswith(sentence)


def test_a_function_that_does_not_exist_is_refused() -> None:
    assert refused("void f(double x[3]) { x[0] = 1; }", function="g") == "<C> has no function g. Its functions: f."


def test_a_file_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="can't be read"):
        poly.from_c(tmp_path / "none.c")


def test_the_place_is_that_in_the_file_behind_its_includes(tmp_path: Path) -> None:
    (tmp_path / "sizes.h").write_text("/* two\n   lines */\n#define N 10\n")
    path = tmp_path / "loops.c"
    path.write_text('#include <stdio.h>\n#include "sizes.h"\nvoid f(double x[N]) {\n  // comment\n  x[x[0]] = N;\n}\n')
    message = refused_file(path)
    assert message.startswith(f"{path}:5:5: `x[0]` is data")
    assert re.search(r"x\[x\[0\]\] = 10;\n {6}\^{4}\n", message)


def test_the_place_is_that_in_the_header_that_has_the_function_or_declaration(tmp_path: Path) -> None:
    header, path = tmp_path / "parts.h", tmp_path / "loops.c"
    header.write_text(
        "\nstatic void clear(int n, double *x) {\n  for (int i = 0; i < n; i++) while (n) x[i] = 0;\n}\n"
        "static void far(int n, double *x) {\n  for (int i = 0; i < n; i++) x[i + 4] = 0;\n}\n"
        "volatile double changing;\n"
    )
    head = '/* text */\n#include "parts.h"\nvoid f(int n, double *restrict x, double y[9]) '
    for body, message in {
        "{ clear(n, x); }": f"{header}:3:31: a `while` loop has no affine bounds\n    for (int i = 0;",
        "{ x[0] = changing; }": f"{header}:8:17: `changing` is volatile: its accesses are effects\n    volatile ",
        "{ far(9, y); }": f"{header}:6: S0 writes y[i_2 + 4] outside of y\n    for (int i = 0; i < n; i++) x[i + 4] = ",
    }.items():
        path.write_text(f"{head}{body}\n")
        with pytest.raises(SpecError) as caught:
            poly.compile(poly.from_c(path, function="f"))
        assert str(caught.value).startswith(message)


def refused_file(path: Path) -> str:
    with pytest.raises(SpecError) as caught:
        poly.from_c(path)
    return str(caught.value)
