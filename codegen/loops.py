"""Print loops as C (cgen nodes).

// codegen.ir.loop_ir                           // C
For i_tile = 0; i_tile < M; 6                for (int64_t i_tile = 0; i_tile < M; i_tile += 6)
  For i = 0; i < min(6, M - i_tile); 1         for (int64_t i = 0; i < imin(6, M - i_tile); i += 1)
    Run S0(i_tile + i)                           A[i_tile + i] = 0.0f;
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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
from codegen.ir.loop_ir import Block, Comment, Declare, For, If, Node, Once, Run, inside, names, walk
from codegen.ir.program import Assign, Buffer, Instructions, Program, Threading
from codegen.ir.ranges import Interval
from codegen.ir.value_ranges import kept_short, ranged
from codegen.lanes.overwriting import overwrites
from codegen.lanes.reached import conditions, conjunction, independent_of
from codegen.lanes.simd import confuses_gcc, lasting
from codegen.lanes.straight import mixes_iterations
from codegen.lanes.words import word
from codegen.macros import IN_ORDER
from codegen.names import c_name, fresh, function_name
from codegen.parallel import Iteration, shared_out
from codegen.parameters import Parameter, data_parameters, needed, prototype, scratch_parameters
from codegen.scalar import StatementPrinter
from codegen.scope import LoopScope
from codegen.style import Line, around, block, branch, names_in
from codegen.vector_loops import begun, vector_loop
from codegen.workspace import elements
from microkernels.cached import cached_property
from microkernels.dtypes import DType

BLOCK = 1024
"""The iterations of a vector loop that a thread runs at a time."""


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
    def buffers(self) -> dict[str, Buffer]:
        return {buffer.name: buffer for buffer in self.program.buffers}

    @cached_property
    def ranges(self) -> dict[str, Interval]:
        return ranged(self.program)

    @cached_property
    def short(self) -> dict[str, DType]:
        return kept_short(self.program, self.ranges) if self.tiles else {}

    def _kind(self, name: str, scope: LoopScope) -> str:
        """The type in C of a variable."""
        return self._short(scope).get(name, self.buffers[name].dtype).c_name

    def _short(self, scope: LoopScope) -> dict[str, DType]:
        """The types in which C keeps variables that are smaller than their own."""
        return {name: kind for name, kind in self.short.items() if name not in scope.wide}

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
            dtype = self.buffers[body.target.array].dtype
            part = f"({made.kind})({unsigned(dtype)})({printer.value(body.expr, dtype)})"
            texts.append(f"{part} << {8 * dtype.size * number}" if number else part)
            names |= printer.names(body)
        place = StatementPrinter(self.buffers, self.program.size_names).element(made.elements[0])
        value = Line(f"const {made.kind} {name} = {' | '.join(texts)};", names)
        return block([value, Line(f"__builtin_memcpy(&{place}, &{name}, sizeof {name});", names)])

    def _declare(self, node: Declare, scope: LoopScope) -> list[cgen.Generable]:
        """The body, with variables that are declared where they are first assigned, or at its start."""
        first = first_assignments(node, self.program)
        body = self.write(node.body, replace(scope, declaring=scope.declaring.union(first.values())))
        names, read = names_in(body), reads(node.body, self.program)
        used = [self.buffers[name] for name in node.buffers if c_name(name) in names]
        before = [f"{self._kind(b.name, scope)} {declarator(b)};" for b in used if b.name not in first]
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
        lines = vector_loop(self, loop, scope)
        return self._serial(loop, scope) if lines is None else lines

    def _serial(self, loop: For, scope: LoopScope) -> list[cgen.Generable]:
        """The loop as it is, between the start and the end of reductions that go on in all of its iterations."""
        before: list[cgen.Generable] = []
        after: list[cgen.Generable] = []
        for found in lasting(loop, self.program) if self.tiles else ():
            if found.loop.variable not in scope.lasting:
                scope, first, last = begun(self, found, scope)
                before, after = [*before, *first], [*after, *last]
        unroll = [cgen.Pragma(f"GCC unroll {loop.mark.unroll}")] if self._may_unroll(loop) else []
        lines = [*unroll, around(loop, [*self.in_order(loop), *self.write(loop.body, scope.inside(loop))])]
        return [block([*before, *lines, *after])] if before else lines

    def _may_unroll(self, loop: For) -> bool:
        """Whether the compiler is asked to unroll the loop."""
        return loop.mark.unroll > 1

    def in_order(self, loop: For) -> list[cgen.Generable]:
        """The line at the start of a loop that gcc might otherwise miscompile."""
        mixed = mixes_iterations(loop.body, self.program, loop.variable) or overwrites(loop, self.program)
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

    def _run(self, run: Run, scope: LoopScope) -> list[cgen.Generable]:
        statement = self.program.statements[run.statement]
        if statement.where is None:
            return self._statement(run, scope)
        return [branch(replaced(statement.where, self._values(run)), self._statement(run, scope))]

    def _values(self, run: Run) -> dict[str, Int]:
        """The values of the sizes and of the statement's iterators."""
        iterators = self.program.statements[run.statement].iterators
        return {**self.program.size_names, **dict(zip(iterators, run.values, strict=True))}

    def _printer(self, run: Run, scope: LoopScope) -> StatementPrinter:
        """Prints a statement for an instance."""
        return StatementPrinter(
            self.buffers if scope.calls is None else self.buffers | scope.calls.buffers,
            self._values(run),
            scope.held,
            scope.near or frozenset(),
            scope.over,
            self.ranges,
            self._short(scope),
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
        elif run.statement in scope.sums:
            dtype = self.buffers[body.target.array].dtype
            text = printer.summed(into, body, scope.smaller.get(run.statement, dtype))
        elif run.statement in scope.smaller:
            text = printer.extreme(into, body, scope.smaller[run.statement])
        else:
            text = printer.update(into, body)
        if run.statement in scope.declaring and printer.at(body.target) not in scope.held:
            text = f"{self._kind(body.target.array, scope)} {text}"
        return [*asserted, Line(text, printer.names(body, into is None))] if text else asserted


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
