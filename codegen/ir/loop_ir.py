"""The intermediate representation of loops: made from isl's syntax tree, and printed as C, OpenCL C and Python.

    For i_tile = 0; i_tile < M; 6             for (int64_t i_tile = 0; i_tile < M; i_tile += 6)
      For i = 0; i < min(6, M - i_tile); 1      for (int64_t i = 0; i < imin(6, M - i_tile); i += 1)
        Run S0(i_tile + i)                        A[i_tile + i] = 0.0f;

Every name is a size or the variable of an enclosing loop; nested loops have distinct variables. The bodies of
statements that are not assignments consist of the same nodes, with instructions in place of `Run`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from codegen.ir.instructions import START, Instruction, Let, instruction_names, replaced_in, with_values
from codegen.ir.integer import Compare, Int, Linear, Op, Test, names_of, replaced
from codegen.names import fresh


@dataclass(frozen=True)
class LoopMark:
    """The name of a loop in the schedule, and the ways in which the loop runs."""

    name: str
    parallel: bool = False
    vectorize: bool = False
    unroll: int = 0
    group: bool = False
    items: int = 0
    variables: tuple[str, ...] = ()
    """The locals of which each iteration has its own."""


NO_MARK = LoopMark("")


@dataclass(frozen=True)
class For:
    """`for (variable = start; test; variable += step) body`."""

    variable: str
    start: Int
    test: Test
    step: int
    body: Node
    mark: LoopMark = NO_MARK

    @staticmethod
    def counted(variable: str, end: Int, body: Node, start: Int = START, step: int = 1) -> For:
        """`for (variable = start; variable < end; variable += step) body`."""
        return For(variable, start, Compare(Linear.name(variable), "<", end), step, body)

    @property
    def end(self) -> Int | None:
        """The first value past the end; None if the test is more than one upper bound."""
        test = self.test
        if not isinstance(test, Compare) or test.symbol not in ("<", "<=") or test.left != Linear.name(self.variable):
            return None
        return test.right + (test.symbol == "<=")

    @property
    def span(self) -> int | None:
        """How far the end is from the start; None if that is not known."""
        return None if self.end is None else (self.end - self.start).number

    @property
    def most_span(self) -> int | None:
        """How far it is at most: 64 of a loop from `64*t` to `min(N, 64*t + 64)`; None if that is not known."""
        if self.end is None:
            return None
        starts, ends = _arguments("max", self.start), _arguments("min", self.end)
        spans = ((end - start).number for start in starts for end in ends)
        return min((span for span in spans if span is not None), default=None)

    def varies_with(self, name: str, step: int) -> bool:
        """Whether the number of iterations depends on a variable that goes on by `step`.

        That a last, partial block has fewer doesn't count.
        """
        if self.end is None:
            return name in names_of(self.test) or name in self.start.names
        starts, ends = _arguments("max", self.start), _arguments("min", self.end)
        spans = [end - start for start in starts for end in ends]
        varying = [abs(span.coefficient(name)) * step for span in spans if name in span.names]
        least = min((span.number for span in spans if span.number is not None), default=None)
        moved = any(name in start.names and name not in (end - start).names for start in starts for end in ends)
        return bool(varying) and not moved and (least is None or least > min(varying))

    @property
    def entered(self) -> Test:
        """The condition that the loop runs at least once."""
        return self.test_at(self.start)

    def test_at(self, value: Int) -> Test:
        """The test for a value of the variable."""
        return replaced(self.test, {self.variable: value})


def _arguments(extreme: str, value: Int) -> tuple[Int, ...]:
    """The values of which one is the least or the greatest; the value itself if it is neither."""
    atom = value.atom
    return atom.args if isinstance(atom, Op) and atom.name == extreme else (value,)


@dataclass(frozen=True)
class Once:
    """A loop of one iteration; its body already has `value` in place of the variable."""

    value: Int
    body: Node
    mark: LoopMark = NO_MARK


@dataclass(frozen=True)
class If:
    """`if (test) then else other`."""

    test: Test
    then: Node
    other: Node | None = None


@dataclass(frozen=True)
class Block:
    """Nodes in sequence."""

    nodes: tuple[Node, ...]


@dataclass(frozen=True)
class Run:
    """An instance of a statement: the values of its iterators."""

    statement: str
    values: tuple[Int, ...]


@dataclass(frozen=True)
class Comment:
    """A comment above a node, for readers."""

    text: str
    body: Node


@dataclass(frozen=True)
class Declare:
    """Variables for locals, by the names of their buffers, in `body`."""

    buffers: tuple[str, ...]
    body: Node


Node: TypeAlias = For | Once | If | Block | Run | Comment | Declare | Instruction


def inside(node: Node) -> tuple[Node, ...]:
    """The children of a node."""
    match node:
        case Block():
            return node.nodes
        case If():
            return (node.then,) if node.other is None else (node.then, node.other)
        case For() | Once() | Comment() | Declare():
            return (node.body,)
    return ()


def walk(node: Node) -> Iterator[Node]:
    """A node and all below it, in textual order."""
    yield node
    for child in inside(node):
        yield from walk(child)


def is_threaded(node: Node) -> bool:
    """Whether threads share a loop: one that is marked as parallel, whose end is known, and not inside another one."""
    if isinstance(node, For | Once) and node.mark.parallel:
        return isinstance(node, For) and node.end is not None
    return any(map(is_threaded, inside(node)))


def mapped(node: Node, change: Callable[[Node], Node]) -> Node:
    """The node with its children changed."""
    match node:
        case Block():
            return Block(tuple(map(change, node.nodes)))
        case If():
            return If(node.test, change(node.then), None if node.other is None else change(node.other))
        case For() | Once() | Comment() | Declare():
            return replace(node, body=change(node.body))
    return node


def restricted(node: Node, wanted: Callable[[str], bool]) -> Node:
    """The node without the instances of statements that are not wanted, and without what is empty then.

    for i: S0(i); S1(i)      -> for i: S1(i)           if S1 is wanted
    for j: S0(j)
    """

    def kept(node: Node) -> Node | None:
        match node:
            case Run():
                return node if wanted(node.statement) else None
            case Block():
                return Block(inner) if (inner := tuple(n for n in map(kept, node.nodes) if n is not None)) else None
            case If():
                then, other = kept(node.then), node.other and kept(node.other)
                return None if then is None and other is None else replace(node, then=then or Block(()), other=other)
            case For() | Once() | Comment() | Declare():
                return None if (body := kept(node.body)) is None else replace(node, body=body)
        return node

    return kept(node) or Block(())


def substituted(node: Node, values: Mapping[str, Int]) -> Node:
    """The node with names (sizes, or variables of enclosing loops) replaced by expressions."""
    made = mapped(node, lambda child: substituted(child, values))
    match made:
        case For():
            return replace(made, start=made.start.substitute(values), test=replaced(made.test, values))
        case Once():
            return replace(made, value=made.value.substitute(values))
        case If():
            return replace(made, test=replaced(made.test, values))
        case Run():
            return replace(made, values=tuple(value.substitute(values) for value in made.values))
        case Block() | Comment() | Declare():
            return made
    return with_values(made, values)


def written_out(node: Node) -> Node:
    """The node with the loops whose mark unrolls all of their iterations written out.

    for k < 3:  # unroll by 3               S(0)
      S(k)                           ->     S(1)
                                            S(2)
    """
    made = mapped(node, written_out)
    if not isinstance(made, For) or made.end is None or made.mark.unroll < 2:
        return made
    span = (made.end - made.start).number
    if span is None or span > made.mark.unroll * made.step:
        return made
    values = (made.start + at for at in range(0, span, made.step))
    return Block(tuple(substituted(made.body, {made.variable: value}) for value in values))


def renamed(node: Node, names: Mapping[str, str], taken: frozenset[str]) -> Node:
    """The node with sizes renamed as in `names`, and loop variables renamed to C identifiers that are not `taken`."""
    match node:
        case For():
            new = fresh(node.variable, taken)
            own = {**names, node.variable: new}
            start, test = node.start.renamed(names), replaced(node.test, _named(own))
            return replace(node, variable=new, start=start, test=test, body=renamed(node.body, own, taken | {new}))
        case Once():
            node = replace(node, value=node.value.renamed(names))
        case If():
            node = replace(node, test=replaced(node.test, _named(names)))
        case Run():
            return replace(node, values=tuple(value.renamed(names) for value in node.values))
    return mapped(node, lambda child: renamed(child, names, taken))


def names(node: Node) -> frozenset[str]:
    """All names in a node, including those of the variables that it declares."""
    match node:
        case For():
            own = node.start.names | names_of(node.test)
        case Once():
            own = node.value.names
        case If():
            own = names_of(node.test)
        case Run():
            own = frozenset().union(*(value.names for value in node.values))
        case Block() | Comment() | Declare():
            own = frozenset()
        case _:
            own = instruction_names(node)
    return own.union(*map(names, inside(node)))


def below(definitions: Sequence[Let], nodes: Sequence[Node]) -> Block:
    """The nodes below those definitions that they use, directly or through others; numbers and names are put in place.

    lanes = 16; this_row = row; b = 6*b_tile                  b = 6*b_tile
    pack(B_panels, lanes, B + b)                      ->      pack(B_panels, 16, B + b)
    """
    simple: dict[str, Int] = {}
    others: list[Let] = []
    for definition in dict.fromkeys(definitions):
        value = replaced_in(definition.value, simple)
        if isinstance(value, Linear) and value.is_simple:
            simple[definition.name] = value
        else:
            others.append(replace(definition, value=value))
    kept = [substituted(node, simple) for node in nodes]
    used = frozenset[str]().union(*map(names, kept))
    for other in reversed(others):
        if other.name in used:
            kept.insert(0, other)
            used |= names(other)
    return Block(tuple(kept))


def _named(names: Mapping[str, str]) -> dict[str, Int]:
    return {old: Linear.name(new) for old, new in names.items()}
