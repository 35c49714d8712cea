"""Elements of smaller types in loops over lanes: loaded and converted in front of them, as whole vectors.

                                                  u8_widened_f32x8(&img_wide.all, &img[x]);
for (lane…)                                       for (lane…)
  s.lane[lane] += w * (float)img[x + lane];  ->     s.lane[lane] += w * img_wide.lane[lane];

gcc 12 has as many elements in a vector as in one of the smallest type, and so a quarter of a vector of f32 beside u8.
"""

from __future__ import annotations

from dataclasses import dataclass

from codegen.elements import Element
from codegen.ir.expr import Cast, Load, Ternary, loads, walk
from codegen.ir.integer import Linear
from codegen.ir.loop_ir import Node
from codegen.ir.program import Assign, Program
from codegen.lanes.register_tile import is_vector
from codegen.lanes.simd import declared, placed_assign, uses
from codegen.lanes.vectors import WIDENED
from codegen.names import c_name, fresh
from codegen.scalar import StatementPrinter
from codegen.style import Line
from microkernels.dtypes import DType


@dataclass(frozen=True)
class Wide:
    """An element of each lane, of a smaller type than the variable that holds those of all lanes."""

    element: Element
    dtype: DType
    wide: DType
    name: str

    @property
    def lane(self) -> str:
        """The present lane's."""
        return f"{self.name}.lane[lane]"

    def loaded(self, lanes: int, printer: StatementPrinter) -> list[Line]:
        """Declares the variable; the elements are in terms of the lane."""
        first = Element(self.element.array, tuple(i.substitute({"lane": Linear()}) for i in self.element.indices))
        kind, names = f"{self.wide.name}x{lanes}", printer.element_names(first)
        load = f"{self.dtype.name}_{WIDENED}_{kind}(&{self.name}.all, &{printer.element(first)});"
        return [Line(f"{kind}_lanes {self.name};"), Line(load, names)]


def widened(body: Node, program: Program, size: int, taken: frozenset[str]) -> tuple[Wide, ...]:
    """What a body in terms of the lane always reads and converts to a type of a size, from neighbouring elements.

    Nothing in the body writes their arrays, or reads them as they are. What a choice reads is not always read.
    """
    kinds = {buffer.name: buffer.dtype for buffer in program.buffers}
    printer = StatementPrinter({buffer.name: buffer for buffer in program.buffers}, program.size_names)
    every = list(uses(body))
    bodies = [program.statements[use.statement].body for use in every]
    changed = {assign.target.array for assign in bodies if isinstance(assign, Assign)} | declared(body)
    found: dict[Element, set[DType | None]] = {}
    for use in every:
        statement = program.statements[use.statement]
        if not isinstance(statement.body, Assign):
            continue
        expr = placed_assign(use, statement.body, program).expr
        converted = (node for node in walk(expr) if isinstance(node, Cast))
        casts = [(printer.at(n.operand), n.dtype) for n in converted if isinstance(n.operand, Load)]
        read = list(map(printer.at, loads(expr)))
        chooses = any(isinstance(node, Ternary) for node in walk(expr))
        always = not (use.nested or use.conditional or statement.where is not None or chooses)
        for element, dtype in casts:
            found.setdefault(element, set()).add(dtype if always else None)
        for element in read:
            plain = read.count(element) > sum(one == element for one, _ in casts)
            found.setdefault(element, set()).update([None] * plain)
    made: list[Wide] = []
    for element, into in found.items():
        source, wide = kinds[element.array], next(iter(into)) if len(into) == 1 else None
        if wide is None or element.array in changed or not is_vector(element, printer):
            continue
        if not source.is_stored and source.size < wide.size == size:
            name = fresh(f"{c_name(element.array)}_wide", taken.union(one.name for one in made))
            made.append(Wide(element, source, wide, name))
    return tuple(made)
