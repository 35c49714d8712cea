"""The loops of a tree as readable text in the style of Python.

for i_tile in range((M + 5) // 6):  # parallel
  for i in range(6*i_tile, min(M, 6*i_tile + 6)):
    C[i] += A[i]
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from codegen.ir import loop_ir
from codegen.ir.integer import PYTHON, Linear, replaced
from codegen.ir.loop_ir import For, LoopMark, Once, Run
from codegen.loop_text import INDENT, assignment, flags, loop_lines
from poly.ir.budget import TooCostly
from poly.ir.guards import NONE, Conditions, guarded
from poly.ir.nest import Nest
from poly.ir.tree import Band, Copy, Leaf, Micro, Node, Sequence, bands, map_absorbed, mapped
from poly.lowering.scan import ast
from poly.schedules.steps.sinking import rebuild

OUTLINE = "# The bounds of these loops are left out: they take too much work to find."


def loops_text(nest: Nest, tree: Node) -> str:
    """The loops of a nest in the order of `tree`; copies and microkernels appear as comments."""
    plain, kernels = _plain(_named_apart(tree, frozenset({*nest.sizes, *(array.name for array in nest.arrays)})))
    remarks = {band.name: [*kernels.get(band.name, []), *flags(_mark(band))] for band in bands(plain)}
    try:
        loops, conditions = _scanned(nest, plain)
    except TooCostly:
        return "\n".join([OUTLINE, *_outline(nest, plain, remarks)])

    def remark(loop: For | Once) -> list[str]:
        return (remarks if isinstance(loop, For) else kernels).get(loop.mark.name, [])

    return "\n".join(loop_lines(loops, partial(_statement_lines, nest, conditions), remark))


def _scanned(nest: Nest, tree: Node) -> tuple[loop_ir.Node, Conditions]:
    try:
        return ast(nest, tree), NONE
    except TooCostly:
        simple, conditions = guarded(nest)
        return ast(simple, tree), conditions


def _outline(nest: Nest, tree: Node, remarks: Notes, indent: str = "") -> list[str]:
    """The loops without their bounds, and the statements as written."""
    match tree:
        case Leaf(name):
            statement = nest.statement(name)
            own = {i: Linear.name(i) for i in statement.iterators}
            return [indent + assignment(statement.target, statement.op, statement.expr, own)]
        case Sequence(nodes):
            return [line for node in nodes for line in _outline(nest, node, remarks, indent)]
        case Copy():
            return [f"{indent}# pack {tree.label}", *_outline(nest, tree.body, remarks, indent)]
        case Band():
            remark = f"  # {', '.join(remarks[tree.name])}" if remarks[tree.name] else ""
            return [f"{indent}for {tree.name} in …:{remark}", *_outline(nest, tree.body, remarks, indent + INDENT)]
    raise TypeError(type(tree).__name__)


def _named_apart(node: Node, taken: frozenset[str]) -> Node:
    """The tree with `_` appended to loop names that a size or an array has too, such as an `i_tile` made from `i`."""

    def band(old: Band) -> Band:
        name = old.name
        while name in taken:
            name += "_"
        return replace(old, name=name, body=_named_apart(old.body, taken))

    match node:
        case Band():
            return band(node)
        case Micro():
            return map_absorbed(node, band)
    return mapped(node, lambda child: _named_apart(child, taken))


def _mark(band: Band) -> LoopMark:
    return LoopMark(band.name, band.parallel, band.vectorize, band.unroll, band.group, band.items)


Notes = dict[str, list[str]]
"""Comments for loops, by name."""


def _plain(tree: Node) -> tuple[Node, Notes]:
    """The tree with loops in place of microkernels, and a comment on the first loop of each kernel."""
    kernels: Notes = {}

    def visit(node: Node) -> Node:
        if not isinstance(node, Micro):
            return mapped(node, visit)
        absorbed = [band for band in (node.rows, node.columns, *node.reduce) if band is not None]
        zeroing = f", which does {node.initial}" if node.initial else ""
        kernels[absorbed[0].name] = [f"microkernel {node.kernel}{zeroing}"]
        return rebuild(absorbed, Leaf(node.statement))

    return visit(tree), kernels


def _statement_lines(nest: Nest, conditions: Conditions, run: Run) -> list[str]:
    """An instance of a statement, under its condition if it has one."""
    statement = nest.statement(run.statement)
    values = dict(zip(statement.iterators, run.values, strict=True))
    line = assignment(statement.target, statement.op, statement.expr, values)
    where = conditions.get(statement.name)
    return [line] if where is None else [f"if {PYTHON.test(replaced(where, values))}:", INDENT + line]
