"""Each thing that the Python front end refuses, by the full text of its error."""

from __future__ import annotations

import re
import textwrap
from typing import Any

import numpy as np
import pytest

from codegen.ir.integer import Affine, Linear
from microkernels.dtypes import c128, f32, f64
from poly.errors import SpecError
from poly.frontends.python import parse, parse_text
from poly.frontends.source import Source
from poly.ir.nest import Nest

SIZES = {name: Affine.name(name) for name in ("M", "N", "K")}
KNOWN: dict[str, Any] = {"f32": f32, "f64": f64, "range": range, **SIZES}
KNOWN_FUNCTIONS = (
    "exp, exp2, expm1, log, log2, log10, log1p, sqrt, sinh, cosh, tanh, erf, sin, cos, tan, atan, floor, ceil, abs, "
    "pow, atan2, min and max"
)
FORM = "An index, bound or condition is a sum of loop indices and sizes, each times an integer, plus an integer."


def read(body: str, arguments: str = "A: f32[N, N], x: f32[N], s: f32", **known: Any) -> Nest:
    text = f"def nest({arguments}):\n{textwrap.indent(textwrap.dedent(body), '    ')}"
    return parse_text(Source(text, "nest.py", 1), {**KNOWN, **known})


def refused(*arguments: Any, **known: Any) -> str:
    with pytest.raises(SpecError) as caught:
        read(*arguments, **known)
    return str(caught.value)


CASES = {
    "product of indices": (
        "for i in range(N):\n    x[i*i] = 0.0",
        "3: `i * i` is not affine: it multiplies two names",
        "x[i*i] = 0.0",
        "  ^^^",
        f"{FORM} Give the array one more dimension instead (A[i, j] for A[i*N + j]), or fix one factor "
        "as a global integer.",
    ),
    "index by data": (
        "for i in range(N):\n    x[A[i, 0]] = 0.0",
        "3: `A[i, 0]` is no element of an array of integers",
        "x[A[i, 0]] = 0.0",
        "  ^^^^^^^",
        "Look up elements of an argument, such as `idx: i32[N]`.",
    ),
    "division in an index": (
        "for i in range(N):\n    x[i // M] = 0.0",
        "3: `i // M` divides by a size, and is not known to be within -2*(M) <= i < 4*(M): "
        "it is not at N = 1, M = 0, i = 0",
        "x[i // M] = 0.0",
        "  ^^^^^^",
        "Divide by a literal or a global integer, or bound the loops by the size: `for i in range(M):`.",
    ),
    "assertion among the loops": (
        "for i in range(N):\n    assert N > 1\n    x[i] = 0.0",
        "3: an `assert` is a condition on the sizes",
        "assert N > 1",
        "^^^^^^^^^^^^",
        "Move it before the loops and assignments.",
    ),
    "assertion on data": (
        "assert s > 0\nx[0] = s",
        "2: `s > 0` depends on data",
        "assert s > 0",
        "       ^^^^^",
        "Check it before the call, and assert what sizes satisfy.",
    ),
    "assertion that never holds": (
        "assert N < 0\nx[0] = s",
        "2: no sizes satisfy `N < 0`",
        "assert N < 0",
        "       ^^^^^",
        "Correct it, or what is asserted before it.",
    ),
    "assertion with gaps": (
        "assert N != 5\nx[0] = s",
        "2: the sizes that satisfy `N != 5` have gaps",
        "assert N != 5",
        "       ^^^^^^",
        "Assert sums of sizes with < <= > >= ==, joined by `and`.",
    ),
    "assertion of a remainder": (
        "assert N % 4 == 0\nx[0] = s",
        "2: the sizes that satisfy `N % 4 == 0` have gaps",
        "assert N % 4 == 0",
        "       ^^^^^^^^^^",
        "Assert sums of sizes with < <= > >= ==, joined by `and`.",
    ),
    "scalar as an index": (
        "for i in range(N):\n    x[i + s] = 0.0",
        "3: `s` is data, not an index or a size",
        "x[i + s] = 0.0",
        "      ^",
        FORM,
    ),
    "call in an index": ("x[round(1)] = 0.0", "2: `round(1)` is not affine", "x[round(1)] = 0.0", "  ^^^^^^^^", FORM),
    "undeclared name": (
        "for i in range(N):\n    x[i] = y",
        "3: `y` is not declared here",
        "x[i] = y",
        "       ^",
        "Use a loop's index, an argument, a local with a value, a size made by poly.sizes, or a global number.",
    ),
    "index after its loop": (
        "for i in range(N):\n    x[i] = 0.0\nx[i] = 1.0",
        "4: `i` is not declared here",
        "x[i] = 1.0",
        "  ^",
        "Use a loop's index, an argument, a local with a value, a size made by poly.sizes, or a global number.",
    ),
    "while": (
        "while N > 0:\n    x[0] = 1.0",
        "2: a `while` loop has no affine bounds",
        "while N > 0:",
        "      ^^^^^",
        "Write `for i in range(N):`.",
    ),
    "return": (
        "return x[0]",
        "2: a nest returns nothing",
        "return x[0]",
        "^^^^^^^^^^^",
        "Write results into an argument: `C[i, j] = ...`.",
    ),
    "break": (
        "for i in range(N):\n    break",
        "3: `break` lets the data decide which iterations run",
        "break",
        "^^^^^",
        "Put the rest of the loop's body below an affine `if`.",
    ),
    "import": (
        "import math",
        "2: `import` is not allowed in a nest",
        "import math",
        "^^^^^^^^^^^",
        "Use `for` over `range`, `if` and assignments.",
    ),
    "bare value": ("x[0]", "2: this value goes nowhere", "x[0]", "^^^^", "Assign it to an element: `A[i] = ...`."),
    "two targets": (
        "x[0] = x[1] = x[0] + 1",
        "2: several targets are assigned a value that reads one of them",
        "x[0] = x[1] = x[0] + 1",
        "^^^^^^^^^^^^^^^^^^^^^^",
        "Keep the value in a scalar first: `t = x[0] + 1`.",
    ),
    "tuple target": (
        "x[0], x[1] = 0.0",
        "2: `(x[0], x[1])` can't be assigned",
        "x[0], x[1] = 0.0",
        "^^^^^^^^^^",
        "Assign an element `A[i, j]` or a local scalar.",
    ),
    "declared element": (
        "x[0]: f32 = 0.0",
        "2: `x[0]` can't be declared",
        "x[0]: f32 = 0.0",
        "^^^^",
        "Declare a name: `tmp: f32[N]`.",
    ),
    "operator": (
        "for i in range(N):\n    x[i] = x[i] // 2",
        "3: `x[i] // 2` is an operation of integers, and has floats",
        "x[i] = x[i] // 2",
        "       ^^^^^^^^^",
        "Round a quotient by floor: `floor(a / b)`; convert others: `i32(x)`.",
    ),
    "bits of an index": (
        "for i in range(N):\n    x[i] = i & 3",
        "3: `i & 3` is an operation on the bits of indices or sizes",
        "x[i] = i & 3",
        "       ^^^^^",
        "Write it with * // and %: `i % 4` for `i & 3`, or convert: `i32(i) & j`.",
    ),
    "other update": (
        "for i in range(N):\n    x[i] @= 2.0",
        "3: this assignment has an operator that poly has not",
        "x[i] @= 2.0",
        "^^^^^^^^^^^",
        "Write it as `y = …`, with max, min or pow.",
    ),
    "unknown function": (
        "x[0] = cbrt(x[1])",
        "2: `cbrt` can't be called in a nest",
        "x[0] = cbrt(x[1])",
        "       ^^^^",
        f"The functions are {KNOWN_FUNCTIONS}.",
    ),
    "arguments of a function": (
        "x[0] = exp(x[1], x[2])",
        "2: `exp` takes one argument, and gets 2",
        "x[0] = exp(x[1], x[2])",
        "       ^^^^^^^^^^^^^^^",
        f"The functions are {KNOWN_FUNCTIONS}.",
    ),
    "condition that is no comparison": (
        "x[0] = x[1] if x[1] else 0.0",
        "2: `x[1]` is no comparison",
        "x[0] = x[1] if x[1] else 0.0",
        "               ^^^^",
        "Compare values with < <= > >= == !=, joined by and, or, not: `x[i] != 0`.",
    ),
    "index as a choice's condition": (
        "for i in range(N):\n    x[i] = 1 if i*i > 3 else 0.0",
        "3: `i * i` is not affine: it multiplies two names",
        "x[i] = 1 if i*i > 3 else 0.0",
        "            ^^^",
        f"{FORM} Give the array one more dimension instead (A[i, j] for A[i*N + j]), or fix one factor "
        "as a global integer.",
    ),
    "string": (
        "x[0] = 'a'",
        "2: `'a'` is no value that poly knows",
        "x[0] = 'a'",
        "       ^^^",
        f"Use numbers, indices, elements, scalars, + - * / **, `a if c else b` and {KNOWN_FUNCTIONS}.",
    ),
    "slice": (
        "x[0:2] = 0.0",
        "2: `0:2` is a slice",
        "x[0:2] = 0.0",
        "  ^^^",
        "Write a loop over these elements instead.",
    ),
    "too few indices": (
        "A[0] = 0.0",
        "2: `A` has 2 dimensions, and gets 1 index",
        "A[0] = 0.0",
        "^^^^",
        "Give one index for each dimension: `A[i, j]`.",
    ),
    "nested indices": (
        "A[0][1] = 0.0",
        "2: `A[0]` is not the name of an array",
        "A[0][1] = 0.0",
        "^^^^",
        "Write A[i, j], not A[i][j].",
    ),
    "index of a scalar": (
        "x[0] = s[0]",
        "2: `s` is a scalar and takes no index",
        "x[0] = s[0]",
        "       ^^^^",
        "Write `s`.",
    ),
    "whole array read": (
        "x[0] = A",
        "2: `A` is a whole array",
        "x[0] = A",
        "       ^",
        "Name one element of it, such as `A[i, j]`, inside loops.",
    ),
    "whole array assigned": (
        "x = 0.0",
        "2: `x` is a whole array",
        "x = 0.0",
        "^",
        "Assign its elements: `x[...] = ...`.",
    ),
    "argument by value assigned": (
        "s = 0.0",
        "2: `s` is a scalar passed by value",
        "s = 0.0",
        "^",
        "Assign a local of another name.",
    ),
    "size assigned": ("N = 0.0", "2: `N` is a size", "N = 0.0", "^", "Assign a local of another name."),
    "index assigned": (
        "for i in range(N):\n    i = 0.0",
        "3: `i` is the index of a loop",
        "i = 0.0",
        "^",
        "Assign a local of another name.",
    ),
    "read before a value": (
        "for i in range(N):\n    if i > 0:\n        t = 1.0\n    x[i] = t",
        "5: `t` may be read before it has a value",
        "x[i] = t",
        "       ^",
        "Assign it first, outside of any `if`: `t = 0.0`.",
    ),
    "updated before a value": (
        "for i in range(N):\n    t += 1.0",
        "3: `t` is not declared here",
        "t += 1.0",
        "^",
        "Use a loop's index, an argument, a local with a value, a size made by poly.sizes, or a global number.",
    ),
    "local after its loop": (
        "for i in range(N):\n    t = x[i]\nx[0] = t",
        "4: `t` belongs to the loop over `i`, which does not run here",
        "x[0] = t",
        "       ^",
        "Define `t` before that loop, or once more here.",
    ),
    "local array with a value": (
        "t: f32[N] = 0.0",
        "2: a local array is declared without a value",
        "t: f32[N] = 0.0",
        "            ^^^",
        "Fill it with loops after the declaration.",
    ),
    "changed type": (
        "t: f32[N]\nt: f64[N]",
        "3: `t` changes its type",
        "t: f64[N]",
        "^",
        "Use another name for the second one.",
    ),
    "mixed types": (
        "t: f64 = 0.0\nx[0] = t",
        "3: the types f32, f64 meet in one assignment",
        "x[0] = t",
        "^^^^^^^^",
        "Give all arrays and scalars in it one type, or convert one of them: `f64(x)`.",
    ),
    "no range": (
        "for i in x:\n    x[0] = 0.0",
        "2: `x` is no range",
        "for i in x:",
        "         ^",
        "Loop over `range(end)`, `range(first, end)` or with a step.",
    ),
    "two indices": (
        "for i, j in range(N):\n    x[0] = 0.0",
        "2: a loop counts one index",
        "for i, j in range(N):",
        "    ^^^^",
        "Write `for i in range(N):`.",
    ),
    "index used twice": (
        "for i in range(N):\n    for i in range(N):\n        x[i] = 0.0",
        "3: `i` is the index of a loop around this one",
        "for i in range(N):",
        "    ^",
        "Use another name.",
    ),
    "index named as an argument": (
        "for x in range(N):\n    A[x, x] = 0.0",
        "2: `x` is already a size, argument or local",
        "for x in range(N):",
        "    ^",
        "Use another name.",
    ),
    "loop with else": (
        "for i in range(N):\n    x[i] = 0.0\nelse:\n    x[0] = 1.0",
        "5: a loop has no `else` in a nest",
        "x[0] = 1.0",
        "^^^^^^^^^^",
        "Write the statement after the loop.",
    ),
    "symbolic step": (
        "for i in range(0, N, N):\n    x[i] = 0.0",
        "2: the step `N` is not a nonzero constant",
        "for i in range(0, N, N):",
        "                     ^",
        "Use a literal or a global integer as the step.",
    ),
    "bound of a wrong kind": (
        "for i in range(max(N, 3)):\n    x[0] = 0.0",
        "2: with `max(N, 3)` here, the loop's values are not an interval",
        "for i in range(max(N, 3)):",
        "               ^^^^^^^^^",
        "The first value takes max, the end takes min; put anything else in an `if` inside the loop.",
    ),
    "no comparison": (
        "for i in range(N):\n    if i:\n        x[i] = 0.0",
        "3: `i` is not an affine condition",
        "if i:",
        "   ^",
        "Compare affine expressions with < <= > >= == !=, joined by and, or, not.",
    ),
    "other comparison": (
        "for i in range(N):\n    if i in x:\n        x[i] = 0.0",
        "3: `i in x` uses a comparison that is not one of < <= > >= == !=",
        "if i in x:",
        "   ^^^^^^",
        "Write it with these, joined by and, or, not.",
    ),
    "division by a size": (
        "for i in range(N):\n    if i % -3 == 0:\n        x[i] = 0.0",
        "3: `-3` divides, and is no positive integer",
        "if i % -3 == 0:",
        "       ^^",
        "Divide by a literal or a global integer.",
    ),
    "keyword of C": (
        "double = 0.0",
        "2: `double` is a keyword of C",
        "double = 0.0",
        "^^^^^^",
        "Use another name, such as `double_`.",
    ),
    "function as a name": (
        "for exp in range(N):\n    x[exp] = 0.0",
        "2: `exp` is reserved in poly",
        "for exp in range(N):",
        "    ^^^",
        "Use another name, such as `exp_`.",
    ),
    "word of the sets": (
        "for Mod in range(N):\n    x[Mod] = 0.0",
        "2: `Mod` is reserved in poly",
        "for Mod in range(N):",
        "    ^^^",
        "Use another name, such as `Mod_`.",
    ),
    "not ASCII": (
        "for ï in range(N):\n    x[ï] = 0.0",
        "2: `ï` is not an ASCII identifier",
        "for ï in range(N):",
        "    ^",
        "Use letters, digits and underscores.",
    ),
    "caret after letters that are not ASCII": (
        "x[0] = 'äöü' + y",
        "2: `'äöü'` is no value that poly knows",
        "x[0] = 'äöü' + y",
        "       ^^^^^",
        f"Use numbers, indices, elements, scalars, + - * / **, `a if c else b` and {KNOWN_FUNCTIONS}.",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_body_outside_of_what_poly_reads_is_refused(case: str) -> None:
    body, sentence, line, caret, remedy = CASES[case]
    assert refused(body) == f"nest.py:{sentence}\n    {line}\n    {caret}\n{remedy}"


COMPLEX = {
    "order": ("for i in range(N):\n    r[i] = max(z[i], 0.0)", "`max` takes no complex numbers"),
    "comparison": (
        "for i in range(N):\n    if z[i] > 1:\n        r[i] = 1.0",
        "`z[i]` is complex, and such numbers have",
    ),
    "to a real": ("for i in range(N):\n    r[i] = 1j * z[i]", "`r[i]` is real, and gets a complex number"),
    "update of a real": ("for i in range(N):\n    r[i] += z[i]", "`r[i]` is real, and gets a complex number"),
    "no such function": ("for i in range(N):\n    z[i] = np.sqrt(z[i])", "`np.sqrt` takes no complex numbers"),
    "a power": ("for i in range(N):\n    z[i] = z[i] ** 3", "`z[i] ** 3` is no operation on complex numbers"),
    "a part assigned": ("for i in range(N):\n    z[i].real = 1.0", "`z[i].real` can't be assigned"),
    "a whole array": ("for i in range(N):\n    z[i] = 2j * z", "`z` is a whole array"),
    "a wrong rank": ("for i in range(N):\n    z[i] = z[i, i]", "`z` has 1 dimension, and gets 2 indices"),
    "a number assigned": ("for i in range(N):\n    a = z[i]", "`a` is a scalar passed by value"),
    "conversion": ("for i in range(N):\n    r[i] = f64(z[i])", "`f64` takes no complex numbers"),
}


@pytest.mark.parametrize("case", COMPLEX)
def test_complex_numbers_are_refused_where_they_have_no_meaning(case: str) -> None:
    body, words = COMPLEX[case]
    found = refused(body, "z: c128[N], r: f64[N], a: c128", c128=c128, np=np)
    assert words in found.splitlines()[0], found


ARGUMENTS = {
    "no type": (
        "A",
        "`A` has no type",
        "A",
        "Annotate it: `A: f32[M, N]` for an array, `A: f32` for a scalar.",
    ),
    "no poly type": (
        "A: int",
        "`int` is no type (name 'int' is not defined)",
        "int",
        "Write `f32[M, K]` with integers and sizes made by poly.sizes, or `f32` for a scalar.",
    ),
    "no size": (
        "A: f32[3.5]",
        "`3.5` in the shape is neither a size nor an integer",
        "f32[3.5]",
        "Write `f32[M, K]` with integers and sizes made by poly.sizes, or `f32` for a scalar.",
    ),
    "negative extent": (
        "A: f32[-1]",
        "the extent -1 is negative",
        "f32[-1]",
        "Write `f32[M, K]` with integers and sizes made by poly.sizes, or `f32` for a scalar.",
    ),
    "product of sizes": (
        "A: f32[M * N]",
        "`M*N` in the shape is not affine: it multiplies two sizes",
        "f32[M * N]",
        "Give the array one more dimension instead, `f32[M, N]` for `f32[M*N]`.",
    ),
    "fraction of a size": (
        "A: f32[M * 1.5]",
        "`f32[M * 1.5]` is no type ('float' object cannot be interpreted as an integer)",
        "f32[M * 1.5]",
        "Write `f32[M, K]` with integers and sizes made by poly.sizes, or `f32` for a scalar.",
    ),
    "quotient of a size": (
        "A: f32[M // 2]",
        "`f32[M // 2]` is no type (M is open, and an extent is a sum of sizes, each times an integer, without //, / "
        "and %. Remedy: a size of its own for the quotient or the remainder, Q = poly.sizes('Q'), or a number in place "
        "of M.)",
        "f32[M // 2]",
        "Write `f32[M, K]` with integers and sizes made by poly.sizes, or `f32` for a scalar.",
    ),
    "size of the same name": (
        "N: f32, A: f32[N]",
        "`N` is both a size and an argument",
        "N: f32",
        "Rename one of them.",
    ),
    "default": ("s: f32 = 1.0", "arguments have no defaults in a nest", "1.0", "Pass the value with each call."),
    "star": (
        "*A: f32[N]",
        "`A` is not a plain argument",
        "A: f32[N]",
        "Name each array and scalar: `A: f32[M, K]`.",
    ),
    "keyword of C": ("int: f32", "`int` is a keyword of C", "int: f32", "Use another name, such as `int_`."),
}


@pytest.mark.parametrize("case", ARGUMENTS)
def test_arguments_that_no_nest_can_have_are_refused(case: str) -> None:
    arguments, sentence, marked, remedy = ARGUMENTS[case]
    line = f"def nest({arguments}):"
    start = line.index("1.0" if case == "default" else marked)
    expected = f"nest.py:1: {sentence}\n    {line}\n    {' ' * start}{'^' * len(marked)}\n{remedy}"
    assert refused("pass", arguments) == expected


def test_a_function_of_the_users_own_is_not_taken_for_poly_s() -> None:
    class Exp:
        def __call__(self, value: float) -> float:
            return value

    assert "`exp` can't be called in a nest" in refused("x[0] = exp(x[1])", exp=Exp())


def test_a_product_of_sizes_from_around_the_nest_is_refused() -> None:
    for body in ("for i in range(area):\n    x[i] = 0", "x[0] = area"):
        assert "`area` stands for M*N, which is not affine" in refused(body, area=Linear.name("M") * Linear.name("N"))


def test_a_function_that_assigns_nothing_is_refused() -> None:
    assert refused("for i in range(N):\n    pass").startswith("nest.py:1: the function assigns nothing\n    def nest(")


def test_the_place_is_that_in_the_users_file() -> None:
    def wrong(x: f32[4]):
        for i in range(3):
            x[i] = x[i] // 2

    with pytest.raises(SpecError) as caught:
        parse(wrong)
    line = wrong.__code__.co_firstlineno + 2
    assert str(caught.value).startswith(f"{__file__}:{line}: `x[i] // 2` is an operation of integers")


def test_a_function_without_source_is_refused() -> None:
    names: dict[str, Any] = dict(KNOWN)
    exec("def made(x: f32[N]):\n    x[0] = 1.0", names)
    with pytest.raises(SpecError, match="the source text of made can't be found"):
        parse(names["made"])


@pytest.mark.parametrize("thing", [lambda x: x, 3, print])
def test_what_is_no_function_of_loops_is_refused(thing: Any) -> None:
    with pytest.raises(SpecError, match=re.compile("`def`")):
        parse(thing)
