"""Updates that may be done in any order, told apart from plain assignments."""

from __future__ import annotations

from codegen.expr import Binary, Call, Expr, Load, Unary, loads
from poly.nest import Op


def as_reduction(place: Load, expr: Expr) -> tuple[Op, Expr]:
    """The operator and operand of `place = expr`.

        x = x + e        ->    x += e      (and x = e + x; so for *)
        x = x - e        ->    x += -e
        x = max(x, e)    ->    x max= e    (and min; not max(e, x), which Python answers otherwise where x is NaN)

    Anything else stays `=`; so does an update whose operand reads the place itself.
    """
    match expr:
        case Binary("+" | "*", left, right) if right == place and left != place:
            update, operand = right, left
        case Binary("+" | "-" | "*", left, right) | Call("min" | "max", (left, right)):
            update, operand = left, right
        case _:
            return "=", expr
    if update != place or place in loads(operand):
        return "=", expr
    return _reduction(expr, operand)


def _reduction(expr: Binary | Call, operand: Expr) -> tuple[Op, Expr]:
    match expr:
        case Binary("+"):
            return "+", operand
        case Binary("-"):
            return "+", Unary("-", operand)
        case Call("max"):
            return "max", operand
        case Call("min"):
            return "min", operand
    return "*", operand
