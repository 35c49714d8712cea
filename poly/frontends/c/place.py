"""Places in C text: Python nodes that point there, and errors that show the line."""

from __future__ import annotations

import ast
from bisect import bisect_right
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from pycparser import c_ast, c_generator

from poly.errors import SpecError
from poly.frontends.c.tree import Field
from poly.frontends.source import Source

NodeT = TypeVar("NodeT", bound=ast.AST)


@dataclass(frozen=True)
class CSource(Source):
    """The C texts of a file and of what it includes, one after another.

    `begins` has each file's row before its first one. Places have a column, too, and messages the names of the text,
    also where variables were renamed.
    """

    begins: Mapping[str, int]
    in_text: Callable[[str], str]

    @staticmethod
    def of_texts(texts: Mapping[str, str], file: str, in_text: Callable[[str], str]) -> CSource:
        """The source of a function in `file`, which may have parts of the other files."""
        begins, rows = {}, list[str]()
        for name, text in texts.items():
            begins[name] = len(rows)
            rows += text.split("\n")
        return CSource("\n".join(rows), file, 1, begins, in_text)

    def row(self, node: c_ast.Node) -> int:
        """The row of a node."""
        return self.begins.get(node.coord.file, 0) + int(node.coord.line)

    def error(self, node: ast.AST, why: str, remedy: str) -> SpecError:
        return super().error(node, self.in_text(why), self.in_text(remedy))

    def place(self, row: int) -> str:
        at = bisect_right(list(self.begins.values()), row - 1) - 1
        name, before = list(self.begins.items())[at]
        return f"{name}:{row - before}"

    def exact(self, row: int, start: int) -> str:
        return f"{self.place(row)}:{start + 1}"


class _Generator(c_generator.CGenerator):  # type: ignore[misc]
    def visit_Field(self, node: Field) -> str:
        return node.name


def shown(node: c_ast.Node) -> str:
    """A node as C, on one line."""
    text: str = _Generator().visit(node)
    return " ".join(text.split())


def marked(made: NodeT, node: c_ast.Node, source: CSource) -> NodeT:
    """The Python node with all parts that have no place yet at the place of a C node."""
    if node.coord is None:
        return made
    row, start = source.row(node), max((node.coord.column or 1) - 1, 0)
    start, end = _extent(source.line(row), start, shown(node))
    for part in ast.walk(made):
        if isinstance(part, ast.expr | ast.stmt | ast.arg) and not hasattr(part, "lineno"):
            part.lineno = part.end_lineno = row
            part.col_offset, part.end_col_offset = start, end
    return made


def refusal(node: c_ast.Node, source: CSource, why: str, remedy: str) -> SpecError:
    """The error for a C node: file, line and column, reason, the line with carets below the node, and remedy."""
    return source.error(marked(ast.Pass(), node, source), why, remedy)


def _extent(line: str, start: int, text: str) -> tuple[int, int]:
    """Where a node begins and ends in its line, as bytes: as far as the line agrees with the node as C."""
    if start >= len(line):
        return 0, len(line.encode())
    wanted = [letter for letter in text if letter not in " ()"]
    end = at = start
    for letter in wanted:
        while at < len(line) and line[at] in " ()\t":
            at += 1
        if at >= len(line) or line[at] != letter:
            break
        at += 1
        end = at
    while line[start:end].count("(") > line[start:end].count(")") and end < len(line) and line[end] in " )":
        end += 1
    return len(line[:start].encode()), len(line[: max(end, start + 1)].encode())
