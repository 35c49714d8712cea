"""isl's AST expressions as integer expressions in C.

Whatever is affine in the loop variables is folded: `(0) * 512 + (c0)` becomes `c0`. What is not (a minimum, a floor)
becomes an atom, a name in the affine expression around it: `min(M, 6*i + 6) - 1`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce

import islpy as isl

from codegen.affine import Affine
from codegen.names import c_name

Op = isl.ast_expr_op_type
Values = Mapping[str, Affine]
"""What isl's names stand for in C: loop variables and, where a loop runs once, its value."""

COMPARISONS = {Op.eq: "==", Op.le: "<=", Op.lt: "<", Op.ge: ">=", Op.gt: ">"}
CONNECTIVES = {Op.and_: "&&", Op.and_then: "&&", Op.or_: "||", Op.or_else: "||"}

HELPERS = {
    "imin": "static inline int64_t imin(int64_t a, int64_t b) { return a < b ? a : b; }",
    "imax": "static inline int64_t imax(int64_t a, int64_t b) { return a > b ? a : b; }",
    "floord": "static inline int64_t floord(int64_t a, int64_t b) { return a / b - (a % b < 0); }  /* b > 0 */",
}
"""C functions that the expressions may call."""


def arguments(expr: isl.AstExpr) -> list[isl.AstExpr]:
    """The operands of an operation."""
    return [expr.get_op_arg(n) for n in range(expr.get_op_n_arg())]


def integer(expr: isl.AstExpr, values: Values) -> Affine:
    """The value of an integer expression; `values` replaces isl's names, others are sizes."""
    kind = expr.get_type()
    if kind == isl.ast_expr_type.int:
        return Affine.of(expr.get_val().to_python())
    if kind == isl.ast_expr_type.id:
        name = expr.get_id().get_name()
        return values[name] if name in values else Affine.name(c_name(name))
    return _operation(expr, values)


def _operation(expr: isl.AstExpr, values: Values) -> Affine:
    op = expr.get_op_type()
    if op in COMPARISONS or op in CONNECTIVES:
        return _atom(f"({condition(expr, values)})")
    if op in (Op.cond, Op.select):
        test, then, other = arguments(expr)
        return _atom(f"({condition(test, values)} ? {integer(then, values)} : {integer(other, values)})")
    args = [integer(arg, values) for arg in arguments(expr)]
    match op:
        case Op.add:
            return args[0] + args[1]
        case Op.sub:
            return args[0] - args[1]
        case Op.minus:
            return -args[0]
        case Op.mul if not (args[0].terms and args[1].terms):
            return args[0] * args[1]
        case Op.mul:
            return _atom(f"({primary(args[0])}*{primary(args[1])})")
        case Op.min | Op.max:
            name = "imin" if op == Op.min else "imax"
            return reduce(lambda a, b: _atom(f"{name}({a}, {b})"), args)
        case Op.fdiv_q:
            return _atom(f"floord({args[0]}, {args[1]})")
        case Op.pdiv_q | Op.div:
            return _atom(f"({primary(args[0])}/{primary(args[1])})")
        case Op.pdiv_r | Op.zdiv_r:
            return _atom(f"({primary(args[0])} % {primary(args[1])})")
    raise AssertionError(f"isl made an operation that the C printer doesn't know: {expr.to_C_str()}")


def condition(expr: isl.AstExpr, values: Values) -> str:
    """The text of a truth value; a disjunction or conjunction inside another operation is in parentheses."""
    if expr.get_type() == isl.ast_expr_type.op:
        op = expr.get_op_type()
        if op in COMPARISONS:
            left, right = arguments(expr)
            return f"{integer(left, values)} {COMPARISONS[op]} {integer(right, values)}"
        if op in CONNECTIVES:
            return f" {CONNECTIVES[op]} ".join(_operand(arg, op, values) for arg in arguments(expr))
    return f"{primary(integer(expr, values))} != 0"


def _operand(expr: isl.AstExpr, outer: isl.ast_expr_op_type, values: Values) -> str:
    text = condition(expr, values)
    nested = expr.get_type() == isl.ast_expr_type.op and CONNECTIVES.get(expr.get_op_type(), CONNECTIVES[outer])
    return f"({text})" if nested and nested != CONNECTIVES[outer] else text


def primary(value: Affine) -> str:
    """The text, in parentheses unless it is one name or one number that isn't negative."""
    single = len(value.terms) == 1 and value.terms[0][1] == 1 and not value.constant
    return str(value) if single or (not value.terms and value.constant >= 0) else f"({value})"


def extent(size: Affine) -> str:
    """An expression of sizes as C text that binds like a name."""
    return primary(size.substitute({name: Affine.name(c_name(name)) for name in size.names}))


def _atom(text: str) -> Affine:
    """What is not affine, as a name."""
    return Affine.name(text)


def called(node: isl.AstNode, values: Values) -> tuple[str, tuple[Affine, ...]]:
    """The statement and the iterators' values that a user node `S0(e0, e1)` stands for."""
    name, *args = arguments(node.user_get_expr())
    return name.get_id().get_name(), tuple(integer(arg, values) for arg in args)
