"""Reductions in vector lanes: each lane of several vectors reduces its share, and all are combined at the end.

float s_sum = 0;                      f32x16 s_sum[4];
for (j…)                              while (j + 63 < N)
  s_sum += A[j];             ->         for each v, written out
                                          for (lane…)  // a vector operation
                                            s_lanes.lane[lane] += A[j + lane];

A compiler may not reorder a sum by itself. Written out, the order needs no flag, and is the same with all compilers.
The vectors are written out as well: in a loop over them, gcc 12 keeps them in memory unless the body is tiny.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import cgen

from codegen import style
from codegen.arithmetic import unsigned
from codegen.elements import Element
from codegen.ir.expr import loads
from codegen.ir.integer import Compare, Int, Linear, Test, minimum
from codegen.ir.loop_ir import For
from codegen.ir.program import VECTORS, Assign, Program
from codegen.lanes.counted import counted, each_lane, lane_index
from codegen.lanes.simd import LaneReduction, neutral
from codegen.lanes.vector_calls import Kept, VectorCalls, in_lanes
from codegen.macros import HIDDEN
from codegen.names import c_name, fresh
from codegen.scalar import StatementPrinter
from codegen.style import Line
from microkernels.dtypes import DType, i32

PART_OF_REGISTERS = 2
"""The vectors reduced into take at most one register in this many."""
MASKED_SIZE = 4
"""The smallest elements, in bytes, of which every instruction set with masks has masked loads."""


@dataclass(frozen=True)
class Shape:
    """The lanes of a vector, the number of vectors, and whether partial vectors are loaded by a mask."""

    lanes: int
    vectors: int
    masked: bool
    wide: bool = False
    """Whether a vector is longer than a register. Copies of such vectors take long, so their lanes stay in memory."""

    @property
    def block(self) -> int:
        """The iterations that fill all vectors once."""
        return self.lanes * self.vectors


def shape(program: Program, found: Sequence[LaneReduction], trips: int | None, narrow: int | None = None) -> Shape:
    """The shape of a loop with these reductions and `trips` iterations (None: unknown).

    All reductions have the same number of lanes, so those in the widest type fill a register; or several, if the loop
    reads elements of `narrow` bytes: compilers have as many iterations in a vector as it has of the smallest elements.
    """
    isa = program.isa
    own = min(isa.most_lanes, *(isa.lanes(reduction.dtype) for reduction in found))
    lanes = own if narrow is None else max(own, isa.vector_bytes // narrow)
    vectors = max(1, min(VECTORS, isa.registers // (PART_OF_REGISTERS * len(found))) * own // lanes)
    masked = _has_masks(program) and not any(_reads_itself(reduction, program) for reduction in found)
    if trips is not None:
        lanes = min(lanes, 1 << max(0, trips.bit_length() - 1))
        vectors = max(1, min(vectors, trips // lanes))
    return Shape(lanes, vectors, masked, lanes > own)


def full_vectors(program: Program, lanes: int, trips: int | None) -> Shape:
    """The shape of a loop without reductions in vectors of so many lanes, also if there are fewer iterations."""
    vectors = VECTORS if trips is None else max(1, min(VECTORS, trips // lanes))
    return Shape(lanes, vectors, _has_masks(program))


def _has_masks(program: Program) -> bool:
    return program.isa.masks and all(buffer.dtype.size >= MASKED_SIZE for buffer in program.buffers)


def _reads_itself(reduction: LaneReduction, program: Program) -> bool:
    """Whether an array is reduced into itself: `A[i, j] -= A[i, k]*A[j, k]`.

    Elements stored one at a time are then loaded soon after; a masked vector load that covers one would stall on it.
    """
    assign = program.statements[reduction.statement].body
    return isinstance(assign, Assign) and any(load.array == assign.target.array for load in loads(assign.expr))


@dataclass(frozen=True)
class Counter:
    """A loop's variable: its start, end (None: unknown) and step; `test` is the loop's condition for a value of it."""

    variable: str
    start: Int
    end: Int | None
    step: int
    test: Callable[[Int], Test]

    @staticmethod
    def of(loop: For) -> Counter:
        return Counter(loop.variable, loop.start, loop.end, loop.step, loop.test_at)

    @property
    def trips(self) -> int | None:
        """The number of iterations; None if it is unknown."""
        if self.end is None or self.end.terms or self.start.terms:
            return None
        return max(0, -((self.start.constant - self.end.constant) // self.step))


Body = Callable[[Int, Mapping[str, str], Mapping[Element, str]], list[cgen.Generable]]
"""The loop's body for a value of its variable, for the variable that each statement reduces into, and for what is kept
around calls of whole vectors: with nothing, there are none."""


@dataclass(frozen=True)
class Partial:
    """A reduction's variables: its vectors, the lanes of the present one, a scalar for one lane or the result, and the
    vector that takes in those of a loop that runs again."""

    reduction: LaneReduction
    vectors: str
    lanes: str
    one: str
    every: str

    @staticmethod
    def named(reduction: LaneReduction, taken: frozenset[str]) -> Partial:
        root = reduction.root
        names = (reduction.name, f"{root}_lanes", f"{root}_lane", f"{root}_all")
        return Partial(reduction, *(fresh(name, taken) for name in names))

    @property
    def names(self) -> frozenset[str]:
        return frozenset((self.vectors, self.lanes, self.one, self.every))

    def type(self, shape: Shape) -> str:
        """The type of its vectors."""
        return f"{self.reduction.dtype.name}x{shape.lanes}"

    def helper(self, of: str, shape: Shape) -> str:
        """The name of a function on its vectors."""
        return f"{self.reduction.operation}{of}_{self.type(shape)}"

    def filled(self, shape: Shape, vectors: str, count: int) -> Line:
        """Some vectors start with the neutral element."""
        return Line(f"fill_{self.type(shape)}({vectors}, {count}, {neutral(self.reduction.op, self.reduction.dtype)});")

    @property
    def is_sum(self) -> bool:
        """Whether its scalar may be a sum of unsigned integers, which wraps around as that of signed ones."""
        dtype = self.reduction.dtype
        return self.reduction.op == "+" and not dtype.is_float and dtype.size >= i32.size

    def begun(self, smaller: DType | None) -> Line:
        """Its scalar, which may be of a smaller type, starts with the neutral element."""
        dtype = smaller or self.reduction.dtype
        kind = unsigned(dtype) if self.is_sum else dtype.c_name
        return Line(f"{kind} {self.one} = {neutral(self.reduction.op, dtype)};")

    @property
    def ended(self) -> Line:
        """The reduction's element takes in its scalar."""
        return self.stored(f"({self.reduction.dtype.c_name}){self.one}" if self.is_sum else self.one)

    def added(self, part: str, kind: DType) -> str:
        """Its scalar, an unsigned sum, takes in one of integers of a smaller type."""
        own = self.reduction.dtype
        return f"{self.one} = sum_{own.name}({self.one}, ({unsigned(own)})({kind.c_name}){part});"

    def total(self, shape: Shape, vectors: str) -> str:
        """The lanes of the first of some vectors, combined."""
        return f"{self.helper('_lanes', shape)}({vectors})"

    def stored(self, value: str) -> Line:
        """The reduction's element takes in a value."""
        return Line(self.reduction.store(value), self.reduction.names)


def partials(found: Sequence[LaneReduction], taken: frozenset[str]) -> tuple[Partial, ...]:
    """The variables of several reductions."""
    made: list[Partial] = []
    for reduction in found:
        made.append(Partial.named(reduction, taken.union(*(partial.names for partial in made))))
    return tuple(made)


@dataclass(frozen=True)
class Hoisted:
    """Variables that hold elements: their declarations, and their names by element."""

    lines: tuple[Line, ...]
    names: Mapping[Element, str]


def hoisted(elements: Sequence[Element], printer: StatementPrinter, taken: frozenset[str]) -> Hoisted:
    """Declares variables that hold elements."""
    lines: list[Line] = []
    names: dict[Element, str] = {}
    for element in elements:
        names[element] = fresh(f"{c_name(element.array)}_value", taken.union(names.values()))
        dtype = printer.buffers[element.array].dtype
        text = f"const {dtype.c_name} {names[element]} = {printer.element(element)};"
        lines.append(Line(text, printer.element_names(element)))
    return Hoisted(tuple(lines), names)


@dataclass(frozen=True)
class LaneLoop:
    """A loop to be printed in vector lanes."""

    counter: Counter
    shape: Shape
    partials: tuple[Partial, ...]
    body: Body
    taken: frozenset[str]
    aligned: tuple[Line, Int] | None = None
    """If whole vectors begin behind the loop's start: the line that declares where, and the value of the variable."""
    ahead: Callable[[Int], list[cgen.Generable]] = lambda value: []
    """What is done before each vector of the main loop, for a value of the variable."""
    into: Sequence[str] = ()
    """The vectors declared around that take in those of the loop; if there are none, the reductions' elements do."""
    calls: VectorCalls | None = None
    """What is called for whole vectors, which may be nothing else than vectors of the loop's shape."""

    def lines(self) -> list[cgen.Generable]:
        """All vectors at a time, then one vector at a time, then the remainder."""
        lines = [*self._start(), *self._all_vectors()]
        trips, shape = self.counter.trips, self.shape
        whole = trips is not None and trips % shape.block == 0 and self.aligned is None
        if not whole and self.counter.end is not None and self._has_masks:
            lines.append(self._masked(self.counter.end))
        elif not whole:
            one = [self._one_vector()] if shape.vectors > 1 else []
            if not self.into:
                return [*lines, *one, *self._scalars()]
            lines += [*one, *self._first_lane(self._test(self._value, 1))]
        if self.into:
            pairs = zip(self.partials, self.into, strict=True)
            return [*lines, *(Line(f"{p.helper('_into', shape)}(&{name}, {p.vectors});") for p, name in pairs)]
        return [*lines, *(p.stored(p.total(shape, p.vectors)) for p in self.partials)]

    def _start(self) -> list[cgen.Generable]:
        count = self.shape.vectors
        lines = [f"{partial.type(self.shape)} {partial.vectors}[{count}];" for partial in self.partials]
        start = self.counter.start
        return [*map(Line, lines), Line(f"int64_t {self.counter.variable} = {start};", start.names)]

    def _all_vectors(self) -> list[cgen.Generable]:
        """A short loop uses one vector: filling and combining the others would take longer than its work."""
        if self.shape.vectors == 1:
            return [*self._filled(1), self._one_vector()]
        others = range(1, self.shape.vectors)
        into = [(p.helper("_into", self.shape), p.vectors) for p in self.partials]
        joined = [f"{helper}({vectors}, &{vectors}[{v}]);" for helper, vectors in into for v in others]
        loop = self._while(self.shape.block, self._each_vector())
        block = style.Braces([*self._filled(self.shape.vectors), *self._up_to_lines(), loop, *map(Line, joined)])
        if not self.partials and self.aligned is None:
            return [loop]
        test = self._test(self.counter.start, self.shape.block)
        few = style.Braces(self._filled(1)) if self.partials else None
        return [style.IfStatement(Line(str(test), test.names), block, few)]

    def _each_vector(self) -> list[cgen.Generable]:
        """The share of every vector, written out if it is reduced into, without calls that would be as many."""

        def share(number: str) -> list[cgen.Generable]:
            return [*self.ahead(self._value), *self._vector(number), self._advance(self.shape.lanes)]

        if self.partials and self.calls is None and not self.shape.wide:
            return [style.Braces(share(str(number))) for number in range(self.shape.vectors)]
        number = fresh("v", self.taken)
        return [counted("int", number, self.shape.vectors, share(number))]

    def _up_to_lines(self) -> list[cgen.Generable]:
        """The iterations up to where whole vectors begin, in the first vector."""
        if self.aligned is None:
            return []
        first, value = self.aligned
        if self._has_masks:
            return [first, self._masked(value), Line(f"{self._value} = {value};", value.names)]
        return [first, *self._first_lane(Compare(self._value, "<", value))]

    def _first_lane(self, test: Test) -> list[cgen.Generable]:
        """One iteration at a time in the first vector's first lane, while the test holds."""
        one = self._body({p: self._at(p, "0") for p in self.partials}, self._value)
        loop = style.WhileStatement(Line(str(test), test.names), style.Braces([*one, self._advance(1)]))
        return [style.Braces([*self._unpacked("0"), loop, *self._packed("0")])]

    @property
    def _has_masks(self) -> bool:
        return self.shape.masked and self.counter.step == 1

    def _filled(self, count: int) -> list[cgen.Generable]:
        """The first `count` vectors start with the neutral element."""
        return [p.filled(self.shape, p.vectors, count) for p in self.partials]

    def _one_vector(self) -> cgen.Generable:
        return self._while(self.shape.lanes, [*self._vector("0"), self._advance(self.shape.lanes)])

    def _while(self, iterations: int, body: list[cgen.Generable]) -> cgen.Generable:
        """The body, repeated while this many iterations are left."""
        test = self._test(self._value, iterations)
        return style.WhileStatement(Line(str(test), test.names), style.Braces(body))

    def _test(self, value: Int, iterations: int) -> Test:
        """Whether this many iterations are left at a value of the variable."""
        return self.counter.test(value + (iterations - 1) * self.counter.step)

    def _masked(self, end: Int) -> cgen.Generable:
        """One vector at a time up to `end`, without the lanes beyond."""
        left = fresh("left", self.taken)
        least, test = minimum(self.shape.lanes, end - self._value), Compare(self._value, "<", end)
        text = f"{self._index} {left} = {'(int)' * (self._index == 'int')}{least};"
        known = [Line(f"{HIDDEN}({left})")] * (self.counter.trips is not None)
        body = [*self._vector("0", f"lane < {left}"), self._advance(self.shape.lanes)]
        lines = [Line(text if known else f"const {text}", least.names), *known, *body]
        return style.WhileStatement(Line(str(test), test.names), style.Braces(lines))

    def _vector(self, number: str, condition: str = "") -> list[cgen.Generable]:
        """One vector's share of the work; with a condition, only in the lanes that fulfil it."""
        value = self._value + Linear.name("lane") * self.counter.step
        every = {p: p.one if condition else self._at(p, "lane") for p in self.partials}
        kept = {k: k.one if condition else k.lane for k in self._kept}

        def lanes(lines: list[cgen.Generable]) -> list[cgen.Generable]:
            inner = self._lane(condition, lines) if condition else lines
            return each_lane(self._index, self.shape.lanes, inner)

        loops = in_lanes(self._body(every, value, kept), lanes)
        vectors = self.calls.vectors() if self.calls else []
        return [*self._unpacked(number), *vectors, *loops, *self._packed(number)]

    def _unpacked(self, number: str) -> list[Line]:
        """The lanes of one of the vectors, in variables."""
        if self.shape.wide:
            kinds = ((p, p.reduction.dtype.c_name) for p in self.partials)
            return [Line(f"{kind} *const {p.lanes} = ({kind} *)&{p.vectors}[{number}];") for p, kind in kinds]
        types = ((p, p.type(self.shape)) for p in self.partials)
        return [Line(f"{name}_lanes {p.lanes} = {{{p.vectors}[{number}]}};") for p, name in types]

    def _at(self, partial: Partial, lane: str) -> str:
        """A lane of the present vector."""
        return f"{partial.lanes}[{lane}]" if self.shape.wide else f"{partial.lanes}.lane[{lane}]"

    def _packed(self, number: str) -> list[Line]:
        """Lanes back in one of the vectors."""
        return [] if self.shape.wide else [Line(f"{p.vectors}[{number}] = {p.lanes}.all;") for p in self.partials]

    def _lane(self, condition: str, lines: list[cgen.Generable]) -> list[cgen.Generable]:
        """Every lane is loaded and stored, so that only the work between depends on the condition."""
        own = [(p.one, self._at(p, "lane"), p.reduction.dtype) for p in self.partials]
        own += [(k.one, f"{k.lanes}.lane[lane]", k.dtype) for k in self._kept]
        before = [f"{dtype.c_name} {one} = {lane};" for one, lane, dtype in own]
        after = [f"{lane} = {one};" for one, lane, _ in own]
        return [*map(Line, before), style.IfStatement(Line(condition), style.Braces(lines)), *map(Line, after)]

    @property
    def _kept(self) -> tuple[Kept, ...]:
        return self.calls.kept if self.calls else ()

    def _scalars(self) -> list[cgen.Generable]:
        """The combined lanes, then one iteration at a time."""
        totals = ((p, p.total(self.shape, p.vectors)) for p in self.partials)
        before = [f"{p.reduction.dtype.c_name} {p.one} = {total};" for p, total in totals]
        body = self._body({p: p.one for p in self.partials}, self._value)
        rest = self._while(1, [*body, self._advance(1)])
        return [*map(Line, before), rest, *(p.stored(p.one) for p in self.partials)]

    @property
    def _index(self) -> str:
        """The type of the lane counter."""
        sizes = [partial.reduction.dtype.size for partial in self.partials] + [kept.dtype.size for kept in self._kept]
        return lane_index(max(sizes))

    @property
    def _value(self) -> Int:
        return Linear.name(self.counter.variable)

    def _body(
        self, targets: Mapping[Partial, str], value: Int, kept: Mapping[Kept, str] | None = None
    ) -> list[cgen.Generable]:
        into = {partial.reduction.statement: target for partial, target in targets.items()}
        return self.body(value, into, {one.element: text for one, text in (kept or {}).items()})

    def _advance(self, iterations: int) -> cgen.Generable:
        return Line(f"{self._value} += {iterations * self.counter.step};")
