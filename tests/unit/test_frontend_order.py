"""Random nests: the sets hold exactly the iterations that Python runs, and the loop tree has them in Python's order."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from interpreter import run_order

from codegen.ir.integer import Affine
from microkernels.dtypes import f32
from poly.frontends.python import parse_text
from poly.frontends.source import Source

Instance = tuple[str, tuple[int, ...]]
RECORD = "x[0] = 1.0"


@st.composite
def affine_texts(draw: st.DrawFn, indices: tuple[str, ...]) -> str:
    """`2*i - j + N - 1`, in sizes and indices."""
    names = (*indices, "N", "M")
    terms = draw(st.lists(st.tuples(st.integers(-2, 2), st.sampled_from(names)), max_size=2))
    return " + ".join([f"{factor}*{name}" for factor, name in terms] + [str(draw(st.integers(-1, 3)))])


@st.composite
def conditions(draw: st.DrawFn, indices: tuple[str, ...]) -> str:
    def one() -> str:
        left, right = draw(affine_texts(indices)), draw(affine_texts(indices))
        form = draw(st.sampled_from(["{0} {2} {1}", "0 <= {0} < {1}", "({0}) % 3 {2} 1", "({0}) // 2 {2} {1}"]))
        return "(" + form.format(left, right, draw(st.sampled_from(["<", "<=", ">", ">=", "==", "!="]))) + ")"

    return draw(st.sampled_from(["{0}", "{0} and {1}", "{0} or {1}", "not {0}"])).format(one(), one())


@st.composite
def ranges(draw: st.DrawFn, indices: tuple[str, ...]) -> str:
    bound = affine_texts(indices)
    form = draw(
        st.sampled_from(
            [
                "{0}",
                "{0}, {1}",
                "{0}, {1}, {2}",
                "{0}, {1}, -{2}",
                "max({0}, {1}), min({0}, N)",
                "min({0}, {1}), -1, -1",
            ]
        )
    )
    return form.format(draw(bound), draw(bound), draw(st.integers(1, 3)))


@st.composite
def blocks(draw: st.DrawFn, indices: tuple[str, ...] = (), depth: int = 3) -> list[str]:
    """The lines of a block; each statement is the line RECORD."""
    lines: list[str] = []
    for _ in range(draw(st.integers(1, 2))):
        kind = draw(st.sampled_from(["statement", "for", "for", "if"] if depth else ["statement"]))
        if kind == "statement":
            lines.append(RECORD)
            continue
        if kind == "for":
            index = "ijk"[len(indices)]
            lines.append(f"for {index} in range({draw(ranges(indices))}):")
            lines += indented(draw(blocks((*indices, index), depth - 1)))
            continue
        lines.append(f"if {draw(conditions(indices))}:")
        lines += indented(draw(blocks(indices, depth - 1)))
        if draw(st.booleans()):
            lines += ["else:", *indented(draw(blocks(indices, depth - 1)))]
    return lines


def indented(lines: list[str]) -> list[str]:
    return ["    " + line for line in lines]


def executed(lines: list[str], sizes: dict[str, int]) -> list[Instance]:
    """The statement instances as Python runs them."""
    instances: list[Instance] = []
    marked: list[str] = []
    loops: list[tuple[int, str]] = []
    for line in lines:
        indent = len(line) - len(line.lstrip())
        loops = [(depth, index) for depth, index in loops if depth < indent]
        if line.strip().startswith("for "):
            loops.append((indent, line.split()[1]))
        point = "".join(f"{index}, " for _, index in loops)
        name = f"S{sum('record' in one for one in marked)}"
        marked.append(line.replace(RECORD, f"record({name!r}, ({point}))"))
    names: dict[str, Any] = {"record": lambda name, point: instances.append((name, point)), **sizes}
    exec("\n".join(marked), names)
    return instances


@settings(deadline=None, max_examples=80)
@given(blocks(depth=3), st.integers(0, 4), st.integers(0, 3))
def test_the_sets_hold_what_python_runs_in_its_order(lines: list[str], n: int, m: int) -> None:
    text = "\n".join(["def nest(x: f32[N, M]):", "    x[0, 0] = 1.0", *indented(lines)]).replace(
        RECORD, "x[0, 0] = 1.0"
    )
    known = {"f32": f32, "N": Affine.name("N"), "M": Affine.name("M")}
    nest = parse_text(Source(text, "random.py", 1), known).with_sizes({"N": n, "M": m})
    instances = [(instance.statement, instance.point) for instance in run_order(nest, nest.tree)]
    assert instances == executed([RECORD, *lines], {"N": n, "M": m}), text
