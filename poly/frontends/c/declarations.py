"""C declarations: the types of names in terms of poly's scalar types, and the meaning of a name at one place."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import cast

import numpy as np
from pycparser import c_ast

from microkernels.dtypes import ANNOTATED
from poly.frontends.c.preprocessed import UNKNOWN

BASIC = {
    "double": "f64", "float": "f32", "char": "i8", "short": "i16", "short int": "i16", "int": "i32", "long": "i64",
    "long int": "i64", "long long": "i64", "long long int": "i64",
}  # fmt: skip
"""The scalar types by their names in C, without `signed`."""
COMPLEX = {"f64": "c128", "f32": "c64"}
"""The types behind `_Complex`, by those of their parts."""
UNSIGNED = {"i8": "u8", "i16": "u16"}
"""The types behind `unsigned` that poly has, by those without it."""
COUNTING = ("i32", "i64")
"""The types of counters; smaller integers are data, which C computes with as int."""


NAMES = {
    "f64": "double", "f32": "float", "i64": "long", "i32": "int", "i16": "short", "i8": "char", "u8": "unsigned char",
    "u16": "unsigned short", "c64": "float _Complex", "c128": "double _Complex",
}  # fmt: skip
"""The scalar types in C by those of poly."""


@dataclass(frozen=True)
class CType:
    """A scalar type, or an array or pointer of it; `extents` are None where C gives none, as for a pointer."""

    dtype: str
    unsigned: bool = False
    extents: tuple[c_ast.Node | None, ...] = ()
    pointer: bool = False
    restrict: bool = False

    @property
    def is_integer(self) -> bool:
        return self.dtype[0] not in "fc"

    @property
    def is_complex(self) -> bool:
        return self.dtype in COMPLEX.values()

    @property
    def in_c(self) -> str:
        """The scalar type as C has it."""
        return "unsigned " * self.unsigned + NAMES[self.dtype]

    def rounded(self, number: float | int) -> float | int:
        """A number as a variable of this scalar type holds it."""
        if self.unsigned:
            return int(number) % (1 << 8 * ANNOTATED[self.dtype].size)
        return cast("float | int", np.array(number).astype(ANNOTATED[self.dtype].numpy_name).item())

    @property
    def limits(self) -> tuple[int | None, int | None]:
        """The least and greatest number, if C says what is beyond: of unsigned types, and of those smaller than int."""
        if self.dtype in COUNTING:
            return (0 if self.unsigned else None), None
        bits = 8 * ANNOTATED[self.dtype].size
        if self.unsigned or ANNOTATED[self.dtype].is_unsigned:
            return 0, (1 << bits) - 1
        return -(1 << bits - 1), (1 << bits - 1) - 1

    @property
    def counting(self) -> str:
        """The kind of its numbers in counters, sizes and integers: one of `typed.INTEGERS`."""
        return ("u" if self.unsigned and self.dtype in COUNTING else "") + ("long" if self.dtype == "i64" else "int")


def type_of(node: c_ast.Node, typedefs: Mapping[str, c_ast.Node]) -> CType | None:
    """The type in a declaration; None if poly has no such type."""
    match node:
        case c_ast.TypeDecl(type=inner):
            return type_of(inner, typedefs)
        case c_ast.Typename(type=inner):
            return type_of(inner, typedefs)
        case c_ast.IdentifierType(names=[name]) if name in typedefs:
            return type_of(typedefs[name], typedefs)
        case c_ast.IdentifierType(names=names):
            words = [name for name in names if name not in ("signed", "unsigned", "_Complex")]
            dtype = BASIC.get(" ".join(words or ["int"]))
            dtype = COMPLEX.get(dtype or "") if "_Complex" in names else dtype
            small = UNSIGNED.get(dtype or "") if "unsigned" in names else None
            return None if dtype is None else CType(small or dtype, "unsigned" in names and not small)
        case c_ast.ArrayDecl(type=inner, dim=extent, dim_quals=quals):
            found = type_of(inner, typedefs)
            if found is None or found.pointer:
                return None
            first = extent if isinstance(extent, c_ast.Node) else None
            return replace(found, extents=(first, *found.extents), restrict="restrict" in quals)
        case c_ast.PtrDecl(type=inner, quals=quals):
            found = type_of(inner, typedefs)
            if found is None or found.pointer:
                return None
            return replace(found, extents=(None, *found.extents), pointer=True, restrict="restrict" in quals)
    return None


def unknown_type(name: str, declared: c_ast.Decl, typedefs: Mapping[str, c_ast.Node]) -> tuple[str, str]:
    """Why a variable can't be used whose type poly has not, and what to write instead."""
    if has_members(declared.type, typedefs):
        if isinstance(declared.type, c_ast.ArrayDecl):
            return f"`{name}` is an array of structures", "Keep each of their members in an array of its own."
        return (
            f"`{name}` is a structure or points to one, and no number",
            "Name one of its members, as `s.n` or `p->x[i]`.",
        )
    rows = declared.type
    while isinstance(rows, c_ast.ArrayDecl) or (rows is declared.type and isinstance(rows, c_ast.PtrDecl)):
        rows = rows.type
    if rows is not declared.type and isinstance(rows, c_ast.PtrDecl):
        why = f"the rows of `{name}` are pointers, which may point to the same place"
        return why, f"Keep the rows in one array: `(*{name})[m]`, or `{name}[i*m + j]`."
    if isinstance(rows, c_ast.TypeDecl) and "_Complex" in getattr(rows.type, "names", ()):
        why = f"`{name}` has complex numbers of a type that poly has not"
        return why, f"Add a dimension of real and imaginary parts, `{name}[n][2]`, which is the same memory."
    if isinstance(rows, c_ast.TypeDecl) and getattr(rows.type, "names", ()) in (["_Bool"], ["bool"]):
        return f"`{name}` is bool, a type that poly has not", "Use unsigned char, and store `x != 0`."
    return f"`{name}` has a type that poly has not", "Use double, float, int, long, short or char, and arrays of these."


def has_members(node: c_ast.Node, typedefs: Mapping[str, c_ast.Node]) -> bool:
    """Whether a declared type is a structure, or an array of them or a pointer to them."""
    match node:
        case c_ast.IdentifierType(names=[name]) if name in typedefs:
            return has_members(typedefs[name], typedefs)
        case c_ast.ArrayDecl(type=inner) | c_ast.PtrDecl(type=inner) | c_ast.TypeDecl(type=inner):
            return has_members(inner, typedefs)
        case c_ast.Struct(name=name) | c_ast.Union(name=name):
            return name is None or f"struct {name}" != UNKNOWN
    return False


@dataclass(frozen=True)
class CounterName:
    """The counter of a loop that runs here, of a kind of integers."""

    kind: str = "int"


@dataclass(frozen=True)
class SizeName:
    """An integer parameter that a bound, subscript, extent or condition names, of a kind of integers."""

    kind: str = "int"


@dataclass(frozen=True)
class ArrayName:
    """An array or pointer."""

    type: CType


@dataclass(frozen=True)
class ScalarName:
    """A scalar argument or local that holds data; an argument can't be assigned."""

    dtype: str
    is_argument: bool = False


@dataclass(frozen=True)
class Known:
    """A local integer whose value here is an expression of counters, sizes and elements, or any constant."""

    value: ast.expr
    kind: str


@dataclass(frozen=True)
class Unknown:
    """A local integer, or a loop's counter, that has no value here that poly can follow."""

    why: str


@dataclass(frozen=True)
class Unusable:
    """A variable that no value names, such as a structure: why, and what to write instead."""

    why: str
    remedy: str


@dataclass(frozen=True)
class ElementName:
    """A scalar that the loops change for their caller: the one element of an array of its name."""

    dtype: str


Meaning = CounterName | SizeName | ArrayName | ScalarName | ElementName | Known | Unknown | Unusable


@dataclass
class Uses:
    """How a part of the program uses each name: in textual order, whether a use writes, and the blocks around it."""

    found: dict[str, list[tuple[bool, tuple[int, ...], c_ast.Node]]] = field(default_factory=dict)

    @staticmethod
    def of(nodes: list[c_ast.Node]) -> Uses:
        uses = Uses()
        for node in nodes:
            uses._visit(node, ())
        return uses

    def written(self, name: str) -> bool:
        return any(write for write, _, _ in self.found.get(name, ()))

    def sources(self, names: set[str]) -> set[str]:
        """The names, and those in the sums and products of names that are assigned to them, again and again."""
        found, todo = set(names), list(names)
        while todo:
            for write, _, node in self.found.get(todo.pop(), ()):
                value = node.init if isinstance(node, c_ast.Decl) else getattr(node, "rvalue", None)
                if write and value is not None and _is_polynomial(value):
                    new = set(names_in([value])) - found
                    found |= new
                    todo += new
        return found

    def _add(self, name: str, write: bool, around: tuple[int, ...], node: c_ast.Node) -> None:
        self.found.setdefault(name, []).append((write, around, node))

    def _visit(self, node: c_ast.Node, around: tuple[int, ...]) -> None:
        match node:
            case c_ast.ID(name=name):
                self._add(name, False, around, node)
            case c_ast.Assignment(op="=", lvalue=c_ast.ID(name=name), rvalue=value):
                self._visit(value, around)
                self._add(name, True, around, node)
            case c_ast.Assignment(lvalue=c_ast.ID(name=name), rvalue=value):
                self._visit(value, around)
                self._add(name, False, around, node)
                self._add(name, True, around, node)
            case c_ast.Decl(name=name, init=init) if name:
                if init is not None:
                    self._visit(init, around)
                    self._add(name, True, around, node)
            case c_ast.UnaryOp(op="p++" | "p--" | "++" | "--", expr=c_ast.ID(name=name)):
                self._add(name, False, around, node)
                self._add(name, True, around, node)
            case c_ast.FuncCall(args=args):
                self._children(args, around)
            case c_ast.For() | c_ast.Compound():
                self._children(node, (*around, id(node)))
            case c_ast.If(cond=cond, iftrue=then, iffalse=other):
                self._visit(cond, around)
                for part in (then, other):
                    if part is not None:
                        self._visit(part, (*around, id(part)))
            case _:
                self._children(node, around)

    def _children(self, node: c_ast.Node | None, around: tuple[int, ...]) -> None:
        for child in node or ():
            self._visit(child, around)

    def beginnings(self, name: str) -> tuple[c_ast.Node, ...] | None:
        """The assignments that give a scalar its first value in the outermost blocks with uses of it.

        None if a use may come before them, or if a block has both such an assignment and a block that has one.
        """
        begun: dict[tuple[int, ...], c_ast.Node] = {}
        for write, around, node in self.found.get(name, ()):
            if any(around[: len(block)] == block for block in begun):
                continue
            if not write or any(block[: len(around)] == around for block in begun):
                return None
            begun[around] = node
        return tuple(begun.values())

    def is_read_first(self, name: str) -> bool:
        uses = self.found.get(name, [])
        return bool(uses) and not uses[0][0]


@dataclass(frozen=True)
class NameUses:
    """What a region's names are for.

    `uses` has those of its names, `counters` the names that loops count, `integers` those that bounds and subscripts
    depend on, `looking` those that subscripts depend on, `kinds` those of locals, `data` the integers that
    are data, as their values don't follow from counters and sizes.
    """

    uses: Uses
    counters: frozenset[str]
    integers: frozenset[str]
    looking: frozenset[str]
    kinds: Mapping[str, str]
    data: frozenset[str] = frozenset()


def _is_polynomial(node: c_ast.Node) -> bool:
    match node:
        case c_ast.BinaryOp(op="+" | "-" | "*", left=left, right=right):
            return _is_polynomial(left) and _is_polynomial(right)
        case c_ast.UnaryOp(op="-", expr=operand):
            return _is_polynomial(operand)
        case c_ast.Constant(type=kind):
            return "int" in str(kind)
    return isinstance(node, c_ast.ID)


def names_in(nodes: list[c_ast.Node | None]) -> Iterator[str]:
    """The names in some C nodes."""
    for node in nodes:
        if isinstance(node, c_ast.ID):
            yield node.name
        elif node is not None:
            yield from names_in(list(node))


def subscript_names(node: c_ast.Node) -> Iterator[str]:
    """The names in subscripts below a node."""
    if isinstance(node, c_ast.ArrayRef):
        yield from names_in([node.subscript])
    for child in node:
        yield from subscript_names(child)


def integer_contexts(node: c_ast.Node) -> Iterator[str]:
    """The names in bounds, subscripts, extents and conditions below a node."""
    match node:
        case c_ast.For(init=init, cond=cond, next=step):
            yield from names_in([init, cond, step])
        case c_ast.ArrayRef(subscript=subscript):
            yield from names_in([subscript])
        case c_ast.ArrayDecl(dim=extent) if extent is not None:
            yield from names_in([extent])
        case c_ast.If(cond=cond) | c_ast.TernaryOp(cond=cond):
            yield from names_in([cond])
        case c_ast.Decl(type=c_ast.TypeDecl(type=c_ast.IdentifierType(names=names)), init=init) if "int" in names:
            yield from names_in([init])
    for child in node:
        yield from integer_contexts(child)
