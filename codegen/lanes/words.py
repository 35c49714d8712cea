"""Small elements that an iteration writes side by side are stored as one word.

o[4*i] = g[i]; o[4*i + 1] = g[i];              const uint32_t word = (uint32_t)g[i] | (uint32_t)g[i] << 8 | …;
o[4*i + 2] = g[i]; o[4*i + 3] = 255;    ->     __builtin_memcpy(&o[4*i], &word, sizeof word);

gcc 12 gives no lanes to a loop of such stores with a number or a value that is stored twice among them. Other values it
interleaves as vectors, faster than words; so do compilers where what is read lies side by side, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from codegen.elements import Element, strides
from codegen.ir.expr import Const, Expr, accessed
from codegen.ir.integer import Linear
from codegen.ir.loop_ir import Node, Run
from codegen.ir.program import Assign, Program
from codegen.lanes.simd import Use, placed_assign, printer_of
from codegen.scalar import StatementPrinter

WORDS = (4, 8)
"""The bytes of words."""


@dataclass(frozen=True)
class Word:
    """Statements that write all elements of a word, the first one first."""

    runs: tuple[Run, ...]
    elements: tuple[Element, ...]
    size: int

    @property
    def kind(self) -> str:
        """The type of the word."""
        return f"uint{8 * self.size}_t"


def word(nodes: Sequence[Node], program: Program, variable: str) -> Word | None:
    """The word that the iterations of a loop over `variable` write; None if the nodes do anything else.

    None as well if bytes may lie in memory in another order than in registers.
    """
    runs = [node for node in nodes if isinstance(node, Run)]
    if len(runs) < len(nodes) or len(runs) < 2 or not program.isa.machine:
        return None
    placed: list[tuple[int, Run]] = []
    starts: set[Element] = set()
    values: set[Expr] = set()
    for run in runs:
        statement = program.statements[run.statement]
        body = statement.body
        if not isinstance(body, Assign) or body.op != "=" or statement.where is not None or not body.target.indices:
            return None
        printer = printer_of(Use(run.statement, run.values), program)
        target = printer.at(body.target)
        *outer, last = target.indices
        starts.add(Element(target.array, (*outer, last - last.constant)))
        placed.append((last.constant, run))
        if not isinstance(body.expr, Const):
            values.add(placed_assign(Use(run.statement, run.values), body, program).expr)
        read = [printer.at(load) for load in accessed(body.expr)]
        if any(one.array == target.array or elements_apart(one, printer, variable) not in (0, 1) for one in read):
            return None
    [first, *others] = starts
    buffer = next(buffer for buffer in program.buffers if buffer.name == first.array)
    size, (least, _) = len(runs) * buffer.dtype.size, min(placed, key=lambda one: one[0])
    in_order = sorted(at - least for at, _ in placed) == list(range(len(runs)))
    dense = not buffer.dtype.is_float and buffer.kind != "local" and strides(buffer)[-1].number == 1
    if others or not in_order or not dense or size not in WORDS or len(values) == len(runs):
        return None
    *outer, last = first.indices
    elements = tuple(Element(first.array, (*outer, last + least + number)) for number in range(len(runs)))
    return Word(tuple(run for _, run in sorted(placed, key=lambda one: one[0])), elements, size)


def elements_apart(element: Element, printer: StatementPrinter, variable: str) -> int | None:
    """The elements from one iteration's to the next one's; None if that isn't known."""
    steps = zip(element.indices, strides(printer.buffers[element.array]), strict=True)
    return sum((stride * index.coefficient(variable) for index, stride in steps), Linear()).number
