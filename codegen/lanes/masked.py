"""Loops in vector lanes whose bodies are jammed iterations: elements in registers, conditions as masks.

for q < 14:                                 f32x16 Y_lanes, X_lanes, …;
  Y[q] = 0                                    for (lane < 16)  Y_lanes = 0;  // each is a vector operation
  if q > 0: Y[q] += X[q - 1]*W[0]     ->      for (lane < 16)  X_lanes = lane >= 1 && lane < 14 ? X[lane - 1] : 0;
  Y[q] += X[q]*W[1]                           for (lane < 16)  if (lane >= 1) Y_lanes += X_lanes * W_value;
                                              …
                                              for (lane < 16)  if (lane < 14) Y[lane] = Y_lanes;

A condition on the lane is a mask, and so is the end of the loop: no lane runs alone. What all lanes read is loaded
before the loop, since compilers do not load one element under a mask. A variable of each iteration's own becomes a
vector that is not stored. Each operation is a loop of its own: gcc makes no vectors of several different conditions in
one loop.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

import cgen

from codegen import style
from codegen.elements import Element
from codegen.ir.expr import accessed, loads
from codegen.ir.integer import Compare, Int, Linear, Test, floor_quotient, gaps, maximum, minimum, parts_of
from codegen.ir.loop_ir import Block, Declare, For, If, Node, Run, substituted
from codegen.ir.program import Assign, Program
from codegen.ir.ranges import Ranges
from codegen.lanes.counted import each_lane, lane_index
from codegen.lanes.reductions import MASKED_SIZE, Hoisted, hoisted
from codegen.lanes.simd import Use, declared, is_apart, printer_of
from codegen.lanes.vectors import PART
from codegen.macros import HIDDEN
from codegen.names import c_name, fresh
from codegen.scalar import StatementPrinter
from codegen.style import Line
from codegen.typed_text import literal


@dataclass(frozen=True)
class Masked:
    """A statement instance in a lane: its node, the least lanes at which it runs, and those before which it does."""

    run: Run
    lows: tuple[Int, ...]
    highs: tuple[Int, ...]


@dataclass(frozen=True)
class JammedLoop:
    """A vector loop without loops inside: its instances, what they write, and what all lanes read.

    The bounds of the instances are values of the loop's variable. Each iteration has the variables `own` for itself.
    """

    loop: For
    end: Int
    lanes: int
    instances: tuple[Masked, ...]
    written: tuple[Element, ...]
    shared: tuple[Element, ...]
    own: frozenset[str]


def jammed(loop: For, program: Program, known: Ranges) -> JammedLoop | None:
    """The loop with its instances in lanes; None if it has no conditions on the lane, and fills whole vectors.

    None as well if an instance is no plain assignment, a type differs in size from another one or has no masks, lanes
    access other than neighbours, which compilers load one by one under a mask, or two elements of an array that is
    written may be the same; or if an iteration does not set a variable of its own first.
    """
    if loop.end is None or loop.step != 1:
        return None
    instances = _instances(loop.body, loop.variable)
    if instances is None or len(instances) < 2:
        return None
    found = _accesses(instances, program)
    if found is None:
        return None
    written = tuple(dict.fromkeys(element for element, writes in found if writes))
    dtypes = {buffer.name: buffer.dtype for buffer in program.buffers}
    sizes = {dtypes[element.array].size for element, _ in found}
    if len(sizes) > 1 or min(sizes) < MASKED_SIZE or any(dtypes[element.array].is_stored for element, _ in found):
        return None
    lanes = min(program.isa.most_lanes, program.isa.vector_bytes // min(sizes))
    trips = loop.span
    whole = lanes * (WHOLE if program.isa.has_masked_stores else 0)
    partial = trips is not None and trips % lanes and trips < whole
    if not partial and not any(one.lows or one.highs for one in instances):
        return None
    every = tuple(dict.fromkeys(element for element, _ in found))
    apart = SECOND if program.isa.has_masked_stores and len(written) > 1 else 1
    if not all(is_dense(e, loop.variable, 1 if e in written else apart) for e in every):
        return None
    own = declared(loop.body)
    alone = [element for element in written if loop.variable not in element.names]
    if any(element.array not in own or not _is_set_first(element, instances, program) for element in alone):
        return None
    shared = tuple(element for element in every if loop.variable not in element.names and element not in alone)
    if _may_meet(every, written) or not all(_is_inside(element, program, known) for element in shared):
        return None
    return JammedLoop(loop, loop.end, lanes, instances, written, shared, own)


SECOND = 2
"""How far apart the elements may be that lanes of several jammed iterations read: two vectors make one."""
WHOLE = 8
"""Loops of so many vectors need no mask for the last one: what is left is little."""


def _instances(body: Node, variable: str) -> tuple[Masked, ...] | None:
    """The instances of a body, each with its conditions; None if it has loops, or other conditions than on the lane."""

    def visit(node: Node, lows: tuple[Int, ...], highs: tuple[Int, ...]) -> Iterator[Masked | None]:
        match node:
            case Block(several):
                for one in several:
                    yield from visit(one, lows, highs)
            case Declare(_, inside):
                yield from visit(inside, lows, highs)
            case Run():
                yield Masked(node, lows, highs)
            case If(test, then, None):
                bounds = _bounds(test, variable)
                if bounds is None:
                    yield None
                else:
                    yield from visit(then, (*lows, *bounds[0]), (*highs, *bounds[1]))
            case _:
                yield None

    found = list(visit(body, (), ()))
    known = tuple(one for one in found if one is not None)
    return known if len(known) == len(found) else None


def _bounds(test: Test, variable: str) -> tuple[list[Int], list[Int]] | None:
    """The least values of a variable for which a condition holds, and the first ones for which it doesn't."""
    lows: list[Int] = []
    highs: list[Int] = []
    for part in parts_of(test):
        if not isinstance(part, Compare) or part.symbol == "!=":
            return None
        for gap in gaps(part):
            factor = gap.coefficient(variable)
            rest = gap - Linear.name(variable) * factor
            if not factor or variable in rest.names:
                return None
            if factor > 0:
                lows.append(-floor_quotient(rest, factor))
            else:
                highs.append(floor_quotient(rest, -factor) + 1)
    return lows, highs


def _accesses(instances: tuple[Masked, ...], program: Program) -> list[tuple[Element, bool]] | None:
    """The elements accessed, each with whether it is written; None if an instance is no plain assignment."""
    found: list[tuple[Element, bool]] = []
    for one in instances:
        statement = program.statements[one.run.statement]
        if not isinstance(statement.body, Assign) or statement.where is not None:
            return None
        read = loads(statement.body.expr)
        if len(accessed(statement.body.expr)) > len(read):
            return None
        printer = printer_of(Use(one.run.statement, one.run.values), program)
        found += [(printer.at(statement.body.target), True), *((printer.at(load), False) for load in read)]
    return found


def _may_meet(every: tuple[Element, ...], written: tuple[Element, ...]) -> bool:
    """Whether two different elements, one of which is written, may be the same in a lane."""
    return any(not is_apart(*pair) for pair in combinations(every, 2) if not set(written).isdisjoint(pair))


def _is_set_first(element: Element, instances: tuple[Masked, ...], program: Program) -> bool:
    """Whether the first instance with an element sets it, in every lane."""
    for one in instances:
        body = program.statements[one.run.statement].body
        assert isinstance(body, Assign), "all instances are assignments"
        printer = printer_of(Use(one.run.statement, one.run.values), program)
        if element in map(printer.at, loads(body.expr)):
            return False
        if printer.at(body.target) == element:
            return body.op == "=" and not one.lows and not one.highs
    return False


def _is_only_added_to(element: Element, jam: JammedLoop, program: Program) -> bool:
    """Whether all that instances do with an element in memory is to add to it, in any order."""
    for one in jam.instances:
        body = program.statements[one.run.statement].body
        assert isinstance(body, Assign), "all instances are assignments"
        printer = printer_of(Use(one.run.statement, one.run.values), program)
        if element in map(printer.at, loads(body.expr)) or (printer.at(body.target) == element and body.op != "+"):
            return False
    return program.fused and element.array not in jam.own


def is_dense(element: Element, variable: str, most: int = 1) -> bool:
    """Whether consecutive values of a variable access neighbours at most so many apart, or all the same element."""
    outer, along = element.indices[:-1], element.indices[-1:]
    inside = all(variable not in index.names or 1 <= index.coefficient(variable) <= most for index in along)
    return inside and all(variable not in index.names for index in outer)


def _is_inside(element: Element, program: Program, known: Ranges) -> bool:
    """Whether an element is known to be in its array, even where no lane reads it."""
    buffer = next(buffer for buffer in program.buffers if buffer.name == element.array)
    return all(
        known.holds(Compare(Linear(), "<=", index)) and known.holds(Compare(index, "<", Linear.of(extent)))
        for index, extent in zip(element.indices, buffer.shape, strict=True)
    )


Holding = Callable[[Node, Mapping[Element, str], frozenset[str]], list[cgen.Generable]]
"""Prints a node with names for some elements, given the names in use."""


@dataclass(frozen=True)
class JammedLines:
    """A jammed loop to be printed, in a place where some names are taken."""

    jam: JammedLoop
    program: Program
    printer: StatementPrinter
    write: Holding
    taken: frozenset[str]

    def lines(self) -> list[cgen.Generable]:
        """One vector after the other."""
        loop, lanes = self.jam.loop, self.jam.lanes
        held = hoisted(self.jam.shared, self.printer, self.taken)
        trips = self.jam.loop.span
        taken = self.taken.union(held.names.values())
        if trips is not None and trips <= lanes:
            return [*held.lines, style.Braces(self._vector(loop.start, held, taken))]
        first = fresh(f"{loop.variable}_first", taken)
        place = Linear.name(first)
        start = Line(f"int64_t {first} = {loop.start}", loop.start.names)
        test = Compare(place, "<", self.jam.end)
        body = self._vector(place, held, taken | {first})
        each = style.ForStatement(start, Line(str(test), test.names), Line(f"{first} += {lanes}"), style.Braces(body))
        return [*held.lines, each]

    def _vector(self, place: Int, held: Hoisted, taken: frozenset[str]) -> list[cgen.Generable]:
        """The instances in the lanes from an iteration on."""
        bounds = _Bounds(self.jam, place, taken)
        values = {self.jam.loop.variable: place + Linear.name("lane")}
        written = {self._at(element, values): element for element in self.jam.written}
        runs = [substituted(one.run, values) for one in self.jam.instances]
        conditions = [bounds.within(one.lows, one.highs) for one in self.jam.instances]
        whole = bounds.within((), ())
        names: dict[tuple[Element, Span | None], str] = {}
        taken = taken | bounds.names | {"lane"}

        def name(element: Element, condition: Span | None) -> str:
            root = f"{c_name(element.array)}_lanes"
            return names.setdefault((element, condition), fresh(root, taken.union(names.values())))

        own = fresh("value", taken)
        lines: list[cgen.Generable] = []
        added: dict[Element, str] = {}
        for element, at in written.items():
            is_added_to = _is_only_added_to(at, self.jam, self.program)
            added |= {element: name(element, whole)} if is_added_to else {}
            is_new = is_added_to or _is_set_first(at, self.jam.instances, self.program)
            lines += (self._zeros if is_new else self._loaded)(name(element, whole), element, whole, own)
        kept = {element: f"{name(element, whole)}.lane[lane]" for element in written}
        for one, run, condition in zip(self.jam.instances, runs, conditions, strict=True):
            assert isinstance(run, Run), "a run stays one"
            read = [e for e in dict.fromkeys(self._read(run)) if e not in kept and e not in held.names]
            for element in read:
                if (element, condition) not in names:
                    lines += self._loaded(name(element, condition), element, condition, own)
            loaded = {element: f"{name(element, condition)}.lane[lane]" for element in read}
            target = self._target(run)
            body = self.write(run, {**held.names, **kept, **loaded, target: own}, taken.union(names.values(), [own]))
            lines.append(self._updated(own, kept[target], target, bounds.inner(one.lows, one.highs), body))
        for element in added:
            lines += self._loaded(name(element, None), element, whole, own)
        lines += (self._each([Line(f"{sums}.lane[lane] += {name(e, None)}.lane[lane];")]) for e, sums in added.items())
        kept_in_memory = [element for element in written if element.array not in self.jam.own]
        lines += [self._stored(name(element, whole), element, whole) for element in kept_in_memory]
        return [*bounds.lines, *lines]

    def _zeros(self, name: str, element: Element, *_: object) -> list[cgen.Generable]:
        """A vector that holds an element for each lane, 0 at first."""
        zero = literal(0, self.printer.buffers[element.array].dtype).text
        return [self._declared(name, element), Line(f"fill_{self._kind(element)}(&{name}.all, 1, {zero});")]

    def _loaded(self, name: str, element: Element, condition: Span, value: str) -> list[cgen.Generable]:
        """A vector of elements, with 0 in the lanes outside a condition; `value` is the name of one.

        In a loop over lanes every lane is stored, so that only the load depends on the condition.
        """
        memory, names = self.printer.element(element), self.printer.element_names(element)
        second = any(index.coefficient("lane") > 1 for index in element.indices)
        if (condition.test or second) and self.program.isa.has_masked_stores:
            first = self.printer.element(self._at(element, {"lane": Linear()}))
            function = f"{'second' if second else 'load'}_{PART}_{self._kind(element)}"
            text = f"{function}(&{name}.all, &{first}, {condition.first}, {condition.past});"
            return [self._declared(name, element), Line(text, names)]
        dtype = self.printer.buffers[element.array].dtype
        start = Line(f"{dtype.c_name} {value} = {literal(0, dtype).text};")
        load = _where(condition, [Line(f"{value} = {memory};", names)])
        return [*self._zeros(name, element), self._each([start, *load, Line(f"{name}.lane[lane] = {value};")])]

    def _updated(
        self, own: str, lane: str, target: Element, condition: Span, body: list[cgen.Generable]
    ) -> cgen.Generable:
        """A statement in every lane that fulfils a condition."""
        kind = self.printer.buffers[target.array].dtype.c_name
        return self._each([Line(f"{kind} {own} = {lane};"), *_where(condition, body), Line(f"{lane} = {own};")])

    def _stored(self, name: str, element: Element, condition: Span) -> cgen.Generable:
        memory, names = self.printer.element(element), self.printer.element_names(element)
        return self._each(_where(condition, [Line(f"{memory} = {name}.lane[lane];", names)]))

    def _target(self, run: Run) -> Element:
        """The element that an instance writes."""
        body = self.program.statements[run.statement].body
        assert isinstance(body, Assign), "all instances are assignments"
        return printer_of(Use(run.statement, run.values), self.program).at(body.target)

    def _each(self, lines: list[cgen.Generable]) -> cgen.Generable:
        """Lines in every lane: one vector operation each."""
        return style.Braces(each_lane(self._index, self.jam.lanes, lines))

    @property
    def _index(self) -> str:
        """The type of the lane counter."""
        widest = max(self.printer.buffers[element.array].dtype.size for element in self.jam.written)
        return lane_index(widest)

    def _declared(self, name: str, element: Element) -> Line:
        return Line(f"{self._kind(element)}_lanes {name};")

    def _kind(self, element: Element) -> str:
        """The type of a vector of elements."""
        return f"{self.printer.buffers[element.array].dtype.name}x{self.jam.lanes}"

    def _read(self, run: Run) -> list[Element]:
        """The elements that an instance reads."""
        body = self.program.statements[run.statement].body
        assert isinstance(body, Assign), "all instances are assignments"
        return list(map(printer_of(Use(run.statement, run.values), self.program).at, loads(body.expr)))

    def _at(self, element: Element, values: Mapping[str, Int]) -> Element:
        return Element(element.array, tuple(index.substitute(values) for index in element.indices))


class Span(NamedTuple):
    """The first of some lanes and the one past them in C, and the test whether a lane is one; empty if each is."""

    first: str
    past: str
    test: str


def _where(condition: Span, lines: list[cgen.Generable]) -> list[cgen.Generable]:
    return [style.IfStatement(Line(condition.test), style.Braces(lines))] if condition.test else lines


class _Bounds:
    """The bounds of instances as numbers of lanes, in variables that are declared before the lanes."""

    def __init__(self, jam: JammedLoop, place: Int, taken: frozenset[str]) -> None:
        self._jam, self._place, self._taken = jam, place, taken
        self._known: dict[Int, str] = {}
        self.lines: list[cgen.Generable] = []

    @property
    def names(self) -> frozenset[str]:
        """The variables."""
        return frozenset(self._known.values())

    def within(self, lows: tuple[Int, ...], highs: tuple[Int, ...]) -> Span:
        """The lanes inside bounds and the loop."""
        return self.inner(lows, (self._jam.end, *highs))

    def inner(self, lows: tuple[Int, ...], highs: tuple[Int, ...]) -> Span:
        """The lanes inside bounds."""
        last = minimum(self._jam.lanes, *(high - self._place for high in highs))
        first = maximum(0, *(low - self._place for low in lows))
        to, start = self._number(last, "to"), self._number(first, "from")
        tests = [f"lane >= {start}"] * (first.number != 0) + [f"lane < {to}"] * (last.number != self._jam.lanes)
        return Span(start, to, " && ".join(tests))

    def _number(self, value: Int, word: str) -> str:
        is_hidden = value.number in (1, self._jam.lanes - 1)
        if value.number is not None and not is_hidden:
            return str(value.number)
        if value not in self._known:
            name = fresh(f"{self._jam.loop.variable}_{word}", self._taken | self.names)
            self._known[value] = name
            bound = maximum(0, minimum(self._jam.lanes, value))
            self.lines.append(Line(f"{'' if is_hidden else 'const '}int {name} = (int){bound};", bound.names))
            self.lines += [Line(f"{HIDDEN}({name})")] * is_hidden
        return self._known[value]
