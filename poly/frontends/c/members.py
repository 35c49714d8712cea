"""Members of structures in a region as variables of their own: `st->x[i]` becomes `st_x[i]`."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from pycparser import c_ast

from codegen.names import another
from poly.errors import SpecError
from poly.frontends.c.declarations import Uses, type_of
from poly.frontends.c.place import CSource, refusal, shown
from poly.frontends.c.preprocessed import UNKNOWN, WORD
from poly.frontends.c.renaming import variables
from poly.frontends.c.tree import below, with_parts

COPY = "Copy it to a variable before the scop, and back after it if it changes."


@dataclass(frozen=True)
class MemberPlace:
    """A structure, a part of one, or a pointer: its type, its text in C, and the variable with which that begins.

    `pointers` are the texts of the pointers on the way to it, the first one first; `promised`: one of them is restrict.
    """

    type: c_ast.Node
    text: str
    root: str
    pointers: tuple[str, ...] = ()
    promised: bool = False


@dataclass(frozen=True)
class StructMember:
    """A member as a variable of its own, which `node` declares at its first use."""

    node: c_ast.Decl
    place: MemberPlace


@dataclass
class Members:
    """Replaces what a region names of structures; `visible` are the variables that are declared before it.

    Raises:
        SpecError: what it names is no variable of its own, such as a bit field or a member of a union.
    """

    visible: Mapping[str, c_ast.Decl]
    typedefs: Mapping[str, c_ast.Node]
    structures: Mapping[str, c_ast.Node]
    source: CSource
    taken: set[str]
    found: dict[str, StructMember] = field(default_factory=dict)

    @property
    def texts(self) -> dict[str, str]:
        """The text in C of each member by its name."""
        return {name: member.place.text for name, member in self.found.items()}

    @property
    def pointers(self) -> list[str]:
        """The pointers through which the region reaches members, each behind those that lead to it."""
        return list(dict.fromkeys(pointer for member in self.found.values() for pointer in member.place.pointers))

    @property
    def roots(self) -> set[str]:
        """The variables that are structures or point to them."""
        return {member.place.root for member in self.found.values()}

    def replaced(self, body: Iterable[c_ast.Node]) -> list[c_ast.Node]:
        """Copies of statements that name variables in place of members."""
        nodes = list(body)
        if not any(isinstance(part, c_ast.StructRef) for node in nodes for part in below(node)):
            return nodes
        self._uses, self._own = Uses.of(nodes), set(variables(c_ast.Compound(nodes)))
        return [self._replaced(node) for node in nodes]

    def _replaced(self, node: c_ast.Node) -> c_ast.Node:
        if not isinstance(node, c_ast.StructRef):
            return with_parts(node, self._replaced)
        place = self._place(node)
        name = next((name for name, member in self.found.items() if member.place.text == place.text), None)
        if name is None:
            name = another(re.sub(r"\W+", "_", place.text.replace("->", ".")), frozenset(self.taken))
            self.taken.add(name)
            self.found[name] = StructMember(self._declaration(node, name, place), place)
        return c_ast.ID(name, node.coord)

    def _declaration(self, node: c_ast.Node, name: str, place: MemberPlace) -> c_ast.Decl:
        if type_of(place.type, self.typedefs) is None and isinstance(self._resolved(place.type), c_ast.Struct):
            why = f"`{place.text}` is a whole structure, and no number"
            raise refusal(node, self.source, why, "Assign and compare its members one by one.")
        kind = copy.deepcopy(place.type)
        inner = kind
        while not isinstance(inner, c_ast.TypeDecl) and hasattr(inner, "type"):
            inner = inner.type
        if isinstance(inner, c_ast.TypeDecl):
            inner.declname = name
        return c_ast.Decl(name, [], [], [], [], kind, None, None, node.coord)

    def _place(self, node: c_ast.Node) -> MemberPlace:
        """What an expression of variables and members stands for."""
        match node:
            case c_ast.ID(name=name):
                return self._variable(node, name)
            case c_ast.StructRef(name=base, type=op):
                return self._member(node, self._pointed(node, base) if op == "->" else self._place(base))
            case (
                c_ast.UnaryOp(op="*", expr=pointer) | c_ast.ArrayRef(name=pointer, subscript=c_ast.Constant(value="0"))
            ):
                return self._pointed(node, pointer)
            case c_ast.ArrayRef(name=base):
                raise self._several(node, base)
        why = f"`{shown(node)}` is no variable with members"
        raise refusal(node, self.source, why, "Name it by a variable, `.` and `->`.")

    def _pointed(self, node: c_ast.Node, pointer: c_ast.Node) -> MemberPlace:
        """To what a pointer points."""
        if isinstance(pointer, c_ast.UnaryOp) and pointer.op == "&":
            return self._place(pointer.expr)
        place = self._place(pointer)
        kind = self._resolved(place.type)
        if isinstance(kind, c_ast.ArrayDecl):
            raise self._several(node, pointer)
        if not isinstance(kind, c_ast.PtrDecl):
            why = f"`{place.text}` does not point to a structure"
            raise refusal(node, self.source, why, "Name members of variables and of what these point to.")
        promised = place.promised or "restrict" in kind.quals
        return MemberPlace(kind.type, f"(*{place.text})", place.root, (*place.pointers, place.text), promised)

    def _several(self, node: c_ast.Node, base: c_ast.Node) -> SpecError:
        why = f"`{shown(base)}` is an array of structures"
        return refusal(node, self.source, why, "Keep each of their members in an array of its own.")

    def _variable(self, node: c_ast.Node, name: str) -> MemberPlace:
        if name in self._own:
            why = f"`{name}` is declared in the scop, with a type that has members"
            raise refusal(
                node, self.source, why, "Declare it before the scop, or use variables in place of its members."
            )
        declared = self.visible.get(name)
        if declared is None:
            raise refusal(node, self.source, f"`{name}` is not declared in this file", "Declare it as a parameter.")
        if self._uses.written(name):
            why = f"`{name}` changes in the scop, so that its members are others each time"
            raise refusal(
                node, self.source, why, "Copy the members to arrays of their own, or use a variable for each."
            )
        return MemberPlace(declared.type, name, name)

    def _member(self, node: c_ast.StructRef, base: MemberPlace) -> MemberPlace:
        """A member of a place that is a structure."""
        kind, name = self._resolved(base.type), node.field.name
        text = f"{base.text[2:-1]}->{name}" if base.text.startswith("(*") else f"{base.text}.{name}"
        if isinstance(kind, c_ast.Union):
            raise refusal(node, self.source, f"`{text}` is a member of a union, which shares its memory", COPY)
        known = self._members(kind) if isinstance(kind, c_ast.Struct) else None
        if known is None:
            why = f"the structure with the member `{text}` is not declared in what poly reads"
            raise refusal(node, self.source, why, "Include the header that declares it, or give its folder by -I.")
        member = known.get(name)
        if member is None:
            why = f"`{text}` is no plain member of its structure, as those of unions inside it"
            raise refusal(node, self.source, why, COPY)
        if member.bitsize is not None:
            raise refusal(node, self.source, f"`{text}` is a bit field, which has no address", COPY)
        if is_volatile(member.type) or is_volatile(base.type):
            raise refusal(node, self.source, f"`{text}` is volatile: its accesses are effects", "Leave volatile out.")
        if any(isinstance(part, c_ast.FuncDecl) for part in below(member.type)):
            raise refusal(
                node, self.source, f"`{text}` is a function", "Write its body here, or call it before the scop."
            )
        return replace(base, type=member.type, text=text)

    def _members(self, kind: c_ast.Struct) -> dict[str, c_ast.Decl] | None:
        """The members of a structure, and those of nameless structures inside it; None if they are not declared."""
        whole = kind if kind.decls is not None else self.structures.get(kind.name or "")
        if not isinstance(whole, c_ast.Struct) or whole.decls is None:
            return None
        found: dict[str, c_ast.Decl] = {}
        for node in whole.decls:
            if isinstance(node, c_ast.Decl) and node.name:
                found[node.name] = node
            elif isinstance(node, c_ast.Decl) and isinstance(node.type, c_ast.Struct):
                found |= self._members(node.type) or {}
        return found

    def _resolved(self, kind: c_ast.Node) -> c_ast.Node:
        """A type behind its names."""
        while True:
            match kind:
                case c_ast.TypeDecl(type=inner) | c_ast.Typename(type=inner):
                    kind = inner
                case c_ast.IdentifierType(names=[name]) if name in self.typedefs:
                    kind = self.typedefs[name]
                case c_ast.Struct(name=name) | c_ast.Union(name=name) if kind.decls is None and name in self.structures:
                    return self.structures[name]
                case _:
                    return kind


def in_text(members: Mapping[str, str], made: str) -> str:
    """C text that names members as variables, with the members' own texts."""
    return WORD.sub(lambda word: members.get(word[0], word[0]), made) if members else made


def is_volatile(kind: c_ast.Node) -> bool:
    """Whether a type, or what it points to, is declared volatile."""
    while isinstance(kind, c_ast.TypeDecl | c_ast.PtrDecl | c_ast.ArrayDecl):
        if "volatile" in (getattr(kind, "quals", None) or ()):
            return True
        kind = kind.type
    return False


def structures_of(tree: c_ast.Node) -> dict[str, c_ast.Node]:
    """The structures and unions of a file by their tags; of those that are declared several times, none."""
    found: dict[str, list[c_ast.Node]] = {}
    for node in below(tree):
        if isinstance(node, c_ast.Struct | c_ast.Union) and node.decls is not None and node.name:
            found.setdefault(node.name, []).append(node)
    return {tag: nodes[0] for tag, nodes in found.items() if len(nodes) == 1 and f"struct {tag}" != UNKNOWN}
