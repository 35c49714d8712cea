"""Begins a vector loop where whole vectors of what it writes lie in whole lines, or else of what it reads.

                                        const int64_t i_whole = a + (int64_t)((64 - (uintptr_t)&y[a] % 64) % 64 / 8);
for (i = a; i < b; i += 1)              for (i = a; i < i_whole; i += 1)
  y[i] = …;                     ->        y[i] = …;
                                        for (i = i_whole; i < b; i += 1)  // vectors
                                          y[i] = …;

Up to there, no vectors are used, or a masked one if the loop reduces. NumPy's arrays start 16 bytes behind a line.
Where vectors are as long as lines, each then lies in two of them, which takes twice as long to read and longer to
write. Arrays that start alike are all read and written in whole lines then.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from codegen.elements import Element, strides
from codegen.ir.expr import FunctionCall, Load, loads, walk
from codegen.ir.integer import Compare, Linear, primary
from codegen.ir.loop_ir import For, Node
from codegen.ir.program import Assign, Program
from codegen.lanes.simd import printer_of, uses
from codegen.names import fresh
from codegen.scalar import StatementPrinter
from codegen.style import Line

MANY = 8
"""The least number of vectors in a loop that writes and begins so: iterations before take as long as a few of them.

On average half as many come before as a vector has lanes, each of which takes about as long as a vector, and a vector
in one line takes half as long as one in two.
"""

FAR = 1536
"""The least bytes that a loop reads which only reads and begins so: for each line of fewer, half a cycle is no gain."""

NEAR = (1, 2)
"""The elements from one iteration's to the next one's: those between are written, too, such as imaginary parts."""

SHORT = 16
"""Bytes: NumPy aligns arrays for vectors of this length."""


@dataclass(frozen=True)
class Start:
    """Where a vector loop starts in an argument: an element, and the bytes from it to the next iteration's.

    Loops of fewer than `few` iterations take no longer if their vectors lie across lines.
    """

    element: Element
    bytes: int
    few: int


def start(body: Node, program: Program, loop: str) -> Start | None:
    """The first element that moves by one or two with a loop and is written, or else read; None if there is none."""
    written: dict[Element, int] = {}
    read: dict[Element, int] = {}
    for use in uses(body):
        assign = program.statements[use.statement].body
        if isinstance(assign, Assign) and not use.nested:
            printer = printer_of(use, program)
            written |= _moving(printer, [assign.target], loop)
            read |= _moving(printer, loads(assign.expr), loop)
    element, size = next(iter((written or read).items()), (None, 0))
    if element is None:
        return None
    lanes = program.isa.vector_bytes // size
    few = max(MANY, lanes) * lanes if written else FAR // sum(read.values())
    return Start(element, size, few)


def _moving(printer: StatementPrinter, accessed: Iterable[Load], loop: str) -> dict[Element, int]:
    """The elements of arguments that move by one or two with a loop, and the bytes by which they do."""
    found: dict[Element, int] = {}
    for element in map(printer.at, accessed):
        buffer = printer.buffers[element.array]
        steps = zip(element.indices, strides(buffer), strict=True)
        apart = sum((stride * index.coefficient(loop) for index, stride in steps), Linear()).number
        if apart in NEAR and buffer.kind != "local":
            found[element] = apart * buffer.dtype.size
    return found


def calls(body: Node, program: Program) -> bool:
    """Whether a body calls functions: they take longer than its accesses, and compilers may inline them only once."""
    assigns = (program.statements[use.statement].body for use in uses(body))
    every = (node for assign in assigns if isinstance(assign, Assign) for node in walk(assign.expr))
    return any(isinstance(node, FunctionCall) for node in every)


def cut(loop: For, program: Program, printer: StatementPrinter, taken: frozenset[str]) -> tuple[Line, For, For] | None:
    """The line that says where whole vectors begin, the loop up to there, and the loop from there on.

    None if the loop has few iterations, or vectors are short.
    """
    found, bytes = start(loop.body, program, loop.variable), program.isa.vector_bytes
    if found is None or loop.end is None or loop.step != 1 or bytes <= SHORT or calls(loop.body, program):
        return None
    most, place = loop.most_span, found.element
    if most is not None and most < found.few:
        return None
    first = fresh(f"{loop.variable}_whole", taken | {loop.variable})
    begin = Element(place.array, tuple(index.substitute({loop.variable: loop.start}) for index in place.indices))
    lacking = f"(int64_t)(({bytes} - (uintptr_t)&{printer.element(begin)} % {bytes}) % {bytes} / {found.bytes})"
    text = f"{primary(loop.start)} + {lacking}" if loop.start != Linear() else lacking
    if loop.span is None:
        text = f"({Compare(loop.end - loop.start, '<', Linear.of(found.few))}) ? {loop.start} : {text}"
    line = Line(f"const int64_t {first} = {text};", printer.element_names(begin) | loop.end.names | loop.start.names)
    before = For(loop.variable, loop.start, Compare(Linear.name(loop.variable), "<", Linear.name(first)), 1, loop.body)
    after = For(loop.variable, Linear.name(first), loop.test, 1, loop.body, loop.mark)
    return line, before, after
