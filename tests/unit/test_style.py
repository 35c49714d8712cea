"""C text in one style: braces, and lines of a bounded length."""

from __future__ import annotations

import re

import cgen
import pytest
from hypothesis import given
from hypothesis import strategies as st

from codegen import style
from codegen.ir.integer import Compare, Connected, Linear
from codegen.package.comments import filled_comments
from codegen.style import WIDTH, branch, wrapped

i, N = Linear.name("i"), Linear.name("N")
LOW, HIGH = Compare(i, ">=", Linear()), Compare(i, "<", N)
WORDS = [
    "a",
    "+",
    "b,",
    "c;",
    "f(x,",
    "y)",
    "{1,",
    "2}",
    '"a string, with blanks"',
    "for (",
    "number_of_elements",
    "= {",
]


def test_an_opening_brace_ends_its_line() -> None:
    body = style.Braces(
        [style.IfStatement(cgen.Line("a"), style.Braces([cgen.Line("b;")]), style.Braces([cgen.Line("c;")]))]
    )
    loop = style.ForStatement(cgen.Line("int i = 0"), cgen.Line("i < 9"), cgen.Line("i++"), body)
    lines = ["for (int i = 0; i < 9; i++) {", "    if (a) {", "        b;", "    } else {", "        c;", "    }", "}"]
    assert str(loop).split("\n") == lines
    assert str(style.WhileStatement(cgen.Line("a"), style.Braces([cgen.Line("b;")]))) == "while (a) {\n    b;\n}"


def test_conditions_around_each_other_are_one() -> None:
    inner = branch(HIGH, [cgen.Line("work();")])
    assert branch(LOW, [inner]).test == Connected("&&", (LOW, HIGH))
    assert branch(LOW, [inner], [cgen.Line("rest();")]).test == LOW
    assert branch(LOW, [cgen.Line("first();"), inner]).test == LOW
    assert branch(LOW, [branch(HIGH, [cgen.Line("a();")], [cgen.Line("b();")])]).test == LOW


@given(st.integers(0, 12), st.lists(st.sampled_from(WORDS), min_size=1, max_size=60))
def test_long_lines_are_broken_at_blanks_alone(indent: int, words: list[str]) -> None:
    line = " " * indent + " ".join(words) + " {"
    made = wrapped(line).split("\n")
    assert [part for text in made for part in text.split()] == line.split()
    assert re.findall('"[^"]*"', "\n".join(made)) == re.findall('"[^"]*"', line), "a string is whole"
    assert all(len(text) <= WIDTH for text in made)
    assert made[0].startswith(" " * indent + line.strip()[0])


def test_some_lines_stay_as_they_are() -> None:
    long = " ".join(["word"] * 40)
    assert wrapped(f"#define {long}") == f"#define {long}"
    assert wrapped(f"{long} \\") == f"{long} \\"


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (
            f"    X = 7, /* {'word ' * 24}end */",
            [f"    /* {('word ' * 22).strip()}", "       word word end */", "    X = 7,"],
        ),
        (f"/* {'a ' * 58}b c */", [f"/* {'a ' * 58}b", "   c */"]),
    ],
)
def test_a_long_comment_is_wrapped_as_prose(line: str, expected: list[str]) -> None:
    """Above the line that it is about, and not at brackets and commas as code is."""
    assert wrapped(line).split("\n") == expected


def test_prose_of_a_comment_flows_into_its_next_line() -> None:
    long = " ".join(["word"] * 25)
    text = f"/* Title, of a line.\n   {long}\n   short, then\n       a table of {long}\n   last */\nint f(int {long});"
    lines = filled_comments(text).split("\n")
    assert lines[1:3] == ["   " + " ".join(["word"] * 23), "   word word short, then"]
    assert lines[3:] == [f"       a table of {long}", "   last */", f"int f(int {long});"]


@given(st.lists(st.lists(st.integers(1, 300), max_size=9), min_size=1, max_size=4))
def test_prose_keeps_its_words(lines: list[list[int]]) -> None:
    """A line is only longer than `WIDTH` for a single word that is."""
    text = "\n   ".join(" ".join("x" * length for length in line) for line in lines)
    filled = filled_comments(f"/* {text} */")
    assert filled.split() == f"/* {text} */".split()
    longer = [set(line.split()) - {"/*", "*/"} for line in filled.split("\n") if len(line) > WIDTH]
    assert all(len(words) == 1 for words in longer)
