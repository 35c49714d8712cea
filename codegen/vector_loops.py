"""A loop in vector lanes: which of the forms in `codegen.lanes` it takes, and its C."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar, Protocol

import cgen

from codegen.elements import Element
from codegen.ir.integer import Int
from codegen.ir.loop_ir import NO_MARK, For, Node, substituted, written_out
from codegen.ir.program import Assign, Buffer, Program
from codegen.ir.ranges import Interval
from codegen.lanes.ahead import may_read_first, read_ahead
from codegen.lanes.aligned import cut
from codegen.lanes.division import Divisor, Reciprocals, divides_mostly, divisors, multiplies
from codegen.lanes.gathers import gathered
from codegen.lanes.masked import JammedLines, JammedLoop, jammed
from codegen.lanes.narrow_sums import in_narrow_sums, narrow_sums
from codegen.lanes.near import NearFunctions, calls_library, chunked, near_functions
from codegen.lanes.neighbours import NeighbourLines, neighbours
from codegen.lanes.reached import conjunction
from codegen.lanes.reductions import Counter, Hoisted, LaneLoop, Partial, Shape, full_vectors, hoisted, partials, shape
from codegen.lanes.register_tile import TileLoop, VectorTile, register_tile
from codegen.lanes.scan import Scan, is_chained, scan
from codegen.lanes.scan_loop import ScanLoop, ScanNames
from codegen.lanes.selection import Selection, selection
from codegen.lanes.selection_loop import CHUNK, Ahead, Instead, Lane, SelectionLoop, SelectionNames
from codegen.lanes.simd import (
    LaneReduction,
    Lasting,
    declared,
    invariants,
    kept_by_order,
    left_to_compilers,
    narrowest,
    reductions,
    sums_distances,
    uses,
)
from codegen.lanes.specialised import parted
from codegen.lanes.spread import in_vectors, spread_names
from codegen.lanes.vector_calls import VectorCalls, fetched, vector_calls
from codegen.lanes.whole import whole_vector
from codegen.macros import EACH_LANE, EACH_VECTOR, IN_ORDER
from codegen.outer_loops import OuterLines, has_loops, outer_lanes
from codegen.scalar import StatementPrinter
from codegen.scope import LoopScope
from codegen.style import Line, around, block, branch
from microkernels.dtypes import DType

LEAST_SELECTED = 64
"""The iterations from which on lanes select: to combine them takes as long as some ten of these."""


class LoopWriter(Protocol):
    """What prints the loops and statements of a program: `codegen.loops.Writer`."""

    program: Program
    tiles: ClassVar[bool]

    @property
    def buffers(self) -> dict[str, Buffer]: ...
    @property
    def ranges(self) -> dict[str, Interval]: ...
    @property
    def short(self) -> dict[str, DType]: ...
    def write(self, node: Node, scope: LoopScope) -> list[cgen.Generable]: ...
    def in_order(self, loop: For) -> list[cgen.Generable]: ...


def vector_loop(writer: LoopWriter, loop: For, scope: LoopScope) -> list[cgen.Generable] | None:
    """The C of a loop that stands in this scope, in vectors; None if it is to be printed as it is."""
    tile = register_tile(loop, writer.program) if writer.tiles else None
    if tile is not None:
        return VectorLoop(writer, loop, scope).tiled(tile)
    if not loop.mark.vectorize or loop.end is None:
        return None
    made = VectorLoop(writer, replace(loop, body=written_out(loop.body)), scope)
    return made.around_others() or made.lines(loop.end)


def begun(
    writer: LoopWriter, found: Lasting, scope: LoopScope
) -> tuple[LoopScope, list[cgen.Generable], list[cgen.Generable]]:
    """The scope in which a vector loop's reductions go on, and what is printed before and behind it."""
    lanes = VectorLoop(writer, found.loop, scope).shape(found.found)
    own = partials(found.found, scope.taken)
    first = [Line(f"{one.type(lanes)} {one.every};") for one in own]
    first += [one.filled(lanes, f"&{one.every}", 1) for one in own]
    last = [one.stored(one.total(lanes, f"&{one.every}")) for one in own]
    needed, names = scope.unknown(found.tests), tuple(one.every for one in own)
    going_on = {**scope.lasting, found.loop.variable: (lanes, names)}
    inner = replace(scope.using(names), lasting=going_on)
    return inner, [*first], [branch(conjunction(needed), [*last])] if needed else [*last]


@dataclass(frozen=True)
class VectorLoop:
    """A loop, and the scope in which it stands or that which its forms share."""

    writer: LoopWriter
    loop: For
    scope: LoopScope

    @property
    def _program(self) -> Program:
        return self.writer.program

    @property
    def _elements(self) -> StatementPrinter:
        """Prints elements whose indices are in C's variables."""
        return StatementPrinter(self.writer.buffers, self._program.size_names)

    def _within(self, scope: LoopScope) -> VectorLoop:
        return replace(self, scope=scope)

    def _inside(self) -> VectorLoop:
        """The loop with the scope inside it."""
        return self._within(self.scope.inside(self.loop))

    def around_others(self) -> list[cgen.Generable] | None:
        """The C of a loop whose lanes go through inner loops together; None if it has none, or they can't."""
        if not self.writer.tiles or not has_loops(self.loop.body):
            return None
        outer, inside = outer_lanes(self.loop, self._program), self.scope.inside(self.loop)
        if outer is None:
            return None
        return OuterLines(outer, self._program, self._elements, self.writer.write, self.writer.in_order, inside).lines()

    def lines(self, end: Int) -> list[cgen.Generable] | None:
        """The C of the loop up to its end; None if its iterations depend on each other in other ways than these."""
        loop, program, inside = self.loop, self._program, self._inside()
        ahead = read_ahead(loop.body, program, loop.variable)
        if ahead:
            return inside._reading_ahead(ahead)
        parted = self._split()
        if parted is not None:
            return self._near(end, parted)
        selects = loop.step == 1 and (loop.most_span is None or loop.most_span >= LEAST_SELECTED)
        selected = selection(loop.body, program, loop.variable) if selects else None
        if selected is not None:
            return inside._selecting(end, selected)
        scanned = scan(loop.body, program, loop.variable) if loop.step == 1 and self.writer.tiles else None
        if scanned is not None:
            return inside._scanning(scanned)
        chained = is_chained(loop.body, program, loop.variable)
        found = None if chained else reductions(loop.body, program, loop.variable)
        if found is None:
            return None
        return inside._reducing(found) if found else inside._apart()

    def _if_entered(self, lines: list[cgen.Generable]) -> list[cgen.Generable]:
        """What stands in place of the loop, in a block, unless the loop has no iteration."""
        entered, whole = self.scope.unknown([self.loop.entered]), block(lines)
        return [branch(conjunction(entered), [whole]) if entered else whole]

    def _body(self, scope: LoopScope) -> list[cgen.Generable]:
        return self.writer.write(self.loop.body, scope)

    def _written(self, node: Node, held: Mapping[Element, str], taken: frozenset[str]) -> list[cgen.Generable]:
        """The C of a node, with names for some more elements."""
        return self.writer.write(node, self.scope.holding(held).using(taken))

    def _split(self) -> NearFunctions | None:
        """What may be far in a loop that is to be printed in vectors."""
        may_be = self.writer.tiles and self.scope.near is None and self.loop.step == 1
        found = near_functions(self.loop, self._program) if may_be else None
        calls = self._calls() if found else None
        if found is None or calls is None or not full_vectors(self._program, calls.width, None).masked:
            return found
        return None if found.functions.isdisjoint(calls.left) else found

    def _near(self, end: Int, found: NearFunctions) -> list[cgen.Generable]:
        """The loop in chunks: with functions of near numbers, or of all."""

        def near(part: For, taken: frozenset[str], tests: list[cgen.Generable]) -> list[cgen.Generable]:
            inner = replace(self.scope, near=found.functions, taken=taken)
            if not tests:
                return self.writer.write(part, inner)
            one = VectorLoop(self.writer, part, inner)
            return one._marked([*tests, *one._body(inner.inside(part))])

        def far(part: For, taken: frozenset[str], _: list[cgen.Generable]) -> list[cgen.Generable]:
            mark = part.mark if found.in_lanes else NO_MARK
            return self.writer.write(replace(part, mark=mark), replace(self.scope, near=frozenset(), taken=taken))

        return [chunked(self.loop, end, found, self.scope.taken | {self.loop.variable}, near, far)]

    def _apart(self) -> list[cgen.Generable]:
        """The loop whose iterations write elements of their own."""
        jam = jammed(self.loop, self._program, self.scope.ranges) if self.writer.tiles else None
        slow = jam is None or not self._program.isa.has_masked_stores
        parts = parted(self.loop, self.scope.ranges) if self.writer.tiles and slow else None
        if parts is not None:
            return self.writer.write(parts, self.scope)
        return self._plain() if jam is None else self._jammed(jam)

    def _plain(self) -> list[cgen.Generable]:
        """The loop for the compiler to vectorise, behind loads of elements that stay as they are in it."""
        loop, scope = self.loop, self.scope
        if self.writer.tiles and scope.over is None and multiplies(self._program):
            by = divisors(loop, self._program, scope.held)
            if by:
                return self._divided(by)
            scope = replace(scope, over={} if divides_mostly(loop.body, self._program) else None)
        read = kept_by_order(loop.body, self._program, loop.variable)
        held = hoisted(read, self._elements, scope.taken)
        one = self._within(scope.holding(held.names).using(held.names.values()))
        lines = one._spread() or one._calling() or one._beside()
        lines = lines or self._within(scope)._marked(one._body(one.scope))
        return self._if_entered([*held.lines, *lines]) if read else lines

    def _divided(self, by: tuple[Divisor, ...]) -> list[cgen.Generable]:
        """The loop with products in place of quotients, if the divisors allow that."""
        made = Reciprocals.of(by, self.scope.taken)
        scope = self.scope.using(made.variables)
        forms = (self._within(replace(scope, over=over))._plain() for over in (made.names, {}))
        return self._if_entered([made.chosen(*forms)])

    def _spread(self) -> list[cgen.Generable] | None:
        """The loop in vectors, if what it writes has gaps that a mask leaves out."""
        loop, scope = self.loop, self.scope
        may_be = self.writer.tiles and not calls_library(loop.body, self._program, scope.near or frozenset())
        made = spread_names(loop, self._program, scope.taken) if may_be else None
        if made is None or loop.end is None:
            return None
        found, own = made
        inner = scope.holding({found.element: own.value}).using(own.every)
        body, plain = self._body(inner), self._body(scope)
        aligned = cut(loop, self._program, self._elements, inner.taken)
        if aligned is None:
            return in_vectors(loop, loop.end, found, own, body, plain)
        return [_begun_in_order(aligned, plain, in_vectors(aligned[2], loop.end, found, own, body, plain))]

    def _beside(self) -> list[cgen.Generable] | None:
        """The loop in vectors, if some that it reads are made of others."""
        found = neighbours(self.loop, self._program) if self.writer.tiles else None
        if found is None:
            return None
        printer, taken = self._elements, self.scope.taken
        aligned = cut(self.loop, self._program, printer, taken)
        if aligned is None:
            return [block(NeighbourLines(self.loop, found, printer, self._written, taken).lines())]
        first, _, after = aligned
        lines = NeighbourLines(after, found, printer, self._written, taken | first.names).lines()
        return [_begun_in_order(aligned, self._body(self.scope), lines)]

    def _marked(self, body: list[cgen.Generable]) -> list[cgen.Generable]:
        """The loop with this body, for the compiler to vectorise from where whole vectors begin."""
        if calls_library(self.loop.body, self._program, self.scope.near or frozenset()):
            return [around(self.loop, body)]
        aligned = cut(self.loop, self._program, self._elements, self.scope.taken) if self.writer.tiles else None
        if aligned is None:
            each = [Line(EACH_VECTOR), around(self.loop, body)]
            whole = whole_vector(self.loop, self._program.isa) if self.writer.tiles else None
            return each if whole is None else [branch(whole[0], [Line(EACH_LANE), around(whole[1], body)], each)]
        return [_begun_in_order(aligned, body, [Line(EACH_VECTOR), around(aligned[2], body)])]

    def _reading_ahead(self, ahead: tuple[Element, ...]) -> list[cgen.Generable]:
        """The loop for the compiler to vectorise, with what later iterations write read first, or as it is."""
        if not may_read_first(ahead, self.loop.body, self._program, self.loop.variable):
            return [around(self.loop, [*self.writer.in_order(self.loop), *self._body(self.scope)])]
        read = hoisted(ahead, self._elements, self.scope.taken)
        inner = self.scope.holding(read.names).using(read.names.values())
        return self._marked([*read.lines, *self._body(inner)])

    def _reducing(self, found: tuple[LaneReduction, ...]) -> list[cgen.Generable]:
        """The loop whose reductions accumulate in variables, which update the elements after it."""
        loop = self.loop
        read = invariants(loop.body, self._program, loop.variable)
        held = hoisted(read, self._elements, self.scope.taken)
        one = self._within(replace(self.scope, held=held.names).using(held.names.values()))
        if self.writer.tiles and left_to_compilers(found, loop.body, self._program):
            return one._reduced(found, held)
        calls = one._calls()
        lanes, into = self.scope.lasting.get(loop.variable) or (one.shape(found), ())
        calls = calls if calls and lanes.masked and calls.width == lanes.lanes else None
        return self._if_entered([*held.lines, *one._lanes(lanes, found, calls, into)])

    def shape(self, found: tuple[LaneReduction, ...]) -> Shape:
        """The vectors into which the loop's iterations are reduced."""
        dtypes = [one.dtype for one in found]
        apart = self._calls() or gathered(self.loop.body, self._program, self.loop.variable, dtypes, frozenset())
        may_be = self.writer.tiles and not apart
        narrow = narrowest(self.loop.body, self._program, self.loop.variable) if may_be else None
        return shape(self._program, found, Counter.of(self.loop).trips, narrow)

    def _reduced(self, found: tuple[LaneReduction, ...], held: Hoisted) -> list[cgen.Generable]:
        """The loop with a variable for each of its reductions, for the compiler to vectorise."""
        own = partials(found, self.scope.taken)
        one = self._within(self.scope.using(name for each in own for name in each.names))
        smaller = self._smaller(found)
        begun = (each.begun(smaller.get(each.reduction.statement)) for each in own)
        lines = one._narrow(own) or [
            Line(EACH_VECTOR),
            around(self.loop, one._accumulating(own, [each.one for each in own], smaller)),
        ]
        return self._if_entered([*held.lines, *begun, *lines, *(each.ended for each in own)])

    def _narrow(self, own: tuple[Partial, ...]) -> list[cgen.Generable] | None:
        """The loop in blocks, whose sums are in smaller types than the results."""
        found = narrow_sums([one.reduction for one in own], self.loop, self._program)
        if found is None or self.loop.end is None:
            return None
        return in_narrow_sums(self.loop, self.loop.end, found, own, self.scope.taken, partial(self._accumulating, own))

    def _accumulating(
        self, own: tuple[Partial, ...], names: Sequence[str], smaller: Mapping[str, DType]
    ) -> list[cgen.Generable]:
        """The loop's body, which accumulates in variables, of smaller types in some cases."""
        into = {one.reduction.statement: name for one, name in zip(own, names, strict=True)}
        sums = frozenset(one.reduction.statement for one in own if one.is_sum)
        scope = replace(self.scope, accumulators=into, sums=sums, smaller=smaller)
        as_it_is = sums_distances([one.reduction for one in own], self.loop.body, self._program)
        return self._body(replace(scope, wide=declared(self.loop.body), lanes=False) if as_it_is else scope)

    def _smaller(self, found: tuple[LaneReduction, ...]) -> dict[str, DType]:
        """The smaller types that have the least and the greatest of the loop's values, if there is one in each case."""
        printer = replace(self._elements, ranges=self.writer.ranges, short=self.writer.short, narrows=True)
        conditional = {use.statement for use in uses(self.loop.body) if use.conditional}
        kinds: dict[str, DType] = {}
        for one in found:
            statement = self._program.statements[one.statement]
            always = statement.where is None and one.statement not in conditional
            if one.op in ("min", "max") and always and isinstance(statement.body, Assign):
                kind = printer.kept_in(statement.body.expr, one.dtype)
                kinds |= {} if kind is None else {one.statement: kind}
        return kinds

    def _calls(self) -> VectorCalls | None:
        may_be = self.writer.tiles and self.loop.step == 1
        return vector_calls(self.loop.body, self._program, self.scope.taken) if may_be else None

    def _calling(self) -> list[cgen.Generable] | None:
        """The loop in lanes, if functions of whole vectors are called in it."""
        calls = self._calls()
        lanes = full_vectors(self._program, calls.width, Counter.of(self.loop).trips) if calls else None
        return self._lanes(lanes, (), calls) if lanes and lanes.masked else None

    def _lanes(
        self, lanes: Shape, found: tuple[LaneReduction, ...], calls: VectorCalls | None, into: Sequence[str] = ()
    ) -> list[cgen.Generable]:
        """The loop in vectors of a shape, with its reductions and calls."""
        loop, scope, program, printer = self.loop, self.scope, self._program, self._elements
        taken = scope.taken | (calls.names if calls else frozenset())
        dtypes = [one.dtype for one in found] if self.writer.tiles and not calls else []
        if gathered(loop.body, program, loop.variable, dtypes, taken):
            lanes = replace(lanes, masked=False)

        def body(value: Int, into: Mapping[str, str], kept: Mapping[Element, str]) -> list[cgen.Generable]:
            inside = substituted(loop.body, {loop.variable: value})
            each = gathered(inside, program, "lane", dtypes, taken)
            held = {one.element: one.lane for one in each}
            inner = replace(scope.holding(held), accumulators=into).calling(calls, kept)
            return [*(one.loaded(lanes.lanes, printer) for one in each), *self.writer.write(inside, inner)]

        aligned = cut(loop, program, printer, taken) if self.writer.tiles else None
        begin = None if aligned is None else (aligned[0], aligned[2].start)

        def ahead(value: Int) -> list[cgen.Generable]:
            return fetched(loop.body, program, loop.variable, value) if calls and program.ahead else []

        own = partials(found, taken)
        return LaneLoop(Counter.of(loop), lanes, own, body, taken, begin, ahead, into, calls).lines()

    def _jammed(self, jam: JammedLoop) -> list[cgen.Generable]:
        """The loop with the elements that its jammed iterations write in registers."""
        lines = JammedLines(jam, self._program, self._elements, self._written, self.scope.taken).lines()
        return self._if_entered(lines)

    def tiled(self, tile: VectorTile) -> list[cgen.Generable]:
        """The loop around a vector loop, with what that keeps in registers."""
        inside = self.scope.inside(self.loop)
        inner = inside.inside(tile.inner)

        def body(
            node: Node, held: Mapping[Element, str], taken: frozenset[str], calls: VectorCalls | None
        ) -> list[cgen.Generable]:
            every = calls.every() if calls else {}
            return self.writer.write(node, inner.holding(held).using(taken).calling(calls, every))

        few, headed = self._few(tile), partial(around, self.loop)
        lines = TileLoop(tile, self._program, self._elements, body, headed, few, inside.taken).lines()
        needed = (*self.scope.unknown([self.loop.entered]), *self.scope.unknown([tile.inner.entered]))
        return [branch(conjunction(needed), lines)] if needed else lines

    def _few(self, tile: VectorTile) -> list[cgen.Generable] | None:
        """A tile's iterations one after the other, each with lanes along the loop around; None if that can't have any.

        Only reductions and selections make its iterations depend on each other: a tile has no other writes.
        """
        loop, body = self.loop, tile.inner.body
        reduces = bool(reductions(body, self._program, loop.variable)) and self._program.fused
        selects = reduces or selection(body, self._program, loop.variable)
        if loop.step != 1 or loop.end is None or not selects:
            return None
        along = replace(loop, body=body, mark=replace(loop.mark, vectorize=True))
        one = replace(tile.inner, body=along, mark=replace(tile.inner.mark, vectorize=False))
        return self.writer.write(one, self.scope)

    def _scanning(self, found: Scan) -> list[cgen.Generable]:
        """The loop a vector at a time, with the prefixes of each."""
        names = ScanNames.of(found, self.scope.taken)
        scope = self.scope.using(names.all)

        def body(nodes: Sequence[Node], held: Mapping[Element, str]) -> list[cgen.Generable]:
            return [line for node in nodes for line in self.writer.write(node, scope.holding(held))]

        isa = self._program.isa
        lanes = min(isa.lanes(found.dtype), isa.most_lanes)
        printer, one = StatementPrinter(self.writer.buffers, {}), partial(self._body, scope)
        return self._if_entered(ScanLoop(Counter.of(self.loop), found, lanes, printer, body, one, names).lines())

    def _selecting(self, end: Int, selected: Selection) -> list[cgen.Generable]:
        """The loop in vector lanes that look for the one iteration whose results last, which then runs."""
        loop, isa = self.loop, self._program.isa
        names = SelectionNames.of(selected, loop.variable, self.scope.taken)
        scope = self.scope.using(names.all)

        def body(value: Int, instead: Mapping[str, Instead]) -> list[cgen.Generable]:
            return self.writer.write(substituted(loop.body, {loop.variable: value}), replace(scope, instead=instead))

        def lanes(reduction: LaneReduction, counter: Counter, lane: Lane, ahead: Ahead) -> list[cgen.Generable]:
            def one(value: Int, accumulators: Mapping[str, str], _: Mapping[Element, str]) -> list[cgen.Generable]:
                return lane(value, accumulators[reduction.statement])

            found = shape(self._program, [reduction], counter.trips)
            if found.lanes < keys:  # the place of a narrow key: compilers handle vectors of one size less well
                found = replace(found, lanes=keys, vectors=1)
            variables = partials([reduction], scope.taken)
            return [block(LaneLoop(counter, found, variables, one, scope.taken, ahead=ahead).lines())]

        keys = min(isa.lanes(selected.dtype), isa.most_lanes)
        size, fetched = CHUNK * isa.lanes(selected.dtype), self._program.ahead
        lines = SelectionLoop(Counter.of(loop), end, selected, size, body, lanes, names, fetched).lines()
        entered = scope.unknown([loop.entered])
        return [branch(conjunction(entered), lines)] if entered else lines


def _begun_in_order(
    aligned: tuple[Line, For, For], body: list[cgen.Generable], rest: list[cgen.Generable]
) -> cgen.Generable:
    """A loop's iterations up to where whole vectors begin, one after the other, and what stands for the others."""
    first, before, _ = aligned
    return block([first, around(before, [Line(IN_ORDER), *body]), *rest])
