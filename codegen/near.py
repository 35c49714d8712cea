"""Which of a loop's iterations take sin, cos or tan of far numbers: those of near ones run in vectors.

                                              for (i_first…)  // a chunk at a time
                                                for (i…) far |= far_f32(x[i]);
for (i…)  // vectorize                          if (far)
  y[i] = sin(x[i]);                    ->         for (i…) y[i] = sin_f32(x[i]);  // C's
                                                else
                                                  for (i…) y[i] = near_sin_f32(x[i]);  // in vectors
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import cgen

from codegen import powers, style
from codegen.expr import PERIODIC, Cast, Expr, FunctionCall, Load, loads, map_loads, walk
from codegen.integer import Int, Linear, minimum, replaced
from codegen.loop_ir import For, Node
from codegen.macros import EACH_VECTOR
from codegen.names import all_fresh
from codegen.program import Assign, Program
from codegen.promotion import Weak
from codegen.scalar import StatementPrinter
from codegen.simd import declared, placed_assign, printer_of, uses
from codegen.style import Line, around, block
from microkernels.dtypes import DType, f32, f64

CHUNK = 1024
"""The iterations whose arguments are looked at together: they stay in L1."""


@dataclass(frozen=True)
class Angle:
    """C text of what a function takes, its type, and the names in the text."""

    text: str
    dtype: DType
    names: frozenset[str]


def angles(body: Node, program: Program) -> tuple[Angle, ...]:
    """What sin, cos and tan take in an iteration of a loop, known before it runs; none if some of it is not known then.

    It is unknown in a loop inside or below a condition, and if it depends on elements that the iteration writes before.
    Scalars that only the iteration has are replaced by the expressions that they are assigned.
    """
    found: list[Angle] = []
    own, written = declared(body), set[str]()
    known: dict[Load, Expr] = {}
    for use in uses(body):
        assign = program.statements[use.statement].body
        if not isinstance(assign, Assign):
            return ()
        printer = printer_of(use, program)
        assign = placed_assign(use, assign, program)
        expr = map_loads(assign.expr, lambda load: known.get(load, load))
        taken = list(_taken(expr, printer))
        depends = any(load.array in written for arg, _ in taken for load in loads(arg))
        apart = use.nested or use.conditional or program.statements[use.statement].where is not None
        if taken and (apart or depends):
            return ()
        found += (Angle(printer.value(arg, dtype), dtype, printer.names_of(arg)) for arg, dtype in taken)
        written.add(assign.target.array)
        if assign.op == "=" and assign.target.array in own and not apart:
            known[assign.target] = Cast(printer.buffers[assign.target.array].dtype, expr)
        else:
            known.pop(assign.target, None)
    return tuple(dict.fromkeys(found))


def calls_library(body: Node, program: Program, near: bool) -> bool:
    """Whether iterations call C's functions, for which compilers have no vectors; if `near`, not sin, cos and tan."""
    by_library = {"pow"} if powers.functions(program.isa) is powers.OF_LIBRARY else frozenset[str]()
    scalar = by_library if near else by_library | PERIODIC
    assigns = [program.statements[use.statement].body for use in uses(body)]
    exprs = [walk(assign.expr) for assign in assigns if isinstance(assign, Assign)]
    return any(isinstance(node, FunctionCall) and node.function in scalar for expr in exprs for node in expr)


def _taken(expr: Expr, printer: StatementPrinter) -> Iterator[tuple[Expr, DType]]:
    """The arguments of sin, cos and tan, and the types in which they are computed."""
    for node in walk(expr):
        if isinstance(node, FunctionCall) and node.function in PERIODIC:
            own = printer.type_of(node)
            yield node.args[0], f64 if isinstance(own, Weak) else f32 if own.is_stored else own


Printed = Callable[[For, frozenset[str]], list[cgen.Generable]]
"""The C of a loop, where some more names are in use."""


def chunked(
    loop: For, end: Int, found: tuple[Angle, ...], taken: frozenset[str], near: Printed, far: Printed
) -> cgen.Generable:
    """The loop in chunks, each `near` or `far` as a whole."""
    names = all_fresh((f"{loop.variable}_first", f"{loop.variable}_past", "is_far"), taken)
    first, past, is_far = names
    taken |= frozenset(names)
    part = replace(For.counted(loop.variable, Linear.name(past), loop.body, Linear.name(first)), mark=loop.mark)
    until = minimum(end, Linear.name(first) + CHUNK)
    tests: list[cgen.Generable] = [Line(f"{is_far} |= far_{one.dtype.name}({one.text});", one.names) for one in found]
    body = [
        Line(f"const int64_t {past} = {until};", until.names),
        Line(f"int {is_far} = 0;"),
        Line(EACH_VECTOR),
        around(part, tests),
        style.IfStatement(Line(is_far), block(far(part, taken)), block(near(part, taken))),
    ]
    whole = replace(loop, variable=first, test=replaced(loop.test, {loop.variable: Linear.name(first)}), step=CHUNK)
    return around(whole, body)
