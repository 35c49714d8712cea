"""Vector loops that divide by what stays the same in them multiply by its reciprocal, and correct the product.

                                        const float s_value = s, s_over = 1.0f / s_value;
for (j…)                                if (is_divisor_f32(s_value))
  y[j] = y[j] / s;               ->       for (j…) y[j] = quotient_f32(y[j], s_value, s_over);
                                        else
                                          for (j…) y[j] = y[j] / s;

A division of vectors takes about as long as ten other operations. `quotient` needs six: a product q = a*over, what is
left, a - q*b, which is exact, and its part of the quotient, q + rest*over; and this once more. The first correction
leaves one of the two numbers next to the quotient, and from such a one the second finds the nearest (Markstein,
"Computation of elementary functions on the IBM RISC System/6000 processor", 1990): the bits are a division's. Where a
dividend is below 2^-100 (f32) or 2^-960 (f64) in size, the rest is a subnormal number and may be rounded: the result is
the quotient or next to it. Divisors are from 1 to 2^60 in size, so that nothing overflows. Only what instructions fuse
is exact: an instruction set without these has no such loops, and neither has a nest with `reassociate=False`.
The reciprocals of numbers are numbers, too; divisions by these run beside other operations unless there are many.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import cgen

from codegen import style
from codegen.elements import Element
from codegen.ir.expr import Binary, Const, Expr, FunctionCall, Load, accessed
from codegen.ir.expr import walk as expressions
from codegen.ir.loop_ir import For, Node
from codegen.ir.program import Assign, Program
from codegen.lanes.simd import declared, printer_of, uses
from codegen.names import c_name, fresh
from codegen.scalar import StatementPrinter
from codegen.style import Line, block
from codegen.typed_text import literal
from microkernels.dtypes import DType, f32, f64

FUSES = "-mfma"
"""The flag of the instruction sets for which this is done: x86 with fused operations."""
WORTH = 4
"""The least vectors of a loop that divides in this way: the reciprocal takes as long as a division."""


DIVISION = 10
"""The other operations of vectors that take as long as a division or a root, which run beside them."""


@dataclass(frozen=True)
class Divisor:
    """What vectors are divided by, as C text with the names in it, and the start of its variables' names."""

    dtype: DType
    text: str
    names: frozenset[str]
    root: str


def multiplies(program: Program) -> bool:
    """Whether vectors are multiplied by reciprocals."""
    return program.fused and FUSES in program.isa.flags


def divides_mostly(body: Node, program: Program) -> bool:
    """Whether a loop waits for its divisions and roots, so that those by numbers are worth more operations."""
    divisions = others = 0
    for use in uses(body):
        assign = program.statements[use.statement].body
        if use.nested or not isinstance(assign, Assign):
            return False
        for node in expressions(assign.expr):
            quotient = isinstance(node, Binary) and node.op == "/"
            slow = quotient or (isinstance(node, FunctionCall) and node.function == "sqrt")
            divisions += slow
            others += not slow and not isinstance(node, Const)
    return others <= DIVISION * divisions


def divisors(loop: For, program: Program, held: Mapping[Element, str]) -> tuple[Divisor, ...]:
    """What a vector loop divides by, and what stays the same in it, with names for some elements."""
    least, most = WORTH * program.isa.lanes(f32), loop.most_span
    if not multiplies(program) or (most is not None and most < least):
        return ()
    found: dict[str, tuple[Divisor, frozenset[str]]] = {}
    written = set(declared(loop.body))
    for use in uses(loop.body):
        assign = program.statements[use.statement].body
        if not isinstance(assign, Assign):
            return ()
        written.add(assign.target.array)
        if use.nested or use.conditional or program.statements[use.statement].where is not None:
            continue
        printer = replace(printer_of(use, program), held=held)
        for node in expressions(assign.expr):
            if not isinstance(node, Binary) or node.op != "/" or loop.variable in printer.names_of(node.right):
                continue
            dtype = printer.type_of(node.right)
            if dtype in (f32, f64):
                made = _divisor(node.right, dtype, printer)
                found[made.text] = made, frozenset(load.array for load in accessed(node.right))
    return tuple(made for made, arrays in found.values() if arrays.isdisjoint(written))


def _divisor(expr: Expr, dtype: DType, printer: StatementPrinter) -> Divisor:
    root = f"{c_name(expr.array)}_" if isinstance(expr, Load) else ""
    return Divisor(dtype, printer.value(expr, dtype), printer.names_of(expr), root)


@dataclass(frozen=True)
class Reciprocals:
    """Lines that declare divisors and their reciprocals, the variables of each by its text, and the test of their
    sizes."""

    lines: tuple[Line, ...]
    names: Mapping[str, tuple[str, str]]
    test: str

    @staticmethod
    def of(found: Sequence[Divisor], taken: frozenset[str]) -> Reciprocals:
        lines: list[Line] = []
        names: dict[str, tuple[str, str]] = {}
        tests: list[str] = []
        for one in found:
            value = fresh(f"{one.root}divisor", taken)
            over = fresh(f"{one.root}over", taken | {value})
            taken |= {value, over}
            text = f"const {one.dtype.c_name} {value} = {one.text}, {over} = {literal(1, one.dtype).text} / {value};"
            lines.append(Line(text, one.names))
            names[one.text] = value, over
            tests.append(f"is_divisor_{one.dtype.name}({value})")
        return Reciprocals(tuple(lines), names, " && ".join(tests))

    @property
    def variables(self) -> frozenset[str]:
        return frozenset(name for pair in self.names.values() for name in pair)

    def chosen(self, multiplies: list[cgen.Generable], divides: list[cgen.Generable]) -> style.Braces:
        """One of two forms of a loop, by the divisors' sizes."""
        return block([*self.lines, style.IfStatement(Line(self.test), block(multiplies), block(divides))])
