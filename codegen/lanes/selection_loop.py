"""Prints a loop that selects: the chunk with the extreme key in lanes, its iteration in lanes, then that one alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import cgen

from codegen import style
from codegen.arithmetic import most, update
from codegen.elements import Element
from codegen.ir.integer import Compare, Int, Linear, Test, minimum
from codegen.ir.program import Assign
from codegen.lanes.reductions import Counter
from codegen.lanes.selection import STRICT, Selection
from codegen.lanes.simd import LaneReduction, neutral
from codegen.names import all_fresh, c_name
from codegen.scalar import StatementPrinter
from codegen.style import Line
from microkernels.dtypes import DType, i64

Instead = Callable[[StatementPrinter, Assign], list[cgen.Generable]]
"""Prints something in place of a statement."""

CHUNK = 16
"""The vectors of keys among which the extreme one is looked for.

The second look takes as long as the first, and only one chunk has it; the tests behind each take as long as some
vectors. 16 bits count the narrowest keys of a chunk.
"""

NOWHERE = most(i64)
"""The first iteration of no chunk."""


@dataclass(frozen=True)
class SelectionNames:
    """The variables of a selection: the extreme key of all chunks and the first iteration of its chunk; the first
    iteration of a chunk and that behind it, the extreme key of the chunk, the number of its iteration in the chunk, and
    that iteration."""

    best: str
    found: str
    first: str
    past: str
    extreme: str
    place: str
    chosen: str

    @staticmethod
    def of(selected: Selection, variable: str, taken: frozenset[str]) -> SelectionNames:
        root = c_name(selected.element.array)
        own = (f"{variable}_first", f"{variable}_past", f"{root}_key", f"{root}_at", f"{variable}_chosen")
        return SelectionNames(*all_fresh((f"{root}_now", f"{variable}_found", *own), taken))

    @property
    def all(self) -> frozenset[str]:
        return frozenset(vars(self).values())


Body = Callable[[Int, Mapping[str, Instead]], list[cgen.Generable]]
"""The loop's body for a value of its variable, with something else in place of some statements."""
Change = Callable[[StatementPrinter, Assign, Int, str], Line]
"""What an iteration does to a variable, in place of a statement: by the statement, its iteration and the variable."""
Lane = Callable[[Int, str], list[cgen.Generable]]
"""The body of a loop in lanes, for a value of its variable and the name that it updates."""
Ahead = Callable[[Int], list[cgen.Generable]]
"""What is done before the lanes of a vector, for the value of the variable in the first of them."""
Lanes = Callable[[LaneReduction, Counter, Lane, Ahead], list[cgen.Generable]]
"""A loop in lanes with one reduction."""


@dataclass(frozen=True)
class SelectionLoop:
    """A loop that runs in chunks: the extreme key of each, the iteration of the best of them, and that one alone.

    Of keys that may also be equal to the extreme, each chunk's iteration runs at once: a chunk of NaN is told from one
    of infinities only by its second look. Several iterations with the same key are told apart by their numbers, never
    by the order of lanes. Keys that are read from memory may be fetched ahead: on some CPUs other work leaves it idle.
    """

    counter: Counter
    end: Int
    selected: Selection
    size: int
    """The iterations of a chunk."""
    body: Body
    lanes: Lanes
    names: SelectionNames
    ahead: int
    """The bytes by which keys are fetched ahead; 0 if they are not."""

    def lines(self) -> list[cgen.Generable]:
        names, selected = self.names, self.selected
        if selected.relation not in STRICT.values():
            test = Line(f"{names.extreme} {selected.relation} {selected.place}", selected.names)
            return [self._chunks(test, self._run())]
        kind, better = selected.dtype.c_name, Line(f"{names.extreme} {selected.relation} {names.best}")
        kept: list[cgen.Generable] = [Line(f"{names.best} = {names.extreme};"), Line(f"{names.found} = {names.first};")]
        last = [
            Line(f"const int64_t {names.first} = {names.found};"),
            self._past,
            Line(f"const {kind} {names.extreme} = {names.best};"),
            *self._run(),
        ]
        return [
            Line(f"{kind} {names.best} = {selected.place};", selected.names),
            Line(f"int64_t {names.found} = {NOWHERE};"),
            self._chunks(better, kept),
            style.IfStatement(Line(f"{names.found} != {NOWHERE}"), style.Braces(last)),
        ]

    def _chunks(self, better: Line, then: list[cgen.Generable]) -> cgen.Generable:
        """The loop over chunks: the extreme key of each, and what is done where it is better."""
        names, selected = self.names, self.selected
        start, test = self.counter.start, self.counter.test(Linear.name(names.first))
        body = [
            self._past,
            Line(f"{selected.dtype.c_name} {names.extreme} = {neutral(selected.op, selected.dtype)};"),
            *self._loop(selected.op, selected.dtype, names.extreme, self._key, self._fetched),
            style.IfStatement(better, style.Braces(then)),
        ]
        head, step = Line(f"int64_t {names.first} = {start}", start.names), Line(f"{names.first} += {self.size}")
        return style.ForStatement(head, Line(str(test), test.names), step, style.Braces(body))

    @property
    def _past(self) -> Line:
        """The iteration behind a chunk."""
        past = minimum(self.end, Linear.name(self.names.first) + self.size)
        return Line(f"const int64_t {self.names.past} = {past};", past.names)

    def _run(self) -> list[cgen.Generable]:
        """The iteration with the extreme key, found and run. There is none if all keys are NaN."""
        names, offsets = self.names, self.selected.offsets
        chosen = f"const int64_t {names.chosen} = {names.first} + {names.place};"
        return [
            Line(f"{offsets.c_name} {names.place} = {self._none};"),
            *self._loop(self.selected.nearest, offsets, names.place, self._place),
            style.IfStatement(
                Line(f"{names.place} != {self._none}"),
                style.Braces([Line(chosen), *self.body(Linear.name(names.chosen), {})]),
            ),
        ]

    def _loop(
        self, op: str, dtype: DType, variable: str, update: Change, ahead: Ahead = lambda value: []
    ) -> list[cgen.Generable]:
        """The chunk's iterations in lanes, with an update of a variable in place of the selection."""
        reduction = LaneReduction(self.selected.statement, op, Element(variable, ()), variable, dtype, frozenset())
        first, past = Linear.name(self.names.first), Linear.name(self.names.past)

        def test(value: Int) -> Test:
            return Compare(value, "<", past)

        def body(value: Int, target: str) -> list[cgen.Generable]:
            return self._instead(value, lambda printer, statement: [update(printer, statement, value, target)])

        return self.lanes(reduction, Counter(self.counter.variable, first, past, 1, test), body, ahead)

    def _instead(self, value: Int, selection: Instead) -> list[cgen.Generable]:
        """The loop's body with something in place of the selection."""
        nothing: dict[str, Instead] = dict.fromkeys(self.selected.payload, _nothing)
        return self.body(value, nothing | {self.selected.statement: selection})

    def _fetched(self, value: Int) -> list[cgen.Generable]:
        """A vector of keys ahead begins to come into the cache; beyond an array, that does nothing.

        It is found by its number, not by its place: C allows no pointer beyond an array, even where it is not followed.
        """
        if not (self.ahead and self.selected.reads):
            return []

        def fetch(printer: StatementPrinter, statement: Assign) -> list[cgen.Generable]:
            key = printer.value(self.selected.key, self.selected.dtype)
            place = f"(uintptr_t)&{key} + {self.ahead}"
            return [Line(f"__builtin_prefetch((const void *)({place}));", printer.names(statement, stores=False))]

        return self._instead(value, fetch)

    def _key(self, printer: StatementPrinter, statement: Assign, value: Int, target: str) -> Line:
        del value
        key = printer.value(self.selected.key, self.selected.dtype)
        return Line(update(self.selected.op, self.selected.dtype, target, key), printer.names(statement, stores=False))

    def _place(self, printer: StatementPrinter, statement: Assign, value: Int, target: str) -> Line:
        offsets, names = self.selected.offsets, self.names
        number = value - Linear.name(names.first)
        place = str(number) if offsets == i64 else f"({offsets.c_name})({number})"
        key = printer.operand(self.selected.key, self.selected.dtype)
        text = update(self.selected.nearest, offsets, target, f"{key} == {names.extreme} ? {place} : {self._none}")
        return Line(text, printer.names(statement, stores=False))

    @property
    def _none(self) -> str:
        """The number of no iteration."""
        return most(self.selected.offsets) if self.selected.nearest == "min" else "-1"


def _nothing(printer: StatementPrinter, statement: Assign) -> list[cgen.Generable]:
    """No lines in place of a statement."""
    del printer, statement
    return []
