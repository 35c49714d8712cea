"""The loops of a tree as readable text, in the manner of Python.

for i_tile in range((M + 5) // 6):  # parallel
  for i in range(6*i_tile, min(M, 6*i_tile + 6)):
    C[i] += A[i]
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import islpy as isl

from codegen.expr import Binary, Call, Const, Expr, Index, Load, Unary
from codegen.integer import PYTHON, Int, Linear
from codegen.isl_ast import Values, called, children, condition, end, integer, kind
from poly.budget import TooCostly
from poly.guards import NONE, Conditions, guarded
from poly.nest import Nest, Statement
from poly.scan import ast
from poly.steps.sinking import rebuild
from poly.tree import Band, Leaf, Micro, Node, Pack, Sequence, bands

INDENT = "    "
OUTLINE = "# The bounds of these loops are left out: they take too much work to find."


def loops_text(nest: Nest, tree: Node) -> str:
    """The loops of a nest in the order of `tree`; copies and microkernels appear as comments."""
    plain, kernels = _plain(_named_apart(tree, frozenset({*nest.sizes, *(array.name for array in nest.arrays)})))
    remarks = {band.name: [*kernels.get(band.name, []), *_flags(band)] for band in bands(plain)}
    values = {size: Linear.name(size) for size in nest.sizes}
    try:
        loops, conditions = _scanned(nest, plain)
    except TooCostly:
        return "\n".join([OUTLINE, *_outline(nest, plain, remarks)])
    return "\n".join(_Printer(nest, remarks, conditions).node(loops, _Scope(values)))


def _scanned(nest: Nest, tree: Node) -> tuple[isl.AstNode, Conditions]:
    try:
        return ast(nest, tree), NONE
    except TooCostly:
        simple, conditions = guarded(nest)
        return ast(simple, tree), conditions


def _outline(nest: Nest, tree: Node, remarks: Notes, indent: str = "") -> list[str]:
    """The loops without their bounds, and the statements as they are written."""
    match tree:
        case Leaf(name):
            statement = nest.statement(name)
            return [indent + assignment(statement, {i: Linear.name(i) for i in statement.iterators})]
        case Sequence(nodes):
            return [line for node in nodes for line in _outline(nest, node, remarks, indent)]
        case Pack():
            return [f"{indent}# pack {tree.label}", *_outline(nest, tree.body, remarks, indent)]
        case Band():
            remark = f"  # {', '.join(remarks[tree.name])}" if remarks[tree.name] else ""
            return [f"{indent}for {tree.name} in …:{remark}", *_outline(nest, tree.body, remarks, indent + INDENT)]
    raise TypeError(type(tree).__name__)


def _named_apart(node: Node, taken: frozenset[str]) -> Node:
    """The tree with `_` behind the names of loops that are called like a size or an array: `i_tile`, made from `i`."""

    def band(old: Band) -> Band:
        name = old.name
        while name in taken:
            name += "_"
        return replace(old, name=name, body=_named_apart(old.body, taken))

    match node:
        case Band():
            return band(node)
        case Pack(body=body):
            return replace(node, body=_named_apart(body, taken))
        case Sequence(nodes):
            return Sequence(tuple(_named_apart(child, taken) for child in nodes))
        case Micro(rows=rows, columns=columns, reduce=reduce):
            return replace(
                node, rows=rows and band(rows), columns=columns and band(columns), reduce=tuple(map(band, reduce))
            )
    return node


def _flags(band: Band) -> list[str]:
    shared = "groups" if band.group else "parallel"
    flags = [shared] * band.parallel + [f"{band.items} items"] * (band.items > 0) + ["vectorize"] * band.vectorize
    return flags + [f"unroll {band.unroll}"] * (band.unroll > 1)


Notes = dict[str, list[str]]
"""Comments for loops, by name."""


def _plain(tree: Node) -> tuple[Node, Notes]:
    """The tree without microkernels, and the kernel that runs a loop."""
    kernels: Notes = {}

    def visit(node: Node) -> Node:
        match node:
            case Micro():
                absorbed = [band for band in (node.rows, node.columns, *node.reduce) if band is not None]
                zeroing = f", which does {node.initial}" if node.initial else ""
                kernels[absorbed[0].name] = [f"microkernel {node.kernel}{zeroing}"]
                return rebuild(absorbed, Leaf(node.statement))
            case Band(body=body) | Pack(body=body):
                return replace(node, body=visit(body))
            case Sequence(nodes):
                return Sequence(tuple(visit(child) for child in nodes))
        return node

    return visit(tree), kernels


@dataclass(frozen=True)
class _Scope:
    values: Values
    indent: str = ""
    loop: str = ""


@dataclass(frozen=True)
class _Printer:
    """Walks isl's AST of a nest; `remarks` are comments behind loops."""

    nest: Nest
    remarks: Notes
    conditions: Conditions

    def node(self, node: isl.AstNode, scope: _Scope) -> list[str]:
        match kind(node):
            case "mark":
                what, _, name = node.mark_get_id().get_name().partition(":")
                if what == "pack":
                    return [f"{scope.indent}# pack {name}", *self.node(node.mark_get_node(), scope)]
                return self.node(node.mark_get_node(), replace(scope, loop=name))
            case "for_":
                return self._for(node, scope)
            case "if_":
                return self._if(node, scope)
            case "block":
                return [line for child in children(node) for line in self.node(child, scope)]
        return self._statement(node, scope)

    def _for(self, node: isl.AstNode, scope: _Scope) -> list[str]:
        iterator = node.for_get_iterator().get_id().get_name()
        start = integer(node.for_get_init(), scope.values)
        remark = "".join(f"  # {text}" for text in [", ".join(self.remarks[scope.loop])] if text)
        if node.for_is_degenerate():
            above = [scope.indent + remark.strip()] if remark else []
            return above + self.node(node.for_get_body(), replace(scope, values={**scope.values, iterator: start}))
        values = {**scope.values, iterator: Linear.name(scope.loop)}
        step = integer(node.for_get_inc(), values)
        limits = ", ".join(map(PYTHON.integer, _range(start, end(node.for_get_cond(), values), step)))
        head = f"{scope.indent}for {scope.loop} in range({limits}):{remark}"
        body = self.node(node.for_get_body(), replace(scope, values=values, indent=scope.indent + INDENT))
        return [head, *body]

    def _if(self, node: isl.AstNode, scope: _Scope) -> list[str]:
        inner = replace(scope, indent=scope.indent + INDENT)
        lines = [f"{scope.indent}if {PYTHON.test(condition(node.if_get_cond(), scope.values))}:"]
        lines += self.node(node.if_get_then_node(), inner)
        if node.if_has_else_node():
            lines += [f"{scope.indent}else:", *self.node(node.if_get_else_node(), inner)]
        return lines

    def _statement(self, node: isl.AstNode, scope: _Scope) -> list[str]:
        name, indices = called(node, scope.values)
        statement = self.nest.statement(name)
        values = dict(zip(statement.iterators, indices, strict=True))
        line, where = assignment(statement, values), self.conditions.get(statement.name)
        if where is None:
            return [scope.indent + line]
        test = PYTHON.test(condition(where, {**scope.values, **values}))
        return [f"{scope.indent}if {test}:", f"{scope.indent}{INDENT}{line}"]


def assignment(statement: Statement, values: Values) -> str:
    """A statement as Python, `values` in place of its iterators."""
    target, value = expression(statement.target, values), expression(statement.expr, values)
    match statement.op:
        case "=":
            return f"{target} = {value}"
        case "+" | "*":
            return f"{target} {statement.op}= {value}"
    return f"{target} = {statement.op}({target}, {value})"


def _range(start: Int, stop: Int, step: Int) -> tuple[Int, ...]:
    """The arguments of `range`, without those that are as usual."""
    if step != Linear.of(1):
        return start, stop, step
    return (stop,) if start == Linear() else (start, stop)


def expression(expr: Expr, values: Values, binds: int = 0) -> str:
    """A statement's expression as Python, `values` in place of its iterators.

    It is in parentheses where it binds less than `binds` (1 for sums, 2 for products, 3 for signs).
    """
    match expr:
        case Const(value):
            return repr(value)
        case Index(affine):
            return f"({PYTHON.integer(affine.substitute(values))})"
        case Load(array, indices):
            inner = ", ".join(PYTHON.integer(index.substitute(values)) for index in indices)
            return f"{array}[{inner}]" if indices else array
        case Unary(op, operand):
            return f"{op}{expression(operand, values, 3)}"
        case Call(function, args):
            return f"{function}({', '.join(expression(arg, values) for arg in args)})"
        case Binary(op, left, right):
            level = 1 if op in "+-" else 2
            text = f"{expression(left, values, level)} {op} {expression(right, values, level + 1)}"
            return f"({text})" if level < binds else text
    raise TypeError(type(expr).__name__)
