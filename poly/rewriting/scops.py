"""The scops of a C file: each is read as a nest with the function's variables as its arguments, or refused."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pycparser import c_ast

from codegen.names import another
from poly.analysis.bounds import check, inside
from poly.errors import PolyError, SpecError
from poly.frontends.c.liveness import mentions
from poly.frontends.c.place import CSource, refusal
from poly.frontends.c.preprocessed import Unit, preprocessed
from poly.frontends.c.reader import Outlined, outlined, source_of
from poly.frontends.c.regions import ScopRegion, is_pragma, pragmas, region_at, stray_ends
from poly.ir.nest import Nest

PRAGMA = re.compile(r"\s*#\s*pragma\s+(?:end)?scop\b(?:[^/\\]|/\*(?:[^*\\]|\*(?!/))*\*/)*(?://[^\\]*)?")
"""A line that begins or ends a scop, and nothing else but comments."""
DIRECTIVE = re.compile(r"\s*(?:#|%:)\s*(?!pragma\b)\w")
LARGEST_FACTOR = 1 << 12
"""The largest factor in a condition on sizes, so that it is computed without overflow."""


@dataclass(frozen=True)
class Scop:
    """One scop: its lines in the file, those of both pragmas included, counted from 1; its nest, or why it has none.

    `function` is its function's name, `begins` the line in which that is declared.
    """

    file: str
    function: str
    begins: int
    first: int
    last: int
    outline: Outlined | None = None
    problem: PolyError | None = None

    @property
    def place(self) -> str:
        return f"{self.file}:{self.first}"

    @property
    def nest(self) -> Nest:
        assert self.outline is not None, "a scop that is no nest stays as it is"
        return self.outline.nest


@dataclass(frozen=True)
class CFile:
    """A C file: its lines with their ends, its syntax tree, its scops in order, and pragmas that belong to none."""

    name: str
    lines: tuple[str, ...]
    unit: Unit
    scops: tuple[Scop, ...]
    stray: tuple[SpecError, ...]

    @property
    def text(self) -> str:
        return "".join(self.lines)


def read_file(text: str, name: str, folders: Sequence[Path], define: Mapping[str, object], reassociate: bool) -> CFile:
    """The scops of a C text.

    Raises:
        SpecError: the text is no C that poly can read, or has no scop.
        ToolchainError: there is no compiler.
    """
    unit = preprocessed(text, name, folders, define)
    lines = tuple(re.findall(r"[^\n]*\n|[^\n]+$", text))
    scops: list[Scop] = []
    stray = list(_outside(unit))
    labels: set[str] = set()
    for function in (node for node in unit.tree.ext if isinstance(node, c_ast.FuncDef)):
        source = source_of(unit, function)
        found = []
        for start in pragmas(function.body, "scop"):
            label = another(function.decl.name, frozenset(labels))
            labels.add(label)
            scop = _scop(unit, function, start, source, lines, name, label, reassociate)
            scops.append(scop)
            if scop.outline is not None:
                found.append(scop.outline.region)
        open_ends = {scop.last for scop in scops if scop.problem is not None}
        for end in stray_ends(function, found):
            if end.coord.line not in open_ends:
                remedy = "Write `#pragma scop` before the loops, in the same block."
                stray.append(refusal(end, source, "`#pragma endscop` ends no scop", remedy))
    if not scops and not stray:
        raise SpecError(
            f"{name} has no scop. Put `#pragma scop` before the loops to optimise and `#pragma endscop` after them."
        )
    return CFile(name, lines, unit, tuple(scops), tuple(stray))


def _outside(unit: Unit) -> Iterator[SpecError]:
    """What is wrong with pragmas that stand outside of functions."""
    for node in unit.tree.ext:
        if is_pragma(node, "scop") or is_pragma(node, "endscop"):
            why = f"`#pragma {node.string}` stands outside of functions"
            yield refusal(node, source_of(unit, node), why, "Write it around loops.")


def _scop(
    unit: Unit,
    function: c_ast.FuncDef,
    start: c_ast.Pragma,
    source: CSource,
    lines: Sequence[str],
    name: str,
    label: str,
    reassociate: bool,
) -> Scop:
    """One scop of a function, which is called `label` as a nest."""
    first = last = start.coord.line
    begins = function.decl.coord.line
    try:
        region = region_at(function, start, source)
        assert region.end is not None, "the region has an end"
        last = region.end.coord.line
        _check_text(region, source, lines, name)
        _check_pragmas(region, source)
        outline = outlined(unit, region, label, reassociate)
        _check_declarations(region, source)
        nest = inside(outline.nest)
        _check_conditions(nest, start, source)
        check(nest)
        return Scop(name, function.decl.name, begins, first, last, replace(outline, nest=nest))
    except PolyError as error:
        return Scop(name, function.decl.name, begins, first, last, None, error)


def _check_text(region: ScopRegion, source: CSource, lines: Sequence[str], name: str) -> None:
    """Refuse a region whose text can't be replaced."""
    start, end = region.start, region.end
    assert start is not None and end is not None, "the region is between pragmas"
    if not start.coord.file == end.coord.file == name:
        raise refusal(start, source, "this scop is in a file that is included", "Optimise that file.")
    rows = [start.coord.line, end.coord.line]
    if any(row > len(lines) or not PRAGMA.fullmatch(lines[row - 1]) for row in rows):
        raise refusal(start, source, "the pragmas of this scop share lines with other text", "Write each on its own.")
    for line in lines[rows[0] : rows[1] - 1]:
        if DIRECTIVE.match(line):
            why = f"a directive stands in the scop: `{line.strip()[:60]}`"
            raise refusal(start, source, why, "Put it before the scop: what it decides must be known.")


def _check_pragmas(region: ScopRegion, source: CSource) -> None:
    """Refuse a region that runs in parallel already."""
    for node in region.body:
        for pragma in (*([node] if is_pragma(node, "omp") else []), *pragmas(node, "omp")):
            why = f"`#pragma {pragma.string}` stands in the scop, whose loops poly makes parallel itself"
            raise refusal(pragma, source, why, "Leave it out, and give --threads openmp.")


def _check_declarations(region: ScopRegion, source: CSource) -> None:
    """Refuse a region that declares what is used behind it."""
    for node in region.body:
        if isinstance(node, c_ast.Decl) and mentions(node.name, region.around[0].after):
            why = f"`{node.name}` is declared in the scop, and used after it"
            raise refusal(node, source, why, "Declare it before the scop.")


def _check_conditions(nest: Nest, start: c_ast.Pragma, source: CSource) -> None:
    for value in nest.conditions:
        if any(abs(factor) > LARGEST_FACTOR for _, factor in value.terms):
            why = f"a bound may overflow: accesses are inside their arrays where {value} >= 0"
            raise refusal(start, source, why, "Use smaller factors in bounds and subscripts.")
    if nest.context.n_basic_set() != 1:
        why = "no sizes keep all accesses inside their arrays" if nest.context.is_empty() else "its sizes have gaps"
        raise refusal(start, source, why, "Correct the bounds of the loops, or the arrays' extents.")
