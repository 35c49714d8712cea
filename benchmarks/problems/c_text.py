"""The loops of a nest in C, as a user would write them, for compilers to optimise.

Sizes are constants, arrays are `restrict`, and a local is declared in the smallest block around its uses. The loops are
between `#pragma scop` and `#pragma endscop`, for source-to-source compilers.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from codegen.ir.integer import Linear
from poly.ir.nest import Array, Nest

HEAD = """#include <math.h>
#include <stdint.h>
#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))
"""
FUNCTION = "run"
"""The name of the function."""

OPERATORS: Mapping[type[ast.AST], str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "/", ast.Mod: "%",
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=",
    ast.And: "&&", ast.Or: "||", ast.Not: "!", ast.USub: "-", ast.UAdd: "+",
}  # fmt: skip
CHOICES = {"min": "MIN", "max": "MAX"}
NAMES = {"abs": "fabs", "power": "pow", "absolute": "fabs"}
"""The C names of functions whose names differ."""


def c_text(nest: Nest, locals_first: bool = False, numbers: bool = False) -> str:
    """A C file with the function `run` on the nest's arguments, in their order; all sizes of the nest are fixed.

    With `locals_first`, all locals are declared before the loops; with `numbers`, these stand for sizes in the loops.
    """
    return _Writer(nest, locals_first, numbers).text()


def c_declaration(nest: Nest) -> str:
    """The function's prototype for cffi: arrays are pointers to their elements."""
    types = (f"{a.dtype.c_name}{'' if a.kind == 'scalar' else ' *'}" for a in nest.arguments)
    return f"void {FUNCTION}({', '.join(types)});"


@dataclass(frozen=True)
class _Writer:
    nest: Nest
    locals_first: bool
    numbers: bool

    def text(self) -> str:
        (function,) = (node for node in ast.parse(self.nest.source).body if isinstance(node, ast.FunctionDef))
        sizes = (f"#define {name} {value}" for name, value in self.nest.fixed)
        head = f"void {FUNCTION}({', '.join(map(self._parameter, self.nest.arguments))})"
        first = [f"    {self._declared(name)};" for name in self._locals] if self.locals_first else []
        body = self._block(function.body, frozenset(() if self.locals_first else self._locals), 1)
        scop = ("#pragma scop", *body, "#pragma endscop")
        return "\n".join((HEAD + "\n".join(sizes), "", head, "{", *first, *scop, "}", ""))

    @property
    def _locals(self) -> dict[str, Array]:
        return {array.name: array for array in self.nest.arrays if array.kind == "local"}

    @property
    def _floats(self) -> set[str]:
        return {array.name for array in self.nest.arrays if array.dtype.is_float}

    @property
    def _single(self) -> bool:
        """Whether numbers and functions are those of `float`."""
        names = {array.dtype.name for array in self.nest.arrays}
        return "f32" in names and "f64" not in names

    def _parameter(self, array: Array) -> str:
        if array.kind == "scalar":
            return f"{array.dtype.c_name} {array.name}"
        first, *others = map(str, array.shape)
        return f"{array.dtype.c_name} {array.name}[restrict {first}]{''.join(f'[{extent}]' for extent in others)}"

    def _block(self, body: Sequence[ast.stmt], undeclared: frozenset[str], depth: int) -> Iterator[str]:
        """The lines of a block, with the declarations of the locals for which it is the smallest one."""
        first = {name: node for name in sorted(undeclared) if (node := _first_user(body, name)) is not None}
        for node in body:
            here = [name for name, user in first.items() if user is node]
            yield from self._statement(node, here, undeclared - first.keys(), depth)

    def _statement(self, node: ast.stmt, here: list[str], undeclared: frozenset[str], depth: int) -> Iterator[str]:
        """A statement's lines; `here` are the locals to declare: with the statement that assigns it, or before it."""
        pad = "    " * depth
        stored = " = ".join(map(self._value, _stored(node)))
        if here == [stored]:
            stored = self._declared(here[0])
        else:
            yield from (f"{pad}{self._declared(name)};" for name in here)
        match node:
            case ast.For(target=ast.Name(id=index), iter=ast.Call(args=bounds)):
                yield f"{pad}for ({self._loop(index, bounds)}) {{"
                yield from self._block(node.body, undeclared, depth + 1)
                yield f"{pad}}}"
            case ast.If(test=test, body=then, orelse=other):
                yield f"{pad}if ({self._value(test)}) {{"
                yield from self._block(then, undeclared, depth + 1)
                if other:
                    yield f"{pad}}} else {{"
                    yield from self._block(other, undeclared, depth + 1)
                yield f"{pad}}}"
            case ast.Assign(value=value) | ast.AnnAssign(value=ast.expr() as value):
                yield f"{pad}{stored} = {self._value(value)};"
            case ast.AugAssign(target=target, op=op, value=value):
                yield f"{pad}{self._value(target)} {OPERATORS[type(op)]}= {self._value(value)};"

    def _declared(self, name: str) -> str:
        local = self._locals[name]
        return f"{local.dtype.c_name} {name}{''.join(f'[{extent}]' for extent in self._shape(local))}"

    def _shape(self, local: Array) -> list[str]:
        """The extents of a local array as it is declared; a local scalar has one for each loop around it instead."""
        declared = (node for node in ast.walk(ast.parse(self.nest.source)) if isinstance(node, ast.AnnAssign))
        arrays = {ast.unparse(node.target) for node in declared if isinstance(node.annotation, ast.Subscript)}
        return [str(extent) for extent in local.shape] if local.name in arrays else []

    def _loop(self, index: str, bounds: Sequence[ast.expr]) -> str:
        start, stop = (ast.Constant(0), bounds[0]) if len(bounds) == 1 else bounds[:2]
        step = ast.literal_eval(bounds[2]) if len(bounds) == 3 else 1
        compare, move = ("<", "+") if step > 0 else (">", "-")
        moved = f"{index}{move}{move}" if abs(step) == 1 else f"{index} {move}= {abs(step)}"
        return f"int {index} = {self._value(start)}; {index} {compare} {self._value(stop)}; {moved}"

    def _value(self, node: ast.expr) -> str:
        match node:
            case ast.Constant(value=bool() | int() as value):
                return str(int(value))
            case ast.Constant(value=value):
                return f"{value!r}{'f' * self._single}"
            case ast.Name(id=name) | ast.Attribute(attr=name):
                return self._name(ast.unparse(node), name)
            case ast.Subscript(value=array, slice=ast.Tuple(elts=indices)):
                return ast.unparse(array) + "".join(f"[{self._value(index)}]" for index in indices)
            case ast.Subscript(value=array, slice=index):
                return f"{ast.unparse(array)}[{self._value(index)}]"
            case ast.BinOp(left=left, op=ast.Pow(), right=ast.Constant(value=2)):
                return f"({self._value(left)} * {self._value(left)})"
            case ast.BinOp(left=left, op=ast.Pow(), right=right):
                return self._called("pow", [left, right])
            case ast.BinOp(left=left, op=op, right=right):
                real = isinstance(op, ast.Div) and not (self._is_float(left) or self._is_float(right))
                return f"({'(double)' * real}{self._value(left)} {OPERATORS[type(op)]} {self._value(right)})"
            case ast.UnaryOp(op=op, operand=operand):
                return f"({OPERATORS[type(op)]}{self._value(operand)})"
            case ast.BoolOp(op=op, values=values):
                return f"({f' {OPERATORS[type(op)]} '.join(map(self._value, values))})"
            case ast.Compare(left=left, ops=ops, comparators=others):
                pairs = zip((left, *others), ops, others, strict=False)
                tests = (f"{self._value(a)} {OPERATORS[type(op)]} {self._value(b)}" for a, op, b in pairs)
                return f"({' && '.join(tests)})"
            case ast.IfExp(test=test, body=then, orelse=other):
                return f"({self._value(test)} ? {self._value(then)} : {self._value(other)})"
            case ast.Call(func=function, args=arguments):
                return self._called(ast.unparse(function).rpartition(".")[2], arguments)
        raise AssertionError(f"the front end takes no {type(node).__name__} in a value")

    def _name(self, path: str, name: str) -> str:
        """A name's text: a number for a free name that is no size."""
        sizes, names = dict(self.nest.fixed), dict(self.nest.names)
        if name in sizes:
            return str(sizes[name]) if self.numbers else name
        value = names.get(path)
        if value is None:
            return name
        known = value.evaluate(dict(self.nest.fixed)) if isinstance(value, Linear) else value
        return f"({known!r}{'f' * (self._single and isinstance(known, float))})"

    def _called(self, name: str, arguments: Sequence[ast.expr]) -> str:
        texts = [self._value(argument) for argument in arguments]
        types = {array.dtype.name: array.dtype.c_name for array in self.nest.arrays}
        if name in types:
            return f"({types[name]})({texts[0]})"
        if name in CHOICES:
            first, *others = texts
            for other in others:
                first = f"{CHOICES[name]}({first}, {other})"
            return first
        return f"{NAMES.get(name, name)}{'f' * self._single}({', '.join(texts)})"

    def _is_float(self, node: ast.expr) -> bool:
        """Whether C computes a value in floating point."""
        match node:
            case ast.Subscript(value=array):
                return ast.unparse(array) in self._floats
            case ast.Name(id=name):
                return name in self._floats or isinstance(dict(self.nest.names).get(name), float)
            case ast.BinOp(left=left, op=op, right=right):
                return isinstance(op, ast.Div | ast.Pow) or self._is_float(left) or self._is_float(right)
            case ast.UnaryOp(operand=operand):
                return self._is_float(operand)
            case ast.Call(func=function, args=arguments):
                return ast.unparse(function) not in CHOICES or any(map(self._is_float, arguments))
            case ast.IfExp(body=then, orelse=other):
                return self._is_float(then) or self._is_float(other)
        return isinstance(node, ast.Constant | ast.Attribute) and not isinstance(getattr(node, "value", 0.0), int)


def _names(node: ast.AST) -> set[str]:
    """The names in a node."""
    return {found.id for found in ast.walk(node) if isinstance(found, ast.Name)}


def _stored(node: ast.stmt) -> list[ast.expr]:
    """What an assignment stores to."""
    match node:
        case ast.Assign(targets=targets):
            return targets
        case ast.AnnAssign(target=target, value=ast.expr()):
            return [target]
    return []


def _first_user(body: Sequence[ast.stmt], name: str) -> ast.stmt | None:
    """The first statement of a block that uses a local, or None if a block inside is the smallest with all its uses."""
    users = [node for node in body if name in _names(node)]
    match users:
        case [] | [ast.For()]:
            return None
        case [ast.If(test=test, body=then, orelse=other)]:
            uses = (name in _names(test), any(name in _names(n) for n in then), any(name in _names(n) for n in other))
            return users[0] if uses[0] or sum(uses) > 1 else None
    return users[0]
