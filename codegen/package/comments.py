"""The comments at the top of a package's files, and their table of the arguments."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from codegen.names import c_name
from codegen.program import Buffer

DIRECTIONS = {"in": "read", "out": "written", "inout": "read and written", "scalar": "by value", "local": ""}

Rows = list[tuple[str, str]]
"""Names with their meanings."""


def comment(text: str) -> str:
    """A text as a C comment on lines of its own."""
    plain = text.replace("*/", "* /").replace("/*", "/ *")
    return "\n".join(f"{' ' * 3 * (at > 0)}{line}".rstrip() for at, line in enumerate(f"/* {plain} */".split("\n")))


def indented(text: str) -> str:
    return "\n".join(f"    {line}".rstrip() for line in text.split("\n"))


def arguments(
    sizes: Sequence[str],
    buffers: Sequence[Buffer],
    strides: Callable[[Buffer], Rows] = lambda _: [],
    more: Rows | None = None,
) -> str:
    """Each argument with its meaning, in order; `strides` gives an array's strides, `more` comes last."""
    rows = [(", ".join(map(c_name, sizes)), "sizes, from 0 to PFX_SIZE_LIMIT")] if sizes else []
    for buffer in buffers:
        shape = f"[{', '.join(map(str, buffer.shape))}]" if buffer.kind != "scalar" else ""
        rows.append((c_name(buffer.name), f"{buffer.dtype.name}{shape}, {DIRECTIONS[buffer.kind]}"))
        rows += strides(buffer)
    rows += more or []
    width = max((len(name) for name, _ in rows), default=0)
    return "\n".join(f"{name.ljust(width)}  {text}" for name, text in rows)
