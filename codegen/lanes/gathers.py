"""Elements looked up by data, or with gaps between them, in loops over lanes: loaded one by one in front of them.

                                                      const f64x8_lanes x_each = {{x[c[j]], x[c[j + 1]], …}};
for (lane…)                                           for (lane…)
  s.lane[lane] += a[j + lane] * x[c[j + lane]];  ->     s.lane[lane] += a[j + lane] * x_each.lane[lane];

gcc 12 has as many elements in a vector as in one of the smallest type, so half a vector of f64 beside indices of i32,
stores the halves, and waits until it can load the whole. Behind a mask, it takes one lane at a time through memory.
Of every fourth element it adds up one at a time in memory.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from codegen.elements import Element
from codegen.ir.expr import loads, looked_up
from codegen.ir.integer import Int, Linear
from codegen.ir.loop_ir import Node
from codegen.ir.program import Assign, Program
from codegen.lanes.simd import Use, declared, printer_of, uses
from codegen.lanes.vector_calls import Whole
from codegen.lanes.words import elements_apart
from codegen.names import c_name, fresh
from codegen.scalar import StatementPrinter
from microkernels.dtypes import DType


@dataclass(frozen=True)
class Gathered:
    """An element that each lane has of its own, and the variable that holds those of all lanes."""

    element: Element
    dtype: DType
    name: str

    @property
    def lane(self) -> str:
        """The present lane's."""
        return f"{self.name}.lane[lane]"

    def loaded(self, lanes: int, printer: StatementPrinter) -> Whole:
        """Declares the variable, in terms of a loop's variable plus the lane."""
        every = (self._at(lane) for lane in range(lanes))
        texts = ", ".join(map(printer.element, every))
        names = printer.element_names(self._at(0))
        return Whole(f"const {self.dtype.name}x{lanes}_lanes {self.name} = {{{{{texts}}}}};", names)

    def _at(self, lane: int) -> Element:
        values: dict[str, Int] = {"lane": Linear.of(lane)}
        return Element(self.element.array, tuple(index.substitute(values) for index in self.element.indices))


def gathered(
    body: Node, program: Program, variable: str, dtypes: Sequence[DType], taken: frozenset[str]
) -> tuple[Gathered, ...]:
    """The elements of some types that every iteration of a loop looks up or passes others for, and none writes."""
    every = list(uses(body))
    bodies = [program.statements[use.statement].body for use in every]
    written = {assign.target.array for assign in bodies if isinstance(assign, Assign)} | declared(body)
    kinds = {buffer.name: buffer.dtype for buffer in program.buffers}
    read = _read(every, program)
    found: dict[Element, Gathered] = {}
    for use in every:
        statement = program.statements[use.statement]
        if not isinstance(statement.body, Assign) or use.nested or use.conditional or statement.where is not None:
            continue
        for load in loads(statement.body.expr):
            printer = printer_of(use, program)
            looked, element = looked_up(load), printer.at(load)
            own = variable in element.names and written.isdisjoint(one.array for one in (load, *looked))
            apart = bool(looked) or read[load.array] < abs(elements_apart(element, printer, variable) or 0)
            if apart and own and kinds[load.array] in dtypes and element not in found:
                names = taken.union(one.name for one in found.values())
                found[element] = Gathered(element, kinds[load.array], fresh(f"{c_name(load.array)}_each", names))
    return tuple(found.values())


def _read(every: Sequence[Use], program: Program) -> Counter[str]:
    """How many elements of each array an iteration reads: whole vectors are loaded of what has no gaps."""
    assigns = ((use, program.statements[use.statement].body) for use in every)
    found = {
        printer_of(use, program).at(load)
        for use, assign in assigns
        if isinstance(assign, Assign)
        for load in loads(assign.expr)
    }
    return Counter(element.array for element in found)
