"""Calls of a file's own functions that run loops, replaced by their bodies, and pointers by what they point to."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pycparser import c_ast

from codegen.names import another
from poly.frontends.c.declarations import Uses, names_in, type_of
from poly.frontends.c.preprocessed import WORD
from poly.frontends.c.renaming import rename, variables
from poly.frontends.c.tree import below, parameters, with_parts


@dataclass
class Procedures:
    """Replaces statements that call a function of the file by what it does.

        row(n, A[i], 2.0);      ->      {
                                            int n_2 = n;
                                            for (int j = 0; j < n_2; j++)
                                                A[i][0 + j] *= 2.0;
                                        }

    `hidden` are names that mean something else where the calls are, `taken` all names that a new variable can't have. A
    function with a value is called before the statement, whose value or condition has a variable in place of the call;
    if it writes arrays, the call has to be all that is assigned. A function stays a call that returns before its
    end, calls itself, keeps a variable from call to call, or gets a pointer other than to an array, a row or an element
    of one.
    """

    functions: Mapping[str, c_ast.FuncDef]
    typedefs: Mapping[str, c_ast.Node]
    hidden: frozenset[str]
    taken: set[str] = field(default_factory=set)
    renamed: dict[str, str] = field(default_factory=dict)
    """The names in the text of the variables that were given others."""

    def in_text(self, made: str) -> str:
        """A message with the names of the text."""
        return WORD.sub(lambda word: self.renamed.get(word[0], word[0]), made)

    def expanded(self, node: c_ast.Node, active: frozenset[str] = frozenset()) -> c_ast.Node:
        """A copy of a statement with such calls replaced."""
        match node:
            case c_ast.FuncCall(name=c_ast.ID(name=name), args=args) if name in self.functions and name not in active:
                made = self._body(self.functions[name], list(args.exprs) if args else [])
                return node if made is None else self.expanded(made, active | {name})
            case c_ast.Assignment(rvalue=c_ast.FuncCall(name=c_ast.ID(name=name), args=args) as call) if self._is_call(
                call, active
            ):
                made = self._body(self.functions[name], list(args.exprs) if args else [], node)
                return node if made is None else self.expanded(made, active | {name})
            case c_ast.Assignment():
                made = self.parts(node, active)
                return node if made == [node] else c_ast.Compound(made, node.coord)
            case c_ast.Compound(block_items=items):
                return c_ast.Compound(self.block(items or [], active), node.coord)
            case c_ast.For(stmt=body):
                return c_ast.For(node.init, node.cond, node.next, self.expanded(body, active), node.coord)
            case c_ast.If(iftrue=then, iffalse=other):
                ways = [None if way is None else self.expanded(way, active) for way in (then, other)]
                before, cond = self._apart(node.cond, active)
                return _behind(before, c_ast.If(cond, *ways, node.coord))
        return node

    def block(self, items: Sequence[c_ast.Node], active: frozenset[str] = frozenset()) -> list[c_ast.Node]:
        """The same for the items of a block; a pointer that stays where it is becomes the place to which it points."""
        made: list[c_ast.Node] = []
        for at, item in enumerate(items):
            if _stays(item, items[at + 1 :]):
                places = {item.name: item.init}
                rest = [_placed(other, places) for other in items[at + 1 :]]
                return [*made, *self.block(rest, active)]
            made += self.parts(item, active)
        return made

    def parts(self, node: c_ast.Node, active: frozenset[str] = frozenset()) -> list[c_ast.Node]:
        """The same for an item of a block, in which declarations stay."""
        match node:
            case c_ast.Assignment(op=op, lvalue=target, rvalue=value) if not self._is_call(value, active):
                before, value = self._apart(value, active)
                return [*before, c_ast.Assignment(op, target, value, node.coord)] if before else [node]
            case c_ast.Decl(name=name, type=c_ast.TypeDecl() as kind, init=c_ast.FuncCall() as init):
                return self._valued(name, kind, init, active) or [node]
            case c_ast.Decl(type=c_ast.TypeDecl(), init=c_ast.Node() as init):
                before, value = self._apart(init, active)
                made = copy.copy(node)
                made.init = value
                return [*before, made]
        return [self.expanded(node, active)]

    def _valued(
        self, name: str, kind: c_ast.TypeDecl, call: c_ast.FuncCall, active: frozenset[str]
    ) -> list[c_ast.Node] | None:
        """What a call does, and the declaration of a variable with its value; None if it stays a call."""
        made = self.expanded(c_ast.Assignment("=", c_ast.ID(name, call.coord), call, call.coord), active)
        if not isinstance(made, c_ast.Compound):
            return None
        *before, last = made.block_items
        kind = c_ast.TypeDecl(name, [], None, kind.type, kind.coord)
        return [*before, c_ast.Decl(name, [], [], [], [], kind, last.rvalue, None, call.coord)]

    def _is_call(self, node: c_ast.Node, active: frozenset[str]) -> bool:
        """Whether an expression is a call of a function of the file that runs loops."""
        is_named = isinstance(node, c_ast.FuncCall) and isinstance(node.name, c_ast.ID)
        return is_named and self._runs_loops(node.name.name, active)

    def _runs_loops(self, name: str, active: frozenset[str]) -> bool:
        """Whether a function of the file has loops, or calls one that has."""
        if name not in self.functions or name in active:
            return False
        nodes = below(self.functions[name].body)
        return any(isinstance(node, c_ast.For) or self._is_call(node, active | {name}) for node in nodes)

    def _apart(self, node: c_ast.Node, active: frozenset[str]) -> tuple[list[c_ast.Node], c_ast.Node]:
        """What calls functions before an expression, and the expression with their values."""
        match node:
            case c_ast.FuncCall(name=c_ast.ID(name=name)) if self._is_call(node, active):
                if not _only_computes(self.functions[name]):
                    return [], node
                own = c_ast.ID(self._fresh(name), node.coord)
                made = self._valued(own.name, self.functions[name].decl.type.type, node, active)
                return ([], node) if made is None else (made, own)
            case c_ast.TernaryOp(cond=first) | c_ast.BinaryOp(op="&&" | "||", left=first):
                inside = [first]  # the others may not be evaluated
            case c_ast.BinaryOp() | c_ast.UnaryOp(op="-" | "+" | "!") | c_ast.Cast() | c_ast.FuncCall():
                inside = list(node)
            case c_ast.ExprList():
                inside = list(node)
            case _:
                return [], node
        before, places = [], {}
        for part in inside:
            calls, value = self._apart(part, active)
            before += calls
            places[id(part)] = value
        return (before, with_parts(node, lambda part: places.get(id(part), part))) if before else ([], node)

    def _body(
        self, function: c_ast.FuncDef, given: Sequence[c_ast.Node], to: c_ast.Assignment | None = None
    ) -> c_ast.Compound | None:
        """What a call does with its own variables, then the assignment `to` of its value; None if it stays a call."""
        declared = parameters(function)
        body = copy.deepcopy(function.body)
        items = list(body.block_items or [])
        last = items.pop().expr if items and isinstance(items[-1], c_ast.Return) else None
        if (
            len(declared) != len(given)
            or (last is None) != (to is None)
            or any(_leaves(n) for i in items for n in below(i))
        ):
            return None
        if last is not None:
            items.append(c_ast.Cast(c_ast.Typename(None, [], None, function.decl.type.type), last, last.coord))
        uses = Uses.of(items)
        own = {p.name for p in declared} | set(variables(c_ast.Compound(items)))
        if (set(names_in(items)) - own) & self.hidden:
            return None
        if any(uses.written(name) and name not in own for name in names_in(list(given))):
            return None
        names = {name: self._fresh(name) for name in sorted(own)}
        whole = c_ast.Compound(items, function.body.coord)
        rename(whole, names)
        found = self._declarations(declared, given, uses, names)
        if found is None:
            return None
        before, places = found
        made = [_placed(item, places) for item in items]
        if to is not None:
            made[-1] = c_ast.Assignment(to.op, to.lvalue, made[-1], to.coord)
        whole.block_items = [*before, *made]
        return whole

    def _fresh(self, name: str) -> str:
        made = another(name, frozenset(self.taken))
        self.taken.add(made)
        self.renamed[made] = name
        return made

    def _declarations(
        self, declared: Sequence[c_ast.Decl], given: Sequence[c_ast.Node], uses: Uses, names: Mapping[str, str]
    ) -> tuple[list[c_ast.Node], dict[str, c_ast.Node]] | None:
        """Declarations of some parameters that are passed by value, and what the others stand for."""
        before: list[c_ast.Node] = []
        places: dict[str, c_ast.Node] = {}
        for parameter, value in zip(declared, given, strict=True):
            found = type_of(parameter.type, self.typedefs)
            if found is None and not isinstance(parameter.type, c_ast.PtrDecl):
                return None
            name = names[parameter.name]
            if found is None or found.extents:
                if uses.written(parameter.name) or not _is_place(value):
                    return None
                places[name] = value
                continue
            kind = copy.deepcopy(parameter.type)
            if isinstance(value, c_ast.ID | c_ast.Constant) and not uses.written(parameter.name):
                kind.declname = None
                places[name] = c_ast.Cast(c_ast.Typename(None, [], None, kind), value, value.coord)
            else:
                kind.declname = name
                before.append(c_ast.Decl(name, [], [], [], [], kind, value, None, value.coord))
        return before, places


def _behind(before: Sequence[c_ast.Node], node: c_ast.Node) -> c_ast.Node:
    return c_ast.Compound([*before, node], node.coord) if before else node


def _only_computes(function: c_ast.FuncDef) -> bool:
    """Whether a function assigns to variables alone, and calls none but for their values."""
    for node in below(function.body):
        match node:
            case c_ast.Assignment(lvalue=c_ast.ID()) | c_ast.UnaryOp(op="p++" | "p--" | "++" | "--", expr=c_ast.ID()):
                continue
            case c_ast.Assignment() | c_ast.UnaryOp(op="p++" | "p--" | "++" | "--"):
                return False
            case c_ast.Compound(block_items=items) if any(isinstance(item, c_ast.FuncCall) for item in items or []):
                return False
            case (
                c_ast.For(stmt=c_ast.FuncCall())
                | c_ast.If(iftrue=c_ast.FuncCall())
                | c_ast.If(iffalse=c_ast.FuncCall())
            ):
                return False
    return True


def _leaves(node: c_ast.Node) -> bool:
    """Whether a statement ends its function, or declares a variable that stays."""
    return isinstance(node, c_ast.Return) or (isinstance(node, c_ast.Decl) and "static" in node.storage)


def _stays(node: c_ast.Node, behind: Sequence[c_ast.Node]) -> bool:
    """Whether an item of a block declares a pointer that is the same place in all that is behind it."""
    if not (isinstance(node, c_ast.Decl) and isinstance(node.type, c_ast.PtrDecl) and node.init is not None):
        return False
    uses, names = Uses.of(list(behind)), {node.name, *names_in([node.init])}
    hidden = set(variables(c_ast.Compound(list(behind))))
    moves = any(uses.written(name) for name in names) or bool(names & hidden) or bool(node.storage)
    return _is_place(node.init) and not moves


def _is_place(node: c_ast.Node) -> bool:
    """Whether a pointer is an array, a row or an element of one."""
    match node:
        case c_ast.ID():
            return True
        case c_ast.ArrayRef(name=base):
            return _is_place(base)
        case c_ast.StructRef(name=base):
            return _is_place(base)
        case c_ast.UnaryOp(op="&", expr=c_ast.ArrayRef() | c_ast.StructRef() | c_ast.ID() as element):
            return _is_place(element)
        case c_ast.BinaryOp(op="+", left=left):
            return _is_place(left)
    return False


def _placed(node: c_ast.Node, places: Mapping[str, c_ast.Node]) -> c_ast.Node:
    """A copy of a node in which pointers are replaced by the places that they stand for."""
    match node:
        case c_ast.ID(name=name) if name in places:
            return places[name]
        case c_ast.ArrayRef(name=base, subscript=index):
            return _element(_placed(base, places), _placed(index, places), node)
        case c_ast.UnaryOp(op="*", expr=pointer) if places.keys() & set(names_in([pointer])):
            return _element(_placed(pointer, places), c_ast.Constant("int", "0", node.coord), node)
    return with_parts(node, lambda part: _placed(part, places))


def _element(base: c_ast.Node, index: c_ast.Node, node: c_ast.Node) -> c_ast.Node:
    """`base[index]`, where the base may be an address."""
    match base:
        case c_ast.BinaryOp(op="+", left=left, right=offset):
            return _element(left, c_ast.BinaryOp("+", offset, index, node.coord), node)
        case c_ast.UnaryOp(op="&", expr=c_ast.ArrayRef(name=inner, subscript=offset)):
            return _element(inner, c_ast.BinaryOp("+", offset, index, node.coord), node)
        case c_ast.UnaryOp(op="&", expr=inner) if isinstance(index, c_ast.Constant) and index.value == "0":
            return inner
    return c_ast.ArrayRef(base, index, node.coord)
