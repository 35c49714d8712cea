"""The loops of a tree as readable text, in the manner of Python.

for i_tile in range((M + 5) // 6):  # parallel
  for i in range(6*i_tile, min(M, 6*i_tile + 6)):
    C[i] += A[i]
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from codegen import loop_ir
from codegen.expr import Binary, Call, Const, Expr, Index, Load, Unary
from codegen.integer import PYTHON, Int, Linear, replaced
from codegen.loop_ir import Block, For, If, Once, Run
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
    try:
        loops, conditions = _scanned(nest, plain)
    except TooCostly:
        return "\n".join([OUTLINE, *_outline(nest, plain, remarks)])
    return "\n".join(_Printer(nest, remarks, kernels, conditions).node(loops))


def _scanned(nest: Nest, tree: Node) -> tuple[loop_ir.Node, Conditions]:
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
class _Printer:
    """Walks the loops of a nest; `remarks` are comments behind loops, `kernels` those above one that runs once."""

    nest: Nest
    remarks: Notes
    kernels: Notes
    conditions: Conditions

    def node(self, node: loop_ir.Node, indent: str = "") -> list[str]:
        match node:
            case loop_ir.Comment(text, body):
                return [f"{indent}# pack {text}", *self.node(body, indent)]
            case For():
                limits = ", ".join(map(PYTHON.integer, _range(node)))
                remark = "".join(f"  # {', '.join(found)}" for found in [self.remarks.get(node.mark.name)] if found)
                head = f"{indent}for {node.variable} in range({limits}):{remark}"
                return [head, *self.node(node.body, indent + INDENT)]
            case Once():
                above = [f"{indent}# {text}" for text in self.kernels.get(node.mark.name, [])]
                return [*above, *self.node(node.body, indent)]
            case If():
                return self._if(node, indent)
            case Block():
                return [line for child in node.nodes for line in self.node(child, indent)]
        return self._statement(node, indent)

    def _if(self, node: If, indent: str) -> list[str]:
        lines = [f"{indent}if {PYTHON.test(node.test)}:", *self.node(node.then, indent + INDENT)]
        if node.other is not None:
            lines += [f"{indent}else:", *self.node(node.other, indent + INDENT)]
        return lines

    def _statement(self, run: Run, indent: str) -> list[str]:
        statement = self.nest.statement(run.statement)
        values = dict(zip(statement.iterators, run.values, strict=True))
        line, where = assignment(statement, values), self.conditions.get(statement.name)
        if where is None:
            return [indent + line]
        return [f"{indent}if {PYTHON.test(replaced(where, values))}:", f"{indent}{INDENT}{line}"]


def assignment(statement: Statement, values: Mapping[str, Int]) -> str:
    """A statement as Python, `values` in place of its iterators."""
    target, value = expression(statement.target, values), expression(statement.expr, values)
    match statement.op:
        case "=":
            return f"{target} = {value}"
        case "+" | "*":
            return f"{target} {statement.op}= {value}"
    return f"{target} = {statement.op}({target}, {value})"


def _range(loop: For) -> tuple[Int, ...]:
    """The arguments of `range`, without those that are as usual."""
    assert loop.end is not None, "isl bounds a loop's variable by itself"
    if loop.step != 1:
        return loop.start, loop.end, Linear.of(loop.step)
    return (loop.end,) if loop.start == Linear() else (loop.start, loop.end)


def expression(expr: Expr, values: Mapping[str, Int], binds: int = 0) -> str:
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
