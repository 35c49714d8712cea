"""The loops of a tree as readable text, in the manner of Python.

for i_tile in range((M + 5) // 6):  # parallel
  for i in range(6*i_tile, min(M, 6*i_tile + 6)):
    C[i] += A[i]
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import islpy as isl

from codegen.affine import Affine
from codegen.expr import Binary, Call, Const, Expr, Index, Load, Unary
from codegen.integer import COMPARISONS, CONNECTIVES, arguments, children, comparison, kind, operation, primary
from poly.budget import TooCostly
from poly.guards import NONE, Conditions, guarded
from poly.nest import Nest, Statement
from poly.scan import ast
from poly.steps.sinking import rebuild
from poly.tree import Band, Leaf, Micro, Node, Pack, Sequence, bands

Values = Mapping[str, Affine]
INDENT = "    "
OUTLINE = "# The bounds of these loops are left out: they take too much work to find."
FLOOR_DIVISIONS = ("fdiv_q", "pdiv_q", "div")
"""isl's divisions: rounded down, of a number that is not negative, and without a remainder."""


def loops_text(nest: Nest, tree: Node) -> str:
    """The loops of a nest in the order of `tree`; copies and microkernels appear as comments."""
    plain, kernels = _plain(_named_apart(tree, frozenset({*nest.sizes, *(array.name for array in nest.arrays)})))
    remarks = {band.name: [*kernels.get(band.name, []), *_flags(band)] for band in bands(plain)}
    values = {size: Affine.name(size) for size in nest.sizes}
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
            return [indent + assignment(statement, {i: Affine.name(i) for i in statement.iterators})]
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
        values = {**scope.values, iterator: Affine.name(scope.loop)}
        step = integer(node.for_get_inc(), values)
        limits = ", ".join(_bare(v) for v in _range(start, _stop(node.for_get_cond(), values), step))
        head = f"{scope.indent}for {scope.loop} in range({limits}):{remark}"
        body = self.node(node.for_get_body(), replace(scope, values=values, indent=scope.indent + INDENT))
        return [head, *body]

    def _if(self, node: isl.AstNode, scope: _Scope) -> list[str]:
        inner = replace(scope, indent=scope.indent + INDENT)
        lines = [f"{scope.indent}if {condition(node.if_get_cond(), scope.values)}:"]
        lines += self.node(node.if_get_then_node(), inner)
        if node.if_has_else_node():
            lines += [f"{scope.indent}else:", *self.node(node.if_get_else_node(), inner)]
        return lines

    def _statement(self, node: isl.AstNode, scope: _Scope) -> list[str]:
        called, *indices = arguments(node.user_get_expr())
        statement = self.nest.statement(called.get_id().get_name())
        values = dict(zip(statement.iterators, (integer(index, scope.values) for index in indices), strict=True))
        line, where = assignment(statement, values), self.conditions.get(statement.name)
        if where is None:
            return [scope.indent + line]
        return [f"{scope.indent}if {condition(where, {**scope.values, **values})}:", f"{scope.indent}{INDENT}{line}"]


def assignment(statement: Statement, values: Values) -> str:
    """A statement as Python, `values` in place of its iterators."""
    target, value = expression(statement.target, values), expression(statement.expr, values)
    match statement.op:
        case "=":
            return f"{target} = {value}"
        case "+" | "*":
            return f"{target} {statement.op}= {value}"
    return f"{target} = {statement.op}({target}, {value})"


def _bare(value: Affine) -> str:
    """The text of an expression that stands alone: a quotient or remainder without its parentheses."""
    text = str(value)
    single = len(value.terms) == 1 and text == value.terms[0][0]
    return text[1:-1] if single and text.startswith("(") and text.endswith(")") else text


def _range(start: Affine, stop: Affine, step: Affine) -> tuple[Affine, ...]:
    """The arguments of `range`, without those that are as usual."""
    if step != Affine.of(1):
        return start, stop, step
    return (stop,) if start == Affine.of(0) else (start, stop)


def _stop(test: isl.AstExpr, values: Values) -> Affine:
    """The first value that is past a loop whose condition is `iterator < e` or `iterator <= e`."""
    _, limit = arguments(test)
    return _past(limit, values) if operation(test) == "le" else integer(limit, values)


def _past(limit: isl.AstExpr, values: Values) -> Affine:
    """One more than an expression: `min(M - 1, 7)` gives `min(M, 8)`, and `(M - 1) // 6` gives `(M + 5) // 6`."""
    op = operation(limit)
    if op in ("min", "max"):
        return Affine.name(f"{op}({', '.join(str(_past(arg, values)) for arg in arguments(limit))})")
    if op in FLOOR_DIVISIONS:
        dividend, divisor = (integer(arg, values) for arg in arguments(limit))
        return Affine.name(f"{primary(dividend + divisor)} // {divisor}")
    return integer(limit, values) + 1


def integer(expr: isl.AstExpr, values: Values) -> Affine:
    """An integer expression of isl's AST as Python; what is not affine is a name in it."""
    match isl.ast_expr_type(expr.get_type()):
        case isl.ast_expr_type.int:
            return Affine.of(expr.get_val().to_python())
        case isl.ast_expr_type.id:
            return values[expr.get_id().get_name()]
    op = operation(expr)
    if op in COMPARISONS or op in CONNECTIVES:
        return Affine.name(f"({condition(expr, values)})")
    if op in ("cond", "select"):
        test, then, other = arguments(expr)
        return Affine.name(f"({integer(then, values)} if {condition(test, values)} else {integer(other, values)})")
    args = [integer(arg, values) for arg in arguments(expr)]
    match op:
        case "add" | "minus":
            return sum(args, Affine()) if op == "add" else -args[0]
        case "sub":
            return args[0] - args[1]
        case "mul":
            return args[0] * args[1]
        case "min" | "max":
            return Affine.name(f"{op}({', '.join(map(str, args))})")
    symbol = "//" if op in FLOOR_DIVISIONS else "%"
    return Affine.name(f"({primary(args[0])} {symbol} {primary(args[1])})")


def condition(expr: isl.AstExpr, values: Values) -> str:
    """A truth value of isl's AST as Python."""
    op = operation(expr)
    if op in COMPARISONS:
        left, right = (integer(arg, values) for arg in arguments(expr))
        return comparison(left, COMPARISONS[op], right)
    if op in CONNECTIVES:
        word = " and " if CONNECTIVES[op] == "&&" else " or "
        mixed = [CONNECTIVES.get(operation(arg), CONNECTIVES[op]) != CONNECTIVES[op] for arg in arguments(expr)]
        texts = [condition(arg, values) for arg in arguments(expr)]
        return word.join(f"({text})" if other else text for text, other in zip(texts, mixed, strict=True))
    return f"{integer(expr, values)} != 0"


def expression(expr: Expr, values: Values, binds: int = 0) -> str:
    """A statement's expression as Python, `values` in place of its iterators.

    It is in parentheses where it binds less than `binds` (1 for sums, 2 for products, 3 for signs).
    """
    match expr:
        case Const(value):
            return repr(value)
        case Index(affine):
            return f"({affine.substitute(values)})"
        case Load(array, indices):
            inner = ", ".join(_bare(index.substitute(values)) for index in indices)
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
