"""`poly.parse` reads nests from text; a nest without a text says where to write it."""

from __future__ import annotations

import inspect
import linecache
import textwrap
from typing import Any

import numpy as np
import pytest

import poly
from poly import f32

N = poly.sizes("N")
DOUBLE = """
    def relu(v):
        return v if v > 0 else 0.0

    def double(x: f32[N]):
        for i in range(N):
            x[i] = 2 * relu(x[i])
"""
TWO = """
import poly
from poly import f32

N = poly.sizes("N")

@poly.nest
def first(x: f32[N]):
    for i in range(N):
        x[i] += 1

@poly.nest(reassociate=False)
def second(x: f32[N]):
    for i in range(N):
        x[i] += 2
"""


def test_a_function_with_helpers_becomes_a_nest() -> None:
    double = poly.parse(DOUBLE, {"N": N})
    x = np.array([-1, 0, 3], np.float32)
    double.reference(x)
    assert x.tolist() == [0, 0, 6]
    assert str(inspect.signature(double)) == "(x: f32[N]) -> None"
    assert inspect.getsource(double).startswith("def double(x: f32[N]):")
    assert poly.parse(DOUBLE, {"N": 4}).sizes == ()


def test_a_module_gives_the_nest_that_is_asked_for() -> None:
    assert poly.parse(TWO, function="second").reassociate is False
    assert poly.parse(TWO, function="first").statements[0].text == "x[i] += 1"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (TWO, "defines several that have loops. Its functions: first, second. Name one: function='…'."),
        ("x = 1", "defines no function with loops. Its functions: none."),
        ("x = 1 +", ":1: this is no valid Python"),
        ("\n\nx = 1\ny = 1 / 0", ":2: the text can't be run (ZeroDivisionError: division by zero)."),
        ("x = Q", "NameError: name 'Q' is not defined). Define the name in the text, or pass its value: names={…}."),
        ("raise SystemExit(3)", "(SystemExit: 3)"),
        ("x = '\0'", "null bytes"),
        ("(" * 3000, "this is no valid Python"),
        ("def f(x: f32[Q]):\n    for i in range(Q):\n        x[i] = 1", "`f32[Q]` is no type (name 'Q'"),
        ("def f(x: f32[3]):\n    for i in range(3):\n        x[i * i] = 1", ":3: `i * i` is not affine"),
        (b"def f(): pass", "text must be a text such as 'def scale"),
    ],
)
def test_bad_text_is_refused_with_its_line(text: Any, message: str) -> None:
    with pytest.raises(poly.SpecError) as caught:
        poly.parse(text)
    assert message in str(caught.value)


def test_bad_options_are_refused() -> None:
    with pytest.raises(poly.SpecError, match=r"no function secnd\. Did you mean second\? Its functions: first, second"):
        poly.parse(TWO, function="secnd")
    with pytest.raises(poly.SpecError, match="names must be a dictionary"):
        poly.parse(DOUBLE, [N])  # type: ignore[arg-type]
    with pytest.raises(poly.ArgumentError, match="reassociate"):
        poly.parse(DOUBLE, {"N": N}, reassociate="no")  # type: ignore[arg-type]


def test_a_nest_without_text_is_told_what_to_do() -> None:
    text = "def f(x: f32[3]):\n    for i in range(3):\n        x[i] = 1\n"
    for file, where in (("<stdin>", "keeps no text that is typed at its prompt"), ("<string>", "passed to `exec`")):
        names: dict[str, Any] = {"f32": f32}
        exec(compile(text, file, "exec"), names)
        with pytest.raises(poly.SpecError) as caught:
            poly.nest(names["f"])
        assert where in str(caught.value) and "poly.parse(text)" in str(caught.value)


@pytest.mark.parametrize("other", ["x[i] = 2", "x[i] = y", "y[i] = 1"])
def test_the_text_of_another_function_is_not_taken_for_its_own(other: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python finds an executed function's text by its line alone, in whatever was executed under that name."""
    text = "def f(x: f32[3]):\n    for i in range(3):\n        {}\n"
    names: dict[str, Any] = {"f32": f32}
    exec(compile(text.format("x[i] = 1"), "<made>", "exec"), names)
    for found, same in ((text.format("x[i] = 1"), True), (text.format(other), False)):
        monkeypatch.setitem(linecache.cache, "<made>", (len(found), None, found.splitlines(True), "<made>"))
        if same:
            assert poly.nest(names["f"]).name == "f"
        else:
            with pytest.raises(poly.SpecError, match="can't be found"):
                poly.nest(names["f"])


def test_a_nest_in_a_function_of_executed_text_is_read() -> None:
    """Its free names are not global there, which its code shows."""
    text = textwrap.dedent("""
        def make(factor):
            def scaled(x: f32[N]):
                for i in range(N):
                    x[i] = factor * x[i]
            return poly.nest(scaled)
        scaled = make(3)
    """)
    names = {"N": N, "poly": poly}
    made = poly.parse(text, names, function="scaled")
    assert dict(made.names)["factor"].constant == 3  # type: ignore[union-attr]
