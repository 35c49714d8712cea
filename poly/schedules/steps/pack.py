"""Copy the part of an array that some loops read to a buffer with a better layout.

for k_tile:                          for k_tile:
  for j_tile: …            ->          pack B            (the part of B that one iteration of k_tile reads)
                                       for j_tile: …
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, get_args

from microkernels.errors import plain, shown
from poly.errors import ScheduleError
from poly.ir.edits import edit, find_loop
from poly.ir.nest import Nest
from poly.ir.tree import Band, Copy, Memory, Node, Sequence, children, statements
from poly.schedules.steps.base import Arguments, check_integer

MEMORIES = get_args(Memory)
MOST_BUFFERS = 2
MOST_PAD = 4096
"""In elements; far fewer suffice to spread the rows of a copy over banks or cache lines."""
ROLES = ("left", "right")


@dataclass(frozen=True)
class Pack:
    """Each iteration of the loop `at` first copies the part of `array` that it reads; without a loop, one copy is made.

    `statement` selects the reads of one statement, `role` (`left` or `right`) those of one operand of a contraction
    that reads the array twice. `memory` is a box's memory on an OpenCL device, `pad` the number of unused elements
    after each of its rows, `buffers` the number of boxes that are filled in turn.
    """

    array: str
    at: str | None = None
    statement: str | None = None
    role: str | None = None
    memory: Memory = "global"
    pad: int = 0
    buffers: int = 1
    name: ClassVar[str] = "pack"
    reorders: ClassVar[bool] = False

    def apply(self, nest: Nest, tree: Node) -> Node:
        return _inserted(nest, tree, self._node(tree), self.at)

    def arguments(self) -> Arguments:
        given = {"at": self.at, "statement": self.statement, "role": self.role}
        placed = {"memory": self.memory, "pad": self.pad, "buffers": self.buffers}
        usual = {"memory": "global", "pad": 0, "buffers": 1}
        named = {key: value for key, value in given.items() if value is not None}
        return (self.array,), {**named, **{key: value for key, value in placed.items() if value != usual[key]}}

    def _node(self, tree: Node) -> Copy:
        """The copy as a node, with the whole tree as its body."""
        return Copy(self.array, tree, self.role, self.statement, self.memory, self.pad, self.buffers)


def _inserted(nest: Nest, tree: Node, copy: Copy, at: str | None) -> Node:
    """The tree with a copy in each iteration of the loop `at`; the body of `copy` is replaced.

    Without a loop, the copy is made once, before the loops that read the array.

    Raises:
        ScheduleError: no such array, loop, statement, memory or role; a number out of range; or an array that the
            loops do not read.
    """
    array, statement = copy.array, copy.statement
    names = [a.name for a in nest.arrays if a.shape]
    if array not in names:
        raise ScheduleError(f"pack: {nest.name} has no array {plain(array)}. Arrays: {', '.join(names)}.")
    _check_layout(copy, at)
    band = find_loop(tree, at) if at is not None else None
    readers = _readers(nest, band.body if band else tree, array, statement)
    if not readers:
        who = plain(statement) if statement else ("what is below " + at if at else nest.name)
        raise ScheduleError(f"pack({array}): {who} does not read {array}.")
    place = band.body if band else _around(tree, readers)
    packed = replace(copy, body=place)
    return edit(tree, band, replace(band, body=packed)) if band else edit(tree, place, packed)


def _check_layout(copy: Copy, at: str | None) -> None:
    """Refuse an invalid memory, role, padding or number of boxes."""
    if copy.memory not in MEMORIES:
        raise ScheduleError(f"pack({copy.array}, memory={shown(copy.memory)}): the memories are {', '.join(MEMORIES)}.")
    if copy.role not in (None, *ROLES):
        raise ScheduleError(f"pack({copy.array}, role={shown(copy.role)}): the roles are {' and '.join(ROLES)}.")
    check_integer(f"the padding of the rows of a copy of {copy.array}", copy.pad, least=0, most=MOST_PAD)
    check_integer(f"the number of boxes for {copy.array}", copy.buffers, least=1)
    if copy.buffers > MOST_BUFFERS:
        raise ScheduleError(f"pack({copy.array}, buffers={shown(copy.buffers)}): there are 1 or {MOST_BUFFERS} boxes.")
    if copy.buffers > 1 and at is None:
        raise ScheduleError(
            f"pack({copy.array}, buffers={copy.buffers}): the boxes take turns with the passes of a loop. "
            "Remedy: name it, at=…"
        )


def _readers(nest: Nest, node: Node, array: str, statement: str | None) -> frozenset[str]:
    below = [nest.statement(name) for name in statements(node) if statement in (None, name)]
    return frozenset(s.name for s in below if any(load.array == array for load in s.reads))


def _around(node: Node, names: frozenset[str]) -> Node:
    """The largest subtree with the named statements that does not start with a sequence of them and others."""
    if names >= set(statements(node)):
        return node
    inside = next((child for child in children(node) if names <= set(statements(child))), None)
    if inside is None:
        return node
    if isinstance(node, Band | Copy) and not isinstance(inside, Sequence):
        return node
    return _around(inside, names)
