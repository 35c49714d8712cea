"""Quotients and remainders in subscripts, bounds, conditions and values: random loops give what Python gives."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import poly
from poly import Nest, f64
from poly.frontends.python import parse_text
from poly.frontends.source import Source
from poly.ir.reference import reference

N = poly.sizes("N")
ROOM = 8
"""The elements that arrays have beyond N, which remainders by numbers reach."""


@st.composite
def sums(draw: st.DrawFn) -> str:
    """A sum that is within some multiples of N of 0."""
    first = draw(st.sampled_from(["i", "j", "i + j", "i - j", "N - 1 - i", "2 * i"]))
    return f"{first} {draw(st.sampled_from(['+', '-']))} {draw(st.integers(0, 1))}"


@st.composite
def indices(draw: st.DrawFn) -> str:
    """A subscript from 0 to N + ROOM - 1, in loops from 0 to N - 1."""
    by = draw(st.integers(2, 7))
    forms = ["({}) % N", f"({{}}) % {by}", f"(({{}}) % N) // {by}", f"({{}}) % {by} + 1", "i", "j"]
    forms += [f"i // {by}", f"(i + j) // {max(by, 2)}", f"(i - j + N) // {by} % {by}", "(i + j) // N", f"j - j % {by}"]
    return draw(st.sampled_from(forms)).format(draw(sums()))


@st.composite
def lines(draw: st.DrawFn) -> list[str]:
    low, high = draw(st.sampled_from([("0", "N"), ("i // 3", "N"), ("i % 3", "N - i // 2"), ("0", "(i + N) // 2")]))
    step = draw(st.sampled_from(["", "", ", 2"]))
    made = ["for i in range(N):", f"    for j in range({low}, {high}{step}):"]
    read = draw(st.sampled_from([f"x[{draw(indices())}]", "y[i, j]"]))
    test = draw(st.sampled_from(["", "", f"if ({draw(sums())}) % N > {draw(sums())} // 2:", f"if {read} > 0:"]))
    made += [f"        {test}"] * bool(test)
    for _ in range(draw(st.integers(1, 2))):
        target = draw(st.sampled_from(["y", "z"])), draw(indices()), draw(indices())
        op = draw(st.sampled_from(["=", "+=", "="]))
        value = f"x[{draw(indices())}] + {draw(st.sampled_from(['i % 3', 'y[i, j]', f'z[{draw(indices())}, j]', '2']))}"
        made.append(f"{'    ' * (3 if test else 2)}{target[0]}[{target[1]}, {target[2]}] {op} {value}")
    if draw(st.integers(0, 2)) == 0:  # partial sums, which every iteration of one of the loops looks at
        made.insert(1, "    s: f64 = 0.0")
        made += [f"        s += x[{draw(indices())}]", f"        y[{draw(st.sampled_from(['i, j', 'j, i']))}] = s"]
    return made


def nest(body: list[str]) -> Nest:
    head = f"def divided(x: f64[N + {ROOM}], y: f64[N + {ROOM}, N + {ROOM}], z: f64[N + {ROOM}, N + {ROOM}]):"
    return parse_text(Source("\n".join([head, *("    " + line for line in body)]), "divided", 1), {"N": N, "f64": f64})


def data(size: int) -> list[np.ndarray]:
    rng, extent = np.random.default_rng(size), size + ROOM
    return [rng.integers(-4, 5, shape).astype(np.float64) for shape in ((extent,), (extent, extent), (extent, extent))]


@settings(max_examples=18, deadline=None)
@given(lines(), st.sampled_from([1, 2, 3, 7, 12]), st.booleans(), st.sampled_from(["c", "c:portable"]))
def test_quotients_and_remainders_are_those_of_python(body: list[str], size: int, known: bool, target: str) -> None:
    made = nest(body)
    kernel = poly.compile(made, target=target, records=False, **({"N": size} if known else {}))
    arrays, expected = data(size), data(size)
    kernel(*arrays)
    reference(made, tuple(expected))
    for got, wanted in zip(arrays, expected, strict=True):
        np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize(
    "lines",
    [
        ["s: f64 = -1.0", "for j in range(4, -1, -1):", "    s -= z[(i + 1) % N, j]", "    y[j, i] = s"],
        ["for j in range(i + 1):", "    x[0] += z[i, j]", "    y[i, 0] += x[i]"],
    ],
)
@pytest.mark.parametrize("known", [False, True])
def test_lanes_see_what_their_own_iteration_has_added(lines: list[str], known: bool) -> None:
    """The sum is of a single iteration's: the last one of its loop, or the only one."""
    made = nest(["for i in range(N):", *("    " + line for line in lines)])
    arrays, expected = data(13), data(13)
    poly.compile(made, records=False, **({"N": 13} if known else {}))(*arrays)
    reference(made, tuple(expected))
    for got, wanted in zip(arrays, expected, strict=True):
        np.testing.assert_array_equal(got, wanted)


def test_each_case_of_a_statement_tests_what_no_other_case_has_written() -> None:
    made = nest(
        [
            "for i in range(N):",
            "    for j in range(N):",
            "        if y[i, j] > 0:",
            "            y[i, j] = x[(j + 1) % N]",
        ]
    )
    arrays, expected = data(5), data(5)
    poly.compile(made)(*arrays)
    reference(made, tuple(expected))
    np.testing.assert_array_equal(arrays[1], expected[1])


@pytest.mark.parametrize("line", ["x[i] = x[i] - 2.0", "x[N - 1 - j] = 1.0", "x[i] -= x[(i + j) % N]"])
def test_loops_below_a_test_do_not_change_what_it_has_read(line: str) -> None:
    made = nest(["for i in range(N):", "    if x[i] > 0.0:", "        for j in range(N):", f"            {line}"])
    arrays, expected = data(5), data(5)
    poly.compile(made)(*arrays)
    reference(made, tuple(expected))
    np.testing.assert_array_equal(arrays[0], expected[0])


def test_a_rolled_access_is_exact() -> None:
    """Each half of the split reads one element, so that the copy to another array runs in any order."""
    made = nest(["for i in range(N):", "    y[0, i] = x[(i + 1) % N]"])
    assert len(made.statements) == 2
    assert not poly.dependences(made)
    assert [str(s.reads[0]) for s in made.statements] == ["x[i + 1]", "x[i - N + 1]"]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("y[0, i] = x[(5 * i) % N]", "within -2*(N) <= 5 * i < 4*(N): it is not at N = 5, i = 4"),
        ("y[0, i] = x[i % (i - 3)]", "not known to be within"),
        ("y[0, i] = x[i // -2]", "`-2` divides, and is no positive integer"),
        ("y[0, i] = x[i] // 2", "is an operation of integers, and has floats"),
        ("y[0, i] = x[i % x[i]]", "`x[i]` is no element of an array of integers"),
        ("y[0, i % 4 + N + 5] = 0.0", "outside of y"),
    ],
)
def test_what_is_not_affine_by_parts_is_refused(line: str, words: str) -> None:
    with pytest.raises(poly.SpecError) as caught:
        poly.compile(nest(["for i in range(N):", f"    {line}"]))
    assert words in str(caught.value)
