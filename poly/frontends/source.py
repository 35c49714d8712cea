"""A function's text, and errors that point to places in it."""

from __future__ import annotations

import ast
import inspect
import textwrap
from dataclasses import dataclass
from types import FunctionType

from microkernels.errors import plain
from poly.errors import SpecError

PART, WORDS = 120, 500
"""The most characters of a line before, in and after the marked part; and of a reason or remedy."""


@dataclass(frozen=True)
class Source:
    """Python text that starts at line `first` of `file`."""

    text: str
    file: str
    first: int

    @staticmethod
    def of(function: FunctionType) -> Source:
        """The dedented text of a function.

        Raises:
            SpecError: Python can't find the text.
        """
        try:
            lines, first = inspect.getsourcelines(function)
        except (OSError, TypeError, SyntaxError, IndexError):
            raise SpecError(
                f"the source text of {plain(function.__name__)} can't be found: poly reads the loops from it.\n"
                "Write the function with `def` in a file or a notebook cell."
            ) from None
        return Source(textwrap.dedent("".join(lines)), inspect.getsourcefile(function) or "<unknown>", first)

    def line(self, number: int) -> str:
        """A line of the text, counted from 1, without its line ending; empty if there is no such line."""
        return next(iter(self.text.splitlines()[number - 1 : number]), "")

    def place(self, row: int, start: int) -> str:
        """A place as messages name it: file and line."""
        return f"{self.file}:{self.first + row - 1}"

    def error(self, node: ast.AST, why: str, remedy: str) -> SpecError:
        """The error for one node: file and line, reason, the line with carets below the node, and remedy."""
        row, start = getattr(node, "lineno", 1), getattr(node, "col_offset", 0)
        raw = self.line(row).encode()  # columns count bytes, as Python's do
        end = getattr(node, "end_col_offset", None) if getattr(node, "end_lineno", None) == row else None
        before, marked = raw[:start].decode(), raw[start:end].decode().rstrip()
        behind = raw[start:].decode()[len(marked) :].rstrip()
        before, marked, behind = _cut(before.lstrip(), left=True), _cut(marked), _cut(behind)
        caret = " " * len(before) + "^" * max(len(marked), 1)
        head = f"{self.place(row, start)}: {_cut(why, WORDS)}"
        return SpecError(f"{head}\n    {before}{marked}{behind}\n    {caret}\n{_cut(remedy, WORDS)}")


def _cut(text: str, most: int = PART, left: bool = False) -> str:
    """A text shortened to its first `most` characters, or with `left` to its last ones."""
    if len(text) <= most:
        return text
    return f"…{text[-most:]}" if left else f"{text[:most]}…"
