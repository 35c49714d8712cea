"""Register tiles: what the iterations of a vector loop keep over those of the loop around it stays in registers.

for (j…)                                      f32x16 out_tile[4] = out[i…], X_tile[4] = X[i…];
  for (i = a; i < a + 64…)  // vectorize      for (j…)
    out[i] += f(X[i], Y[j]);           ->       for (v < 4) for (lane < 16)  // a vector operation
                                                  out_tile[v].lane[lane] += f(X_tile[v].lane[lane], Y[j]);
                                              out[i…] = out_tile;

An inner iteration then loads only what belongs to the outer loop, once for all vectors. This is the register tile of a
product of matrices, for any body. Compilers keep no arrays in registers over a loop that they do not unroll.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import cgen

from codegen import style
from codegen.elements import Element, strides
from codegen.ir.expr import Load, accessed, loads
from codegen.ir.integer import Compare, Int, Linear, minimum
from codegen.ir.loop_ir import Block, Comment, For, Node, substituted, written_out
from codegen.ir.program import MOST_VECTORS, Assign, Program
from codegen.lanes.counted import counted, each_lane
from codegen.lanes.simd import declared, printer_of, uses
from codegen.lanes.vector_calls import VectorCalls, Whole, in_lanes, vector_calls
from codegen.lanes.vectors import WHOLE
from codegen.names import all_fresh, c_name, fresh
from codegen.scalar import StatementPrinter
from codegen.style import Line
from codegen.typed_text import literal
from microkernels.dtypes import DType, i32


@dataclass(frozen=True)
class VectorTile:
    """A vector loop directly inside another loop: its lanes, vectors, and the elements that each iteration keeps."""

    inner: For
    end: Int
    lanes: int
    vectors: int
    kept: tuple[Element, ...]
    written: frozenset[Element]


def register_tile(loop: For, program: Program) -> VectorTile | None:
    """The register tile of a loop with nothing but a vector loop of few iterations inside; None if there is none.

    Each element must belong to one of the two loops, and those that are written to the inner one, in arrays without
    other accesses; an iteration may have locals.
    """
    inner = _only(loop.body)
    if inner is None or inner.step != 1 or not inner.mark.vectorize or inner.end is None:
        return None
    most = inner.most_span
    outer, own = loop.variable, inner.variable
    if most is None or outer in inner.start.names | inner.end.names:
        return None
    body = written_out(inner.body)
    found = _accesses(body, program)
    kept = _kept(found, outer, own) if found else ()
    if not found or not kept:
        return None
    dtypes = {buffer.name: buffer.dtype for buffer in program.buffers}
    if any(dtypes[element.array].is_stored for element in kept):
        return None
    lanes = min(program.isa.most_lanes, *(_lanes(program, dtypes[element.array]) for element in kept))
    vectors, rest = divmod(most, lanes)
    if rest or not 0 < vectors <= MOST_VECTORS:
        return None
    whole = For(own, inner.start, inner.test, 1, body, inner.mark)
    written = frozenset(element for element, writes in found if writes)
    return VectorTile(whole, inner.end, lanes, vectors, kept, written)


def _kept(found: Sequence[tuple[Element, bool]], outer: str, own: str) -> tuple[Element, ...]:
    """The elements that an iteration of the loop over `own` keeps over the loop over `outer`; none if it can't."""
    every = dict.fromkeys(element for element, _ in found)
    kept = tuple(element for element in every if own in element.names and outer not in element.names)
    written = {element for element, writes in found if writes}
    arrays = [element.array for element in every]
    alone = all(element in kept and arrays.count(element.array) == 1 for element in written)
    apart = all(not {outer, own} <= element.names for element in every)
    return kept if written and alone and apart else ()


def _lanes(program: Program, dtype: DType) -> int:
    """The lanes of a vector of a type, at least as wide as the integers that count."""
    return program.isa.vector_bytes // max(dtype.size, i32.size)


def _only(node: Node) -> For | None:
    """The loop that a node consists of."""
    match node:
        case For():
            return node
        case Comment(body=body):
            return _only(body)
        case Block((one,)):
            return _only(one)
    return None


def _accesses(body: Node, program: Program) -> list[tuple[Element, bool]] | None:
    """The elements that a loop's body accesses, except for its own locals, each with whether it is written.

    None if something in it is no plain assignment that always runs.
    """
    own = declared(body)
    found: list[tuple[Element, bool]] = []
    for use in uses(body):
        statement = program.statements[use.statement]
        assign = statement.body
        if not isinstance(assign, Assign) or use.nested or use.conditional or statement.where is not None:
            return None
        read = loads(assign.expr)
        if len(accessed(assign.expr)) > len(read):
            return None
        printer = printer_of(use, program)
        each: list[tuple[Load, bool]] = [(assign.target, True), *((load, False) for load in read)]
        found += [(printer.at(load), writes) for load, writes in each if load.array not in own]
    return found


Body = Callable[[Node, Mapping[Element, str], frozenset[str], VectorCalls | None], list[cgen.Generable]]
"""Prints a loop's body with names for some elements, given the names in use, and what is called for whole vectors."""
Around = Callable[[list[cgen.Generable]], cgen.Generable]
"""The outer loop around some lines."""


@dataclass(frozen=True)
class TileLoop:
    """A register tile to be printed, with the outer loop `around` its vectors."""

    tile: VectorTile
    program: Program
    printer: StatementPrinter
    body: Body
    around: Around
    few: list[cgen.Generable] | None
    """What runs instead for at most a quarter of a vector of iterations; None for nothing else."""
    taken: frozenset[str]

    def lines(self) -> list[cgen.Generable]:
        """A whole tile, or one vector of it after the other, the last one in part."""
        tile, inner = self.tile, self.tile.inner
        size = tile.lanes * tile.vectors
        trips = tile.end - inner.start
        whole = style.Braces(self._tile(inner.start, tile.vectors, None))
        if trips.number == size:
            return [whole]
        test = Compare(trips, "==", Linear.of(size))
        rest = self._vectors()
        if self.few is not None:
            few = Compare(trips * 4, "<=", Linear.of(tile.lanes))
            rest = style.IfStatement(Line(str(few), few.names), style.Braces(self.few), style.Braces([rest]))
        return [style.IfStatement(Line(str(test), test.names), whole, style.Braces([rest]))]

    def _vectors(self) -> cgen.Generable:
        """The vectors of a tile that is not whole, one after the other."""
        inner = self.tile.inner
        first, left = (fresh(f"{inner.variable}_{word}", self.taken) for word in ("first", "left"))
        place = Linear.name(first)
        least = minimum(self.tile.lanes, self.tile.end - place)
        count = Line(f"const int {left} = (int){least};", least.names)
        test = Compare(place, "<", self.tile.end)
        return style.ForStatement(
            Line(f"int64_t {first} = {inner.start}", inner.start.names),
            Line(str(test), test.names),
            Line(f"{first} += {self.tile.lanes}"),
            style.Braces([count, *self._tile(place, 1, left)]),
        )

    def _tile(self, first: Int, vectors: int, left: str | None) -> list[cgen.Generable]:
        """Some vectors from the iteration `first` on, `left` of whose lanes are in the loop (None: all)."""
        tile = self.tile
        names = _Names.of(tile.kept, self.taken | {left or ""})
        number = names.number if vectors > 1 else "0"
        behind = Linear.name(names.number) * tile.lanes if vectors > 1 else Linear()
        place = first + behind + Linear.name("lane")
        elements = [self._at(element, place) for element in tile.kept]
        lanes = {element: f"{name}.lane[lane]" for element, name in zip(elements, names.lanes, strict=True)}

        def vector(body: list[cgen.Generable], kept: Sequence[int], stores: Sequence[int]) -> cgen.Generable:
            before = [f"{self._type(n)}_lanes {names.lanes[n]} = {{{names.vectors[n]}[{number}]}};" for n in kept]
            after = [f"{names.vectors[n]}[{number}] = {names.lanes[n]}.all;" for n in stores]
            loops = in_lanes(body, lambda part: each_lane("int", tile.lanes, part))
            lines = [*map(Line, before), *loops, *map(Line, after)]
            return counted("int", names.number, vectors, lines) if vectors > 1 else style.Braces(lines)

        def moved(numbers: Sequence[int], load: bool) -> list[cgen.Generable]:
            whole = [n for n in numbers if not left and is_vector(elements[n], self.printer)]
            lines: list[cgen.Generable] = [
                self._moved(lanes[elements[n]], elements[n], load) for n in numbers if n not in whole
            ]
            vectors = [
                moved_whole(self._type(n), f"&{names.lanes[n]}.all", elements[n], self.printer, load) for n in whole
            ]
            return [style.IfStatement(Line(f"lane < {left}"), style.Braces(lines))] if left else [*vectors, *lines]

        every = range(len(elements))
        own = [n for n in every if tile.kept[n] in tile.written]
        calls = vector_calls(tile.inner.body, self.program, self.taken | names.all | {left or ""})
        calls = calls if calls and calls.width == tile.lanes else None
        body = self.body(substituted(tile.inner.body, {tile.inner.variable: place}), lanes, names.all, calls)
        return [
            *(Line(f"{self._type(n)} {names.vectors[n]}[{vectors}];") for n in every),
            *(Line(f"fill_{self._type(n)}({names.vectors[n]}, {vectors}, {self._zero(n)});") for n in every),
            vector(moved(every, True), every, every),
            self.around([vector([*(calls.vectors() if calls else []), *body], every, own)]),
            vector(moved(own, False), own, []),
        ]

    def _at(self, element: Element, place: Int) -> Element:
        values = {self.tile.inner.variable: place}
        return Element(element.array, tuple(index.substitute(values) for index in element.indices))

    def _moved(self, lane: str, element: Element, load: bool) -> Line:
        """A lane loaded from or stored to its element."""
        memory, names = self.printer.element(element), self.printer.element_names(element)
        return Line(f"{lane} = {memory};" if load else f"{memory} = {lane};", names)

    def _dtype(self, number: int) -> DType:
        return self.printer.buffers[self.tile.kept[number].array].dtype

    def _type(self, number: int) -> str:
        return f"{self._dtype(number).name}x{self.tile.lanes}"

    def _zero(self, number: int) -> str:
        return literal(0, self._dtype(number)).text


def is_vector(element: Element, printer: StatementPrinter) -> bool:
    """Whether the elements of all lanes are one behind the other."""
    each = zip(element.indices, strides(printer.buffers[element.array]), strict=True)
    steps = [index.coefficient("lane") * stride for index, stride in each if "lane" in index.names]
    return len(steps) == 1 and steps[0].number == 1


def moved_whole(kind: str, vector: str, element: Element, printer: StatementPrinter, load: bool) -> Whole:
    """A vector of a type loaded from or stored to its elements: of a loop over the lanes, gcc makes moves of words."""
    first = Element(element.array, tuple(index.substitute({"lane": Linear()}) for index in element.indices))
    place, names = f"&{printer.element(first)}", printer.element_names(first)
    move = f"load_{WHOLE}_{kind}({vector}, {place});" if load else f"store_{WHOLE}_{kind}({place}, {vector});"
    return Whole(move, names)


@dataclass(frozen=True)
class _Names:
    """The variables of a tile: vectors and lanes of each element that is kept, and the number of a vector."""

    vectors: tuple[str, ...]
    lanes: tuple[str, ...]
    number: str

    @staticmethod
    def of(kept: Sequence[Element], taken: frozenset[str]) -> _Names:
        roots = [f"{c_name(element.array)}_{word}" for word in ("tile", "lanes") for element in kept]
        made = all_fresh((*roots, "v"), taken)
        return _Names(tuple(made[: len(kept)]), tuple(made[len(kept) : -1]), made[-1])

    @property
    def all(self) -> frozenset[str]:
        return frozenset((*self.vectors, *self.lanes, self.number))
