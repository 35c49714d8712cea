"""The loop tree, which schedules transform. It is immutable: every transformation returns a new tree.

    Band("i", {S0: i, S1: i})            for i:
      Sequence                              S0
        Leaf("S0")                          for j:
        Band("j", {S1: j})                    S1
          Leaf("S1")

A band is one loop. For each statement below it, the band has the quasi-affine function of the statement's iterators
that the loop counts: `i`, `floor(i/6)`, `t + i`, `-i`. The order of execution is the lexicographic order of these
functions and of the positions in sequences, outermost first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Literal

import islpy as isl

from microkernels.cached import cached_property
from microkernels.kernel import Microkernel

Memory = Literal["global", "local", "private"]
"""The memory of a copy on an OpenCL device: shared by all, by a work-group, or private to a work-item."""


@dataclass(frozen=True)
class Leaf:
    """A statement."""

    statement: str


@dataclass(frozen=True)
class Sequence:
    """Children in order. Each statement is below exactly one of them."""

    children: tuple[Node, ...]


@dataclass(frozen=True)
class Band:
    """One loop over `body`.

    `functions` holds, for each statement below, an `isl.PwAff` on the statement's domain space
    (`{ S0[i, j] -> [(floor(i/6))] }`); a tuple of pairs, in the order of the leaves.
    """

    name: str
    functions: tuple[tuple[str, isl.PwAff], ...]
    body: Node
    parallel: bool = False
    vectorize: bool = False
    unroll: int = 0
    group: bool = False
    """On an OpenCL device, work-groups share the iterations; such a loop is also `parallel`."""
    items: int = 0
    """On an OpenCL device, the number of work-items of a group that share the iterations; 0 if they are not shared."""
    variables: tuple[str, ...] = field(default=(), repr=False)
    """The locals of which each iteration has its own, which lowering decides."""

    def function(self, statement: str) -> isl.PwAff:
        return self._by_statement[statement]

    @cached_property
    def _by_statement(self) -> dict[str, isl.PwAff]:
        return dict(self.functions)


@dataclass(frozen=True)
class Copy:
    """Before `body` runs, copy the part of `array` that it reads into a buffer, and read that instead.

    If a microkernel below reads the array, the copy is laid out in that kernel's panels. If plain statements read it,
    the copy is a dense box, the array's footprint in one run of `body`.
    """

    array: str
    body: Node
    role: str | None = None
    """`left` or `right`, if one microkernel reads the array in both roles."""
    statement: str | None = None
    """The statement whose reads are packed; None for all statements below."""
    memory: Memory = "global"
    pad: int = 0
    """The number of unused elements after each row of a box."""
    buffers: int = 1
    """With 2, the iterations of the surrounding loop fill two boxes in turn."""

    @property
    def label(self) -> str:
        """`A into local memory, rows 1 further apart, 2 boxes in turn`."""
        where = f" into {self.memory} memory" if self.memory != "global" else ""
        apart = f", rows {self.pad} further apart" if self.pad else ""
        return f"{self.array}{where}{apart}{f', {self.buffers} boxes in turn' if self.buffers > 1 else ''}"


@dataclass(frozen=True)
class Micro:
    """A microkernel in place of the innermost loops of one contraction statement.

    The loops that it absorbs are kept, by their role in the kernel's contract; their bodies are not used.
    """

    kernel: Microkernel
    statement: str
    rows: Band | None
    columns: Band | None
    reduce: tuple[Band, ...]
    exchanged: bool = False
    """Whether the operands have changed sides: `left` is what `poly.analysis.contraction.recognise` calls `right`."""
    initial: str | None = None
    """A statement that sets the output to 0, which the kernel's first visit to each element does instead."""


Node = Leaf | Sequence | Band | Copy | Micro


def children(node: Node) -> tuple[Node, ...]:
    match node:
        case Sequence(nodes):
            return nodes
        case Band(body=body) | Copy(body=body):
            return (body,)
    return ()


def mapped(node: Node, change: Callable[[Node], Node]) -> Node:
    """The node with its children changed."""
    match node:
        case Sequence(nodes):
            return Sequence(tuple(map(change, nodes)))
        case Band(body=body) | Copy(body=body):
            return replace(node, body=change(body))
    return node


def map_absorbed(micro: Micro, change: Callable[[Band], Band]) -> Micro:
    """The microkernel with the loops that it absorbs changed: rows, columns, then the reduction from outside in."""
    rows, columns = (band and change(band) for band in (micro.rows, micro.columns))
    return replace(micro, rows=rows, columns=columns, reduce=tuple(map(change, micro.reduce)))


def walk(node: Node) -> Iterator[Node]:
    """The node and all nodes below it, parents first."""
    waiting = [node]
    while waiting:
        found = waiting.pop()
        yield found
        waiting.extend(reversed(children(found)))


def has_kernel(node: Node) -> bool:
    """Whether a microkernel runs at or below a node."""
    return any(isinstance(below, Micro) for below in walk(node))


def parts(node: Node) -> tuple[Node, ...]:
    """A sequence's children, or the node alone."""
    return node.children if isinstance(node, Sequence) else (node,)


def statements(node: Node) -> tuple[str, ...]:
    """The statements below, in textual order."""
    return tuple(n.statement for n in walk(node) if isinstance(n, Leaf | Micro))


def bands(node: Node) -> tuple[Band, ...]:
    """The loops, outermost first, in textual order."""
    return only_loops(walk(node))


def only_loops(nodes: Iterable[object]) -> tuple[Band, ...]:
    """The loops among nodes: of a path, or of a body."""
    return tuple(node for node in nodes if isinstance(node, Band))
