"""Print loops as C (cgen nodes).

// codegen.ir.loop_ir                           // C
For i_tile = 0; i_tile < M; 6                for (int64_t i_tile = 0; i_tile < M; i_tile += 6)
  For i = 0; i < min(6, M - i_tile); 1         for (int64_t i = 0; i < imin(6, M - i_tile); i += 1)
    Run S0(i_tile + i)                           A[i_tile + i] = 0.0f;
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import ClassVar

import cgen

from codegen.arithmetic import unsigned
from codegen.bounds import checks
from codegen.declarations import touched
from codegen.instruction_text import line
from codegen.ir.expr import Load, loads
from codegen.ir.instructions import Barrier, Call, Let, Table, Write
from codegen.ir.integer import Compare, Int, Linear, Test, minimum, replaced
from codegen.ir.loop_ir import (
    NO_MARK,
    Block,
    Comment,
    Declare,
    For,
    If,
    Node,
    Once,
    Run,
    inside,
    names,
    substituted,
    walk,
    written_out,
)
from codegen.ir.program import Assign, Buffer, Instructions, Program, Threading
from codegen.ir.ranges import Interval, Ranges, facts
from codegen.ir.value_ranges import kept_short, ranged
from codegen.lanes.ahead import may_read_first, read_ahead
from codegen.lanes.aligned import cut
from codegen.lanes.division import Divisor, Reciprocals, divides_mostly, divisors, multiplies
from codegen.lanes.gathers import gathered
from codegen.lanes.masked import Holding, JammedLines, JammedLoop, jammed
from codegen.lanes.near import NearFunctions, calls_library, chunked, near_functions
from codegen.lanes.neighbours import NeighbourLines, neighbours
from codegen.lanes.reached import conditions, conjunction, independent_of
from codegen.lanes.reductions import Counter, Hoisted, LaneLoop, Shape, full_vectors, hoisted, partials, shape
from codegen.lanes.register_tile import TileLoop, VectorTile, register_tile
from codegen.lanes.scan import Scan, is_chained, scan
from codegen.lanes.scan_loop import ScanLoop, ScanNames
from codegen.lanes.selection import Selection, selection
from codegen.lanes.selection_loop import CHUNK, Ahead, Instead, Lane, SelectionLoop, SelectionNames
from codegen.lanes.simd import (
    LaneReduction,
    Lasting,
    confuses_gcc,
    invariants,
    kept_by_order,
    lasting,
    left_to_compilers,
    narrowest,
    reductions,
    uses,
)
from codegen.lanes.specialised import parted
from codegen.lanes.spread import in_vectors, spread_names
from codegen.lanes.straight import mixes_iterations
from codegen.lanes.vector_calls import VectorCalls, fetched, vector_calls
from codegen.lanes.words import word
from codegen.macros import EACH_VECTOR, IN_ORDER
from codegen.names import c_name, fresh, function_name
from codegen.parallel import Iteration, shared_out
from codegen.parameters import Parameter, data_parameters, needed, prototype, scratch_parameters
from codegen.scalar import Element, StatementPrinter
from codegen.style import Line, around, block, branch, names_in
from codegen.workspace import elements
from microkernels.cached import cached_property
from microkernels.dtypes import DType
from microkernels.opencl_isa import is_device

LEAST_SELECTED = 64
"""The iterations from which on lanes select: to combine them takes as long as some ten of these."""
BLOCK = 1024
"""The iterations of a vector loop that a thread runs at a time."""


@dataclass(frozen=True)
class LoopScope:
    """The facts known at a place in the loops."""

    taken: frozenset[str]
    """C names in use."""
    variables: tuple[str, ...] = ()
    """Loop variables around, outermost first."""
    parallel: bool = False
    """Whether the place is inside a loop marked as parallel, even one that runs once: each thread has its own scratch
    arrays there, so no loop inside is parallelised again."""
    accumulators: Mapping[str, str] = field(default_factory=dict)
    """The variables that accumulate elements, by the statements that reduce into them."""
    sums: frozenset[str] = frozenset()
    """The statements whose variables are sums of unsigned integers."""
    smaller: Mapping[str, DType] = field(default_factory=dict)
    """The types of these variables that are smaller than their elements'."""
    lasting: Mapping[str, tuple[Shape, tuple[str, ...]]] = field(default_factory=dict)
    """The vectors that take in a vector loop's reductions, as these go on in a loop around it: by its variable."""
    held: Mapping[Element, str] = field(default_factory=dict)
    """The variables that hold hoisted elements, which are only read."""
    instead: Mapping[str, Instead] = field(default_factory=dict)
    """What is printed in place of statements."""
    declaring: frozenset[str] = frozenset()
    """The statements that declare the variables that they assign."""
    ranges: Ranges = field(default_factory=Ranges)
    """The intervals of sizes and loop variables."""
    known: frozenset[Int | Test] = frozenset()
    """The facts that follow from the conditions around."""
    near: frozenset[str] | None = None
    """The functions that take near numbers here; None before a loop around is parted for them: see `lanes.near`."""
    over: Mapping[str, tuple[str, str]] | None = None
    """In a loop for which this is chosen: the variables of divisors and their reciprocals (see `lanes.division`)."""
    shares: int = 1
    """On an OpenCL device: the number of work-items that share the loops around."""
    calls: VectorCalls | None = None
    """In lanes: what is called for whole vectors (see `codegen.lanes.vector_calls`)."""
    lanes: bool = False
    """Whether the place is in a loop that has lanes."""

    def inside(self, loop: For | Once) -> LoopScope:
        """The scope inside a loop."""
        own = (loop.variable,) if isinstance(loop, For) else ()
        parallel = self.parallel or loop.mark.parallel
        variables = (*self.variables, *own)
        lanes = self.lanes or loop.mark.vectorize
        inner = replace(self, taken=self.taken.union(own), variables=variables, parallel=parallel, lanes=lanes)
        return inner.where([loop.test], self.ranges.inside(loop)) if isinstance(loop, For) else inner

    def calling(self, calls: VectorCalls | None, kept: Mapping[Element, str]) -> LoopScope:
        """The scope with calls of whole vectors, and where their values are kept; without, if nothing is kept."""
        return replace(self, held={**self.held, **kept}, calls=calls) if kept else self

    def where(self, tests: Iterable[Test], ranges: Ranges | None = None) -> LoopScope:
        """The scope inside some conditions."""
        said = (fact for test in tests for fact in facts(test))
        return replace(self, known=self.known.union(said), ranges=ranges or self.ranges)

    def unknown(self, tests: Iterable[Test]) -> tuple[Test, ...]:
        """The conditions, simplified, without those known to hold here."""
        simpler = (self.ranges.test(test) for test in tests if not self.ranges.holds(test))
        return tuple(dict.fromkeys(test for test in simpler if not self.known.issuperset(facts(test))))

    @staticmethod
    def of(program: Program) -> LoopScope:
        """The scope outside all loops."""
        return LoopScope(program.taken, ranges=Ranges.of_sizes(map(c_name, program.sizes)))


@dataclass
class Writer:
    """Prints the loops of one program. `functions` collects the bodies of parallel loops, each as a C function.

    A separate function keeps the `restrict` of its parameters, which gcc drops when it outlines a parallel region.
    """

    program: Program
    threading: Threading = "openmp"
    bounds: bool = False
    """Whether assertions before each statement check that it stays inside the arrays."""
    functions: list[str] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    """The names of these functions."""
    tiles: ClassVar[bool] = True
    """Whether vectors are more than the lanes of one iteration: register tiles, and scans."""

    @cached_property
    def _buffers(self) -> dict[str, Buffer]:
        return {buffer.name: buffer for buffer in self.program.buffers}

    @cached_property
    def _ranges(self) -> dict[str, Interval]:
        return ranged(self.program)

    @cached_property
    def _short(self) -> dict[str, DType]:
        return kept_short(self.program, self._ranges) if self.tiles else {}

    def _kind(self, name: str) -> str:
        """The type in C of a variable."""
        return self._short.get(name, self._buffers[name].dtype).c_name

    @cached_property
    def _sizes(self) -> dict[str, Int]:
        return self.program.size_names

    def write(self, node: Node, scope: LoopScope) -> list[cgen.Generable]:
        """The C of a node."""
        match node:
            case For():
                return self._for(node, scope)
            case Once():
                return self._once(node, scope)
            case If():
                return [self._if(node, scope)]
            case Block():
                return self._block(node, scope)
            case Comment():
                return self.write(node.body, scope)
            case Declare():
                return self._declare(node, scope)
            case Run():
                return self._run(node, scope)
        return plain(node)

    def _once(self, loop: Once, scope: LoopScope) -> list[cgen.Generable]:
        return self.write(loop.body, scope.inside(loop))

    def _block(self, node: Block, scope: LoopScope) -> list[cgen.Generable]:
        """The nodes one after the other, in braces of their own those that declare the same variables."""
        parts = list(in_sequence(node))
        made = self._word(parts, scope)
        if made is not None:
            return [made]
        names = [name for part in parts if isinstance(part, Declare) for name in part.buffers]
        again = {name for name in names if names.count(name) > 1}
        lines: list[cgen.Generable] = []
        for part in parts:
            apart = isinstance(part, Declare) and not again.isdisjoint(part.buffers)
            lines += [block(self.write(part, scope))] if apart else self.write(part, scope)
        return lines

    def _word(self, parts: Sequence[Node], scope: LoopScope) -> cgen.Generable | None:
        """Elements side by side as one word; None if the nodes write none, or other things stand for them here."""
        plain = self.tiles and not self.bounds and not (scope.calls or scope.instead or scope.accumulators)
        made = word(parts, self.program, scope.variables[-1]) if plain and scope.variables else None
        if made is None or not scope.held.keys().isdisjoint(made.elements):
            return None
        name = fresh("word", scope.taken)
        texts: list[str] = []
        names = frozenset[str]()
        for number, run in enumerate(made.runs):
            printer, body = self._printer(run, scope), self.program.statements[run.statement].body
            assert isinstance(body, Assign), "a word is made of assignments"
            dtype = self._buffers[body.target.array].dtype
            part = f"({made.kind})({unsigned(dtype)})({printer.value(body.expr, dtype)})"
            texts.append(f"{part} << {8 * dtype.size * number}" if number else part)
            names |= printer.names(body)
        place = StatementPrinter(self._buffers, self._sizes).element(made.elements[0])
        value = Line(f"const {made.kind} {name} = {' | '.join(texts)};", names)
        return block([value, Line(f"__builtin_memcpy(&{place}, &{name}, sizeof {name});", names)])

    def _declare(self, node: Declare, scope: LoopScope) -> list[cgen.Generable]:
        """The body, with variables that are declared where they are first assigned, or at its start."""
        first = first_assignments(node, self.program)
        body = self.write(node.body, replace(scope, declaring=scope.declaring.union(first.values())))
        names, read = names_in(body), reads(node.body, self.program)
        used = [self._buffers[name] for name in node.buffers if c_name(name) in names]
        before = [f"{self._kind(b.name)} {declarator(b)};" for b in used if b.name not in first]
        after = [f"(void){c_name(b.name)};" for b in used if b.name not in read]
        return [*map(Line, before), *body, *map(Line, after)]

    def _if(self, node: If, scope: LoopScope) -> cgen.Generable:
        other = None if node.other is None else self.write(node.other, scope)
        return branch(node.test, self.write(node.then, scope), other)

    def _for(self, loop: For, scope: LoopScope) -> list[cgen.Generable]:
        needed = self._needed(loop, scope)
        if not needed:
            return self._loop(loop, scope)
        return [branch(conjunction(needed), self._loop(loop, scope.where(needed)))]

    def _needed(self, loop: For, scope: LoopScope) -> tuple[Test, ...]:
        """The conditions, not known to hold, without which the loop does nothing."""
        return scope.unknown(independent_of(conditions(loop.body), loop.variable))

    def _loop(self, loop: For, scope: LoopScope) -> list[cgen.Generable]:
        """A loop, printed according to its mark."""
        if loop.mark.parallel and not scope.parallel and loop.end is not None:
            shared = self._blocked(loop, loop.end, scope)
            return self._parallel(shared, loop.end, scope.inside(shared))
        inner = scope.inside(loop)
        tile = register_tile(loop, self.program) if self.tiles else None
        if tile is not None:
            return self._tiled(loop, tile, scope)
        if loop.mark.vectorize and loop.end is not None:
            end, loop = loop.end, replace(loop, body=written_out(loop.body))
            ahead = read_ahead(loop.body, self.program, loop.variable)
            if ahead:
                return self._reading_ahead(loop, ahead, inner)
            parted = self._split(loop, scope)
            if parted is not None:
                return self._near(loop, end, parted, scope)
            selects = loop.step == 1 and (loop.most_span is None or loop.most_span >= LEAST_SELECTED)
            selected = selection(loop.body, self.program, loop.variable) if selects else None
            if selected is not None:
                return self._selecting(loop, end, selected, inner)
            scanned = scan(loop.body, self.program, loop.variable) if loop.step == 1 and self.tiles else None
            if scanned is not None:
                return self._scanning(loop, scanned, inner)
            chained = is_chained(loop.body, self.program, loop.variable)
            found = None if chained else reductions(loop.body, self.program, loop.variable)
            if found is not None:
                return self._vectorized(loop, found, inner)
        return self._serial(loop, scope)

    def _serial(self, loop: For, scope: LoopScope) -> list[cgen.Generable]:
        """The loop as it is, between the start and the end of reductions that go on in all of its iterations."""
        before: list[cgen.Generable] = []
        after: list[cgen.Generable] = []
        for found in lasting(loop, self.program) if self.tiles else ():
            if found.loop.variable not in scope.lasting:
                scope, first, last = self._begun(found, scope)
                before, after = [*before, *first], [*after, *last]
        unroll = [cgen.Pragma(f"GCC unroll {loop.mark.unroll}")] if self._may_unroll(loop) else []
        lines = [*unroll, around(loop, [*self._in_order(loop), *self.write(loop.body, scope.inside(loop))])]
        return [block([*before, *lines, *after])] if before else lines

    def _begun(self, found: Lasting, scope: LoopScope) -> tuple[LoopScope, list[cgen.Generable], list[cgen.Generable]]:
        """The scope in which reductions go on, and what is printed before and behind it."""
        lanes = self._shape(found.loop, found.found, self._calls(found.loop, scope))
        own = partials(found.found, scope.taken)
        first = [Line(f"{one.type(lanes)} {one.every};") for one in own]
        first += [one.filled(lanes, f"&{one.every}", 1) for one in own]
        last = [one.stored(one.total(lanes, f"&{one.every}")) for one in own]
        needed, names = scope.unknown(found.tests), tuple(one.every for one in own)
        inner = replace(
            scope, taken=scope.taken.union(names), lasting={**scope.lasting, found.loop.variable: (lanes, names)}
        )
        return inner, [*first], [branch(conjunction(needed), [*last])] if needed else [*last]

    def _split(self, loop: For, scope: LoopScope) -> NearFunctions | None:
        """What may be far in a loop that is to be printed in vectors."""
        may_be = self.tiles and scope.near is None and loop.step == 1
        found = near_functions(loop, self.program) if may_be else None
        calls = self._calls(loop, scope) if found else None
        if found is None or calls is None or not full_vectors(self.program, calls.width, None).masked:
            return found
        return None if found.functions.isdisjoint(calls.left) else found

    def _near(self, loop: For, end: Int, found: NearFunctions, scope: LoopScope) -> list[cgen.Generable]:
        """The loop in chunks: with functions of near numbers, or of all."""

        def near(part: For, taken: frozenset[str], tests: list[cgen.Generable]) -> list[cgen.Generable]:
            inner = replace(scope, near=found.functions, taken=taken)
            if not tests:
                return self._loop(part, inner)
            return self._marked(part, inner, [*tests, *self.write(part.body, inner.inside(part))])

        def far(part: For, taken: frozenset[str], _: list[cgen.Generable]) -> list[cgen.Generable]:
            mark = part.mark if found.in_lanes else NO_MARK
            return self._loop(replace(part, mark=mark), replace(scope, near=frozenset(), taken=taken))

        return [chunked(loop, end, found, scope.taken | {loop.variable}, near, far)]

    def _may_unroll(self, loop: For) -> bool:
        """Whether the compiler is asked to unroll the loop."""
        return loop.mark.unroll > 1

    def _in_order(self, loop: For) -> list[cgen.Generable]:
        """The line at the start of a loop that gcc might otherwise miscompile."""
        mixed = mixes_iterations(loop.body, self.program, loop.variable)
        found = mixed or (loop.step == 1 and confuses_gcc(loop.body, self.program, loop.variable))
        return [Line(IN_ORDER)] * found

    def _blocked(self, loop: For, end: Int, scope: LoopScope) -> For:
        """The loop, or if it is marked for vectors too, the loop over blocks of it: threads share these."""
        if not loop.mark.vectorize or loop.step != 1:
            return loop
        first = fresh(f"{loop.variable}_first", scope.taken)
        until = minimum(end, Linear.name(first) + BLOCK)
        inner = replace(loop, start=Linear.name(first), test=Compare(Linear.name(loop.variable), "<", until))
        block = replace(inner, mark=replace(loop.mark, parallel=False))
        test = replaced(loop.test, {loop.variable: Linear.name(first)})
        return For(first, loop.start, test, BLOCK, block, replace(loop.mark, vectorize=False))

    def _parallel(self, loop: For, end: Int, scope: LoopScope) -> list[cgen.Generable]:
        """The loop distributed to threads, with its body as a function."""
        body = block(self.write(loop.body, scope))
        counters = tuple(Parameter("int64_t ", variable) for variable in scope.variables)
        candidates = (*data_parameters(self.program), *scratch_parameters(self.program), *counters)
        parameters = needed(candidates, names_in([body]))
        name = fresh(f"{function_name(self.program.name)}_{loop.variable}", frozenset(self.names))
        self.names.append(name)
        iteration = Iteration(
            self.program,
            name,
            parameters,
            counters[:-1],
            loop.variable,
            loop.start,
            end,
            loop.step,
            partial(around, loop),
            scope.taken,
            self._is_uneven(loop),
        )
        functions, lines = shared_out(iteration, self.threading)
        self.functions.append("\n\n".join([f"{prototype('static void', name, parameters)}\n{body}", *functions]))
        return lines

    def _is_uneven(self, loop: For) -> bool:
        """Whether the iterations of a loop around microkernels take more or less time, depending on its variable.

        Blocks of others keep to their threads, near whose cores their data lie.
        """
        every = (self.program.statements[part.statement].body for part in walk(loop.body) if isinstance(part, Run))
        inner = (part for part in walk(loop.body) if isinstance(part, For))
        kernels = any(isinstance(one, Instructions) for one in every)
        return kernels and any(part.varies_with(loop.variable, loop.step) for part in inner)

    def _plain_vectors(self, loop: For, scope: LoopScope) -> list[cgen.Generable]:
        """The loop for the compiler to vectorise, behind loads of elements that stay as they are in it."""
        if self.tiles and scope.over is None and multiplies(self.program):
            by = divisors(loop, self.program, scope.held)
            if by:
                return self._divided(loop, by, scope)
            scope = replace(scope, over={} if divides_mostly(loop.body, self.program) else None)
        read = kept_by_order(loop.body, self.program, loop.variable)
        held = hoisted(read, StatementPrinter(self._buffers, self._sizes), scope.taken)
        inner = replace(scope, held={**scope.held, **held.names}, taken=scope.taken.union(held.names.values()))
        lines = self._spread(loop, inner) or self._calling(loop, inner)
        lines = lines or self._beside(loop, inner) or self._marked(loop, scope, self.write(loop.body, inner))
        if not read:
            return lines
        return _if_entered(loop, scope, [*held.lines, *lines])

    def _spread(self, loop: For, scope: LoopScope) -> list[cgen.Generable] | None:
        """The loop in vectors, if what it writes has gaps that a mask leaves out."""
        may_be = self.tiles and not calls_library(loop.body, self.program, scope.near or frozenset())
        made = spread_names(loop, self.program, scope.taken) if may_be else None
        if made is None or loop.end is None:
            return None
        found, own = made
        inner = replace(scope, held={**scope.held, found.element: own.value}, taken=scope.taken | own.every)
        body, plain = self.write(loop.body, inner), self.write(loop.body, scope)
        aligned = cut(loop, self.program, StatementPrinter(self._buffers, self._sizes), scope.taken | own.every)
        if aligned is None:
            return in_vectors(loop, loop.end, found, own, body, plain)
        return [_begun_in_order(aligned, plain, in_vectors(aligned[2], loop.end, found, own, body, plain))]

    def _beside(self, loop: For, scope: LoopScope) -> list[cgen.Generable] | None:
        """The loop in vectors, if some that it reads are made of others."""
        found = neighbours(loop, self.program) if self.tiles else None
        if found is None:
            return None
        printer = StatementPrinter(self._buffers, self._sizes)
        aligned = cut(loop, self.program, printer, scope.taken)
        if aligned is None:
            return [block(NeighbourLines(loop, found, printer, self._holding(scope), scope.taken).lines())]
        first, _, after = aligned
        lines = NeighbourLines(after, found, printer, self._holding(scope), scope.taken | first.names).lines()
        return [_begun_in_order(aligned, self.write(loop.body, scope), lines)]

    def _holding(self, scope: LoopScope) -> Holding:
        """Prints nodes with names for some more elements."""

        def write(node: Node, held: Mapping[Element, str], taken: frozenset[str]) -> list[cgen.Generable]:
            return self.write(node, replace(scope, held={**scope.held, **held}, taken=scope.taken | taken))

        return write

    def _marked(self, loop: For, scope: LoopScope, body: list[cgen.Generable]) -> list[cgen.Generable]:
        """A loop with this body that the compiler shall vectorise, from where whole vectors begin."""
        if calls_library(loop.body, self.program, scope.near or frozenset()):
            return [around(loop, body)]
        printer = StatementPrinter(self._buffers, self._sizes)
        aligned = cut(loop, self.program, printer, scope.taken) if self.tiles else None
        if aligned is None:
            return [Line(EACH_VECTOR), around(loop, body)]
        return [_begun_in_order(aligned, body, [Line(EACH_VECTOR), around(aligned[2], body)])]

    def _reading_ahead(self, loop: For, ahead: tuple[Element, ...], scope: LoopScope) -> list[cgen.Generable]:
        """The loop for the compiler to vectorise, with what later iterations write read first, or as it is."""
        if not may_read_first(ahead, loop.body, self.program, loop.variable):
            return [around(loop, [*self._in_order(loop), *self.write(loop.body, scope)])]
        read = hoisted(ahead, StatementPrinter(self._buffers, self._sizes), scope.taken)
        inner = replace(scope, held={**scope.held, **read.names}, taken=scope.taken.union(read.names.values()))
        return self._marked(loop, scope, [*read.lines, *self.write(loop.body, inner)])

    def _divided(self, loop: For, by: tuple[Divisor, ...], scope: LoopScope) -> list[cgen.Generable]:
        """The loop with products in place of quotients, if the divisors allow that."""
        made = Reciprocals.of(by, scope.taken)
        taken = scope.taken | made.variables
        forms = (self._plain_vectors(loop, replace(scope, over=over, taken=taken)) for over in (made.names, {}))
        return _if_entered(loop, scope, [made.chosen(*forms)])

    def _vectorized(self, loop: For, found: tuple[LaneReduction, ...], scope: LoopScope) -> list[cgen.Generable]:
        """The loop in vector lanes; its reductions accumulate in variables, which update the elements after it."""
        if not found:
            jam = jammed(loop, self.program, scope.ranges) if self.tiles else None
            slow = jam is None or not self.program.isa.has_masked_stores
            parts = parted(loop, scope.ranges) if self.tiles and slow else None
            if parts is not None:
                return self.write(parts, scope)
            return self._plain_vectors(loop, scope) if jam is None else self._jammed(loop, jam, scope)
        read = invariants(loop.body, self.program, loop.variable)
        held = hoisted(read, StatementPrinter(self._buffers, self._sizes), scope.taken)
        scope = replace(scope, held=held.names, taken=scope.taken.union(held.names.values()))
        if self.tiles and left_to_compilers(found, loop.body, self.program):
            return self._reduced(loop, found, held, scope)
        going_on = scope.lasting.get(loop.variable)
        calls = self._calls(loop, scope)
        lanes, into = going_on or (self._shape(loop, found, calls), ())
        calls = calls if calls and lanes.masked and calls.width == lanes.lanes else None
        return _if_entered(loop, scope, [*held.lines, *self._lanes(loop, lanes, found, calls, scope, into)])

    def _shape(self, loop: For, found: tuple[LaneReduction, ...], calls: VectorCalls | None) -> Shape:
        dtypes = [one.dtype for one in found]
        apart = calls or gathered(loop.body, self.program, loop.variable, dtypes, frozenset())
        narrow = narrowest(loop.body, self.program, loop.variable) if self.tiles and not apart else None
        return shape(self.program, found, Counter.of(loop).trips, narrow)

    def _reduced(
        self, loop: For, found: tuple[LaneReduction, ...], held: Hoisted, scope: LoopScope
    ) -> list[cgen.Generable]:
        """The loop with a variable for each of its reductions, for the compiler to vectorise."""
        own = partials(found, scope.taken)
        into = {one.reduction.statement: one.one for one in own}
        sums = frozenset(one.reduction.statement for one in own if one.is_sum)
        smaller = self._smaller(loop, found)
        inner = replace(scope, accumulators=into, sums=sums, smaller=smaller)
        lines = [
            *held.lines,
            *(one.begun(smaller.get(one.reduction.statement)) for one in own),
            Line(EACH_VECTOR),
            around(loop, self.write(loop.body, inner)),
        ]
        return _if_entered(loop, scope, [*lines, *(one.ended for one in own)])

    def _smaller(self, loop: For, found: tuple[LaneReduction, ...]) -> dict[str, DType]:
        """The smaller types in which the least and the greatest of a loop's values are, if it has one in each case."""
        printer = StatementPrinter(self._buffers, self._sizes, ranges=self._ranges, short=self._short, narrows=True)
        conditional = {use.statement for use in uses(loop.body) if use.conditional}
        kinds: dict[str, DType] = {}
        for one in found:
            statement = self.program.statements[one.statement]
            always = statement.where is None and one.statement not in conditional
            if one.op in ("min", "max") and always and isinstance(statement.body, Assign):
                kind = printer.kept_in(statement.body.expr, one.dtype)
                kinds |= {} if kind is None else {one.statement: kind}
        return kinds

    def _calls(self, loop: For, scope: LoopScope) -> VectorCalls | None:
        return vector_calls(loop.body, self.program, scope.taken) if self.tiles and loop.step == 1 else None

    def _calling(self, loop: For, scope: LoopScope) -> list[cgen.Generable] | None:
        """The loop in lanes, if functions of whole vectors are called in it."""
        calls = self._calls(loop, scope)
        lanes = full_vectors(self.program, calls.width, Counter.of(loop).trips) if calls else None
        return self._lanes(loop, lanes, (), calls, scope) if lanes and lanes.masked else None

    def _lanes(
        self,
        loop: For,
        lanes: Shape,
        found: tuple[LaneReduction, ...],
        calls: VectorCalls | None,
        scope: LoopScope,
        into: Sequence[str] = (),
    ) -> list[cgen.Generable]:
        """The loop in vectors of a shape, with its reductions and calls."""
        taken = scope.taken | (calls.names if calls else frozenset())
        printer = StatementPrinter(self._buffers, self._sizes)
        dtypes = [one.dtype for one in found] if self.tiles and not calls else []
        if gathered(loop.body, self.program, loop.variable, dtypes, taken):
            lanes = replace(lanes, masked=False)

        def body(value: Int, into: Mapping[str, str], kept: Mapping[Element, str]) -> list[cgen.Generable]:
            inside = substituted(loop.body, {loop.variable: value})
            each = gathered(inside, self.program, "lane", dtypes, taken)
            held = {**scope.held, **{one.element: one.lane for one in each}}
            inner = replace(scope, accumulators=into, held=held).calling(calls, kept)
            return [*(one.loaded(lanes.lanes, printer) for one in each), *self.write(inside, inner)]

        aligned = cut(loop, self.program, printer, taken) if self.tiles else None
        begin = None if aligned is None else (aligned[0], aligned[2].start)

        def ahead(value: Int) -> list[cgen.Generable]:
            return fetched(loop.body, self.program, loop.variable, value) if calls else []

        own = partials(found, taken)
        return LaneLoop(Counter.of(loop), lanes, own, body, taken, begin, ahead, into, calls).lines()

    def _jammed(self, loop: For, jam: JammedLoop, scope: LoopScope) -> list[cgen.Generable]:
        """The loop with the elements that its jammed iterations write in registers."""
        printer = StatementPrinter(self._buffers, self._sizes)
        lines = JammedLines(jam, self.program, printer, self._holding(scope), scope.taken).lines()
        return _if_entered(loop, scope, lines)

    def _tiled(self, loop: For, tile: VectorTile, scope: LoopScope) -> list[cgen.Generable]:
        """The loop around a vector loop, with what that keeps in registers."""
        inside = scope.inside(loop)
        inner = inside.inside(tile.inner)

        def body(
            node: Node, held: Mapping[Element, str], taken: frozenset[str], calls: VectorCalls | None
        ) -> list[cgen.Generable]:
            every = calls.every() if calls else {}
            inside = replace(inner, held={**inner.held, **held}, taken=inner.taken | taken)
            return self.write(node, inside.calling(calls, every))

        printer = StatementPrinter(self._buffers, self._sizes)
        few = self._few(loop, tile, scope)
        lines = TileLoop(tile, self.program, printer, body, partial(around, loop), few, inside.taken).lines()
        needed = (*scope.unknown([loop.entered]), *scope.unknown([tile.inner.entered]))
        return [branch(conjunction(needed), lines)] if needed else lines

    def _few(self, loop: For, tile: VectorTile, scope: LoopScope) -> list[cgen.Generable] | None:
        """A tile's iterations one after the other, each with lanes along the loop around; None if that can't have any.

        Only reductions and selections make its iterations depend on each other: a tile has no other writes.
        """
        body = tile.inner.body
        reduces = bool(reductions(body, self.program, loop.variable)) and self.program.fused
        if loop.step != 1 or loop.end is None or not (reduces or selection(body, self.program, loop.variable)):
            return None
        along = replace(loop, body=body, mark=replace(loop.mark, vectorize=True))
        one = replace(tile.inner, body=along, mark=replace(tile.inner.mark, vectorize=False))
        return self.write(one, scope)

    def _scanning(self, loop: For, found: Scan, scope: LoopScope) -> list[cgen.Generable]:
        """The loop a vector at a time, with the prefixes of each."""
        names = ScanNames.of(found, scope.taken)
        scope = replace(scope, taken=scope.taken | names.all)

        def body(nodes: Sequence[Node], held: Mapping[Element, str]) -> list[cgen.Generable]:
            inner = replace(scope, held={**scope.held, **held})
            return [line for node in nodes for line in self.write(node, inner)]

        counter = Counter.of(loop)
        lanes = min(self.program.isa.lanes(found.dtype), self.program.isa.most_lanes)
        printer = StatementPrinter(self._buffers, {})
        lines = ScanLoop(counter, found, lanes, printer, body, partial(self.write, loop.body, scope), names).lines()
        return _if_entered(loop, scope, lines)

    def _selecting(self, loop: For, end: Int, selected: Selection, scope: LoopScope) -> list[cgen.Generable]:
        """The loop in vector lanes that look for the one iteration whose results last, which then runs."""
        names = SelectionNames.of(selected, loop.variable, scope.taken)
        scope = replace(scope, taken=scope.taken | names.all)

        def body(value: Int, instead: Mapping[str, Instead]) -> list[cgen.Generable]:
            return self.write(substituted(loop.body, {loop.variable: value}), replace(scope, instead=instead))

        def lanes(reduction: LaneReduction, counter: Counter, lane: Lane, ahead: Ahead) -> list[cgen.Generable]:
            def one(value: Int, accumulators: Mapping[str, str], _: Mapping[Element, str]) -> list[cgen.Generable]:
                return lane(value, accumulators[reduction.statement])

            found = shape(self.program, [reduction], counter.trips)
            if found.lanes < keys:  # the place of a narrow key: compilers handle vectors of one size less well
                found = replace(found, lanes=keys, vectors=1)
            variables = partials([reduction], scope.taken)
            return [block(LaneLoop(counter, found, variables, one, scope.taken, ahead=ahead).lines())]

        counter = Counter.of(loop)
        isa = self.program.isa
        keys = min(isa.lanes(selected.dtype), isa.most_lanes)
        size = CHUNK * isa.lanes(selected.dtype)
        fetches = not is_device(isa)
        lines = SelectionLoop(counter, end, selected, size, body, lanes, names, fetches).lines()
        entered = scope.unknown([loop.entered])
        return [branch(conjunction(entered), lines)] if entered else lines

    def _run(self, run: Run, scope: LoopScope) -> list[cgen.Generable]:
        statement = self.program.statements[run.statement]
        if statement.where is None:
            return self._statement(run, scope)
        return [branch(replaced(statement.where, self._values(run)), self._statement(run, scope))]

    def _values(self, run: Run) -> dict[str, Int]:
        """The values of the sizes and of the statement's iterators."""
        iterators = self.program.statements[run.statement].iterators
        return {**self._sizes, **dict(zip(iterators, run.values, strict=True))}

    def _printer(self, run: Run, scope: LoopScope) -> StatementPrinter:
        """Prints a statement for an instance."""
        return StatementPrinter(
            self._buffers if scope.calls is None else self._buffers | scope.calls.buffers,
            self._values(run),
            scope.held,
            scope.near or frozenset(),
            scope.over,
            self._ranges,
            self._short,
            scope.lanes and self.tiles,
        )

    def _statement(self, run: Run, scope: LoopScope) -> list[cgen.Generable]:
        statement = self.program.statements[run.statement]
        if isinstance(statement.body, Instructions):
            return instructed(statement.iterators, run.values, statement.body, scope.taken, self.bounds)
        calls, body = scope.calls, statement.body
        printer = self._printer(run, scope)
        asserted = checks(body, self.program, printer) if self.bounds else []
        if calls is not None:
            asserted, body = [*asserted, *calls.before(run.statement, printer)], calls.rest[run.statement]
            stored = calls.stored(run.statement, printer)
            if stored is not None:
                return [*asserted, stored]
        if run.statement in scope.instead:
            return [*asserted, *scope.instead[run.statement](printer, body)]
        into = scope.accumulators.get(run.statement)
        if into is None:
            text = printer.assign(body)
        elif run.statement in scope.smaller:
            text = printer.extreme(into, body, scope.smaller[run.statement])
        else:
            text = (printer.summed if run.statement in scope.sums else printer.update)(into, body)
        if run.statement in scope.declaring and printer.at(body.target) not in scope.held:
            text = f"{self._kind(body.target.array)} {text}"
        return [*asserted, Line(text, printer.names(body, into is None))] if text else asserted


def _if_entered(loop: For, scope: LoopScope, lines: list[cgen.Generable]) -> list[cgen.Generable]:
    """What stands in place of a loop, in a block, unless the loop has no iteration."""
    entered, whole = scope.unknown([loop.entered]), block(lines)
    return [branch(conjunction(entered), [whole]) if entered else whole]


def _begun_in_order(
    aligned: tuple[Line, For, For], body: list[cgen.Generable], rest: list[cgen.Generable]
) -> cgen.Generable:
    """A loop's iterations up to where whole vectors begin, one after the other, and what stands for the others."""
    first, before, _ = aligned
    return block([first, around(before, [Line(IN_ORDER), *body]), *rest])


def declarator(buffer: Buffer) -> str:
    """A local array as a C variable: `row[16]`, or `acc = 0`, since compilers can't tell that a loop sets it first."""
    return f"{c_name(buffer.name)}[{elements(buffer)}]" if buffer.shape else f"{c_name(buffer.name)} = 0"


def first_assignments(node: Declare, program: Program) -> dict[str, str]:
    """The statements that assign scalar variables before anything else names these, by the names of the variables.

    Each is directly in the loop's body, once and without a condition.
    """
    runs = [part.statement for part in walk(node.body) if isinstance(part, Run)]
    direct = list(in_sequence(node.body))
    found = {}
    for name in node.buffers:
        first = next((run for run in runs if name in touched(program.statements[run])), "")
        made = program.statements.get(first)
        if made is None or made.where is not None or not isinstance(made.body, Assign) or runs.count(first) > 1:
            continue
        plain = made.body.op == "=" and made.body.target == Load(name, ()) not in loads(made.body.expr)
        if plain and any(isinstance(part, Run) and part.statement == first for part in direct):
            found[name] = first
    return found


def in_sequence(node: Node) -> Iterator[Node]:
    """The nodes that are printed one after the other in place of a node."""
    if isinstance(node, Block | Comment):
        for child in inside(node):
            yield from in_sequence(child)
    else:
        yield node


def reads(node: Node, program: Program) -> frozenset[str]:
    """The buffers that statements below a node read."""
    runs = {part.statement for part in walk(node) if isinstance(part, Run)}
    bodies = [body for name in runs if isinstance(body := program.statements[name].body, Assign)]
    return frozenset(load.array for body in bodies for load in loads(body.expr))


def instructed(
    iterators: tuple[str, ...], values: tuple[Int, ...], body: Instructions, taken: frozenset[str], bounds: bool
) -> list[cgen.Generable]:
    """The C of instructions. An iterator whose value is more than a name or a number is declared first.

    An iterator whose name is taken there gets a new one.
    """
    used = names(body.body(bounds))
    known: dict[str, Int] = {}
    declared: list[Let] = []
    for iterator, value in zip(iterators, values, strict=True):
        if value.is_simple and (value == Linear.name(iterator) or value.names.isdisjoint(used)):
            known[iterator] = value
        else:
            name = fresh(iterator, taken | used) if iterator in taken else iterator
            taken |= {name}
            declared.append(Let(name, value))
            known[iterator] = Linear.name(name)
    nodes = body.body(bounds, known)
    lets = [let for let in declared if let.name in names(nodes)]
    remark = [Line(f"/* {body.comment} */")] * bool(body.comment)
    lines = [*remark, *plain(Block((*lets, nodes)))]
    scoped = lets or any(isinstance(node, Let | Table) for node in nodes.nodes)
    return [block(lines)] if scoped else lines


def plain(node: Node) -> list[cgen.Generable]:
    """The C of loops, conditions and instructions, without regard to marks."""
    match node:
        case For():
            return [around(node, plain(node.body))]
        case If(test, then, other):
            return [branch(test, plain(then), None if other is None else plain(other))]
        case Block():
            return [made for child in node.nodes for made in plain(child)]
        case Let() | Table() | Write() | Call() | Barrier():
            return [Line(line(node), names(node))]
    raise TypeError(f"{type(node).__name__} in a routine")
