"""Any text (a schedule's JSON, a source, subscripts, an environment variable) ends in a result or a PolyError."""

from __future__ import annotations

import json
import warnings
from inspect import signature
from pathlib import Path
from typing import Any

import pytest
from hostile import fault
from hypothesis import given, settings
from hypothesis import strategies as st

import poly
from codegen.toolchain.compiler import find_compiler
from poly import f32
from poly.frontends.python import parse_text
from poly.frontends.source import Source
from poly.ir.nest import Nest
from poly.schedules.steps import STEPS

N = poly.sizes("N")


def parsed(body: str, head: str = "def nest(x: f32[N + 9], y: f32[N + 9]):") -> Nest:
    text = "\n".join([head, *(f"    {line}" for line in body.splitlines())])
    return parse_text(Source(text, "texts.py", 1), {"N": N, "f32": f32})


COPY = parsed("for i in range(N):\n    x[i] = y[i]")

# --- schedules as JSON ----------------------------------------------------------------------------------------------

TEXTS = [
    "",
    "[",
    "[" * 100_000,
    '{"a":' * 100_000,
    "nul",
    "NaN",
    "1e999",
    "9" * 5000,
    '"\ud800"',
    "\0",
    "[]",
    "{}",
    "[[]]",
    '[{"step": "tile"}]',
    '[{"step": "tile", "args": 3, "kwargs": {}}]',
    '[{"step": "tile", "args": [], "kwargs": {"self": 3}}]',
    '[{"step": "to_json", "args": [], "kwargs": {}}]',
    '[{"step": ["tile"], "args": [], "kwargs": {}}]',
    f'[{{"step": "tile", "args": [], "kwargs": {{"i": {"9" * 4000}}}}}]',
    '[{"step": "tile", "args": [], "kwargs": {"i": 1e400}}]',
    '[{"step": "order", "args": [["i"]], "kwargs": {}}]',
]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.sampled_from(["i", "x", "S0", "i_tile"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3) | st.just("i"), inner, max_size=3),
    max_leaves=8,
)
CALLS = st.fixed_dictionaries(
    {
        "step": st.sampled_from(sorted(STEPS)),
        "args": st.lists(JSON, max_size=3),
        "kwargs": st.dictionaries(st.sampled_from(["i", "at", "by", "loop", "statement", "role"]), JSON, max_size=2),
    }
)


@pytest.mark.parametrize("text", TEXTS, ids=lambda text: text[:30].encode("ascii", "backslashreplace").decode())
def test_any_text_as_a_schedule(text: str) -> None:
    assert not (found := fault("from_json", poly.Schedule.from_json, COPY, text)), found


@settings(max_examples=150)
@given(JSON | st.lists(CALLS, max_size=2))
@pytest.mark.slow
def test_any_json_as_a_schedule(value: Any) -> None:
    assert not (found := fault("from_json", poly.Schedule.from_json, COPY, json.dumps(value))), found


# --- sources --------------------------------------------------------------------------------------------------------


def deep(kind: str, levels: int) -> str:
    """A body that is nested so deeply in one way."""
    values = {
        "sum": " + ".join(["y[i]"] * levels),
        "minus": "-" * levels + "y[i]",
        "parentheses": "(" * levels + "y[i]" + ")" * levels,
        "right": "y[i] - (" * levels + "y[i]" + ")" * levels,
        "max": "max(y[i], " * levels + "y[i]" + ")" * levels,
    }
    if kind in values:
        return f"for i in range(N):\n    x[i] = {values[kind]}"
    if kind == "index":
        return f"for i in range(N):\n    x[i{' + 0' * levels}] = y[i]"
    if kind == "not":
        return f"for i in range(N):\n    if {'not ' * levels}i > 0:\n        x[i] = y[i]"
    if kind == "elif":
        others = "".join(f"    elif i == {n}:\n        x[i] = y[i]\n" for n in range(1, levels))
        return f"for i in range(N):\n    if i == 0:\n        x[i] = y[i]\n{others}"
    loops = "".join(f"{'    ' * n}for i{n} in range(1):\n" for n in range(levels))
    return f"{loops}{'    ' * levels}x[0] = y[0]"


KINDS = ("sum", "minus", "parentheses", "right", "max", "index", "not", "elif", "loops")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("levels", [90, 400, 5000])
def test_a_source_that_is_nested_deeply(kind: str, levels: int) -> None:
    """What is read can also be compiled; the rest is refused, and where."""

    def made() -> None:
        nest = parsed(deep(kind, levels))
        assert poly.compile(nest, records=False, target="c:portable").source

    assert not (found := fault(f"{kind}, {levels}", made)), found


def test_a_line_that_is_too_deep_is_shown() -> None:
    with pytest.raises(poly.SpecError, match=r"texts\.py:3: this is nested more than \d+ levels deep") as caught:
        parsed(deep("sum", 400))
    assert "x[i] = y[i] + y[i]" in str(caught.value)


@pytest.mark.parametrize(
    "annotation",
    ["f32[1 / 0]", "f32[[][0]]", "f32[{}['a']]", "f32[int('x')]", "f32[N, 10**400]", "f32[N, -1]", "f32[1.5]",
     "f32[N, ]", "'f32['", "'" + "(" * 300 + "'", "3", "N", "None", "f32['N']", "f32[...]", "f32[:]",
     "lambda: 0", "f32[f32]"],
)  # fmt: skip
def test_any_annotation(annotation: str) -> None:
    assert not (found := fault(annotation, parsed, "x[0] = y", f"def nest(x: f32[1], y: {annotation}):")), found


@pytest.mark.parametrize("text", ["", "\0", "x = 1", "def f(:", "\ud800", "def f(x):\n\treturn\n        pass", "#"])
def test_any_text_as_a_source(text: str) -> None:
    found = fault("parse_text", parse_text, Source(text, "texts.py", 1), {})
    assert not found, found


@settings(max_examples=200)
@given(st.text(alphabet="abAB,->. 0é", max_size=12) | st.text(max_size=6), st.dictionaries(st.text(), st.integers()))
def test_any_subscripts(subscripts: str, sizes: dict[str, int]) -> None:
    sizes = {name: value for name, value in sizes.items() if name not in signature(poly.einsum).parameters}
    assert not (found := fault("einsum", poly.einsum, subscripts, **sizes)), found


@pytest.mark.parametrize("subscripts", ["a," * 30 + "a->", "a" * 40 + "->", "," * 40, "abcdefghijklmnopqrstuvwxyz" * 2])
def test_subscripts_of_many_operands(subscripts: str) -> None:
    assert not (found := fault("einsum", poly.einsum, subscripts)), found


# --- the environment ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "command", ['gcc "', "\\", "'", "   ", "/", "/nonexistent/cc", "gcc\udcff", "~/gcc", "x" * 10_000]
)
@pytest.mark.parametrize("variable", ["POLY_CC", "CC"])
def test_any_compiler_command(monkeypatch: pytest.MonkeyPatch, variable: str, command: str) -> None:
    monkeypatch.delenv("POLY_CC", raising=False)
    monkeypatch.setenv(variable, command)
    assert not (found := fault(variable, find_compiler)), found


@pytest.mark.parametrize("place", ["/dev/null/cache", "/proc/cache", "/dev/full", "x" * 5000, "cache\udcff"])
def test_any_cache_directory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, place: str) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("POLY_CACHE_DIR", place)
    assert not (found := fault(place, lambda: poly.compile(COPY, N=8, target="c:portable").build())), found


@pytest.mark.parametrize("place", ["/dev/null/records", "/dev/full", ".", "x" * 5000, "records\udcff"])
def test_any_store_of_records(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, place: str) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("POLY_RECORDS", place)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", poly.RecordWarning)
        assert not (found := fault(place, poly.compile, COPY, N=8, target="c:portable")), found
