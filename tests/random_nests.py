"""Random nests for property tests: a few loops and statements over two arrays, as the text of a Python function."""

from __future__ import annotations

from hypothesis import strategies as st

from poly import f64, sizes
from poly.frontends.python import parse_text
from poly.frontends.source import Source
from poly.nest import Nest

N = sizes("N")
LOOPS = "ijk"
VALUE_OF_N = 3


@st.composite
def nests(draw: st.DrawFn) -> Nest:
    """A nest of up to three loops deep; its size N is open. Its elements lie in X (one index) and Y (two)."""
    names = iter([f"{letter}{number}" for number in ("", 1, 2, 3, 4, 5) for letter in LOOPS])
    lines = _block(draw, (), names, depth=0)
    text = "\n".join(["def nest(X: f64[N + 30], Y: f64[N + 30, N + 30]):", *("    " + line for line in lines)])
    return parse_text(Source(text, "random", 1), {"N": N, "f64": f64})


def _block(draw: st.DrawFn, around: tuple[str, ...], names, depth: int) -> list[str]:
    lines: list[str] = []
    for _ in range(draw(st.integers(1, 2))):
        if depth < 3 and (depth < 1 or draw(st.booleans())):
            loop = next(names)
            bound = draw(st.sampled_from(["3", "N", *(f"{outer} + 2" for outer in around[-1:])]))
            lines.append(f"for {loop} in range({bound}):")
            lines += ["    " + line for line in _block(draw, (*around, loop), names, depth + 1)]
        else:
            lines.append(_statement(draw, around))
    return lines


def _statement(draw: st.DrawFn, around: tuple[str, ...]) -> str:
    op = draw(st.sampled_from(["=", "=", "=", "+=", "+=", "*="]))
    operands = " + ".join(_access(draw, around) for _ in range(draw(st.integers(1, 2))))
    return f"{_access(draw, around)} {op} {operands}"


def _access(draw: st.DrawFn, around: tuple[str, ...]) -> str:
    rank = draw(st.integers(1, 2))
    return f"{'XY'[rank - 1]}[{', '.join(_index(draw, around) for _ in range(rank))}]"


def _index(draw: st.DrawFn, around: tuple[str, ...]) -> str:
    terms = draw(st.lists(st.sampled_from(around), max_size=2, unique=True)) if around else []
    factor = draw(st.sampled_from(["", "", "2 * ", "-"])) if terms else ""
    return f"{factor}{' + '.join([*terms, str(draw(st.integers(7, 9)))])}"
