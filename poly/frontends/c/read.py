"""A C function, or the loops between its `#pragma scop` and `#pragma endscop`, as a nest."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

from pycparser import c_ast

from codegen.integer import Affine
from microkernels.dtypes import DTYPES
from microkernels.errors import plain, shown
from poly.checks import checked_flag
from poly.errors import SpecError
from poly.frontends.c.declarations import (
    ArrayName,
    CType,
    Known,
    ScalarName,
    SizeName,
    Unknown,
    Uses,
    integer_contexts,
    names_in,
    type_of,
)
from poly.frontends.c.place import CSource, marked, refusal
from poly.frontends.c.polynomials import expression, greatest, indices, polynomial, split, total
from poly.frontends.c.preprocessed import Unit, preprocessed
from poly.frontends.c.statements import Statements, annotation
from poly.frontends.python import nest_of
from poly.ir.nest import Nest

LONGEST = 256
"""The most bits of a macro's value."""
NO_NAMES = frozenset(("range", *DTYPES))
"""Names that mean something else in the Python text of a nest."""


@dataclass(frozen=True)
class ScopRegion:
    """The statements to read of a function, and what is before and after them there."""

    function: c_ast.FuncDef
    before: tuple[c_ast.Node, ...]
    body: tuple[c_ast.Node, ...]
    after: tuple[c_ast.Node, ...]


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
    return _Reader(unit, _region(unit, file, function)).nest(reassociate)


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
        with_scop = [d for d in definitions.values() if any(_is_scop(n, "scop") for n in _pragmas(d.body))]
        chosen = with_scop or list(definitions.values())
    if len(chosen) != 1:
        if not chosen:
            raise SpecError(f"{file} has no function with a body. Write the loops in one: `void f(int n, …) {{ … }}`.")
        known = ", ".join(d.decl.name for d in chosen)
        raise SpecError(f"{file} has several functions to read: {known}. Name one: function=….")
    return _within(unit, chosen[0])


def _pragmas(node: c_ast.Node) -> Iterator[c_ast.Pragma]:
    for child in node:
        if isinstance(child, c_ast.Pragma):
            yield child
        yield from _pragmas(child)


def _is_scop(node: c_ast.Node, word: str) -> bool:
    return isinstance(node, c_ast.Pragma) and (node.string or "").split()[:1] == [word]


def _within(unit: Unit, function: c_ast.FuncDef) -> ScopRegion:
    """The region of a function, which has at most one pair of pragmas."""
    source = _source(unit, function)
    starts = [p for p in _pragmas(function.body) if _is_scop(p, "scop")]
    ends = [p for p in _pragmas(function.body) if _is_scop(p, "endscop")]
    items = tuple(function.body.block_items or ())
    if not starts and not ends:
        return ScopRegion(function, (), items, ())
    if len(starts) > 1:
        raise refusal(starts[1], source, "this function has several scops", "Put one pair of pragmas around them.")
    if not starts:
        raise refusal(ends[0], source, "`#pragma endscop` ends no scop", "Write `#pragma scop` before the loops.")
    found = _around(function.body, starts[0])
    if found is None or not any(_is_scop(node, "endscop") for node in found[1]):
        remedy = "Write `#pragma endscop` after the loops, in the same block."
        raise refusal(starts[0], source, "`#pragma scop` has no end in its block", remedy)
    before, rest = found
    end = next(at for at, node in enumerate(rest) if _is_scop(node, "endscop"))
    return ScopRegion(function, before, rest[:end], rest[end + 1 :])


def _around(block: c_ast.Node, start: c_ast.Pragma) -> tuple[tuple[c_ast.Node, ...], tuple[c_ast.Node, ...]] | None:
    """What is before a pragma in the blocks around it, and what follows it in its own."""
    items = tuple(block.block_items or ()) if isinstance(block, c_ast.Compound) else tuple(block)
    for at, node in enumerate(items):
        if node is start:
            return items[:at], items[at + 1 :]
        inner = _around(node, start)
        if inner is not None:
            own = (node.init,) if isinstance(node, c_ast.For) and node.init is not None else ()
            return (*items[:at], *own, *inner[0]), inner[1]
    return None


def _source(unit: Unit, node: c_ast.FuncDef) -> CSource:
    file = node.decl.coord.file
    return CSource(unit.text(file), file, 1)


class _Reader:
    """Translates one region to a Python function, and reads that."""

    def __init__(self, unit: Unit, region: ScopRegion) -> None:
        self.unit, self.region = unit, region
        self.source = _source(unit, region.function)
        self.typedefs = {d.name: d.type for d in unit.tree.ext if isinstance(d, c_ast.Typedef)}
        self.uses = Uses.of(list(region.body))
        self.integers = {name for node in (*region.body, *self._parameters()) for name in integer_contexts(node)}
        counters = frozenset(_counters(region.body))
        self.statements = Statements(self.source, self.typedefs, self.uses, counters, frozenset(self._unsigned()))
        self.sizes: dict[str, Affine] = {}
        self.arguments: dict[str, tuple[CType, c_ast.Node]] = {}

    def nest(self, reassociate: bool) -> Nest:
        self._declare_globals()
        for parameter in self._parameters():
            self._declare_argument(parameter)
        self._check_aliases()
        head = [made for node in self._outer() for made in self._declare_outer(node)]
        body = [*head, *self.statements.block(self.region.body)]
        used = set(self.uses.found)
        arguments = [self._argument(name) for name in self.arguments if name in used]
        name = self.region.function.decl.name
        made = ast.FunctionDef(name, ast.arguments([], arguments, None, [], [], None, []), body, [], None)
        marked(made, self.region.function, self.source)
        ast.fix_missing_locations(made)
        environment = {**DTYPES, **self.sizes}
        return nest_of(made, self.source, environment, reassociate, ast.unparse(made) + "\n")

    def _parameters(self) -> list[c_ast.Node]:
        declared = self.region.function.decl.type.args
        return [p for p in (declared.params if declared else []) if isinstance(p, c_ast.Decl)]

    def _unsigned(self) -> Iterable[str]:
        for node in _declarations((*self.region.before, *self.region.body)):
            found = type_of(node.type, self.typedefs)
            if found is not None and found.unsigned:
                yield node.name

    def _declare_globals(self) -> None:
        """Arrays and constants of the file; a global array that is used becomes an argument."""
        hidden = {node.name for node in (*_declarations(self.region.before), *self._parameters())}
        for node in self.unit.tree.ext:
            match node:
                case c_ast.Decl(type=c_ast.Enum() as enum):
                    self._enumerate(enum)
                case c_ast.Decl(name=name) if name in self.uses.found and name not in hidden:
                    found = type_of(node.type, self.typedefs)
                    if found is not None and not found.extents and node.init is not None and "const" in node.quals:
                        self._constant(node, found)
                    elif found is not None:
                        self._declare_argument(node)

    def _enumerate(self, enum: c_ast.Enum) -> None:
        number = 0
        for item in enum.values.enumerators if enum.values else ():
            if item.value is not None:
                number = int(self.statements.value(item.value).number or 0)
            self.statements.names[item.name] = Known(ast.Constant(number), "int")
            number += 1

    def _constant(self, node: c_ast.Decl, found: CType) -> None:
        value = self.statements.value(node.init)
        if value.number is None:
            raise refusal(node, self.source, f"`{node.name}` is no constant number", "Write a literal.")
        number = int(value.number) if found.is_integer else float(value.number)
        self.statements.names[node.name] = Known(ast.Constant(number), "int" if found.is_integer else found.dtype)

    def _declare_argument(self, node: c_ast.Node) -> None:
        found = type_of(node.type, self.typedefs)
        name = node.name
        if name is None or (name not in self.uses.found and name not in self.integers):
            return
        if found is None:
            remedy = "Use double, float, int, long or char, and arrays of these."
            raise refusal(node, self.source, f"`{name}` has a type that poly has not", remedy)
        if name in NO_NAMES:
            raise refusal(node, self.source, f"`{name}` is reserved in poly", f"Rename it, to `{name}_`.")
        if found.extents:
            if found.unsigned:
                raise refusal(node, self.source, f"`{name}` holds unsigned data, which wraps around", "Use int.")
            self.statements.names[name] = ArrayName(found)
            self.arguments[name] = (found, node)
        elif found.is_integer and name in self.integers:
            self.statements.names[name] = SizeName(found.unsigned)
            self.sizes[name] = Affine.name(name)
        else:
            if found.unsigned:
                raise refusal(node, self.source, f"`{name}` is unsigned data, which wraps around", "Use int.")
            self.statements.names[name] = ScalarName(found.dtype, is_argument=True)
            self.arguments[name] = (found, node)

    def _check_aliases(self) -> None:
        """Refuse two pointers without `restrict` of which one may point to what is written by the other."""
        pointers = {n: found for n, (found, _) in self.arguments.items() if found.pointer and not found.restrict}
        written = _written_arrays(self.region.body)
        for name, found in pointers.items():
            others = [o for o, other in pointers.items() if o != name and other.dtype == found.dtype]
            if any(o in written or name in written for o in others):
                self._refuse_alias(name, others)

    def _refuse_alias(self, name: str, others: Sequence[str]) -> None:
        raise refusal(
            self.arguments[name][1],
            self.source,
            f"`{name}` may point into `{others[0]}`, so that no iterations could be reordered",
            f"Promise that it does not: `*restrict {name}`, or declare an array: `{name}[n]`.",
        )

    def _outer(self) -> Iterator[c_ast.Decl]:
        """The declarations outside of the region whose names it uses."""
        return (node for node in _declarations(self.region.before) if node.name in self.uses.found)

    def _declare_outer(self, node: c_ast.Decl) -> list[ast.stmt]:
        """A local that is declared before the region: it is the region's own if its value neither comes nor goes."""
        name, found = node.name, type_of(node.type, self.typedefs)
        statements = self.statements
        after = set(names_in(list(self.region.after)))
        if found is None:
            return statements.block([node])
        if found.extents:
            if name in after or found.pointer or self._is_touched_before(name):
                self._declare_argument(node)
                return []
            return statements.block([node])
        if found.is_integer and statements.is_known_integer(name):
            statements.names[name] = Unknown(f"`{name}` has no value here that poly knows")
            if node.init is not None and not self.uses.written(name):
                self._constant_or_argument(node, found)
            return []
        if not self.uses.written(name):
            self._constant_or_argument(node, found)
            return []
        if name in after:
            why = f"`{name}` is assigned in the scop and read after it"
            raise refusal(node, self.source, why, "Store it in an element of an array, or extend the scop.")
        if self.uses.is_read_first(name):
            why = f"`{name}` has its first value from before the scop"
            raise refusal(node, self.source, why, "Begin the scop before the first assignment.")
        return statements.block([c_ast.Decl(name, node.quals, [], [], [], node.type, None, None, node.coord)])

    def _is_touched_before(self, name: str) -> bool:
        rest = [node for node in self.region.before if not isinstance(node, c_ast.Decl)]
        return name in set(names_in(rest))

    def _constant_or_argument(self, node: c_ast.Decl, found: CType) -> None:
        literal = node.init is not None and isinstance(node.init, c_ast.Constant | c_ast.UnaryOp | c_ast.Cast)
        if literal and not Uses.of([n for n in self.region.before if n is not node]).written(node.name):
            self._constant(node, found)
        else:
            self._declare_argument(node)

    def _argument(self, name: str) -> ast.arg:
        found, node = self.arguments[name]
        made = ast.arg(name, annotation(found.dtype, self._shape(name, found, node)))
        return marked(made, node, self.source)

    def _shape(self, name: str, found: CType, node: c_ast.Node) -> list[ast.expr]:
        """The extents of an array: as declared, and where that says nothing, those that its accesses reach."""
        if not found.extents:
            return []
        if None not in found.extents:
            return [self.statements.integer(extent) for extent in found.extents if extent is not None]
        accesses = self.statements.accesses.get(name, [])
        places = [_places(access.subscript) for access in accesses]
        offsets = [polynomial(place[0]) for place in places]
        known = [offset for offset in offsets if offset is not None]
        strides = split(known, self.sizes) if len(known) == len(offsets) else ()
        ends = []
        for access, place, offset in zip(accesses, places, offsets, strict=True):
            if offset is None:
                continue
            several = indices(offset, strides)
            ends.append(greatest(several[0], access.loops))
            if strides:
                parts = [*(expression(index) for index in several), *place[1:]]
                access.subscript.slice = marked(_tuple(parts), node, self.source)
        extent = _extent([end for end in ends if end is not None])
        if extent is None or None in ends:
            why = f"the extent of `{name}` does not follow from its accesses"
            raise refusal(node, self.source, why, f"Declare it with its extents: `{found.dtype} {name}[n][m]` in C.")
        rest = [self.statements.integer(e) for e in found.extents[1:] if e is not None]
        return [extent, *(ast.Name(size, ast.Load()) for size in strides), *rest]


def _places(subscript: ast.Subscript) -> list[ast.expr]:
    return list(subscript.slice.elts) if isinstance(subscript.slice, ast.Tuple) else [subscript.slice]


def _tuple(parts: list[ast.expr]) -> ast.expr:
    return parts[0] if len(parts) == 1 else ast.Tuple(parts, ast.Load())


def _extent(ends: list[Mapping[tuple[str, ...], int]]) -> ast.expr | None:
    """The least extent that has all these indices; None if they differ by more than constants."""
    if not ends:
        return None
    terms = {key: value for key, value in ends[0].items() if key}
    if any({key: value for key, value in end.items() if key} != terms for end in ends):
        return None
    if any(len(key) > 1 for key in terms):
        return None
    most = max(end.get((), 0) for end in ends)
    return expression(total(terms, {(): most + 1}))


def _declarations(nodes: Iterable[c_ast.Node]) -> Iterator[c_ast.Decl]:
    for node in nodes:
        if isinstance(node, c_ast.Decl):
            yield node
        elif node is not None:
            yield from _declarations(list(node))


def _counters(nodes: Iterable[c_ast.Node]) -> Iterator[str]:
    """The names that loops count."""
    for node in nodes:
        match node:
            case c_ast.For(init=c_ast.Assignment(lvalue=c_ast.ID(name=name))):
                yield name
            case c_ast.For(init=c_ast.DeclList(decls=decls)):
                yield from (decl.name for decl in decls)
        yield from _counters(list(node))


def _written_arrays(nodes: Iterable[c_ast.Node]) -> set[str]:
    found: set[str] = set()
    for node in nodes:
        target = node.lvalue if isinstance(node, c_ast.Assignment) else None
        target = node.expr if isinstance(node, c_ast.UnaryOp) and node.op in ("p++", "p--", "++", "--", "*") else target
        while isinstance(target, c_ast.ArrayRef):
            target = target.name
        found |= set(names_in([target]))
        found |= _written_arrays(list(node))
    return found
