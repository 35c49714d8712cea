"""Loops that select: the least or the greatest value of a key, and what belongs to the iteration that has it.

for (j…) {                                      now = best;
  where = key(j) < best ? j : where;     ->     for (each chunk of j) {
  best = min(best, key(j));                       least = the least key(j) of the chunk;  // in lanes
}                                                 if (least < now) { now = least; found = the chunk; }
                                                }
                                                if (found) {
                                                  j = the first in that chunk with key(j) == now;  // in lanes
                                                  where = key(j) < best ? j : where;
                                                  best = min(best, key(j));
                                                }

One iteration has the last word on all the selection writes, and running it alone gives what all of them give in order:
the first with the least key, since ties and NaN are not less. `<=` takes the last one. Where a test has further parts,
`key(j) < best and m(j)`, an iteration without m has infinity as its key, which is never less.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import inf
from typing import Protocol

from codegen.elements import Element
from codegen.ir.expr import Const, Expr, Load, Logic, Predicate, Ternary, Truth, accessed
from codegen.ir.integer import Linear
from codegen.ir.loop_ir import Node
from codegen.ir.program import Assign, Program
from codegen.ir.promotion import limits, type_of
from codegen.lanes.simd import OFFSETS, Use, declared, placed_assign, printer_of, uses
from microkernels.dtypes import DType, i8, i16, u8, u16

FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
STRICT = {"min": "<", "max": ">"}
COUNTED = OFFSETS | dict.fromkeys((i8, u8, i16, u16), i16)
"""The types of keys, and the integers that count the iterations of a chunk of them."""


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
    """`best = key if key relation best and all of masks else best`."""

    best: Load
    key: Expr
    relation: str
    masks: tuple[Truth, ...] = ()

    def masked(self, dtype: DType) -> Expr:
        """The key; in iterations that the masks leave out, one that is not better than any."""
        if not self.masks:
            return self.key
        test = self.masks[0] if len(self.masks) == 1 else Logic("and", self.masks)
        low, high = (-inf, inf) if dtype.is_float else limits(dtype)
        return Ternary(test, self.key, Const(high if self.relation == "<" else low))


def extreme(update: Update) -> Extreme | None:
    """The update as one that keeps an extreme value; None if it is none."""
    best = update.target
    if update.op in STRICT:
        return Extreme(best, update.expr, STRICT[update.op])
    match update.op, update.expr:
        case "=", Ternary(test, key, other) if other == best:
            return _selected(test, key, best)
    return None


def _selected(test: Truth, key: Expr, best: Load) -> Extreme | None:
    """The extreme that a test selects: one part of it compares the key with the best value."""
    parts = test.parts if isinstance(test, Logic) and test.op == "and" else (test,)
    for part in parts:
        compared = _against(part, best) if isinstance(part, Predicate) else None
        if compared and compared[0] == key:
            masks = tuple(other for other in parts if other is not part)
            return Extreme(best, key, compared[1], masks) if compared[1] in STRICT.values() or not masks else None
    return None


def follows(update: Update, kept: Extreme) -> bool:
    """Whether an update takes a value of its own in just those iterations in which the extreme changes.

    It must come before that in each iteration. Neither the value nor the key may be made of what is selected.
    """
    match update.op, update.expr:
        case "=", Ternary(test, value, other) if other == update.target:
            selected = {kept.best.array, update.target.array}
            nodes = (value, kept.key, *kept.masks)
            free = all(load.array not in selected for node in nodes for load in accessed(node))
            return len(selected) == 2 and free and _selected(test, kept.key, kept.best) == kept
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
    reads: bool
    """Whether iterations do no more than read their keys, one behind the other in memory."""

    @property
    def offsets(self) -> DType:
        """The type that counts a chunk's iterations."""
        return COUNTED[self.dtype]

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
    fits = dtype in COUNTED and type_of(kept.key, dtypes.__getitem__) == dtype and kept.relation in FLIPPED
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
    reads = not others and _is_row(kept, variable)
    return Selection(
        last.statement, names, op, kept.relation, printed.masked(dtype), element, place, dtype, used, reads
    )


def _is_row(kept: Extreme, variable: str) -> bool:
    """Whether a loop over `variable` has neighbouring elements as its keys."""
    if kept.masks or not isinstance(kept.key, Load):
        return False
    *outer, last = kept.key.indices
    return not any(variable in index.names for index in (*outer, last - Linear.name(variable)))


def _value(update: Assign) -> Expr:
    """What a payload's statement takes where its test is true."""
    assert isinstance(update.expr, Ternary), "follows() has said so"
    return update.expr.then


def _selecting(body: Node, program: Program, own: frozenset[str]) -> Iterator[tuple[Use, Assign]]:
    """The assignments to anything but the loop's own locals, with the values of their iterators in place of these."""
    for use in uses(body):
        assign = program.statements[use.statement].body
        if isinstance(assign, Assign) and assign.target.array not in own:
            yield use, placed_assign(use, assign, program)


def _accessed(use: Use, program: Program) -> Sequence[Load]:
    assign = program.statements[use.statement].body
    return (assign.target, *accessed(assign.expr)) if isinstance(assign, Assign) else ()


def _sometimes(use: Use, program: Program) -> bool:
    return program.statements[use.statement].where is not None
