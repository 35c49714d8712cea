"""The comments at the top of a package's files, and the table of arguments in them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from textwrap import TextWrapper

from codegen.ir.program import Buffer
from codegen.ir.signature import describe
from codegen.names import c_name
from codegen.style import WIDTH

DIRECTIONS = {"in": "read", "out": "written", "inout": "read and written", "scalar": "by value", "local": ""}

Rows = list[tuple[str, str]]
"""Names with their meanings."""
PROSE = "   "
"""The indentation of a comment's prose; tables and loops are indented more."""


def comment(text: str) -> str:
    """A text as a C comment on separate lines."""
    plain = text.replace("*/", "* /").replace("/*", "/ *")
    return "\n".join(f"{' ' * 3 * (at > 0)}{line}".rstrip() for at, line in enumerate(f"/* {plain} */".split("\n")))


def filled_comments(text: str) -> str:
    """The text with the prose in its comments wrapped to `WIDTH`; the rest of a long line is moved to the next line.

    Prose has the indentation of the comment itself; lines that are indented more (tables, loops) are not changed. If
    the rest ends a sentence, it becomes a new line.
    """
    left, made, inside = deque(text.split("\n")), list[str](), False
    while left:
        line = left.popleft()
        inside = inside or line.startswith("/*")
        if inside and len(line) > WIDTH and not line.startswith(PROSE + " "):
            line, rest = _first_of(line)
            if rest:
                left.appendleft(f"{PROSE}{rest} {left.popleft().strip()}" if _goes_on(rest, left) else PROSE + rest)
        made.append(line)
        inside = inside and "*/" not in line
    return "\n".join(made)


def _first_of(line: str) -> tuple[str, str]:
    """A line's words that fit in `WIDTH`, at least one, and the rest of them."""
    indent = PROSE if line.startswith(PROSE) else ""
    fitting = TextWrapper(WIDTH, initial_indent=indent, break_long_words=False, break_on_hyphens=False)
    first, *others = fitting.wrap(line.strip())
    return first, " ".join(others)


def _goes_on(rest: str, left: Sequence[str]) -> bool:
    """Whether the comment's next line continues the sentence of a line's rest."""
    prose = bool(left) and left[0].startswith(PROSE) and not left[0].startswith(PROSE + " ")
    return prose and not rest.endswith((".", "*/"))


def indented(text: str) -> str:
    return "\n".join(f"    {line}".rstrip() for line in text.split("\n"))


def arguments(
    sizes: Sequence[str],
    buffers: Sequence[Buffer],
    strides: Callable[[Buffer], Rows] = lambda _: [],
    more: Rows | None = None,
) -> str:
    """The table of the arguments and their meanings; `strides` gives the rows of an array's strides, `more` is last."""
    rows = [(", ".join(map(c_name, sizes)), "sizes, from 0 to PFX_SIZE_LIMIT")] if sizes else []
    for buffer in buffers:
        kind = describe(buffer).removeprefix(f"{buffer.name}: ").removeprefix(buffer.element.name)
        rows.append((c_name(buffer.name), f"{_typed(buffer, kind)}, {DIRECTIONS[buffer.kind]}"))
        rows += strides(buffer)
    rows += more or []
    width = max((len(name) for name, _ in rows), default=0)
    return "\n".join(f"{name.ljust(width)}  {text}" for name, text in rows)


def _typed(buffer: Buffer, shape: str) -> str:
    """The name of an array's type, and its shape; of a type that C and C++ don't share also how it is passed."""
    if buffer.is_complex:
        return f"{buffer.element.name}{shape} (a {buffer.dtype.c_name} for each real part, and one for each imaginary)"
    return f"{buffer.dtype.name}{f' (its bits in {buffer.dtype.c_name})' * buffer.dtype.is_stored}{shape}"
