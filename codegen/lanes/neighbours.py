"""Vector loops that read an array at neighbouring places: of two vectors, one is made of the other and the one before.

for (i = a; i < b; i += 1)                    A_last = {…, A[a - 1]};
  B[i] = A[i - 1] + A[i] + A[i + 1];    ->    for (i = a; i + 7 < b; i += 8) {
                                                for (lane < 8) A_lanes = A[i + lane];
                                                A_moved = the last lane of A_last, and all but the last of A_lanes;
                                                for (lane < 8) B[i + lane] = A_moved + A_lanes + A[i + lane + 1];
                                                A_last = A_lanes;
                                              }
                                              for (; i < b; i += 1) B[i] = A[i - 1] + A[i] + A[i + 1];

Where vectors are as long as lines, most lie in two lines, and take both of the loads that a core begins in a cycle. To
move lanes takes one of its two operations on vectors, so that it pays where there is less to compute than to load.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import cgen

from codegen import style
from codegen.elements import Element
from codegen.ir.expr import Binary, Const, Load, Unary, accessed, loads, walk
from codegen.ir.integer import Int, Linear
from codegen.ir.loop_ir import For, Node, substituted
from codegen.ir.program import Assign, Program
from codegen.lanes.counted import each_lane, lane_index
from codegen.lanes.masked import Holding, is_dense
from codegen.lanes.reductions import MASKED_SIZE
from codegen.lanes.simd import declared, printer_of, uses
from codegen.names import c_name, fresh
from codegen.scalar import StatementPrinter
from codegen.style import Line
from codegen.workspace import LINE
from microkernels.dtypes import DType

LEAST = 8
"""The least number of vectors in a loop that moves lanes."""

BOTH = 2
"""The lines that a vector lies in, the loads in a cycle, and the operations on vectors in one."""


MANY = 16
"""The operations as many of which a function or a choice takes."""

UNROLL = 4
"""The vectors that are written out: a branch for each would take a fifth of the time."""


@dataclass(frozen=True)
class NeighbouringPair:
    """Two elements of an array, of which the second is `apart` behind the first."""

    first: Element
    second: Element
    apart: int


@dataclass(frozen=True)
class Neighbours:
    """The pairs of elements that a vector loop reads, and its vectors."""

    pairs: tuple[NeighbouringPair, ...]
    dtype: DType
    lanes: int

    @property
    def type(self) -> str:
        return f"{self.dtype.name}x{self.lanes}"


def neighbours(loop: For, program: Program) -> Neighbours | None:
    """The pairs of which one vector shall be made of the other; None if there are none, or to load takes less time.

    None as well if a loop has few vectors, or does more than to assign values of one type to neighbours.
    """
    placed = _placed(loop, program)
    if placed is None or program.isa.vector_bytes < LINE:
        return None
    targets, read = [target for target, _ in placed], dict.fromkeys(one for _, every in placed for one in every)
    arrays = {element.array for element in (*targets, *read)}
    types = {buffer.dtype for buffer in program.buffers if buffer.name in arrays}
    if len(types) != 1 or not all(is_dense(element, loop.variable) for element in (*targets, *read)):
        return None
    (dtype,) = types
    lanes, most, written = program.isa.vector_bytes // dtype.size, loop.most_span, {one.array for one in targets}
    if not dtype.is_float or dtype.size < MASKED_SIZE or (most is not None and most < LEAST * lanes):
        return None
    moving = [element for element in read if loop.variable in element.names]
    pairs = tuple(_pairs((element for element in moving if element.array not in written), lanes))
    is_loading = BOTH * (len(moving) - len(pairs)) >= _operations(loop.body, program) + len(pairs)
    return Neighbours(pairs, dtype, lanes) if pairs and is_loading else None


def _placed(loop: For, program: Program) -> list[tuple[Element, list[Element]]] | None:
    """What each statement writes and reads; None if one is no plain assignment, or runs under a condition."""
    if loop.step != 1 or loop.end is None or declared(loop.body):
        return None
    found: list[tuple[Element, list[Element]]] = []
    for use in uses(loop.body):
        statement = program.statements[use.statement]
        if not isinstance(statement.body, Assign) or statement.where is not None or use.nested or use.conditional:
            return None
        at, read = printer_of(use, program).at, loads(statement.body.expr)
        if len(accessed(statement.body.expr)) > len(read):
            return None
        found.append((at(statement.body.target), list(map(at, read))))
    return found


def _operations(body: Node, program: Program) -> int:
    """The operations of one iteration, of which functions and choices count as many."""
    bodies = (program.statements[use.statement].body for use in uses(body))
    assigns = [one for one in bodies if isinstance(one, Assign)]
    nodes = [node for one in assigns for node in walk(one.expr)]
    few = sum(isinstance(node, Binary | Unary) for node in nodes) + sum(one.op != "=" for one in assigns)
    return few + MANY * sum(not isinstance(node, Binary | Unary | Load | Const) for node in nodes)


def _pairs(elements: Iterable[Element], lanes: int) -> Iterator[NeighbouringPair]:
    """Pairs of neighbours less than a vector apart, each element in one of them."""
    groups: dict[tuple[str, tuple[Int, ...]], dict[int, Element]] = {}
    for element in elements:
        *outer, last = element.indices
        groups.setdefault((element.array, (*outer, last - last.constant)), {})[last.constant] = element
    for group in groups.values():
        places = sorted(group)
        while len(places) > 1:
            first, second = places[:2]
            if second - first < lanes:
                yield NeighbouringPair(group[first], group[second], second - first)
            places = places[2:] if second - first < lanes else places[1:]


@dataclass(frozen=True)
class NeighbourLines:
    """Such a loop to be printed, in a place where some names are taken."""

    loop: For
    found: Neighbours
    printer: StatementPrinter
    write: Holding
    taken: frozenset[str]

    def lines(self) -> list[cgen.Generable]:
        """Whole vectors, then the iterations that are left."""
        loop, lanes = self.loop, self.found.lanes
        value = Linear.name(loop.variable)
        names = [self._names(number) for number in range(len(self.found.pairs))]
        enough, more = (Line(str(test), test.names) for test in (loop.test_at(value + (lanes - 1)), loop.test))
        start = Line(f"int64_t {loop.variable} = {loop.start};", loop.start.names)
        each = style.Braces(self._vector(value, names))
        vectors = style.ForStatement(Line(""), enough, Line(f"{loop.variable} += {lanes}"), each)
        begun = style.Braces([*self._begun(value, names), cgen.Pragma(f"GCC unroll {UNROLL}"), vectors])
        one = style.Braces(self.write(loop.body, {}, self.taken))
        rest = style.ForStatement(Line(""), more, Line(f"{loop.variable} += 1"), one)
        return [start, style.IfStatement(enough, begun), rest]

    def _names(self, number: int) -> tuple[str, str, str]:
        """The variables of a pair: the last vector, the present one, and the one made of both."""
        root, taken = c_name(self.found.pairs[number].second.array), self.taken | {"lane"}
        words = (f"{root}_last", f"{root}_lanes", f"{root}_moved")
        last, present, moved = (fresh(word if not number else f"{word}_{number + 1}", taken) for word in words)
        return last, present, moved

    def _begun(self, value: Int, variables: Sequence[tuple[str, str, str]]) -> Iterator[cgen.Generable]:
        """The last vectors before the first ones, as far as these read them."""
        kind, lanes = self.found.type, self.found.lanes
        for pair, (last, _, _) in zip(self.found.pairs, variables, strict=True):
            places = [self._at(pair.first, value + lane) for lane in range(pair.apart)]
            texts = ["0"] * (lanes - pair.apart) + [self.printer.element(place) for place in places]
            names = frozenset[str]().union(*map(self.printer.element_names, places))
            yield Line(f"{kind} {last} = {{{', '.join(texts)}}};", names)

    def _vector(self, value: Int, names: Sequence[tuple[str, str, str]]) -> list[cgen.Generable]:
        """One vector of iterations."""
        kind, at_lane = self.found.type, value + Linear.name("lane")
        held: dict[Element, str] = {}
        before: list[cgen.Generable] = []
        for pair, (last, present, moved) in zip(self.found.pairs, names, strict=True):
            first, second = (self._at(element, at_lane) for element in (pair.first, pair.second))
            load = Line(f"{present}.lane[lane] = {self.printer.element(second)};", self.printer.element_names(second))
            before += [Line(f"{kind}_lanes {present};"), *self._each([load]), Line(f"{kind}_lanes {moved};")]
            before.append(Line(f"by{pair.apart}_behind_{kind}(&{moved}.all, &{last}, &{present}.all);"))
            held |= {first: f"{moved}.lane[lane]", second: f"{present}.lane[lane]"}
        body = substituted(self.loop.body, {self.loop.variable: at_lane})
        taken = self.taken.union({"lane"}, *names)
        after = [Line(f"{last} = {present}.all;") for last, present, _ in names]
        return [*before, *self._each(self.write(body, held, taken)), *after]

    def _each(self, lines: list[cgen.Generable]) -> list[cgen.Generable]:
        return each_lane(lane_index(self.found.dtype.size), self.found.lanes, lines)

    def _at(self, element: Element, value: Int) -> Element:
        return Element(element.array, tuple(i.substitute({self.loop.variable: value}) for i in element.indices))
