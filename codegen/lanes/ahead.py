"""Elements that an iteration reads and a later one writes: a vector of iterations reads them before it writes anything.

for (i…) {                            for (i…) {
  a[i] = b[i] * c[i];                   const double a_value = a[i + 1];
  b[i] = a[i] * a[i + 1];      ->       a[i] = b[i] * c[i];
}                                       b[i] = a[i] * a_value;
                                      }

(Kuck, Kuhn, Padua, Leasure, Wolfe, "Dependence graphs and compiler optimizations", POPL 1981: node splitting.)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from codegen.elements import Element
from codegen.ir.expr import Load, loads
from codegen.ir.loop_ir import Node
from codegen.ir.program import Assign, Program
from codegen.lanes.simd import is_apart, printer_of, reductions, uses

Place = Element | Load


def is_ahead(read: Place, written: Place, loop: str) -> bool:
    """Whether the element that is read is the one that is written a fixed number of iterations of a loop later."""
    if read.array != written.array:
        return False
    steps = set[int]()
    for one, other in zip(read.indices, written.indices, strict=True):
        apart, along = (one - other).number, other.coefficient(loop)
        if apart is None or (apart % along if along else apart or loop in other.names):
            return False
        if along:
            steps.add(apart // along)
    return len(steps) == 1 and steps.pop() > 0


def read_ahead(body: Node, program: Program, loop: str) -> tuple[Element, ...]:
    """The elements that an iteration of a loop with this body reads and a later one writes."""
    read, written = _elements(body, program)
    return tuple(one for one in read if any(is_ahead(one, other, loop) for other in written))


def may_read_first(ahead: Sequence[Element], body: Node, program: Program, loop: str) -> bool:
    """Whether each iteration may read these elements at its start, with nothing else between it and vector lanes."""
    every = list(uses(body))
    if any(use.nested or use.conditional or program.statements[use.statement].where for use in every):
        return False
    types = {buffer.name: buffer.dtype for buffer in program.buffers}
    written = _elements(body, program)[1]
    alone = all(is_apart(one, other) for one in ahead for other in written)
    return alone and reductions(body, program, loop) == () and not any(types[one.array].is_stored for one in ahead)


def _elements(body: Node, program: Program) -> tuple[Iterable[Element], Sequence[Element]]:
    """The elements that a body reads and those that it writes."""
    read, written = dict[Element, None](), list[Element]()
    for use in uses(body):
        assign = program.statements[use.statement].body
        if isinstance(assign, Assign):
            printer = printer_of(use, program)
            written.append(printer.at(assign.target))
            read |= dict.fromkeys(map(printer.at, loads(assign.expr)))
    return read, written
