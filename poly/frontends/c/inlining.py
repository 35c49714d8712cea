"""Calls of a file's own functions, replaced by the expressions that they return."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pycparser import c_ast

from poly.frontends.c.declarations import names_in, type_of
from poly.frontends.c.tree import below, parameters, with_parts

LARGEST = 4000
"""The most nodes of an expression after its calls are replaced."""
Values = Mapping[str, c_ast.Node]


@dataclass(frozen=True)
class Inliner:
    """Replaces calls of functions that only compute a value from their arguments.

    `hidden` are names that mean something else where the calls are; `active` the functions that are being replaced.
    """

    functions: Mapping[str, c_ast.FuncDef]
    typedefs: Mapping[str, c_ast.Node]
    hidden: frozenset[str]
    active: frozenset[str] = frozenset()

    def inlined(self, node: c_ast.Node) -> c_ast.Node:
        """A copy of a node with such calls replaced; other calls stay."""
        return self._made(node, {})

    def used(self, nodes: Iterable[c_ast.Node]) -> set[str]:
        """The functions of the file that the nodes call, directly or by others."""
        found: set[str] = set()
        todo = list(nodes)
        while todo:
            for node in below(todo.pop()):
                name = node.name.name if isinstance(node, c_ast.FuncCall) and isinstance(node.name, c_ast.ID) else ""
                if name in self.functions and name not in found:
                    found.add(name)
                    todo.append(self.functions[name].body)
        return found

    def _made(self, node: c_ast.Node, values: Values) -> c_ast.Node:
        """A copy of a node with expressions in place of the names in `values`, and calls replaced."""
        match node:
            case c_ast.ID(name=name):
                return copy.copy(values.get(name, node))
            case c_ast.FuncCall(name=c_ast.ID(name=name), args=args) if name in self.functions:
                given = [self._made(arg, values) for arg in (args.exprs if args else [])]
                made = self._called(self.functions[name], given)
                if made is not None and sum(1 for _ in below(made)) <= LARGEST:
                    return _placed(made, node)
                return c_ast.FuncCall(node.name, c_ast.ExprList(given), node.coord)
            case c_ast.FuncCall(name=called, args=args):
                return c_ast.FuncCall(called, None if args is None else self._made(args, values), node.coord)
        return with_parts(node, lambda part: self._made(part, values))

    def _called(self, function: c_ast.FuncDef, given: list[c_ast.Node]) -> c_ast.Node | None:
        """The value of a call; None if the function does more than compute one from scalars."""
        name = function.decl.name
        own = parameters(function)
        if name in self.active or len(own) != len(given):
            return None
        inner = Inliner(self.functions, self.typedefs, self.hidden, self.active | {name})
        values = {p.name: inner._cast(p.type, value) for p, value in zip(own, given, strict=True)}
        kinds = {p.name: p.type for p in own}
        if any(value is None for value in values.values()):
            return None
        body = inner._returned(function.body.block_items or [], values, kinds)
        return None if body is None else self._cast(function.decl.type.type, body)

    def _returned(self, items: list[c_ast.Node], values: Values, own: Values) -> c_ast.Node | None:
        """The value that statements return, which assign `own` names, given with their types, and choose by `if`."""
        if not items:
            return None
        first, *rest = items
        match first:
            case c_ast.Pragma() | c_ast.EmptyStatement():
                return self._returned(rest, values, own)
            case c_ast.Compound(block_items=inner):
                return self._returned([*(inner or []), *rest], values, own)
            case c_ast.Return(expr=value) if value is not None:
                return self._pure(value, values, own)
            case c_ast.Decl(name=name, type=kind, init=init) if name not in own:
                known = {**own, name: kind}
                return self._assigned(name, init, rest, values, known) if init else self._returned(rest, values, known)
            case c_ast.Assignment(op=op, lvalue=c_ast.ID(name=name) as old, rvalue=value) if name in own:
                value = value if op == "=" else c_ast.BinaryOp(op[:-1], old, value, coord=first.coord)
                return self._assigned(name, value, rest, values, own)
            case c_ast.If(cond=cond, iftrue=then, iffalse=other):
                test = self._pure(cond, values, own)
                ways = [self._returned([*side, *rest], values, own) for side in ([then], [other] if other else [])]
                return None if test is None or None in ways else c_ast.TernaryOp(test, *ways)
        return None

    def _assigned(
        self, name: str, value: c_ast.Node, rest: list[c_ast.Node], values: Values, own: Values
    ) -> c_ast.Node | None:
        """What the rest of the statements returns once a name has a value, which is converted to its type."""
        made = self._pure(value, values, own)
        cast = None if made is None else self._cast(own[name], made)
        return None if cast is None else self._returned(rest, {**values, name: cast}, own)

    def _pure(self, node: c_ast.Node, values: Values, own: Values) -> c_ast.Node | None:
        """An expression without side effects, whose other names mean the same at the call."""
        if has_effect(node):
            return None
        used = set(names_in([node]))
        known = used & own.keys() <= values.keys() and not (used - own.keys()) & self.hidden
        return self._made(node, values) if known else None

    def _cast(self, declared: c_ast.Node, value: c_ast.Node) -> c_ast.Node | None:
        """A value in the type of a scalar parameter or result; None if poly has no such type."""
        found = type_of(declared, self.typedefs)
        if found is None or found.extents or not isinstance(declared, c_ast.TypeDecl):
            return None
        kind = c_ast.TypeDecl(None, [], None, copy.copy(declared.type))
        return c_ast.Cast(c_ast.Typename(None, [], None, kind), value)


def has_effect(node: c_ast.Node) -> bool:
    """Whether an expression may do more than compute a value, apart from calls."""
    match node:
        case c_ast.FuncCall(args=args):
            return any(map(has_effect, args or ()))
        case c_ast.Assignment() | c_ast.ExprList() | c_ast.UnaryOp(op="p++" | "p--" | "++" | "--" | "&" | "*"):
            return True
    return any(map(has_effect, node))


def is_value(node: c_ast.Node) -> bool:
    """Whether an expression does nothing but compute a value."""
    return not has_effect(node) and not any(isinstance(part, c_ast.FuncCall) for part in below(node))


def _placed(made: c_ast.Node, call: c_ast.Node) -> c_ast.Node:
    """An expression at the place of the call that it replaces."""
    for node in below(made):
        node.coord = call.coord
    return made
