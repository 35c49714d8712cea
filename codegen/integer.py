"""isl's AST expressions as integer expressions in C.

Whatever is affine in the loop variables is folded: `(0) * 512 + (c0)` becomes `c0`. What is not (a minimum, a floor)
becomes an atom, a name in the affine expression around it: `min(M, 6*i + 6) - 1`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import reduce
from math import prod

import islpy as isl

from codegen.affine import Affine
from codegen.names import c_name

Values = Mapping[str, Affine]
"""What isl's names stand for in C: loop variables and, where a loop runs once, its value."""

COMPARISONS = {"eq": "==", "le": "<=", "lt": "<", "ge": ">=", "gt": ">"}
CONNECTIVES = {"and_": "&&", "and_then": "&&", "or_": "||", "or_else": "||"}

NUMBER = re.compile(r"-?\d+")

HELPERS = {
    "imin": "static inline int64_t imin(int64_t a, int64_t b) { return a < b ? a : b; }",
    "imax": "static inline int64_t imax(int64_t a, int64_t b) { return a > b ? a : b; }",
    "floord": "static inline int64_t floord(int64_t a, int64_t b) { return a / b - (a % b < 0); }  /* b > 0 */",
}
"""C functions that the expressions may call."""


def operation(expr: isl.AstExpr) -> str:
    """isl's name for an operation, such as `fdiv_q`; empty for a number or a name."""
    if isl.ast_expr_type(expr.get_type()) != isl.ast_expr_type.op:
        return ""
    return str(isl.ast_expr_op_type(expr.get_op_type()).name)


def arguments(expr: isl.AstExpr) -> list[isl.AstExpr]:
    """The operands of an operation."""
    return [expr.get_op_arg(n) for n in range(expr.get_op_n_arg())]


def integer(expr: isl.AstExpr, values: Values) -> Affine:
    """The value of an integer expression; `values` replaces isl's names, others are sizes."""
    kind = isl.ast_expr_type(expr.get_type())
    if kind == isl.ast_expr_type.int:
        return Affine.of(expr.get_val().to_python())
    if kind == isl.ast_expr_type.id:
        name = expr.get_id().get_name()
        return values[name] if name in values else Affine.name(c_name(name))
    return _operation(expr, values)


def _operation(expr: isl.AstExpr, values: Values) -> Affine:
    op = operation(expr)
    if op in COMPARISONS or op in CONNECTIVES:
        return _atom(f"({condition(expr, values)})")
    if op in ("cond", "select"):
        test, then, other = arguments(expr)
        return _atom(f"({condition(test, values)} ? {integer(then, values)} : {integer(other, values)})")
    args = [integer(arg, values) for arg in arguments(expr)]
    match op, args:
        case "add", [left, right]:
            return left + right
        case "sub", [left, right]:
            return left - right
        case "minus", [operand]:
            return -operand
        case "mul", [left, right] if not (left.terms and right.terms):
            return left * right
        case "min" | "max", _:
            return _extreme(f"i{op}", args)
        case "fdiv_q", [left, right]:
            return _atom(f"floord({left}, {right})")
        case (("mul" | "pdiv_q" | "div" | "pdiv_r" | "zdiv_r"), [left, right]):
            symbol = {"mul": "*", "pdiv_q": "/", "div": "/"}.get(op, " % ")
            return _atom(f"({primary(left)}{symbol}{primary(right)})")
    raise AssertionError(f"isl made an operation that the C printer doesn't know: {expr.to_C_str()}")


def condition(expr: isl.AstExpr, values: Values) -> str:
    """The text of a truth value; a disjunction in a conjunction, or the other way round, is in parentheses."""
    op = operation(expr)
    if op in COMPARISONS:
        left, right = arguments(expr)
        if op == "le" and operation(right) == "min":
            return f"{integer(left, values)} < {end(expr, values)}"
        return comparison(integer(left, values), COMPARISONS[op], integer(right, values))
    if op in CONNECTIVES:
        symbol = CONNECTIVES[op]
        mixed = [CONNECTIVES.get(operation(arg), symbol) != symbol for arg in arguments(expr)]
        texts = [condition(arg, values) for arg in arguments(expr)]
        return f" {symbol} ".join(f"({text})" if other else text for text, other in zip(texts, mixed, strict=True))
    return f"{primary(integer(expr, values))} != 0"


def end(expr: isl.AstExpr, values: Values) -> Affine:
    """The first value that a loop's condition `i <= …` or `i < …` keeps out."""
    _, bound = arguments(expr)
    further = int(operation(expr) == "le")
    if further and operation(bound) == "min":
        return _extreme("imin", [integer(arg, values) + 1 for arg in arguments(bound)])
    return integer(bound, values) + further


def comparison(left: Affine, symbol: str, right: Affine) -> str:
    """`i <= 63` is written `i < 64`, and `i <= M - 1` is `i < M`."""
    plain = all(re.fullmatch(r"\w+", name) for name in right.names)
    if symbol == "<=" and plain and (right.constant or not right.terms):
        return f"{left} < {right + 1}"
    return f"{left} {symbol} {right}"


def primary(value: Affine) -> str:
    """The text, in parentheses unless it is one name or one number that isn't negative."""
    single = len(value.terms) == 1 and value.terms[0][1] == 1 and not value.constant
    return str(value) if single or (not value.terms and value.constant >= 0) else f"({value})"


def extent(size: Affine) -> str:
    """An expression of sizes as C text that binds like a name."""
    return primary(size.substitute({name: Affine.name(c_name(name)) for name in size.names}))


def product(extents: Sequence[Affine], factor: int = 1) -> str:
    """The product of expressions of sizes and a number, as C text: `M*(N + 1)*4`.

    All numbers become one, which stands last, so C reckons in 64 bits throughout.
    """
    number = prod((size.constant for size in extents if not size.terms), start=factor)
    texts = [extent(size) for size in extents if size.terms]
    return "*".join([*texts, *[str(number)] * (number != 1 or not texts)])


def scaled(count: str, factor: int) -> str:
    """A count (C text, a product) times a number; two numbers become one, so C reckons in 64 bits throughout."""
    return str(int(count) * factor) if count.isdigit() else f"{count}*{factor}"


def room(extents: Sequence[str]) -> str:
    """The elements of an array with these extents (C texts), as C text; an extent below 0 means 0.

    What is made of sizes without a minus is never below 0.
    """
    number = prod(max(int(text), 0) for text in extents if NUMBER.fullmatch(text))
    opened = [text for text in extents if not NUMBER.fullmatch(text)]
    if not number:
        return "0"
    texts = [
        f"imax(0, {text})" if "-" in text else text if re.fullmatch(r"[\w\[\]]+", text) else f"({text})"
        for text in opened
    ]
    return "*".join([*texts, *[str(number)] * (number != 1 or not texts)])


def _extreme(function: str, values: Sequence[Affine]) -> Affine:
    """The smallest or largest of some values: `imin(imin(a, b), c)`."""
    return reduce(lambda a, b: _atom(f"{function}({a}, {b})"), values)


def _atom(text: str) -> Affine:
    """What is not affine, as a name."""
    return Affine.name(text)


def kind(node: isl.AstNode) -> str:
    """isl's name for a node: `for_`, `if_`, `block`, `mark` or `user`."""
    return str(isl.ast_node_type(node.get_type()).name)


def children(block: isl.AstNode) -> list[isl.AstNode]:
    """The nodes of a block, in order."""
    nodes = block.block_get_children()
    return [nodes.get_at(position) for position in range(nodes.n_ast_node())]


def called(node: isl.AstNode, values: Values) -> tuple[str, tuple[Affine, ...]]:
    """The statement and the iterators' values that a user node `S0(e0, e1)` stands for."""
    name, *args = arguments(node.user_get_expr())
    return name.get_id().get_name(), tuple(integer(arg, values) for arg in args)
