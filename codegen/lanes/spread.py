"""Loops in vector lanes that write every second or fourth element: whole vectors, stored under a mask.

                                       for (i_first…) {                  // a vector at a time
                                         double a_spread[16];
for (i…)  // vectorize                   for (i…) {
  a[2*i] = f(i);                 ->        double a_value = f(i);
                                           a_spread[2*(i - i_first)] = a_value; a_spread[2*(i - i_first) + 1] = a_value;
                                         }
                                         for (at…)  if (!(at & 1))  a[2*i_first + at] = a_spread[at];
                                       }
                                       for (i…)  a[2*i] = f(i);          // what is left

Compilers would store the lanes of such a vector one after the other. They keep `a_spread` in registers.
"""

from __future__ import annotations

from dataclasses import dataclass

import cgen

from codegen import style
from codegen.elements import Element
from codegen.ir.expr import loads
from codegen.ir.integer import Compare, Int, Linear, floor_quotient, maximum
from codegen.ir.loop_ir import Block, For, Node, Run
from codegen.ir.program import APART, Assign, Program
from codegen.lanes.simd import Use, printer_of
from codegen.macros import EACH_LANE
from codegen.names import all_fresh, c_name
from codegen.style import Line, around

FEW = 16
"""Loops with fewer iterations store their elements one by one: these are two vectors of f64."""


@dataclass(frozen=True)
class Spread:
    """What a loop writes `apart` elements from each other, and a vector's first one; `read` if it reads it, too."""

    element: Element
    apart: int
    lanes: int
    text: str
    first: str
    names: frozenset[str]
    kind: str
    read: bool


def spread_names(loop: For, program: Program, taken: frozenset[str]) -> tuple[Spread, SpreadNames] | None:
    """What a loop of one assignment writes; None if it writes neighbours, or the elements are too far apart."""
    run = _only(loop.body)
    statement = None if run is None else program.statements[run.statement]
    if run is None or statement is None or not isinstance(statement.body, Assign) or statement.where is not None:
        return None
    short = loop.span is not None and loop.span < FEW
    if loop.step != 1 or short or not program.isa.has_masked_stores:
        return None
    printer, body = printer_of(Use(run.statement, run.values), program), statement.body
    element = printer.at(body.target)
    buffer = printer.buffers[element.array]
    if not element.indices or buffer.dtype.is_stored or buffer.dtype.size < 4:
        return None
    apart = element.indices[-1].coefficient(loop.variable)
    inside = element.indices[-1] - Linear.name(loop.variable) * apart
    if apart not in APART or any(loop.variable in index.names for index in (*element.indices[:-1], inside)):
        return None
    names = SpreadNames.of(loop, element.array, taken)
    start = Element(
        element.array, tuple(i.substitute({loop.variable: Linear.name(names.first)}) for i in element.indices)
    )
    read = body.op != "=" or element in map(printer.at, loads(body.expr))
    own = printer.element_names(element) | printer.element_names(start)
    texts = printer.element(element), printer.element(start)
    return Spread(element, apart, program.isa.lanes(buffer.dtype), *texts, own, buffer.dtype.c_name, read), names


def _only(body: Node) -> Run | None:
    match body:
        case Run():
            return body
        case Block((one,)):
            return _only(one)
    return None


@dataclass(frozen=True)
class SpreadNames:
    """The names of variables in a loop's text: an iteration's value, a vector's values and start, and a place in it."""

    value: str
    spread: str
    first: str
    at: str

    @property
    def every(self) -> frozenset[str]:
        return frozenset((self.value, self.spread, self.first, self.at))

    @staticmethod
    def of(loop: For, element: str, taken: frozenset[str]) -> SpreadNames:
        root, variable = c_name(element), loop.variable
        wanted = (f"{root}_value", f"{root}_spread", f"{variable}_first", "at")
        return SpreadNames(*all_fresh(wanted, taken | {variable}))


def in_vectors(
    loop: For, end: Int, found: Spread, names: SpreadNames, body: list[cgen.Generable], plain: list[cgen.Generable]
) -> list[cgen.Generable]:
    """The loop in vectors; `body` gives `names.value` its value in an iteration, `plain` runs those that are left."""
    first, apart, lanes = Linear.name(names.first), found.apart, found.lanes
    before = f" = {found.text}" if found.read else ""
    value = Line(f"{found.kind} {names.value}{before};", found.names)
    place = f"{names.spread}[{apart}*({loop.variable} - {names.first})"
    copies = [Line(f"{place}{f' + {at}' if at else ''}] = {names.value};") for at in range(apart)]
    store = Line(f"(&{found.first})[{names.at}] = {names.spread}[{names.at}];", found.names)
    stores: list[cgen.Generable] = [style.IfStatement(Line(f"!({names.at} & {apart - 1})"), style.Braces([store]))]
    lines: list[cgen.Generable] = [
        Line(f"{found.kind} {names.spread}[{apart * lanes}];"),
        Line(EACH_LANE),
        around(For.counted(loop.variable, first + lanes, loop.body, first), [value, *body, *copies]),
        Line(EACH_LANE),
        around(For.counted(names.at, Linear.of(apart * lanes), loop.body), stores),
    ]
    whole = For(names.first, loop.start, Compare(first + (lanes - 1), "<", end), lanes, loop.body)
    rest = maximum(loop.start, loop.start + floor_quotient(end - loop.start, lanes) * lanes)
    left = [around(For.counted(loop.variable, end, loop.body, rest), plain)] if rest != end else []
    return [around(whole, lines), *left]
