"""The integers that C statements assign and advance: which variables they are, and what statements do to them."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager

from pycparser import c_ast

from poly.errors import SpecError
from poly.frontends.c.declarations import (
    COUNTING,
    ArrayName,
    CounterName,
    CType,
    ElementName,
    Known,
    Meaning,
    ScalarName,
    Unknown,
    Uses,
    type_of,
)
from poly.frontends.c.loops import STEPS, Head, LoopHeads
from poly.frontends.c.typed import INDICES, INTEGERS, common
from poly.frontends.effects import Assigned, Chosen, Effect, Effects, Repeated, Scoped, Values, lost


def stepped(node: c_ast.UnaryOp) -> c_ast.Assignment:
    """`i++` as `i += 1`."""
    one = c_ast.Constant("int", "1", coord=node.coord)
    return c_ast.Assignment("+=" if STEPS[node.op] > 0 else "-=", node.expr, one, coord=node.coord)


class Integers(LoopHeads):
    """Follows the integers of one function."""

    def counts(self, name: str, found: CType) -> bool:
        """Whether a local of that type stands for expressions of counters, sizes and what subscripts look up alone."""
        return found.dtype in COUNTING and name not in self.roles.data and self._is_known_integer(name, found)

    def _is_known_integer(self, name: str, found: CType) -> bool:
        if name in self.roles.counters:
            return True
        return all(
            self._sets_integer(node, name, found) for write, _, node in self.roles.uses.found.get(name, ()) if write
        )

    def _sets_integer(self, node: c_ast.Node, name: str, found: CType) -> bool:
        """Whether a declaration or an assignment makes an integer of counters and sizes of a name."""
        advances = name in self.roles.integers
        if isinstance(node, c_ast.UnaryOp):
            return advances
        value = node.init if isinstance(node, c_ast.Decl) else getattr(node, "rvalue", None)
        fits = getattr(node, "op", "=") in (("=", "+=", "-=") if advances else ("=",))
        return value is not None and fits and self._is_integer(value, name, found)

    def _is_integer(self, node: c_ast.Node, name: str, own: CType) -> bool:
        match node:
            case c_ast.ID(name=other):
                known = self.names.get(other)
                return (other != name or name in self.roles.integers) and not isinstance(
                    known, ScalarName | ElementName | ArrayName
                )
            case c_ast.Constant(type=kind):
                return "int" in kind
            case c_ast.Cast(to_type=wanted, expr=operand):
                to = type_of(wanted, self.typedefs)
                fits = to is not None and to.dtype in COUNTING and not to.extents
                return fits and self._is_integer(operand, name, own)
            case c_ast.BinaryOp() | c_ast.UnaryOp() | c_ast.TernaryOp():
                return all(self._is_integer(child, name, own) for child in node)
            case c_ast.ArrayRef():
                return name in self.roles.looking and not own.unsigned and self._is_looked_up(node, own.dtype)
        return False

    def _is_looked_up(self, node: c_ast.ArrayRef, dtype: str) -> bool:
        """Whether an integer of a type may stand for an element of an array, which stays as it is."""
        base: c_ast.Node = node
        while isinstance(base, c_ast.ArrayRef):
            base = base.name
        known = self.names.get(base.name) if isinstance(base, c_ast.ID) else None
        if not isinstance(known, ArrayName) or self.roles.uses.written(base.name):
            return False
        return known.type.dtype in INDICES and common(known.type.dtype, "int") == dtype

    @property
    def known_values(self) -> dict[str, ast.expr | None]:
        """The values of local integers here."""
        found = {name: meaning for name, meaning in self.names.items() if isinstance(meaning, Known | Unknown)}
        return {name: meaning.value if isinstance(meaning, Known) else None for name, meaning in found.items()}

    def meanings(self, values: Values, before: Mapping[str, Meaning]) -> dict[str, Meaning]:
        """What integers mean that have these values."""
        found: dict[str, Meaning] = {}
        for name, value in values.items():
            known = before.get(name)
            if value is not None:
                found[name] = Known(value, self._kind(name, value, known))
            else:
                found[name] = known if isinstance(known, Unknown) else Unknown(lost(name))
        return found

    def _kind(self, name: str, value: ast.expr, before: Meaning | None) -> str:
        bases = (part.value for part in ast.walk(value) if isinstance(part, ast.Subscript))
        arrays = (self.names.get(base.id) for base in bases if isinstance(base, ast.Name))
        kinds = [common(array.type.dtype, "int") for array in arrays if isinstance(array, ArrayName)]
        if kinds:
            return max(kinds)  # i64 after i32
        return self.roles.kinds.get(name, before.kind if isinstance(before, Known) else "int")

    def effects(self, node: c_ast.For, head: Head) -> Effects:
        """What the body of a loop does to integers, whose names in it stand for what they are before each statement."""
        with self._followed():
            changed = Uses.of([node.stmt])
            for name, meaning in self.names.items():
                if isinstance(meaning, Known | Unknown) and changed.written(name):
                    self.names[name] = self._itself(name)
            self.names[head.counter] = CounterName(head.kind)
            return tuple(self._effects([node.stmt]))

    @contextmanager
    def _followed(self) -> Iterator[None]:
        """Names change their meanings in here only, and nothing is refused that wraps around."""
        before, modular, self.following = self.names, self.modular, self.following + 1
        self.names, self.modular = dict(before), True
        try:
            yield
        finally:
            self.names, self.modular, self.following = before, modular, self.following - 1

    def _itself(self, name: str) -> Known:
        return Known(ast.Name(name, ast.Load()), self.roles.kinds.get(name, "int"))

    def _effects(self, nodes: Iterable[c_ast.Node]) -> Iterator[Effect]:
        for node in nodes:
            yield from self._effects_of(node)

    def _effects_of(self, node: c_ast.Node | None) -> Iterator[Effect]:
        match node:
            case c_ast.Compound(block_items=items):
                own = frozenset(item.name for item in items or [] if isinstance(item, c_ast.Decl))
                with self._followed():
                    body = tuple(self._effects(items or []))
                yield Scoped(own, body)
            case c_ast.DeclList(decls=nodes) | c_ast.ExprList(exprs=nodes):
                yield from self._effects(nodes)
            case c_ast.Decl(name=name, type=kind, init=init):
                found = type_of(kind, self.typedefs)
                if found is not None and not found.extents and self.counts(name, found):
                    value = self._value_of(init)
                    self.names[name] = self._itself(name)
                    yield Assigned(name, value)
                elif found is not None:
                    self.names[name] = ArrayName(found) if found.extents else ScalarName(found.dtype)
            case c_ast.For():
                yield from self._loop_effects(node)
            case c_ast.If(iftrue=then, iffalse=other):
                yield Chosen(*(tuple(self._effects_of(side)) for side in (then, other)))
            case c_ast.UnaryOp(op=op) if op in STEPS:
                yield from self._effects_of(stepped(node))
            case c_ast.Assignment(op=op, lvalue=target, rvalue=value):
                if isinstance(value, c_ast.Assignment):
                    yield from self._effects_of(value)
                    value = value.lvalue
                if isinstance(target, c_ast.ID) and isinstance(self.names.get(target.name), Known):
                    value = value if op == "=" else c_ast.BinaryOp(op[:-1], target, value, coord=node.coord)
                    yield Assigned(target.name, self._value_of(value))

    def _loop_effects(self, node: c_ast.For) -> Iterator[Effect]:
        with self._followed():
            try:
                head = self.head(node)
            except SpecError:
                head = None
            if head is not None:
                self.names[head.counter] = CounterName(head.kind)
            body = tuple(self._effects([node.stmt]))
        yield Repeated(None if head is None else head.counted, body)
        match node.init:
            case c_ast.Assignment(lvalue=c_ast.ID(name=name)) if isinstance(self.names.get(name), Known):
                yield Assigned(name, None)

    def _value_of(self, node: c_ast.Node | None) -> ast.expr | None:
        """An integer in terms of others; None if poly can't follow it."""
        if node is None:
            return None
        try:
            found = self.value(node)
        except SpecError:
            return None
        return found.node if found.kind in (*INTEGERS, *INDICES) else None
