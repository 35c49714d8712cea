"""A function's text, and errors that point into it."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from poly.errors import SpecError


@dataclass(frozen=True)
class Source:
    """Python text that starts at line `first` of `file`."""

    text: str
    file: str
    first: int

    @staticmethod
    def of(function: Callable[..., Any]) -> Source:
        """The dedented text of a function.

        Raises:
            SpecError: Python can't find it.
        """
        try:
            lines, first = inspect.getsourcelines(function)
        except (OSError, TypeError):
            name = getattr(function, "__name__", repr(function))
            raise SpecError(
                f"the source text of {name} can't be found: poly reads the loops from it.\n"
                "Write the function with `def` in a file or a notebook cell."
            ) from None
        return Source(textwrap.dedent("".join(lines)), inspect.getsourcefile(function) or "<unknown>", first)

    def line(self, number: int) -> str:
        """A line of the text, counted from 1, without its line end."""
        return self.text.splitlines()[number - 1]

    def error(self, node: ast.AST, why: str, remedy: str) -> SpecError:
        """The error for one expression: place, reason, the line with a caret below the expression, remedy."""
        row, start = getattr(node, "lineno", 1), getattr(node, "col_offset", 0)
        raw = self.line(row).encode()
        end = getattr(node, "end_col_offset", None) if getattr(node, "end_lineno", None) == row else None
        before, marked = raw[:start].decode(), raw[start:end].decode().rstrip()
        indent = len(before) - len(before.lstrip())
        text = raw.decode().strip()
        caret = " " * (len(before) - indent) + "^" * max(len(marked), 1)
        return SpecError(f"{self.file}:{self.first + row - 1}: {why}\n    {text}\n    {caret}\n{remedy}")
