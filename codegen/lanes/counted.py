"""Loops that count up from 0: over vectors, and over the lanes of one."""

from __future__ import annotations

import cgen

from codegen import style
from codegen.macros import EACH_LANE
from codegen.style import Line
from microkernels.dtypes import i32


def counted(kind: str, name: str, count: int, body: list[cgen.Generable]) -> cgen.Generable:
    """A loop that counts up from 0."""
    start, test, update = f"{kind} {name} = 0", f"{name} < {count}", f"{name} += 1"
    return style.ForStatement(Line(start), Line(test), Line(update), style.Braces(body))


def lane_index(size: int) -> str:
    """The type of a lane counter: as wide as the lanes, so that a mask needs no conversion."""
    return "int64_t" if size > i32.size else "int"


def each_lane(index: str, lanes: int, body: list[cgen.Generable]) -> list[cgen.Generable]:
    """A loop over the lanes of one vector, by a counter of a type."""
    return [Line(EACH_LANE), counted(index, "lane", lanes, body)]
