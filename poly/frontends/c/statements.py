"""C statements as the Python statements of the same loops."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import product
from math import prod
from typing import NamedTuple

from pycparser import c_ast

from poly.frontends.c.arithmetic import difference
from poly.frontends.c.declarations import (
    ArrayName,
    CounterName,
    CType,
    ElementName,
    Known,
    NameUses,
    ScalarName,
    SizeName,
    Unknown,
    names_in,
    type_of,
    unknown_type,
)
from poly.frontends.c.inlining import is_value
from poly.frontends.c.integers import Integers, stepped
from poly.frontends.c.loops import STEPS, Head, numerator
from poly.frontends.c.place import CSource, marked, shown
from poly.frontends.c.typed import INDICES, INTEGERS, Value, converted
from poly.frontends.effects import iterated, joined, lost
from poly.frontends.polynomials import Polynomial, Range, expression, polynomial

JUMPS: dict[type[c_ast.Node], tuple[str, str]] = {
    c_ast.While: ("a `while` loop has no affine bounds", "Write `for (i = 0; i < n; i++)`."),
    c_ast.DoWhile: ("a `do` loop has no affine bounds", "Write `for (i = 0; i < n; i++)`."),
    c_ast.Goto: ("`goto` lets the program jump", "Write loops and `if`."),
    c_ast.Label: ("a label is for jumps", "Write loops and `if`."),
    c_ast.Break: ("`break` lets the data decide which iterations run", "Put the rest of the body below an `if`."),
    c_ast.Continue: ("`continue` leaves out a part of the body", "Put the rest of the body below an `if`."),
    c_ast.Return: ("a nest returns nothing", "Store results in an array, and mark the loops by `#pragma scop`."),
    c_ast.Switch: ("`switch` jumps", "Write it by `if` and `else`."),
}
"""What is refused, why, and how to write it instead."""


MOST_INITIAL = 64
"""The most initial values of an array: each is a statement."""


class OpenAccess(NamedTuple):
    """A subscript, and the loops around it, from which the extent of a pointer follows."""

    subscript: ast.Subscript
    loops: tuple[Range, ...]


class Statements(Integers):
    """Translates the statements of one function; `accesses` collects the subscripts of each array."""

    def __init__(self, source: CSource, typedefs: Mapping[str, c_ast.Node], roles: NameUses) -> None:
        super().__init__(source, typedefs, roles)
        self.accesses: dict[str, list[OpenAccess]] = {}
        self._own: set[str] = set()
        """The names that are declared in the block at this place."""
        self._begins: dict[c_ast.Node, str] = {}
        """The assignments that declare their scalar too, each with its type."""

    def block(self, nodes: Iterable[c_ast.Node]) -> list[ast.stmt]:
        return [made for node in nodes for made in self._statement(node)]

    def _statement(self, node: c_ast.Node) -> list[ast.stmt]:
        made = self._translated(node)
        return [marked(statement, node, self.source) for statement in made]

    def _translated(self, node: c_ast.Node) -> list[ast.stmt]:
        match node:
            case c_ast.Pragma() | c_ast.EmptyStatement():
                return []
            case c_ast.Compound(block_items=items):
                with self._inner():
                    return self.block(items or [])
            case c_ast.DeclList(decls=decls):
                return self.block(decls)
            case c_ast.Decl():
                return self._declaration(node)
            case c_ast.For():
                return [self._for(node)]
            case c_ast.If(cond=cond, iftrue=then, iffalse=other):
                return [self._if(cond, then, other)]
            case c_ast.Assignment():
                return self._assignment(node)
            case c_ast.UnaryOp(op=op) if op in STEPS:
                return self._assignment(stepped(node))
            case c_ast.ID() | c_ast.Constant() | c_ast.Cast() if is_value(node):
                return []
            case c_ast.FuncCall():
                why = f"`{shown(node)}` is called for its side effects"
                raise self.refuse(node, why, "Write its loops here; calls of math.h's functions are values.")
            case c_ast.ExprList(exprs=exprs):
                return self.block(exprs)
        why, remedy = JUMPS.get(type(node), (f"`{shown(node)}` is no statement that poly knows", "Use for, if and =."))
        raise self.refuse(node, why, remedy)

    def _body(self, node: c_ast.Node) -> list[ast.stmt]:
        with self._inner():
            return self._statement(node) or [ast.Pass()]

    def _if(self, cond: c_ast.Node, then: c_ast.Node, other: c_ast.Node | None) -> ast.stmt:
        test, before = self.test(cond), dict(self.names)
        with self.knowing(self.told(cond, True)):
            body, after, values = self._body(then), self.names, self.known_values
        self.names = before
        with self.knowing(self.told(cond, False)):
            made = ast.If(test, body, self._body(other) if other is not None else [])
        both = joined(values, self.known_values)
        self.names |= self.meanings({name: both[name] for name in both if self.names[name] is not after[name]}, after)
        return made

    @contextmanager
    def _inner(self) -> Iterator[None]:
        """A block: its declarations end with it."""
        before, around, self._own = dict(self.names), self._own, set()
        yield
        self.names = {name: known if name in self._own else self.names[name] for name, known in before.items()}
        self._own = around

    def _declaration(self, node: c_ast.Decl) -> list[ast.stmt]:
        name, found = node.name, type_of(node.type, self.typedefs)
        if found is None:
            raise self.refuse(node, *unknown_type(name, node, self.typedefs))
        self._own.add(name)
        known = self.names.get(name)
        if isinstance(known, CounterName | SizeName | ArrayName | ScalarName | ElementName):
            raise self.refuse(node, f"`{name}` hides another `{name}`", "Rename one of them.")
        if found.extents:
            return self.local_array(node, found)
        if self.counts(name, found):
            self.names[name] = Unknown(lost(name))
            return self._known_integer(node, name, node.init) if node.init is not None else []
        if found.unsigned:
            raise self.refuse(node, f"`{name}` is unsigned, and wraps around", "Declare it as int or double.")
        self.names[name] = ScalarName(found.dtype)
        return self.local_scalar(node, found)

    def local_scalar(self, node: c_ast.Decl, found: CType) -> list[ast.stmt]:
        """The declaration of a local scalar, with a value unless one comes first wherever it is used.

        Blocks that give it values of their own declare it themselves: nothing passes from one to the other.
        """
        value: ast.expr | None = None
        beginnings = self.roles.uses.beginnings(node.name)
        if node.init is not None:
            value = converted(self.stored(node.init, found.dtype), found.dtype)
        elif beginnings is not None and len(beginnings) > 1:
            self._begins |= dict.fromkeys(beginnings, found.dtype)
            return []
        elif beginnings is None:
            if self.roles.uses.is_read_first(node.name):
                why = f"`{node.name}` may be read before it has a value"
                raise self.refuse(node, why, f"Give it one here: `{node.name} = 0`.")
            value = ast.Constant(0)
        target = ast.Name(node.name, ast.Store())
        return [ast.AnnAssign(target, ast.Name(found.dtype, ast.Load()), value, simple=1)]

    def local_array(self, node: c_ast.Decl, found: CType) -> list[ast.stmt]:
        """The declaration of a local array, and assignments of its initial values.

        Where an extent is a quotient, which no array of a nest has, the array is larger.
        """
        if found.pointer or None in found.extents:
            remedy = f"Index the array itself, or declare `{node.name}` with its extents."
            raise self.refuse(node, f"`{node.name}` is a pointer, which may point into any array", remedy)
        if found.unsigned:
            raise self.refuse(node, f"`{node.name}` holds unsigned data, which wraps around", "Use a signed type.")
        self.names[node.name] = ArrayName(found)
        extents = [self.integer_value(extent) for extent in found.extents if extent is not None]
        kind = annotation(found.dtype, [numerator(extent.node) for extent in extents])
        made: ast.stmt = ast.AnnAssign(ast.Name(node.name, ast.Store()), kind, None, simple=1)
        return [made] if node.init is None else [made, *self._initial(node, found, extents)]

    def _initial(self, node: c_ast.Decl, found: CType, extents: list[Value]) -> list[ast.stmt]:
        """An assignment for each element of an array with initial values."""
        shape = [extent.number for extent in extents]
        stays = "static" in node.storage and "const" not in node.quals
        count = prod(int(number or 0) for number in shape)
        if stays or not 0 < count <= MOST_INITIAL or not isinstance(node.init, c_ast.InitList):
            raise self.refuse(node, f"`{node.name}` has initial values", "Fill it by loops after its declaration.")
        made: list[ast.stmt] = []
        for place in product(*(range(int(number or 0)) for number in shape)):
            given = _initial_value(node.init, place)
            if given is None:
                why = f"the initial values of `{node.name}` are not in braces for each dimension"
                raise self.refuse(node, why, "Write a pair of braces for each row, and values in order.")
            value = converted(self.value(given), found.dtype)
            indices: list[ast.expr] = [ast.Constant(index) for index in place]
            index = indices[0] if len(indices) == 1 else ast.Tuple(indices, ast.Load())
            target = ast.Subscript(ast.Name(node.name, ast.Load()), index, ast.Store())
            made.append(marked(ast.Assign([target], value), given, self.source))
        return made

    def _known_integer(self, node: c_ast.Node, name: str, value: c_ast.Node) -> list[ast.stmt]:
        found = self.value(value)
        if found.kind not in (*INTEGERS, *INDICES):
            raise self.refuse(node, f"`{name}` gets a value that is no integer of counters and sizes", "Use double.")
        terms = polynomial(found.node) if name in names_in([value]) else None
        value_here = found.node if terms is None else expression(terms)
        kind = found.kind if found.kind in INDICES else self.roles.kinds.get(name, found.kind)
        self.check_kept(node, found, kind)
        self.names[name] = Known(value_here, kind)
        return []

    def _assignment(self, node: c_ast.Assignment) -> list[ast.stmt]:
        op, target, value = node.op, node.lvalue, node.rvalue
        if isinstance(value, c_ast.Assignment):  # a = b = c is b = c; a = b
            outer = c_ast.Assignment(op, target, value.lvalue, coord=node.coord)
            if node in self._begins:
                self._begins[outer] = self._begins[node]
            return [*self._statement(value), *self._statement(outer)]
        if op not in ("=", "+=", "-=", "*=", "/=", "%=", "<<=", ">>=", "&="):
            raise self.refuse(node, f"`{op}` is not one of = += -= *= /= %= <<= >>= &=", "Write it with these.")
        if isinstance(target, c_ast.ID):
            match self.names.get(target.name):
                case CounterName():
                    why = f"`{target.name}` counts a loop that runs here, and is changed in it"
                    raise self.refuse(node, why, "Leave the counter to the `for`, with a step such as `i += 2`.")
                case SizeName():
                    why = f"`{target.name}` is a parameter that a bound or subscript names"
                    raise self.refuse(node, why, "Assign a local of another name.")
                case ScalarName(is_argument=True):
                    why = f"`{target.name}` is a parameter passed by value"
                    raise self.refuse(node, why, "Assign a local of another name.")
                case Unknown() if op != "=":
                    return []
                case Known() | Unknown():
                    if op != "=":
                        value = c_ast.BinaryOp(op[:-1], target, value, coord=node.coord)
                    return self._known_integer(node, target.name, value)
        place = self.value(target)
        right = self.stored(value, place.kind)
        if node in self._begins:
            kind = self._begins[node]
            declared = ast.Name(target.name, ast.Store())
            return [ast.AnnAssign(declared, ast.Name(kind, ast.Load()), converted(right, kind), simple=1)]
        if op != "=":  # the element is read by nodes of its own, since nodes tell reads and writes apart
            combined = self.bits if op[:-1] in ("<<", ">>", "&") else self.binary
            with self.wrapping(op in ("+=", "-=", "*=") and self.keeps_bits(value, place.kind)):
                right = marked_value(combined(node, op[:-1], self.value(target), right), node, self.source)
        stored = ast.Assign([_store(place.node)], converted(right, place.kind))
        return [stored]

    def element(self, node: c_ast.ArrayRef) -> Value:
        found = super().element(node)
        if not self.following and isinstance(found.node, ast.Subscript) and isinstance(found.node.value, ast.Name):
            self.accesses.setdefault(found.node.value.id, []).append(OpenAccess(found.node, self.loops))
        return found

    def _for(self, node: c_ast.For) -> ast.stmt:
        before, around, values = dict(self.names), self.loops, self.known_values
        head = self.head(node)
        loop, body = head.counted, self.effects(node, head)
        inside, behind = iterated(loop, body, values, self.is_natural)
        self.loops = (*around, head.range)
        self.names = {**before, **self.meanings(inside, before)}
        self.names[head.counter] = CounterName(head.kind)
        natural: list[Polynomial] = [{(head.counter,): 1}] if any(map(self.is_natural, head.least)) else []
        with self.knowing([*head.facts, *natural]):
            statements = self._body(node.stmt)
        if head.tests:
            test = head.tests[0] if len(head.tests) == 1 else ast.BoolOp(ast.And(), list(head.tests))
            statements = [marked(ast.If(test, statements, []), node, self.source)]
        self.loops = around
        self.names = {**before, **self.meanings(behind, before)}
        self.names[head.counter] = self._behind(head)
        call = ast.Call(ast.Name("range", ast.Load()), head.arguments, [])
        return ast.For(ast.Name(head.counter, ast.Store()), call, statements, [])

    def _behind(self, head: Head) -> Known | Unknown:
        """A counter behind its loop: its end, which it reaches in steps of 1 if it starts no later."""
        end = head.ends[0]
        stops = head.step == 1 and len(head.ends) == 1 and not head.tests
        apart = difference(Value(end, head.kind), Value(head.low, head.kind)) if stops else None
        if apart is not None and self.proves(apart):
            return Known(end, head.kind)
        return Unknown(f"`{head.counter}` counts a loop that does not run here")


def _initial_value(values: c_ast.Node, place: Sequence[int]) -> c_ast.Node | None:
    """The value of an element in lists of initial values, 0 where they end before; None if they are no such lists."""
    if not place:
        return None if isinstance(values, c_ast.InitList | c_ast.NamedInitializer) else values
    if not isinstance(values, c_ast.InitList):
        return None
    if any(isinstance(value, c_ast.NamedInitializer) for value in values.exprs):
        return None
    if place[0] < len(values.exprs):
        return _initial_value(values.exprs[place[0]], place[1:])
    return c_ast.Constant("int", "0", coord=values.coord)


def marked_value(value: Value, node: c_ast.Node, source: CSource) -> Value:
    marked(value.node, node, source)
    return value


def annotation(dtype: str, extents: list[ast.expr]) -> ast.expr:
    """`f64[n, m]`."""
    if not extents:
        return ast.Name(dtype, ast.Load())
    shape = extents[0] if len(extents) == 1 else ast.Tuple(extents, ast.Load())
    return ast.Subscript(ast.Name(dtype, ast.Load()), shape, ast.Load())


def _store(node: ast.expr) -> ast.expr:
    assert isinstance(node, ast.Name | ast.Subscript), "only elements and scalars are assigned"
    node.ctx = ast.Store()
    return node
