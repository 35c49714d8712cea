"""What the self-tests of all flavours share: the plain loops for comparison, and C files."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from codegen.c import functions, used_helpers
from codegen.package.items import items, renamed
from codegen.package.selftest_routine import workspace_bytes
from codegen.package.values import Routine
from microkernels.dtypes import bf16, f16

HALVES = ("f32_of_f16", "f32_of_bf16", "f16_of_f32", "bf16_of_f32")
"""The helpers that arrays of half precision need."""


def has_halves(routines: Sequence[Routine]) -> bool:
    """Whether some array has half precision."""
    return any(b.dtype in (f16, bf16) for routine in routines for b in routine.signature.arrays)


def halves(routines: Sequence[Routine]) -> list[str]:
    """The definition with which the C files take arrays of half precision, if there are any."""
    return ["#define TRY_HALVES"] * has_halves(routines)


@cache
def part(name: str, flavour: str = "") -> str:
    """A C file of a flavour's folder, with only its first comment, to keep headers small."""
    text = (Path(__file__).parent / flavour / "c" / f"try_{name}.h").read_text()
    end = text.index("*/") + 2
    return text[:end] + re.sub(r"(?m)^/\*.*?\*/\n| */\*.*?\*/", "", text[end:], flags=re.DOTALL).rstrip()


def plain_loops(routines: Sequence[Routine]) -> str:
    """The loops as written, one function for each routine, after the helpers of these, of workspaces and of halves."""
    texts = [functions(routine.reference, "static ") for routine in routines]
    numbers = [*map(workspace_bytes, routines), *(v for r in routines for pair in r.indices.values() for v in pair)]
    needed = [f"{name}(" for name in HALVES if has_halves(routines)]
    texts.insert(0, used_helpers("\n".join([*texts, *map(str, numbers), *needed])))
    found = [item for text in texts for item in items(text)]
    names = {name: f"try_{name}" for item in found for name in item.names}
    return "\n".join(renamed(item, names).text for item in found)
