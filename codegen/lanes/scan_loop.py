"""Prints a loop that scans, a vector at a time: its prefixes in log2(lanes) steps, then what came before the vector.

for (j…) {                   float s_carry = s;
  s += A[j];                 while (j + 15 < N) {
  B[j] = s;           ->       f32x16 s_lanes = A[j…];
}                              sum_scan_f32x16(&s_lanes);
                               const float s_next = s_carry + s_lanes.lane[15];
                               for (lane…) { s_lanes.lane[lane] += s_carry; B[j + lane] = s_lanes.lane[lane]; }
                               s_carry = s_next;
                             }

Only one addition of a vector waits for the one before. (Hillis, Steele, "Data parallel algorithms", CACM 29(12), 1986.)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import cgen

from codegen import style
from codegen.arithmetic import update
from codegen.elements import Element
from codegen.ir.expr import placed
from codegen.ir.integer import Int, Linear
from codegen.ir.loop_ir import Node, substituted
from codegen.lanes.counted import counted
from codegen.lanes.reductions import Counter
from codegen.lanes.scan import Scan
from codegen.lanes.simd import WORDS, neutral
from codegen.macros import EACH_LANE
from codegen.names import all_fresh
from codegen.scalar import StatementPrinter
from codegen.style import Line

Body = Callable[[Sequence[Node], Mapping[Element, str]], list[cgen.Generable]]
"""Prints nodes with names for some elements."""


@dataclass(frozen=True)
class ScanNames:
    """The variables of a scan: what all vectors so far make, the present vector's lanes and those of the iterations
    before each, and what is next."""

    carry: str
    lanes: str
    before: str
    next: str

    @staticmethod
    def of(found: Scan, taken: frozenset[str]) -> ScanNames:
        words = ("carry", "lanes", "before", "next")
        return ScanNames(*all_fresh([f"{found.root}_{word}" for word in words], taken))

    @property
    def all(self) -> frozenset[str]:
        return frozenset(vars(self).values())


@dataclass(frozen=True)
class ScanLoop:
    """A scan to be printed, `lanes` iterations at a time; the remaining ones run one after the other."""

    counter: Counter
    found: Scan
    lanes: int
    printer: StatementPrinter
    body: Body
    plain: Callable[[], list[cgen.Generable]]
    """Prints the body for the loop's variable."""
    names: ScanNames

    def lines(self) -> list[cgen.Generable]:
        counter, found, names = self.counter, self.found, self.names
        element = Element(
            found.element.array, tuple(i.substitute({counter.variable: counter.start}) for i in found.element.indices)
        )
        place, used = self.printer.element(element), self.printer.element_names(element)
        first = Line(f"int64_t {counter.variable} = {counter.start};", counter.start.names)
        rest = self._while(1, [*self.plain(), Line(f"{counter.variable} += 1;")])
        return [
            first,
            Line(f"{found.dtype.c_name} {names.carry} = {place};", used),
            self._while(self.lanes, self._vector()),
            *([] if found.stores else [Line(f"{place} = {names.carry};", used)]),
            rest,
        ]

    def _vector(self) -> list[cgen.Generable]:
        found, names, c = self.found, self.names, self.found.dtype.c_name
        kind = f"{found.dtype.name}x{self.lanes}"
        here = Linear.name(self.counter.variable) + Linear.name("lane")
        lane, earlier = f"{names.lanes}.lane[lane]", f"{names.before}.lane[lane]"
        exclusive = [
            f"{kind}_lanes {names.before} = {{{names.lanes}.all}};",
            f"{self._word}_shift_{kind}(&{names.before}.all);",
        ]
        used = [Line(text) for text in exclusive] if found.before else []
        with_carry = [Line(self._combined(earlier))] * bool(found.before) + [Line(self._combined(lane))]
        return [
            Line(f"{kind}_lanes {names.lanes};"),
            Line(f"fill_{kind}(&{names.lanes}.all, 1, {neutral(found.op, found.dtype)});"),
            Line(EACH_LANE),
            counted("int", "lane", self.lanes, [self._value(lane, here)]),
            Line(f"{self._word}_scan_{kind}(&{names.lanes}.all);"),
            *used,
            Line(f"{c} {names.next} = {names.carry};"),
            Line(update(found.op, found.dtype, names.next, f"{names.lanes}.lane[{self.lanes - 1}]")),
            Line(EACH_LANE),
            counted("int", "lane", self.lanes, [*with_carry, *self._statements(here, lane, earlier)]),
            Line(f"{names.carry} = {names.next};"),
            Line(f"{self.counter.variable} += {self.lanes};"),
        ]

    def _value(self, lane: str, here: Int) -> Line:
        """What an iteration brings, combined with the neutral element, so that max and min pass over a NaN."""
        expr = placed(self.found.value, {self.counter.variable: here})
        value = self.printer.value(expr, self.found.dtype)
        return Line(update(self.found.op, self.found.dtype, lane, value), self.printer.names_of(expr))

    def _statements(self, here: Int, lane: str, earlier: str) -> list[cgen.Generable]:
        """The other statements, and the element of each iteration, if it has its own."""
        found, values = self.found, {self.counter.variable: here}
        before = [substituted(node, values) for node in found.before]
        after = [substituted(node, values) for node in found.after]
        if not found.stores:
            return [*self.body(before, {found.element: earlier}), *self.body(after, {found.element: lane})]
        at = here + 1
        element = Element(
            found.element.array, tuple(i.substitute({self.counter.variable: at}) for i in found.element.indices)
        )
        store = Line(f"{self.printer.element(element)} = {lane};", self.printer.element_names(element))
        return [*self.body(before, {}), store, *self.body(after, {})]

    def _combined(self, lane: str) -> str:
        """What came before the vector, combined with a lane."""
        found = self.found
        if found.op in ("min", "max"):
            return f"{lane} = {found.op}_{found.dtype.name}({self.names.carry}, {lane});"
        return update(found.op, found.dtype, lane, self.names.carry)

    @property
    def _word(self) -> str:
        return WORDS.get(self.found.op, self.found.op)

    def _while(self, iterations: int, body: list[cgen.Generable]) -> cgen.Generable:
        test = self.counter.test(Linear.name(self.counter.variable) + (iterations - 1))
        return style.WhileStatement(Line(str(test), test.names), style.Braces(body))
