"""A schedule is a value: a nest and the legal steps that give its loops another order."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field

from poly.errors import ScheduleError
from poly.legality import broken_flag, violations, witness
from poly.loopstring import Blocks, translate
from poly.nest import Nest
from poly.remedies import remedy
from poly.steps import (
    Default,
    Distribute,
    Flatten,
    Fuse,
    Interchange,
    Order,
    Parallel,
    Reverse,
    Shift,
    Skew,
    Split,
    Step,
    Tile,
    Unroll,
    Vectorize,
    call_text,
)
from poly.show import loops_text
from poly.steps.base import rename_repeats
from poly.tree import Node


@dataclass(frozen=True, repr=False)
class Schedule:
    """Loops of a nest after some steps, each of them proven legal when it was added.

    `repr` is Python that makes the schedule from the nest, `print` shows the loops. Every method returns a new schedule.
    """

    nest: Nest
    steps: tuple[Step, ...]
    tree: Node = field(compare=False)

    def tile(self, **sizes: int) -> Schedule:
        return self.apply([Tile(tuple(sizes.items()))])

    def split(self, **sizes: int) -> Schedule:
        return self.apply([Split(tuple(sizes.items()))])

    def interchange(self, outer: str, inner: str) -> Schedule:
        return self.apply([Interchange(outer, inner)])

    def order(self, loops: str) -> Schedule:
        return self.apply([Order(tuple(loops.split()))])

    def flatten(self, *loops: str) -> Schedule:
        return self.apply([Flatten(loops)])

    def fuse(self, first: str, second: str, at: str) -> Schedule:
        return self.apply([Fuse(first, second, at)])

    def distribute(self, loop: str) -> Schedule:
        return self.apply([Distribute(loop)])

    def skew(self, loop: str, by: str, factor: int = 1) -> Schedule:
        return self.apply([Skew(loop, by, factor)])

    def shift(self, loop: str, by: int, statement: str | None = None) -> Schedule:
        return self.apply([Shift(loop, by, statement)])

    def reverse(self, loop: str) -> Schedule:
        return self.apply([Reverse(loop)])

    def parallel(self, loop: str) -> Schedule:
        return self.apply([Parallel(loop)])

    def vectorize(self, loop: str) -> Schedule:
        return self.apply([Vectorize(loop)])

    def unroll(self, **factors: int) -> Schedule:
        return self.apply([Unroll(tuple(factors.items()))])

    def default(self, isa: str, threads: int, caches: tuple[int, int, int]) -> Schedule:
        """The model's loops for an instruction set, threads, and bytes of each cache level; earlier steps are forgotten."""
        return self.apply([Default(isa, threads, tuple(caches))])

    def loops(self, text: str, blocks: Blocks | None = None) -> Schedule:
        return self.apply(translate(text, self.tree, blocks or {}))

    def apply(self, steps: Iterable[Step]) -> Schedule:
        """Add steps, each of them checked.

        Raises:
            ScheduleError: an unknown loop, or an illegal step.
        """
        tree, added = self.tree, list(steps)
        for step in added:
            tree = _checked(self.nest, tree, step)
        return Schedule(self.nest, (*self.steps, *added), tree)

    def to_json(self) -> str:
        """The steps as JSON text; `from_json` reads it."""
        calls = []
        for step in self.steps:
            positional, named = step.arguments()
            calls.append({"step": step.name, "args": list(positional), "kwargs": named})
        return json.dumps(calls)

    @staticmethod
    def from_json(nest: Nest, text: str) -> Schedule:
        """The schedule of a nest with the steps that `to_json` wrote; each is checked again."""
        made = schedule(nest)
        for call in json.loads(text):
            made = getattr(made, call["step"])(*call["args"], **call["kwargs"])
        return made

    def __str__(self) -> str:
        return loops_text(self.nest, self.tree)

    def __repr__(self) -> str:
        return f"schedule({self.nest.name})" + "".join(f".{call_text(step)}" for step in self.steps)


def schedule(nest: Nest) -> Schedule:
    """The loops of a nest as they are written, to be transformed. A second loop `j` is called `j_2`."""
    return Schedule(nest, (), rename_repeats(nest.tree))


def _checked(nest: Nest, tree: Node, step: Step) -> Node:
    result = step.apply(nest, tree)
    if not step.reorders:
        return result
    broken = violations(nest, result)
    if broken is None:
        flagged = broken_flag(nest, result)
        broken = flagged and flagged[1]
    if broken is None:
        return result
    message = f"{_plain(step)} is illegal: {witness(broken)}."
    helpful = remedy(nest, tree, step)
    if helpful:
        message += f" Remedy: {', '.join(map(_plain, helpful))}."
    raise ScheduleError(message)


def _plain(step: Step) -> str:
    return call_text(step).replace("'", "")
