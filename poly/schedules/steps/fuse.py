"""Fuse consecutive loops into one, or distribute a loop's statements over several loops."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from microkernels.errors import plain
from poly.errors import ScheduleError
from poly.ir.edits import chain, edit, find_loop, rename_repeats, sequence
from poly.ir.nest import Nest
from poly.ir.tree import Band, Leaf, Micro, Node, Sequence, bands, only_loops, statements, walk
from poly.schedules.steps.base import Arguments


@dataclass(frozen=True)
class Fuse:
    """The loops around `second` are fused with those around `first`, down to loop `at`."""

    first: str
    second: str
    at: str
    name: ClassVar[str] = "fuse"
    reorders: ClassVar[bool] = True

    def apply(self, nest: Nest, tree: Node) -> Node:
        for name in (self.first, self.second):
            if name not in statements(tree):
                raise ScheduleError(f"there is no statement {plain(name)}. Statements: {', '.join(statements(tree))}.")
        target = find_loop(tree, self.at)
        if self.first not in statements(target):
            raise ScheduleError(f"loop {self.at} is not around {self.first}.")
        if self.second in statements(target):
            raise ScheduleError(f"loop {self.at} is already around both {self.first} and {self.second}.")
        while self.second not in statements(find_loop(tree, self.at)):
            tree = self._fuse_outermost(tree)
        return tree

    def arguments(self) -> Arguments:
        return (self.first, self.second), {"at": self.at}

    def _fuse_outermost(self, tree: Node) -> Node:
        """Fuse the two outermost loops that hold only one of the two statements each."""
        parent = self._parting(tree)
        place = next(p for p, child in enumerate(parent.children) if self.first in statements(child))
        other = next(p for p, child in enumerate(parent.children) if self.second in statements(child))
        into, joining = self._loop(parent.children[place], self.first), self._loop(parent.children[other], self.second)
        bodies = [into.body, joining.body] if place < other else [joining.body, into.body]
        loops = (into, joining) if place < other else (joining, into)
        joined = replace(
            into,
            functions=loops[0].functions + loops[1].functions,
            body=sequence(bodies),
            parallel=into.parallel and joining.parallel,
            vectorize=into.vectorize and joining.vectorize,
            group=into.group and joining.group,
            items=into.items if into.items == joining.items else 0,
        )
        children = [joined if p == place else child for p, child in enumerate(parent.children) if p != other]
        return edit(tree, parent, sequence(children))

    def _parting(self, tree: Node) -> Sequence:
        """The sequence that holds the two statements in different children."""
        both = {self.first, self.second}
        holders = [node for node in walk(tree) if isinstance(node, Sequence) and both <= set(statements(node))]
        return holders[-1]

    def _loop(self, node: Node, statement: str) -> Band:
        if not isinstance(node, Band):
            loops = ", ".join(band.name for band in bands(node)) or "none"
            raise ScheduleError(f"{statement} is in no loop that could be fused. Loops there: {loops}.")
        return node


@dataclass(frozen=True)
class Distribute:
    """Each part of the loop's body gets its own loop: the first keeps the name, the others are `i_2`, `i_3`, …

    With `behind`, the name of a statement, there are two loops: one up to that statement's part, one for the rest.
    With `last`, there are two as well: the second is for that statement alone, wherever it is.
    """

    loop: str
    behind: str | None = None
    last: str | None = None
    name: ClassVar[str] = "distribute"
    reorders: ClassVar[bool] = True

    def apply(self, nest: Nest, tree: Node) -> Node:
        band = find_loop(tree, self.loop)
        if self.last is not None:
            return rename_repeats(edit(tree, band, sequence(self._with_last(band, self.last))))
        inner = band.body
        while isinstance(inner, Band):
            inner = inner.body
        if not isinstance(inner, Sequence):
            raise ScheduleError(f"loop {self.loop} holds one statement only: there is nothing to distribute.")
        around = only_loops(chain(band, inner))
        parts = [_around(around, part) for part in self._parts(inner)]
        return rename_repeats(edit(tree, band, sequence(parts)))

    def _parts(self, inner: Sequence) -> list[Node]:
        if self.behind is None:
            return list(inner.children)
        cut = next((p for p, child in enumerate(inner.children, 1) if self.behind in statements(child)), None)
        if cut is None or cut == len(inner.children):
            raise ScheduleError(
                f"loop {self.loop} holds nothing behind {plain(self.behind)}: there is nothing to distribute."
            )
        return [sequence(list(inner.children[:cut])), sequence(list(inner.children[cut:]))]

    def _with_last(self, band: Band, last: str) -> list[Node]:
        """The loop without a statement, and a loop with the statement alone."""
        present = frozenset(statements(band))
        if self.behind is not None:
            raise ScheduleError(f"distribute({self.loop}): behind and last exclude each other. Remedy: two steps.")
        if last not in present or present == {last}:
            there = f"Statements there: {', '.join(statements(band))}."
            raise ScheduleError(f"loop {self.loop} does not hold {plain(last)} and others. {there}")
        parts = (_only(self.loop, band, names) for names in (present - {last}, frozenset({last})))
        return [part for part in parts if part is not None]

    def arguments(self) -> Arguments:
        given = {"behind": self.behind, "last": self.last}
        return (self.loop,), {key: value for key, value in given.items() if value is not None}


def _around(loops: tuple[Band, ...], body: Node) -> Node:
    """The loops around a part of their body, restricted to that part's statements."""
    present = set(statements(body))
    for band in reversed(loops):
        body = replace(band, functions=tuple(f for f in band.functions if f[0] in present), body=body)
    return body


def _only(loop: str, node: Node, names: frozenset[str]) -> Node | None:
    """The part of a tree that runs some of its statements; None if it runs none."""
    match node:
        case Sequence(nodes):
            kept = [part for child in nodes if (part := _only(loop, child, names)) is not None]
            return sequence(kept) if kept else None
        case Band(functions=functions, body=body):
            inner = _only(loop, body, names)
            return inner and replace(node, functions=tuple(f for f in functions if f[0] in names), body=inner)
        case Leaf(statement) | Micro(statement=statement):
            return node if statement in names else None
    raise ScheduleError(f"loop {loop} holds a copy of {node.array}. Remedy: distribute before pack.")
