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
dividend is below 2^-100 (f32) or 2^-960 (f64) in size, the rest is a subnormal number and may be rounded: the quotient
is within one subnormal unit. Divisors are from 1 to 2^60 in size, so that nothing overflows. Only what instructions
fuse is exact: an instruction set without these has no such loops, and neither has a nest with `reassociate=False`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import cgen

from codegen import style
from codegen.expr import Binary, Load
from codegen.expr import walk as expressions
from codegen.loop_ir import For
from codegen.names import c_name, fresh
from codegen.program import Assign, Program
from codegen.scalar import Element, StatementPrinter, literal
from codegen.simd import declared, printer_of, uses
from codegen.style import Line, block
from microkernels.dtypes import f32, f64

FUSES = "-mfma"
"""The flag of the instruction sets for which this is done: x86 with fused operations."""
WORTH = 4
"""The least vectors of a loop that divides in this way: the reciprocal takes as long as a division."""


def divisors(loop: For, program: Program) -> tuple[Element, ...]:
    """The elements by which a vector loop divides, and which stay the same in it."""
    least, most = WORTH * program.isa.lanes(f32), loop.most_span
    if not program.fused or FUSES not in program.isa.flags or (most is not None and most < least):
        return ()
    found: dict[Element, None] = {}
    dtypes = {buffer.name: buffer.dtype for buffer in program.buffers}
    written = set(declared(loop.body))
    for use in uses(loop.body):
        assign = program.statements[use.statement].body
        if not isinstance(assign, Assign):
            return ()
        written.add(assign.target.array)
        if use.nested or use.conditional or program.statements[use.statement].where is not None:
            continue
        printer = printer_of(use, program)
        for node in expressions(assign.expr):
            if isinstance(node, Binary) and node.op == "/" and isinstance(node.right, Load):
                found[printer.at(node.right)] = None
    return tuple(
        element
        for element in found
        if loop.variable not in element.names and element.array not in written and dtypes[element.array] in (f32, f64)
    )


@dataclass(frozen=True)
class Reciprocals:
    """Lines that declare divisors and their reciprocals, the variables of each element, and the test of their sizes."""

    lines: tuple[Line, ...]
    names: Mapping[Element, tuple[str, str]]
    test: str

    @staticmethod
    def of(elements: Sequence[Element], printer: StatementPrinter, taken: frozenset[str]) -> Reciprocals:
        lines: list[Line] = []
        names: dict[Element, tuple[str, str]] = {}
        tests: list[str] = []
        for element in elements:
            dtype, root = printer.buffers[element.array].dtype, c_name(element.array)
            value = fresh(f"{root}_divisor", taken)
            over = fresh(f"{root}_over", taken | {value})
            taken |= {value, over}
            memory = printer.held.get(element) or printer.element(element)
            text = f"const {dtype.c_name} {value} = {memory}, {over} = {literal(1, dtype).text} / {value};"
            lines.append(Line(text, printer.element_names(element)))
            names[element] = value, over
            tests.append(f"is_divisor_{dtype.name}({value})")
        return Reciprocals(tuple(lines), names, " && ".join(tests))

    @property
    def variables(self) -> frozenset[str]:
        return frozenset(name for pair in self.names.values() for name in pair)

    def chosen(self, multiplies: list[cgen.Generable], divides: list[cgen.Generable]) -> style.Braces:
        """One of two forms of a loop, by the divisors' sizes."""
        return block([*self.lines, style.IfStatement(Line(self.test), block(multiplies), block(divides))])
