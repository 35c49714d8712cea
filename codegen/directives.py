"""Directives of a text for gcc and clang: which of their transformations would be wrong in it, or slow."""

from __future__ import annotations

import re

UNFUSED = """#if defined(__clang__)
#pragma clang fp contract(off)
#elif defined(__GNUC__)
#pragma GCC optimize("fp-contract=off")
#endif"""
"""The directives after which products and sums are rounded separately."""


def _of_gcc(option: str) -> str:
    return f"""#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("{option}")
#endif"""


NARROWED = _of_gcc("no-tree-slp-vectorize")
"""The directive after which f64 is rounded to f32: in pairs of lanes, gcc 12 takes `(double)(float)x` for x."""

CHOSEN = _of_gcc("no-thread-jumps")
"""The directive for lanes that choose twice by one condition: gcc would make one branch of both, and masked stores."""

COPIED = _of_gcc("no-tree-loop-distribute-patterns")
"""The directive for register tiles: gcc would fill and copy their few elements by calls, and keep tiles in memory."""

_LANES = re.compile(r"_LANES\n( *)for [^\n]*{\n.*?\n\1\}", re.DOTALL)
_CHOICE = re.compile(r"\b(?:\w*_)?(choose|min|max)_[fiu]\d")
_TILE = re.compile(r"_tile(?:_\d+)?\[\d+\];")
"""A loop over lanes, what chooses, and a register tile (`codegen.lanes.register_tile`)."""


def directives(code: str) -> list[str]:
    """The directives that a text needs, beside UNFUSED."""
    narrowed = "(float)" in code and "double" in code
    chosen = any(map(_chooses_twice, _LANES.finditer(code)))
    return [*[NARROWED] * narrowed, *[CHOSEN] * chosen, *[COPIED] * bool(_TILE.search(code))]


def _chooses_twice(lanes: re.Match[str]) -> bool:
    """Whether a loop over lanes has a choice, and another or the least or greatest of two."""
    found = _CHOICE.findall(lanes[0])
    return len(found) > 1 and "choose" in found
