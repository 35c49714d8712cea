"""A C function, or the loops between its `#pragma scop` and `#pragma endscop`, as a nest."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path

from pycparser import c_ast

from microkernels.errors import plain, shown
from poly.checks import checked_flag
from poly.errors import SpecError
from poly.frontends.c.place import refusal
from poly.frontends.c.preprocessed import Unit, preprocessed
from poly.frontends.c.reader import read, source_of
from poly.frontends.c.regions import ScopRegion, pragmas, region_at, stray_ends, whole
from poly.ir.nest import Nest

LONGEST = 256
"""The most bits of a macro's value."""


def read_c(
    source: str | PathLike[str],
    function: str | None = None,
    *,
    include: Sequence[str | PathLike[str]] = (),
    define: Mapping[str, object] | None = None,
    reassociate: bool = True,
) -> Nest:
    """The loops of a C function as a nest: see `poly.from_c`."""
    checked_flag("reassociate", reassociate)
    if not isinstance(function, str | None):
        raise SpecError(f"{shown(function)} is no name of a function. Give it as text: function='gemm'.")
    folders, macros = _folders(include), _macros({} if define is None else define)
    text, file = _text(source)
    if file != "<C>":
        folders = [Path(file).parent, *folders]
    unit = preprocessed(text, file, folders, macros)
    return read(unit, _region(unit, file, function), reassociate)[1]


def _text(source: str | PathLike[str]) -> tuple[str, str]:
    """The C text, and its file's name."""
    if isinstance(source, str) and ("\n" in source or "{" in source):
        return source, "<C>"
    try:
        path = Path(source)
        return path.read_text(errors="replace"), str(path)
    except (OSError, TypeError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no path"
        raise SpecError(f"{shown(source)} can't be read: {why}. Give the path of a C file, or C text.") from None


def _folders(include: Sequence[str | PathLike[str]]) -> list[Path]:
    if not isinstance(include, list | tuple) or not all(map(_is_path, include)):
        raise SpecError(f"{shown(include)} are no folders. Give a list of them: include=['utilities'].")
    return [Path(folder) for folder in include]


def _is_path(folder: object) -> bool:
    try:
        return isinstance(folder, str | PathLike) and "\0" not in str(folder) and bool(str(folder).encode())
    except UnicodeError:
        return False


def _macros(define: Mapping[str, object]) -> Mapping[str, object]:
    """Macros with values that are numbers or printable texts."""
    fine = isinstance(define, Mapping) and all(
        isinstance(name, str)
        and re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII)
        and isinstance(value, str | int | float)
        and (not isinstance(value, int) or value.bit_length() < LONGEST)
        and (not isinstance(value, str) or value.isprintable())
        for name, value in define.items()
    )
    if not fine:
        raise SpecError(f"{shown(define)} are no macros. Give their values by name: define={{'N': 100}}.")
    return define


def _region(unit: Unit, file: str, function: str | None) -> ScopRegion:
    definitions = {d.decl.name: d for d in unit.tree.ext if isinstance(d, c_ast.FuncDef)}
    if function is not None:
        if function not in definitions:
            known = ", ".join(definitions) or "none"
            raise SpecError(f"{file} has no function {plain(function)}. Its functions: {known}.")
        chosen = [definitions[function]]
    else:
        with_scop = [d for d in definitions.values() if any(pragmas(d.body, "scop"))]
        public = [d for d in definitions.values() if "static" not in d.decl.storage]
        chosen = with_scop or (public if len(public) == 1 else list(definitions.values()))
    if len(chosen) != 1:
        if not chosen:
            raise SpecError(f"{file} has no function with a body. Write the loops in one: `void f(int n, …) {{ … }}`.")
        known = ", ".join(d.decl.name for d in chosen)
        raise SpecError(f"{file} has several functions to read: {known}. Name one: function=….")
    return _within(unit, chosen[0])


def _within(unit: Unit, function: c_ast.FuncDef) -> ScopRegion:
    """The region of a function, which has at most one pair of pragmas."""
    source = source_of(unit, function)
    starts = list(pragmas(function.body, "scop"))
    if len(starts) > 1:
        raise refusal(starts[1], source, "this function has several scops", "Put one pair of pragmas around them.")
    found = [region_at(function, start, source) for start in starts]
    for end in stray_ends(function, found):
        raise refusal(end, source, "`#pragma endscop` ends no scop", "Write `#pragma scop` before the loops.")
    return found[0] if found else whole(function)
