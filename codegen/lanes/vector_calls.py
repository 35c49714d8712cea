"""Calls of functions of whole vectors in loops over lanes, which are parted there.

for (lane…)                                            for (lane…) exp_lanes.lane[lane] = -x[i + lane];
  y[i + lane] = 1 + exp_f32(-x[i + lane]);     ->      exp_lanes.all = exp_each_f32x16(exp_lanes.all);
                                                       for (lane…) y[i + lane] = 1 + exp_lanes.lane[lane];

See `codegen.elementary.vector_functions`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import groupby

import cgen

from codegen import style
from codegen.elementary import vector_functions
from codegen.elements import Element, strides
from codegen.ir.expr import Expr, FunctionCall, Load, Logic, Predicate, Ternary, loads, map_loads, map_operands, walk
from codegen.ir.integer import Int, Linear
from codegen.ir.loop_ir import Node
from codegen.ir.program import Assign, Buffer, Program
from codegen.lanes.simd import Use, declared, printer_of, uses
from codegen.lanes.vectors import WHOLE
from codegen.names import c_name, fresh
from codegen.scalar import StatementPrinter
from codegen.style import Line
from microkernels.dtypes import DType


class Whole(Line):
    """A line for a whole vector, which stands between loops over its lanes."""


def in_lanes(
    lines: list[cgen.Generable], loop: Callable[[list[cgen.Generable]], list[cgen.Generable]]
) -> Iterator[cgen.Generable]:
    """Lines for one lane in loops over the lanes, and those for whole vectors between them, in braces too."""
    for whole, part in groupby(lines, _has_whole):
        own = list(part)
        yield from (_parted(line, loop) for line in own) if whole else loop(own)


def _parted(line: cgen.Generable, loop: Callable[[list[cgen.Generable]], list[cgen.Generable]]) -> cgen.Generable:
    """A line for a whole vector; of braces with one, such as an iteration of a loop that is written out, each line."""
    return style.Braces(list(in_lanes(line.contents, loop))) if isinstance(line, cgen.Block) else line


def _has_whole(line: cgen.Generable) -> bool:
    return isinstance(line, Whole) or (isinstance(line, cgen.Block) and any(map(_has_whole, line.contents)))


@dataclass(frozen=True)
class Kept:
    """A value of each lane that is kept from one loop over lanes to the next: its vector, and the value of one lane."""

    key: str
    dtype: DType
    lanes: str
    one: str

    @property
    def element(self) -> Element:
        return Element(self.key, ())

    @property
    def lane(self) -> str:
        """The value of one lane among all."""
        return f"{self.lanes}.lane[lane]"


@dataclass(frozen=True)
class Called:
    """A call that is parted, and what keeps its argument, then its value."""

    call: FunctionCall
    kept: Kept


@dataclass(frozen=True)
class VectorCalls:
    """The calls in a loop's body by statement, each after those in its argument; the statements without them; and what
    is kept: their values, and locals."""

    dtype: DType
    width: int
    calls: Mapping[str, tuple[Called, ...]]
    rest: Mapping[str, Assign]
    kept: tuple[Kept, ...]

    @property
    def left(self) -> frozenset[str]:
        """The functions that are called for one lane."""
        nodes = (node for assign in self.rest.values() for node in walk(assign.expr))
        return frozenset(node.function for node in nodes if isinstance(node, FunctionCall))

    @property
    def buffers(self) -> dict[str, Buffer]:
        return {kept.key: Buffer(kept.key, kept.dtype, (), "local", variable=True) for kept in self.kept}

    @property
    def names(self) -> frozenset[str]:
        return frozenset(name for kept in self.kept for name in (kept.lanes, kept.one))

    def vectors(self) -> list[Whole]:
        """Declarations of the vectors."""
        kinds = {kept: f"{kept.dtype.name}x{self.width}" for kept in self.kept}
        return [
            Whole(text)
            for kept, kind in kinds.items()
            for text in (f"{kind}_lanes {kept.lanes};", f"fill_{kind}(&{kept.lanes}.all, 1, 0);")
        ]

    def every(self) -> dict[Element, str]:
        """What is kept, in a loop over all lanes."""
        return {kept.element: kept.lane for kept in self.kept}

    def before(self, statement: str, printer: StatementPrinter) -> Iterator[Line]:
        """Lines that compute the values which a statement takes."""
        for called in self.calls[statement]:
            kept, args = called.kept, called.call.args
            names = frozenset().union(*map(printer.names_of, args))
            place = self._place(args[0], kept, printer)
            if place is None:
                yield Line(f"{printer.held[kept.element]} = {printer.value(args[0], self.dtype)};", names)
            else:
                yield Whole(f"load_{WHOLE}_{self._kind}(&{kept.lanes}.all, &{place});", names)
            function = vector_functions.name(called.call.function, self.dtype, self.width)
            yield Whole(f"{kept.lanes}.all = {function}({kept.lanes}.all);")

    def stored(self, statement: str, printer: StatementPrinter) -> Line | None:
        """The line that stores a value as a whole, if that is all that a statement does."""
        assign = self.rest[statement]
        kept = next((kept for kept in self.kept if assign.expr == Load(kept.key, ())), None)
        place = self._place(assign.target, kept, printer) if kept and assign.op == "=" else None
        if kept is None or place is None:
            return None
        return Whole(f"store_{WHOLE}_{self._kind}(&{place}, &{kept.lanes}.all);", printer.names(assign))

    @property
    def _kind(self) -> str:
        return f"{self.dtype.name}x{self.width}"

    def _place(self, expr: Expr, kept: Kept, printer: StatementPrinter) -> str | None:
        """The first lane's element of an array, if every lane takes part and has the next element."""
        if not isinstance(expr, Load) or printer.held.get(kept.element) != kept.lane:
            return None
        element, buffer = printer.at(expr), printer.buffers[expr.array]
        if not element.indices or element in printer.held or buffer.dtype != self.dtype:
            return None
        *outer, last = element.indices
        rest = last - Linear.name("lane")
        if any("lane" in index.names for index in (*outer, rest)) or strides(buffer)[-1].number != 1:
            return None
        return printer.element(Element(element.array, (*outer, rest)))


def vector_calls(body: Node, program: Program, taken: frozenset[str]) -> VectorCalls | None:
    """The calls in a loop's body that can be those of vectors: of one type, and in every iteration.

    None if there are none, or if a local that is kept is no number of this type. What keeps a value stands for the
    element in which it was stored, too: some CPUs take long to load a vector that was stored across lines.
    """
    every = list(uses(body))
    own = declared(body)
    buffers = {buffer.name: buffer for buffer in program.buffers}
    once = len({use.statement for use in every}) == len(every)
    stored: dict[Element, Load] = {}
    calls: dict[str, tuple[Called, ...]] = {}
    rest: dict[str, Assign] = {}
    for use in every:
        statement = program.statements[use.statement]
        assign = statement.body
        if not isinstance(assign, Assign) or use.nested or use.conditional or statement.where is not None:
            return None
        printer = printer_of(use, program)
        if use.statement not in rest:
            parted = _Parted(program, printer, taken)
            rest[use.statement] = replace(assign, expr=_known(parted.without(assign.expr), printer, stored))
            calls[use.statement] = tuple(parted.found)
            taken = parted.taken
        target, value = assign.target, rest[use.statement].expr
        stored = {element: kept for element, kept in stored.items() if element.array != target.array}
        kept = {called.kept.key: called.kept.dtype for called in calls[use.statement]}
        buffer = buffers[target.array]
        outside = once and assign.op == "=" and target.array not in own
        if outside and isinstance(value, Load) and kept.get(value.array) == buffer.dtype:
            stored[printer.at(target)] = value
    values = [called.kept for found in calls.values() for called in found]
    if len({kept.dtype for kept in values}) != 1:
        return None
    dtype = values[0].dtype
    crossing = [buffers[name] for name in _crossing(every, calls, rest) if name in own]
    if any(buffer.shape or buffer.dtype != dtype for buffer in crossing):
        return None
    locals_: list[Kept] = []
    for buffer in crossing:
        lanes = fresh(f"{c_name(buffer.name)}_lanes", taken)
        one = fresh(f"{c_name(buffer.name)}_lane", taken | {lanes})
        locals_.append(Kept(buffer.name, dtype, lanes, one))
        taken |= {lanes, one}
    return VectorCalls(dtype, program.isa.lanes(dtype), calls, rest, (*values, *locals_))


def _known(expr: Expr, printer: StatementPrinter, stored: Mapping[Element, Load]) -> Expr:
    """The expression with what keeps their values in place of elements that were stored."""
    return map_loads(expr, lambda load: stored.get(printer.at(load), load))


class _Parted:
    """The calls in a statement's expression that vectors have, and what is left of it."""

    def __init__(self, program: Program, printer: StatementPrinter, taken: frozenset[str]) -> None:
        self._program, self._printer, self.taken = program, printer, taken
        self.found: list[Called] = []

    def without(self, expr: Expr) -> Expr:
        """The expression with what keeps their values in place of calls."""
        match expr:
            case Ternary() | Predicate() | Logic():
                return expr
            case FunctionCall(function, args):
                dtype = self._printer.type_of(expr)
                call = replace(expr, args=tuple(map(self.without, args)))
                if isinstance(dtype, DType) and vector_functions.has(self._program.isa, function, dtype):
                    return self._apart(call, dtype)
                return call
        return map_operands(expr, self.without)

    def _apart(self, call: FunctionCall, dtype: DType) -> Load:
        lanes = fresh(f"{call.function}_lanes", self.taken)
        one = fresh(f"{call.function}_lane", self.taken | {lanes})
        self.taken |= {lanes, one}
        self.found.append(Called(call, Kept(lanes, dtype, lanes, one)))
        return Load(lanes, ())


def fetched(body: Node, program: Program, variable: str, value: Int) -> list[cgen.Generable]:
    """Lines by which the vectors ahead begin to come into the cache, for a value of a loop's variable.

    Some CPUs' prefetchers stop at ends of pages, and work between the accesses gives memory the time. An address
    beyond an array does nothing; it is computed as a number, since C allows no such pointer.
    """
    own = declared(body) | {buffer.name for buffer in program.buffers if buffer.kind == "local"}
    found: dict[Element, tuple[bool, StatementPrinter]] = {}
    for use in uses(body):
        assign = program.statements[use.statement].body
        assert isinstance(assign, Assign), "only assignments call functions"
        printer = printer_of(use, program)
        for load in (assign.target, *loads(assign.expr)):
            element = printer.at(load)
            *outer, last = element.indices or (Linear(),)
            dense = last.coefficient(variable) == 1 and all(variable not in index.names for index in outer)
            if dense and load.array not in own:
                writes = load is assign.target or found.get(element, (False,))[0]
                found[element] = writes, printer
    lines: list[cgen.Generable] = []
    for element, (writes, printer) in found.items():
        place = Element(element.array, tuple(index.substitute({variable: value}) for index in element.indices))
        address = f"(const void *)((uintptr_t)&{printer.element(place)} + {program.ahead})"
        lines.append(Line(f"__builtin_prefetch({address}, {int(writes)}, 3);", printer.element_names(place)))
    return lines


def _crossing(every: list[Use], calls: Mapping[str, tuple[Called, ...]], rest: Mapping[str, Assign]) -> Iterator[str]:
    """The arrays and variables that are accessed in more than one of the parts between calls."""
    parts: dict[str, set[int]] = {}
    part = 0
    for use in every:
        for called in calls[use.statement]:
            for arg in called.call.args:
                for load in loads(arg):
                    parts.setdefault(load.array, set()).add(part)
            part += 1
        for load in (rest[use.statement].target, *loads(rest[use.statement].expr)):
            parts.setdefault(load.array, set()).add(part)
    return (name for name, found in parts.items() if len(found) > 1)
