"""A function's text, and errors that point to places in it."""

from __future__ import annotations

import ast
import inspect
import sys
import textwrap
from dataclasses import dataclass
from types import CodeType, FunctionType

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
            file = inspect.getsourcefile(function) or function.__code__.co_filename
        except (OSError, TypeError, SyntaxError, IndexError):
            raise _missing(function) from None
        text = textwrap.dedent("".join(lines))
        if file.startswith("<") and not _is_text_of(text, function):
            raise _missing(function)
        return Source(text, file, first)

    def line(self, number: int) -> str:
        """A line of the text, counted from 1, without its line ending; empty if there is no such line."""
        return next(iter(self.text.splitlines()[number - 1 : number]), "")

    def place(self, row: int) -> str:
        """The place of a line of the text as messages name it: file and line."""
        return f"{self.file}:{self.first + row - 1}"

    def exact(self, row: int, start: int) -> str:
        """The place of an error, whose column follows from the line that is shown below it."""
        return self.place(row)

    def error(self, node: ast.AST, why: str, remedy: str) -> SpecError:
        """The error for one node: file and line, reason, the line with carets below the node, and remedy."""
        row, start = getattr(node, "lineno", 1), getattr(node, "col_offset", 0)
        raw = self.line(row).encode()  # columns count bytes, as Python's do
        end = getattr(node, "end_col_offset", None) if getattr(node, "end_lineno", None) == row else None
        before, marked = raw[:start].decode(), raw[start:end].decode().rstrip()
        behind = raw[start:].decode()[len(marked) :].rstrip()
        before, marked, behind = _cut(before.lstrip(), left=True), _cut(marked), _cut(behind)
        caret = " " * len(before) + "^" * max(len(marked), 1)
        head = f"{self.exact(row, start)}: {_cut(why, WORDS)}"
        return SpecError(f"{head}\n    {before}{marked}{behind}\n    {caret}\n{_cut(remedy, WORDS)}")


def _missing(function: FunctionType) -> SpecError:
    """The error for a function whose text is not known: why, and where to write it instead."""
    name, file = plain(function.__name__), function.__code__.co_filename
    why = "poly reads the loops from it"
    if file in ("<stdin>", "<string>"):
        where = "typed at its prompt" if file == "<stdin>" else "passed to `exec`, or to `python -c` before Python 3.13"
        why += f", and Python {sys.version_info.major}.{sys.version_info.minor} keeps no text that is {where}"
    return SpecError(
        f"the source text of {name} can't be found: {why}.\n"
        "Write the function in a file or a notebook cell, use IPython's prompt (or Python 3.13's), or pass the text: "
        "poly.parse(text)."
    )


def _is_text_of(text: str, function: FunctionType) -> bool:
    """Whether a text can be that of a function: Python looks up what was executed by name and line alone.

    In a process started by `python -c`, the text found for a function in an `exec` may be any part of the command.
    """
    try:
        module = compile(text, "<text>", "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return True  # what can't be read is reported with its line
    own, found = function.__code__, [code for code in module.co_consts if isinstance(code, CodeType)]
    return any(_facts(code) == _facts(own) for code in found)


def _facts(code: CodeType) -> tuple[object, ...]:
    """What two compilations of one function have in common, whether its names are global or of a function around."""
    names = frozenset(code.co_names) | frozenset(code.co_freevars)
    numbers = tuple(value for value in code.co_consts if not isinstance(value, CodeType))
    return code.co_name, code.co_varnames, names, numbers


def _cut(text: str, most: int = PART, left: bool = False) -> str:
    """A text shortened to its first `most` characters, or with `left` to its last ones."""
    if len(text) <= most:
        return text
    return f"…{text[-most:]}" if left else f"{text[:most]}…"
