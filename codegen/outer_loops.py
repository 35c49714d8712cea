"""Lanes along a loop around others: each lane runs an iteration, and all go through the inner loops together.

for x:  # vectorize                  for (x…; x += 32)
  s = 0                                f32x8 s_all[4];
  for r:                               for (v < 4) for (lane < 8) s_lanes.lane[lane] = 0;
    s += g[r]*img[x + r]       ->      for (r…)
  tmp[x] = s                             for (v < 4) for (lane < 8)  // a vector operation
                                           s_lanes.lane[lane] += g[r]*img[x + 8*v + lane + r];
                                       for (v < 4) for (lane < 8) tmp[x + 8*v + lane] = s_lanes.lane[lane];

The variables of an iteration are vectors, in registers over the inner loops, and so are elements that these write, and
that stay the same in them. No inner loop's bounds may depend on the lane. What is left behind whole vectors runs in one
that ends with the loop, if iterations may run twice, and otherwise one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

import cgen

from codegen import style
from codegen.elements import Element
from codegen.ir.expr import accessed, loads
from codegen.ir.integer import Compare, Int, Linear, Test, minimum, names_of, parts_of
from codegen.ir.loop_ir import Block, Comment, Declare, For, If, Node, Once, Run, inside, substituted, walk
from codegen.ir.program import VECTORS, Assign, Program
from codegen.lanes.counted import each_lane, lane_index
from codegen.lanes.reached import conditions, conjunction
from codegen.lanes.reductions import PART_OF_REGISTERS
from codegen.lanes.register_tile import is_vector, moved_whole
from codegen.lanes.simd import Use, declared, is_apart, printer_of, uses
from codegen.lanes.widened import widened
from codegen.names import all_fresh, c_name, fresh
from codegen.scalar import StatementPrinter
from codegen.scope import LoopScope
from codegen.style import Line, around, branch
from codegen.typed_text import literal
from microkernels.dtypes import DType, i32


@dataclass(frozen=True)
class OuterLanes:
    """A vector loop around others: its lanes and vectors, and whether iterations may run twice."""

    loop: For
    end: Int
    lanes: int
    vectors: int
    widest: int
    """The bytes of the largest element in a lane."""
    repeats: bool


def has_loops(node: Node) -> bool:
    """Whether there is a loop at or below a node."""
    return any(isinstance(part, For) for part in walk(node))


def outer_lanes(loop: For, program: Program) -> OuterLanes | None:
    """The lanes of a loop around others; None if the bounds of these depend on it, or a statement is no assignment."""
    if loop.end is None or loop.step != 1 or not all(_is_uniform(part, loop.variable) for part in walk(loop.body)):
        return None
    dtypes = {buffer.name: buffer.dtype for buffer in program.buffers}
    own = frozenset(_lasting(loop.body))
    if any(buffer.shape or buffer.dtype.is_stored for buffer in program.buffers if buffer.name in own):
        return None
    arrays = set(own)
    for use in uses(loop.body):
        assign = program.statements[use.statement].body
        if not isinstance(assign, Assign) or len(accessed(assign.expr)) > len(loads(assign.expr)):
            return None
        arrays |= {load.array for load in (assign.target, *loads(assign.expr))}
    written = _written(loop.body, program) - declared(loop.body)
    widest = max(i32.size, *(dtypes[name].size for name in arrays))
    lanes = min(program.isa.most_lanes, program.isa.vector_bytes // widest)
    if loop.span is not None and loop.span < lanes:
        return None
    kept = max(1, len(own | written))
    vectors = max(1, min(VECTORS, program.isa.registers // (PART_OF_REGISTERS * kept)))
    return OuterLanes(loop, loop.end, lanes, vectors, widest, _may_repeat(loop.body, program))


def _is_uniform(node: Node, variable: str) -> bool:
    """Whether all lanes of a loop over a variable go through a node together, or it has no loop."""
    match node:
        case For():
            return variable not in node.start.names | names_of(node.test) and not node.mark.parallel
        case If():
            return variable not in names_of(node.test) or not has_loops(node)
    return isinstance(node, Once | Block | Comment | Declare | Run)


def _lasting(node: Node) -> Iterator[str]:
    """The variables that are declared around loops."""
    for part in walk(node):
        if isinstance(part, Declare) and has_loops(part):
            yield from part.buffers


def _written(node: Node, program: Program) -> frozenset[str]:
    """The arrays that assignments at or below a node write."""
    bodies = (program.statements[use.statement].body for use in uses(node))
    return frozenset(body.target.array for body in bodies if isinstance(body, Assign))


def _may_repeat(body: Node, program: Program) -> bool:
    """Whether an iteration may run again: of each array it reads none of the elements that it writes, or first sets."""
    own, every = declared(body), tuple(uses(body))
    return all(
        _is_set_first(array, every, program) or not any(_reads(array, use, program) for use in every)
        for array in _written(body, program) - own
    )


def _reads(array: str, use: Use, program: Program) -> bool:
    """Whether an instance reads elements of an array."""
    assign = program.statements[use.statement].body
    assert isinstance(assign, Assign), "all instances are assignments"
    updates = assign.op != "=" and assign.target.array == array
    return updates or any(load.array == array for load in loads(assign.expr))


def _is_set_first(array: str, every: Sequence[Use], program: Program) -> bool:
    """Whether instances access a single element of an array, which the first of them always sets."""
    found = [(use, element) for use in every for element in _elements(use, program) if element.array == array]
    first = found[0][0]
    statement = program.statements[first.statement]
    always = not first.nested and not first.conditional and statement.where is None
    return always and not _reads(array, first, program) and len({element for _, element in found}) == 1


def _elements(use: Use, program: Program) -> list[Element]:
    """The elements that an instance accesses, the one that it writes first."""
    assign = program.statements[use.statement].body
    assert isinstance(assign, Assign), "all instances are assignments"
    return list(map(printer_of(use, program).at, (assign.target, *loads(assign.expr))))


def _kept(node: Node, variable: str, program: Program) -> tuple[Element, ...]:
    """The elements that stay in registers over a node inside the loop over a variable, and its loops.

    If the node runs at all, it writes them. They are the same in all iterations of its loops, some of which access
    them, and nothing else in it accesses what may be one of them.
    """
    needed = {part for test in _entered(node) for part in parts_of(test)}
    own, each = declared(node), tuple(uses(node))
    inner = {part.variable for part in walk(node) if isinstance(part, For)}
    nested = {element for use in each if use.nested for element in _elements(use, program)}
    every = dict.fromkeys(element for use in each for element in _elements(use, program))
    stored = {buffer.name for buffer in program.buffers if buffer.dtype.is_stored}
    found: dict[Element, None] = {}
    for run, tests in _always(node):
        element = _elements(Use(run.statement, run.values), program)[0]
        always = needed.issuperset(tests) and program.statements[run.statement].where is None
        alone = all(other == element or is_apart(other, element) for other in every)
        moves = variable in element.names and inner.isdisjoint(element.names)
        if always and alone and moves and element in nested and element.array not in own | stored:
            found[element] = None
    return tuple(found)


def _entered(node: Node) -> tuple[Test, ...]:
    """The conditions without which a loop does nothing."""
    return (node.entered, *conditions(node)) if isinstance(node, For) else ()


def _always(whole: Node) -> Iterator[tuple[Run, tuple[Test, ...]]]:
    """The instances in a node that always run if some conditions hold."""

    def visit(node: Node, tests: tuple[Test, ...]) -> Iterator[tuple[Run, tuple[Test, ...]]]:
        match node:
            case Run():
                yield node, tests
            case For():
                yield from visit(node.body, (*tests, *parts_of(node.entered)))
            case If(test, then, None):
                yield from visit(then, (*tests, *parts_of(test)))
            case Block() | Comment() | Declare() | Once():
                for child in inside(node):
                    yield from visit(child, tests)

    yield from visit(whole, ())


Write = Callable[[Node, LoopScope], list[cgen.Generable]]
"""Prints a node in a scope."""


@dataclass(frozen=True)
class OuterLines:
    """A loop around others to be printed in lanes."""

    outer: OuterLanes
    program: Program
    printer: StatementPrinter
    """Prints elements whose indices are in C's variables."""
    write: Write
    in_order: Callable[[For], list[cgen.Generable]]
    scope: LoopScope
    """The scope inside the loop."""

    def lines(self) -> list[cgen.Generable]:
        """All vectors at a time, then one at a time, then what is left."""
        outer, loop = self.outer, self.outer.loop
        block, span = outer.lanes * outer.vectors, loop.span
        lines: list[cgen.Generable] = [Line(f"int64_t {loop.variable} = {loop.start};", loop.start.names)]
        if outer.vectors > 1 and (span is None or span >= block):
            lines.append(self._while(self._value + (block - 1), block, self._vectors(self._value, outer.vectors)))
        if span is None or outer.vectors == 1 or span % block:
            lines += self._ending() if outer.repeats else self._rest()
        return [style.Braces(lines)]

    @property
    def _value(self) -> Int:
        return Linear.name(self.outer.loop.variable)

    def _while(self, last: Int, step: int, body: list[cgen.Generable]) -> cgen.Generable:
        """The body, repeated while the loop's variable may have a value; each time this goes on by a step."""
        test = Compare(last, "<", self.outer.end)
        update = Line(f"{self._value} += {step}")
        return style.ForStatement(Line(""), Line(str(test), test.names), update, style.Braces(body))

    def _one(self) -> cgen.Generable:
        """One iteration at a time."""
        return self._while(self._value, 1, self.write(self.outer.loop.body, self.scope))

    def _rest(self) -> list[cgen.Generable]:
        """One vector at a time, then one iteration at a time."""
        lanes, span = self.outer.lanes, self.outer.loop.span
        vector = self._while(self._value + (lanes - 1), lanes, self._vectors(self._value, 1))
        return [vector] if span is not None and span % lanes == 0 else [vector, self._one()]

    def _ending(self) -> list[cgen.Generable]:
        """One vector at a time, the last of which ends with the loop; one iteration at a time if they fill none."""
        outer, loop = self.outer, self.outer.loop
        first = fresh(f"{loop.variable}_first", self.scope.taken)
        place = minimum(self._value, outer.end - outer.lanes)
        begun = Line(f"const int64_t {first} = {place};", place.names)
        inner = replace(self, scope=self.scope.using([first]))
        vector = self._while(self._value, outer.lanes, [begun, *inner._vectors(Linear.name(first), 1)])
        if loop.span is not None:
            return [vector]
        enough = Compare(loop.start + outer.lanes, "<=", outer.end)
        test = Line(str(enough), enough.names)
        return [style.IfStatement(test, style.Braces([vector]), style.Braces([self._one()]))]

    def _vectors(self, first: Int, vectors: int) -> list[cgen.Generable]:
        """The body in the lanes of some vectors, from an iteration on."""
        return _Vectors(self, vectors, first).body()


@dataclass(frozen=True)
class _Vectors:
    """The body of a loop in the lanes of some vectors, from the iteration `first` on.

    What is done to a vector is written out for each: in a loop over them, gcc would keep an array of vectors in memory.
    """

    lines: OuterLines
    count: int
    first: Int

    def body(self) -> list[cgen.Generable]:
        """The C of the whole body."""
        outer, program = self.lines.outer, self.lines.program
        body, every = outer.loop.body, tuple(uses(outer.loop.body))
        names = self._names(_kept(body, outer.loop.variable, program), "all", self.lines.scope)
        read = {e: name for e, name in names.items() if not _is_set_first(e.array, every, program)}
        scope = self.lines.scope.using(names.values())
        before = [*self._declared(names), *self._moved(read, True, scope)]
        return [*before, *self.node(body, scope, names), *self._moved(names, False, scope)]

    def node(self, node: Node, scope: LoopScope, kept: Mapping[Element, str]) -> list[cgen.Generable]:
        """The C of a node, where vectors of these names have some elements."""
        if not has_loops(node):
            return self._in_lanes(node, scope, kept)
        match node:
            case For():
                return self._loop(node, scope, kept)
            case If(test, then, other):
                no = None if other is None else self.node(other, scope, kept)
                return [branch(test, self.node(then, scope, kept), no)]
            case Declare():
                elements = [Element(name, ()) for name in node.buffers]
                names = self._names(elements, "all", scope)
                inner = replace(scope.using(names.values()), wide=scope.wide.union(node.buffers))
                return [style.block([*self._declared(names), *self.node(node.body, inner, {**kept, **names})])]
            case Once():
                return self.node(node.body, scope.inside(node), kept)
        found: list[cgen.Generable] = []
        for loops, several in groupby(_in_sequence(node), has_loops):
            parts = tuple(several)
            found += (line for part in (parts if loops else [Block(parts)]) for line in self.node(part, scope, kept))
        return found

    def _loop(self, loop: For, scope: LoopScope, kept: Mapping[Element, str]) -> list[cgen.Generable]:
        """A loop inside, over which vectors keep elements that it writes."""
        own = self.lines.outer.loop.variable
        elements = (e for e in _kept(loop, own, self.lines.program) if e not in kept)
        names = self._names(elements, "all", scope)
        inner = scope.using(names.values()).inside(loop)
        body = [*self.lines.in_order(loop), *self.node(loop.body, inner, {**kept, **names})]
        needed = scope.unknown(_entered(loop)) if names else ()
        before = [*self._declared(names), *self._moved(names, True, inner)]
        lines = [*before, around(loop, body), *self._moved(names, False, inner)]
        return [branch(conjunction(needed), lines)] if needed else [style.Braces(lines)] if names else lines

    def _in_lanes(self, node: Node, scope: LoopScope, kept: Mapping[Element, str]) -> list[cgen.Generable]:
        """What has no loops, in each lane of all vectors."""
        each = [_elements(use, self.lines.program) for use in uses(node)]
        used = {element: name for element, name in kept.items() if any(element in found for found in each)}
        written = [element for element in used if any(element == found[0] for found in each)]
        if self.count > 1 and any(self._dtype(found[0]).size < i32.size for found in each):
            return self._in_one_loop(node, scope, used, written)
        return [style.Braces(self._vector(node, scope, used, written, number)) for number in range(self.count)]

    def _vector(
        self, node: Node, scope: LoopScope, kept: Mapping[Element, str], written: Sequence[Element], number: int
    ) -> list[cgen.Generable]:
        """The same in each lane of one vector."""
        lanes, placed = self._names(kept, "lanes", scope), self._placed(node, number)
        taken = scope.taken.union(lanes.values())
        wide = widened(placed, self.lines.program, self.lines.outer.widest, taken)
        held = {self._at(element, number): f"{name}.lane[lane]" for element, name in lanes.items()}
        held |= {one.element: one.lane for one in wide}
        inner = scope.holding(held).using([*taken, *(one.name for one in wide)])
        before = [f"{self._kind(e)}_lanes {name} = {{{kept[e]}[{number}]}};" for e, name in lanes.items()]
        loaded = (line for one in wide for line in one.loaded(self.lines.outer.lanes, self.lines.printer))
        after = [f"{kept[e]}[{number}] = {lanes[e]}.all;" for e in written]
        body = self._lanes(self.lines.write(placed, inner))
        return [*map(Line, before), *loaded, *body, *map(Line, after)]

    def _in_one_loop(
        self, node: Node, scope: LoopScope, kept: Mapping[Element, str], written: Sequence[Element]
    ) -> list[cgen.Generable]:
        """The same in one loop over the lanes of all vectors, which are copied to memory.

        Where the loop stores small elements, gcc then has whole vectors of these, and several of the others for each.
        """
        vectors = self._names(kept, "each", scope)
        lanes = self._names(kept, "lanes", scope.using(vectors.values()))
        lines: list[cgen.Generable] = []
        for element, name in vectors.items():
            copied = ", ".join(f"{kept[element]}[{number}]" for number in range(self.count))
            kind = self._dtype(element).c_name
            lines.append(Line(f"{self._kind(element)} {name}[{self.count}] = {{{copied}}};"))
            lines.append(Line(f"{kind} *const {lanes[element]} = ({kind} *){name};"))
        held = {self._at(element, 0): f"{name}[lane]" for element, name in lanes.items()}
        inner = scope.holding(held).using([*vectors.values(), *lanes.values()])
        lines += self._lanes(self.lines.write(self._placed(node, 0), inner), self.count)
        back = (f"{kept[e]}[{n}] = {vectors[e]}[{n}];" for e in written for n in range(self.count))
        return [style.Braces([*lines, *map(Line, back)])]

    def _values(self, number: int) -> dict[str, Int]:
        """The value of the loop's variable in a lane of a vector."""
        place = self.first + (number * self.lines.outer.lanes) + Linear.name("lane")
        return {self.lines.outer.loop.variable: place}

    def _placed(self, node: Node, number: int) -> Node:
        """A node in a lane of a vector."""
        return substituted(node, self._values(number))

    def _declared(self, names: Mapping[Element, str]) -> list[Line]:
        """Vectors for some elements, 0 at first, for compilers can't tell that all are set."""
        kinds = [(self._kind(element), name, self._dtype(element)) for element, name in names.items()]
        lines = [Line(f"{kind} {name}[{self.count}];") for kind, name, _ in kinds]
        filled = (f"fill_{kind}({name}, {self.count}, {literal(0, dtype).text});" for kind, name, dtype in kinds)
        return [*lines, *map(Line, filled)]

    def _moved(self, names: Mapping[Element, str], load: bool, scope: LoopScope) -> list[cgen.Generable]:
        """Vectors loaded from, or stored to, their elements."""
        printer, lines = self.lines.printer, list[cgen.Generable]()
        for element, lanes in self._names(names, "lanes", scope).items():
            for number in range(self.count):
                at, kind = self._at(element, number), self._kind(element)
                vector, lane = f"{names[element]}[{number}]", f"{lanes}.lane[lane]"
                if is_vector(at, printer):
                    lines.append(moved_whole(kind, f"&{vector}", at, printer, load))
                    continue
                memory = printer.element(at)
                move = Line(f"{lane} = {memory};" if load else f"{memory} = {lane};", printer.element_names(at))
                before, after = Line(f"{kind}_lanes {lanes} = {{{vector}}};"), Line(f"{vector} = {lanes}.all;")
                lines.append(style.Braces([before, *self._lanes([move]), *[after] * load]))
        return lines

    def _lanes(self, lines: list[cgen.Generable], vectors: int = 1) -> list[cgen.Generable]:
        """Lines for each lane of some vectors."""
        return each_lane(lane_index(self.lines.outer.widest), vectors * self.lines.outer.lanes, lines)

    def _names(self, elements: Iterable[Element], word: str, scope: LoopScope) -> dict[Element, str]:
        """New names of what holds elements."""
        several = tuple(elements)
        names = all_fresh([f"{c_name(element.array)}_{word}" for element in several], scope.taken)
        return dict(zip(several, names, strict=True))

    def _at(self, element: Element, number: int) -> Element:
        """The element in a lane of a vector."""
        values = self._values(number)
        return Element(element.array, tuple(index.substitute(values) for index in element.indices))

    def _dtype(self, element: Element) -> DType:
        return self.lines.printer.buffers[element.array].dtype

    def _kind(self, element: Element) -> str:
        """The type of a vector of elements."""
        return f"{self._dtype(element).name}x{self.lines.outer.lanes}"


def _in_sequence(node: Node) -> Iterator[Node]:
    """What runs one after the other in place of a node, with blocks and comments taken apart."""
    if isinstance(node, Block | Comment) and has_loops(node):
        for child in inside(node):
            yield from _in_sequence(child)
    else:
        yield node
