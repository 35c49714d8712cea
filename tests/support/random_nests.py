"""Random nests for property tests: a few loops and statements over two arrays, as the text of a Python function."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import islpy as isl
from hypothesis import strategies as st

from poly import f64, sizes
from poly.frontends.python import parse_text
from poly.frontends.source import Source
from poly.ir.fixing import fix_tree
from poly.ir.nest import Nest
from poly.ir.tree import Node, bands, statements
from poly.schedules.steps import (
    Distribute,
    Enclose,
    Fuse,
    Interchange,
    Order,
    Parallel,
    Part,
    Reverse,
    Shift,
    Skew,
    Split,
    Step,
    Tile,
    Unroll,
    Vectorize,
)
from poly.schedules.steps.formulas import Formula

N = sizes("N")
LOOPS = "ijk"
VALUE_OF_N = 3


@dataclass(frozen=True)
class Index:
    """The loops in an index: at most this many, the first of them times one of the factors."""

    factors: tuple[str, ...] = ("", "", "2 * ", "-")
    loops: int = 2


Indices = Mapping[int, Index]
"""The indices of an array, by its rank."""

FREE: Indices = {1: Index(), 2: Index()}
WITHIN: Indices = {1: Index(("", "2 * ")), 2: Index(("",), 1)}
"""Indices inside their arrays for every N; the two-dimensional array is small."""


@st.composite
def nests(draw: st.DrawFn, any_size: bool = False, stepped: bool = False) -> Nest:
    """A nest of up to three loops deep; its size N is open. Its elements lie in X (one index) and Y (two).

    With `stepped`, loops have first values, and steps of 2 and 3 at times. No index leaves its array if N is
    `VALUE_OF_N` or, with `any_size`, for every N from 0 up.
    """
    names = iter([f"{letter}{number}" for number in ("", 1, 2, 3, 4, 5) for letter in LOOPS])
    lines = _block(draw, (), names, WITHIN if any_size else FREE, 0, _stepped_range if stepped else _range)
    length = "3 * N + 30" if any_size else "N + 30"
    text = "\n".join([f"def nest(X: f64[{length}], Y: f64[N + 30, N + 30]):", *("    " + line for line in lines)])
    return parse_text(Source(text, "random", 1), {"N": N, "f64": f64})


def _range(draw: st.DrawFn, around: tuple[str, ...]) -> str:
    return draw(st.sampled_from(["3", "N", *(f"{outer} + 2" for outer in around[-1:])]))


def _stepped_range(draw: st.DrawFn, around: tuple[str, ...]) -> str:
    lower = draw(st.sampled_from(["0", *(f"{outer} - 1" for outer in around[-2:])]))
    return f"{lower}, {draw(st.sampled_from(['6', 'N + 3']))}, {draw(st.sampled_from([1, 2, 2, 3]))}"


Range = Callable[[st.DrawFn, tuple[str, ...]], str]
"""Draws the bounds of a loop inside others."""


def _block(
    draw: st.DrawFn, around: tuple[str, ...], names, indices: Indices, depth: int, bounds: Range = _range
) -> list[str]:
    lines: list[str] = []
    for left in reversed(range(draw(st.integers(1, 2)))):
        must = not (depth or left or any(line.startswith("for ") for line in lines))  # a nest has one loop or more
        if depth < 3 and (must or draw(st.booleans())):
            loop = next(names)
            lines.append(f"for {loop} in range({bounds(draw, around)}):")
            lines += ["    " + line for line in _block(draw, (*around, loop), names, indices, depth + 1, bounds)]
        else:
            lines.append(_statement(draw, around, indices))
    return lines


def _statement(draw: st.DrawFn, around: tuple[str, ...], indices: Indices) -> str:
    op = draw(st.sampled_from(["=", "=", "=", "+=", "+=", "*="]))
    operands = " + ".join(_access(draw, around, indices) for _ in range(draw(st.integers(1, 2))))
    return f"{_access(draw, around, indices)} {op} {operands}"


def _access(draw: st.DrawFn, around: tuple[str, ...], indices: Indices) -> str:
    rank = draw(st.integers(1, 2))
    return f"{'XY'[rank - 1]}[{', '.join(_index(draw, around, indices[rank]) for _ in range(rank))}]"


def _index(draw: st.DrawFn, around: tuple[str, ...], index: Index) -> str:
    terms = draw(st.lists(st.sampled_from(around), max_size=index.loops, unique=True)) if around else []
    factor = draw(st.sampled_from(index.factors)) if terms else ""
    return f"{factor}{' + '.join([*terms, str(draw(st.integers(7, 9)))])}"


@st.composite
def steps(draw: st.DrawFn, tree: Node) -> Step:
    names = [band.name for band in bands(tree)]
    loops, stmts = st.sampled_from(names), st.sampled_from(statements(tree))
    sizes = st.integers(1, 4)
    several = st.lists(loops, min_size=1, max_size=3, unique=True)
    return draw(
        st.one_of(
            st.builds(lambda ls, size: Tile(tuple((name, size) for name in ls)), several, sizes),
            st.builds(lambda name, size: Split(((name, size),)), loops, sizes),
            st.builds(Interchange, loops, loops),
            st.builds(lambda ls: Order(tuple(ls)), several),
            st.builds(Fuse, stmts, stmts, loops),
            st.builds(Distribute, loops, st.none(), st.one_of(st.none(), stmts)),
            st.builds(Enclose, st.just("around"), _values(tree), st.one_of(st.none(), loops)),
            stmts.flatmap(lambda name: st.builds(Part, st.just(name), where=_condition(tree, name), into=st.just("T"))),
            st.builds(Skew, loops, loops, st.integers(-2, 2)),
            st.builds(Shift, loops, st.integers(-2, 2), st.one_of(st.none(), stmts)),
            st.builds(Reverse, loops),
            st.builds(Parallel, loops),
            st.builds(Vectorize, loops),
            st.builds(lambda name, size: Unroll(((name, size),)), loops, sizes),
        )
    )


def _values(tree: Node) -> st.SearchStrategy[tuple[tuple[str, Formula], ...]]:
    """A formula for each statement of one loop."""
    inside = st.sampled_from([statements(band) for band in bands(tree)])
    return inside.flatmap(lambda names: st.tuples(*(st.tuples(st.just(name), _formula(tree, name)) for name in names)))


def _formula(tree: Node, statement: str) -> st.SearchStrategy[Formula]:
    """An iterator, or a number made of one."""
    function = next(
        (dict(band.functions)[statement] for band in bands(tree) if statement in dict(band.functions)), None
    )
    domain = function.get_domain_space() if function is not None else None
    names = [domain.get_dim_name(isl.dim_type.set, at) for at in range(domain.dim(isl.dim_type.set))] if domain else []
    forms = ("{}", "{}", "-{}", "{} // 2", "2 - {} % 2", "{} + N")
    return st.builds(
        lambda form, name: Formula(form.format(name)), st.sampled_from(forms), st.sampled_from([*names, "1"])
    )


def _condition(tree: Node, statement: str) -> st.SearchStrategy[Formula]:
    """A comparison of two formulas."""
    sides = _formula(tree, statement)
    return st.builds(lambda a, op, b: Formula(f"{a} {op} {b}"), sides, st.sampled_from(["<", "==", ">="]), sides)


def fixed(nest: Nest, tree: Node, size: int) -> tuple[Nest, Node]:
    if not nest.sizes:
        return nest, tree
    return nest.with_sizes({"N": size}), fix_tree(tree, {"N": size})
