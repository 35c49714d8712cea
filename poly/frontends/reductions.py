"""Recognition of reductions: updates that may run in any order, as opposed to plain assignments."""

from __future__ import annotations

from codegen.expr import Binary, Expr, FunctionCall, Load, Unary, loads
from poly.ir.nest import Op


def as_reduction(place: Load, expr: Expr) -> tuple[Op, Expr]:
    """The operator and operand of `place = expr`.

        x = x + e        ->    x += e      (and x = e + x; likewise for *)
        x = x - e        ->    x += -e
        x = max(x, e)    ->    x max= e    (and min; not max(e, x), which differs in Python if x is NaN)

    Anything else stays `=`, as does an update whose operand reads the updated element.
    """
    op: Op
    update: Expr
    operand: Expr
    match expr:
        case Binary("+", left, right) if right == place:
            op, update, operand = "+", right, left
        case Binary("*", left, right) if right == place:
            op, update, operand = "*", right, left
        case Binary("+", update, operand):
            op = "+"
        case Binary("*", update, operand):
            op = "*"
        case Binary("-", update, right):
            op, operand = "+", Unary("-", right)
        case FunctionCall("max", (update, operand)):
            op = "max"
        case FunctionCall("min", (update, operand)):
            op = "min"
        case _:
            return "=", expr
    return (op, operand) if update == place and place not in loads(operand) else ("=", expr)
