"""Loops that select: the least or the greatest value of a key, and what belongs to the iteration that has it.

for (j…) {                                      for (each chunk of j)
  where = key(j) < best ? j : where;     ->       least = the least key(j) of the chunk;  // in lanes
  best = min(best, key(j));                       if (least < best) {
}                                                   j = the first with key(j) == least;  // in lanes
                                                    where = key(j) < best ? j : where;
                                                    best = min(best, key(j));
                                                  }

One iteration has the last word on all the selection writes, and running it alone gives what all of them give in order:
the first with the least key, since ties and NaN are not less. `<=` takes the last one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import cgen

from codegen import style
from codegen.arithmetic import most, update
from codegen.expr import Expr, Index, Load, NodeT, Predicate, Ternary, accessed, map_operands
from codegen.integer import Compare, Int, Linear, Test, minimum
from codegen.lanes import Counter
from codegen.loop_ir import Node
from codegen.names import c_name, fresh
from codegen.program import Assign, Program
from codegen.promotion import type_of
from codegen.scalar import Element, StatementPrinter
from codegen.simd import OFFSETS, LaneReduction, Use, declared, neutral, printer_of, uses
from codegen.style import Line
from microkernels.dtypes import DType, i32

FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
STRICT = {"min": "<", "max": ">"}


class Update(Protocol):
    """`target op= expr`: an assignment of a program, or a statement of a nest."""

    @property
    def target(self) -> Load: ...
    @property
    def op(self) -> str: ...
    @property
    def expr(self) -> Expr: ...


@dataclass(frozen=True)
class Extreme:
    """`best = key if key relation best else best`."""

    best: Load
    key: Expr
    relation: str


def extreme(update: Update) -> Extreme | None:
    """The update as one that keeps an extreme value; None if it is none."""
    best = update.target
    if update.op in STRICT:
        return Extreme(best, update.expr, STRICT[update.op])
    match update.op, update.expr:
        case "=", Ternary(Predicate() as test, key, other) if other == best:
            found = _against(test, best)
            return Extreme(best, key, found[1]) if found and found[0] == key else None
    return None


def follows(update: Update, kept: Extreme) -> bool:
    """Whether an update takes a value of its own in just those iterations in which the extreme changes.

    It must come before that in each iteration. Neither the value nor the key may be made of what is selected.
    """
    match update.op, update.expr:
        case "=", Ternary(Predicate() as test, value, other) if other == update.target:
            selected = {kept.best.array, update.target.array}
            free = all(load.array not in selected for expr in (value, kept.key) for load in accessed(expr))
            return len(selected) == 2 and free and _against(test, kept.best) == (kept.key, kept.relation)
    return False


def _against(test: Predicate, best: Load) -> tuple[Expr, str] | None:
    """What a test compares with the best value, and how."""
    if test.right == best:
        return test.left, test.op
    return (test.right, FLIPPED.get(test.op, test.op)) if test.left == best else None


@dataclass(frozen=True)
class Selection:
    """The selection of a loop: the statement that keeps the extreme, and those with what belongs to it."""

    statement: str
    payload: tuple[str, ...]
    op: str
    relation: str
    key: Expr
    element: Element
    place: str
    """The C text of the element that keeps the extreme."""
    dtype: DType
    names: frozenset[str]
    """The names in that text."""

    @property
    def offsets(self) -> DType:
        """The type that counts iterations."""
        return OFFSETS[self.dtype]

    @property
    def nearest(self) -> str:
        """Of the iterations with the same key, the first (the least) is selected, or the last."""
        return "min" if self.relation in STRICT.values() else "max"


def selection(body: Node, program: Program, variable: str) -> Selection | None:
    """The selection of a loop's `body` over its `variable`; None if it does anything else but set its own locals."""
    own = declared(body)
    found = list(_selecting(body, program, own))
    if len(found) < 2 or any(use.nested or use.conditional or _sometimes(use, program) for use, _ in found):
        return None
    *payload, (last, update) = found
    kept = extreme(update)
    if kept is None or not all(follows(other, kept) for _, other in payload):
        return None
    selected = {other.target.array for _, other in found}
    others = [use for use in uses(body) if use.statement not in {one.statement for one, _ in found}]
    touched = {load.array for use in others for load in _accessed(use, program)}
    touched |= {load.array for _, other in payload for load in accessed(_value(other))}
    varies = any(variable in index.names for _, other in found for index in other.target.indices)
    dtypes = {buffer.name: buffer.dtype for buffer in program.buffers}
    dtype = dtypes[kept.best.array]
    fits = dtype in OFFSETS and type_of(kept.key, dtypes.__getitem__) == dtype and kept.relation in FLIPPED
    if varies or not fits or selected & (touched | own) or len(selected) < len(found):
        return None
    op = "min" if kept.relation.startswith("<") else "max"
    key = program.statements[last.statement].body
    assert isinstance(key, Assign), "a selection consists of assignments"
    printed = extreme(key)
    assert printed is not None, "the same update in terms of its own iterators"
    names = tuple(use.statement for use, _ in payload)
    printer = printer_of(last, program)
    element = printer.at(key.target)
    place, used = printer.element(element), printer.element_names(element)
    return Selection(last.statement, names, op, kept.relation, printed.key, element, place, dtype, used)


def _value(update: Assign) -> Expr:
    """What a payload's statement takes where its test is true."""
    assert isinstance(update.expr, Ternary), "follows() has said so"
    return update.expr.then


def _selecting(body: Node, program: Program, own: frozenset[str]) -> Iterator[tuple[Use, Assign]]:
    """The assignments to anything but the loop's own locals, with the values of their iterators in place of these."""
    for use in uses(body):
        assign = program.statements[use.statement].body
        if isinstance(assign, Assign) and assign.target.array not in own:
            yield use, placed(assign, program.statements[use.statement].iterators, use.arguments)


def _accessed(use: Use, program: Program) -> Sequence[Load]:
    assign = program.statements[use.statement].body
    return (assign.target, *accessed(assign.expr)) if isinstance(assign, Assign) else ()


def _sometimes(use: Use, program: Program) -> bool:
    return program.statements[use.statement].where is not None


def placed(assign: Assign, iterators: tuple[str, ...], arguments: tuple[Int, ...]) -> Assign:
    """The assignment with values in place of its iterators."""
    values = dict(zip(iterators, arguments, strict=True))

    def place(node: NodeT) -> NodeT:
        match node:
            case Index(value):
                return Index(value.substitute(values))  # type: ignore[return-value]  # an expression for an expression
            case Load(array, indices):
                return Load(array, tuple(i.substitute(values) for i in indices))  # type: ignore[return-value]
        return map_operands(node, place)  # type: ignore[no-any-return]

    return Assign(place(assign.target), assign.op, place(assign.expr))


Instead = Callable[[StatementPrinter, Assign], list[cgen.Generable]]
"""Prints something in place of a statement."""

CHUNK = 256
"""The vectors of keys among which the extreme one is looked for: the second look finds what they are made of in L1."""


@dataclass(frozen=True)
class SelectionNames:
    """The variables of a selection: the first iteration of a chunk and that behind it, the extreme key of the chunk,
    the number of its iteration in the chunk, and that iteration."""

    first: str
    past: str
    extreme: str
    place: str
    chosen: str

    @staticmethod
    def of(selected: Selection, variable: str, taken: frozenset[str]) -> SelectionNames:
        root = c_name(selected.element.array)
        wanted = (f"{variable}_first", f"{variable}_past", f"{root}_key", f"{root}_at", f"{variable}_chosen")
        made: list[str] = []
        for name in wanted:
            made.append(fresh(name, taken.union(made)))
        return SelectionNames(*made)

    @property
    def all(self) -> frozenset[str]:
        return frozenset(vars(self).values())


Body = Callable[[Int, Mapping[str, Instead]], list[cgen.Generable]]
"""The loop's body for a value of its variable, with something else in place of some statements."""
Change = Callable[[StatementPrinter, Assign, Int, str], Line]
"""What an iteration does to a variable, in place of a statement: by the statement, its iteration and the variable."""
Lane = Callable[[Int, str], list[cgen.Generable]]
"""The body of a loop in lanes, for a value of its variable and the name that it updates."""
Lanes = Callable[[LaneReduction, Counter, Lane], list[cgen.Generable]]
"""A loop in lanes with one reduction."""


@dataclass(frozen=True)
class SelectionLoop:
    """A loop that runs in chunks: the extreme key of a chunk, its iteration if it is better, and that one alone.

    Several iterations with the same key are told apart by their numbers, never by the order of lanes.
    """

    counter: Counter
    end: Int
    selected: Selection
    size: int
    """The iterations of a chunk."""
    body: Body
    lanes: Lanes
    names: SelectionNames

    def lines(self) -> list[cgen.Generable]:
        names, selected = self.names, self.selected
        first, past = Linear.name(names.first), minimum(self.end, Linear.name(names.first) + self.size)
        start, test = self.counter.start, self.counter.test(first)
        kind = selected.dtype.c_name
        body = [
            Line(f"const int64_t {names.past} = {past};", past.names),
            Line(f"{kind} {names.extreme} = {neutral(selected.op, selected.dtype)};"),
            *self._loop(selected.op, selected.dtype, names.extreme, self._key),
            style.IfStatement(
                Line(f"{names.extreme} {selected.relation} {selected.place}", selected.names),
                style.Braces(self._run()),
            ),
        ]
        head = Line(f"int64_t {names.first} = {start}", start.names)
        return [
            style.ForStatement(
                head, Line(str(test), test.names), Line(f"{names.first} += {self.size}"), style.Braces(body)
            )
        ]

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

    def _loop(self, op: str, dtype: DType, variable: str, update: Change) -> list[cgen.Generable]:
        """The chunk's iterations in lanes, with an update of a variable in place of the selection."""
        reduction = LaneReduction(self.selected.statement, op, Element(variable, ()), variable, dtype, frozenset())
        first, past = Linear.name(self.names.first), Linear.name(self.names.past)

        def test(value: Int) -> Test:
            return Compare(value, "<", past)

        def body(value: Int, target: str) -> list[cgen.Generable]:
            instead: dict[str, Instead] = dict.fromkeys(self.selected.payload, _nothing)
            instead[self.selected.statement] = lambda printer, statement: [update(printer, statement, value, target)]
            return self.body(value, instead)

        return self.lanes(reduction, Counter(self.counter.variable, first, past, 1, test), body)

    def _key(self, printer: StatementPrinter, statement: Assign, value: Int, target: str) -> Line:
        del value
        key = printer.value(self.selected.key, self.selected.dtype)
        return Line(update(self.selected.op, self.selected.dtype, target, key), printer.names(statement, stores=False))

    def _place(self, printer: StatementPrinter, statement: Assign, value: Int, target: str) -> Line:
        offsets, names = self.selected.offsets, self.names
        number = value - Linear.name(names.first)
        place = f"({offsets.c_name})({number})" if offsets == i32 else str(number)
        key = printer.value(self.selected.key, self.selected.dtype)
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
