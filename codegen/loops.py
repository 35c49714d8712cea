"""isl's AST as C loops (cgen nodes), named after the schedule's loops.

// isl's AST                          // C
mark loop:i_tile                      for (int64_t i_tile = 0; i_tile < M; i_tile += 6)
  for (c0 = 0; c0 < M; c0 += 6)         for (int64_t i = 0; i < imin(6, M - i_tile); i += 1)
    mark loop:i                           A[i_tile + i] = 0.0f;
      for (c1 = 0; c1 <= …; c1 += 1)
        S0(c0 + c1)
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import cgen
import islpy as isl

from codegen.bounds import checks
from codegen.integer import Int, Linear, Test
from codegen.isl_ast import arguments, called, children, condition, end, integer, kind, operation
from codegen.lanes import Counter, LaneLoop, holders, partials, shape
from codegen.macros import EACH_VECTOR, IN_ORDER
from codegen.names import fresh, function_name
from codegen.parallel import Iteration, shared_out
from codegen.parameters import Parameter, data_parameters, needed, prototype, scratch_parameters
from codegen.program import Buffer, LoopMark, Program, Text, Threading
from codegen.reached import conditions, every, outside
from codegen.scalar import Element, StatementPrinter
from codegen.simd import Reduction, confusing, invariants, reductions

MARK = "loop:"
WORD = re.compile(r"[A-Za-z_]\w*")
NO_MARK = LoopMark("")


@dataclass(frozen=True)
class Scope:
    """What is known at a place in the AST."""

    values: Mapping[str, Int]
    """What sizes and isl's iterators stand for."""
    taken: frozenset[str]
    """C names in use."""
    variables: tuple[str, ...] = ()
    """Loop variables around, outermost first."""
    mark: LoopMark = NO_MARK
    """How to print the next loop."""
    parallel: bool = False
    """Inside a loop that is marked as parallel, shared by threads or gone since it runs once: below it each thread has
    scratch arrays of its own, so no loop inside is shared again."""
    accumulators: Mapping[str, str] = field(default_factory=dict)
    """The variables that stand for elements, by the names of the statements that reduce into them."""
    held: Mapping[Element, str] = field(default_factory=dict)
    """The variables that hold elements which are only read."""
    known: frozenset[Test] = frozenset()
    """Conditions that hold here."""
    shares: int = 1
    """On an OpenCL device: among so many work-items the loops around are shared out."""


@dataclass(frozen=True)
class Loop:
    """A `for` node with its C names."""

    node: isl.AstNode
    variable: str
    start: Int
    scope: Scope

    @property
    def condition(self) -> Test:
        return condition(self.node.for_get_cond(), self.scope.values)

    @property
    def canonical(self) -> bool:
        """OpenMP can count its iterations: the condition compares the variable with something."""
        return operation(self.node.for_get_cond()) in ("le", "lt")

    @property
    def entered(self) -> Test:
        """The condition that it runs at least once."""
        return self.condition_at(self.start)

    def condition_at(self, value: Int) -> Test:
        """The condition for a value of the variable."""
        isl_name = self.node.for_get_iterator().get_id().get_name()
        return condition(self.node.for_get_cond(), {**self.scope.values, isl_name: value})

    @property
    def counter(self) -> Counter:
        """The variable of a canonical loop."""
        test, values = self.node.for_get_cond(), self.scope.values
        alone = integer(arguments(test)[0], values) == Linear.name(self.variable)
        step = integer(self.node.for_get_inc(), values).constant
        return Counter(self.variable, self.start, end(test, values) if alone else None, step, self.condition_at)

    def around(self, body: list[cgen.Generable]) -> cgen.Generable:
        """The C loop with a body."""
        step = integer(self.node.for_get_inc(), self.scope.values)
        start, update = f"int64_t {self.variable} = {self.start}", f"{self.variable} += {step}"
        return cgen.For(cgen.Line(start), cgen.Line(str(self.condition)), cgen.Line(update), block(body))


@dataclass
class Writer:
    """Walks one program's AST. `functions` collects the bodies of parallel loops, each a C function of its own.

    A function of its own keeps the `restrict` of its parameters, which gcc forgets when it outlines a parallel region.
    """

    program: Program
    threading: Threading = "openmp"
    bounds: bool = False
    """Before each statement stand assertions that it stays inside of the arrays."""
    functions: list[str] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    """What these are called."""

    @property
    def _buffers(self) -> dict[str, Buffer]:
        return {buffer.name: buffer for buffer in self.program.buffers}

    def write(self, node: isl.AstNode, scope: Scope) -> list[cgen.Generable]:
        """The C of a node."""
        match kind(node):
            case "mark":
                return self._mark(node, scope)
            case "for_":
                return self._for(node, scope)
            case "if_":
                return [self._if(node, scope)]
            case "block":
                return [line for child in children(node) for line in self.write(child, scope)]
            case _:
                return self._user(node, scope)

    def _mark(self, node: isl.AstNode, scope: Scope) -> list[cgen.Generable]:
        name = node.mark_get_id().get_name()
        if name.startswith(MARK):
            mark = self.program.marks.get(name, LoopMark(name.removeprefix(MARK)))
            scope = replace(scope, mark=mark, parallel=scope.parallel or scope.mark.parallel)
        return self.write(node.mark_get_node(), scope)

    def _if(self, node: isl.AstNode, scope: Scope) -> cgen.Generable:
        other = block(self.write(node.if_get_else_node(), scope)) if node.if_has_else_node() else None
        then = block(self.write(node.if_get_then_node(), scope))
        return cgen.If(cgen.Line(str(condition(node.if_get_cond(), scope.values))), then, other)

    def _for(self, node: isl.AstNode, scope: Scope) -> list[cgen.Generable]:
        if node.for_is_degenerate():
            return self.write(node.for_get_body(), once(node, scope))
        loop = opened(node, scope)
        needed = self._needed(loop)
        if not needed:
            return self._loop(loop, scope)
        known = replace(loop.scope, known=scope.known.union(needed))
        return [cgen.If(cgen.Line(str(every(needed))), block(self._loop(replace(loop, scope=known), scope)))]

    def _needed(self, loop: Loop) -> tuple[Test, ...]:
        """What must hold for the loop to do anything, as far as it isn't known to."""
        found = outside(conditions(loop.node.for_get_body(), loop.scope.values), loop.variable)
        return tuple(test for test in found if test not in loop.scope.known)

    def _loop(self, loop: Loop, scope: Scope) -> list[cgen.Generable]:
        """A loop, as the mark of the scope around it says."""
        mark, node = scope.mark, loop.node
        if mark.parallel and not scope.parallel and loop.canonical:
            return self._parallel(loop)
        if mark.vectorize and loop.canonical:
            found = reductions(node.for_get_body(), self.program, loop.scope.values, loop.variable)
            if found is not None:
                return self._vectorized(loop, found)
        unroll = [cgen.Pragma(f"GCC unroll {mark.unroll}")] if mark.unroll > 1 else []
        return [*unroll, loop.around([*self._in_order(loop), *self.write(node.for_get_body(), loop.scope)])]

    def _in_order(self, loop: Loop) -> list[cgen.Generable]:
        """What stands first in a loop whose iterations a compiler must be kept from confusing."""
        tiles = integer(loop.node.for_get_inc(), loop.scope.values).constant > 1
        found = not tiles and confusing(loop.node.for_get_body(), self.program, loop.scope.values, loop.variable)
        return [cgen.Line(IN_ORDER)] * found

    def _parallel(self, loop: Loop) -> list[cgen.Generable]:
        """The loop shared out to threads, its body a function."""
        body = str(block(self.write(loop.node.for_get_body(), loop.scope)))
        counters = tuple(Parameter("int64_t ", variable) for variable in loop.scope.variables)
        candidates = (*data_parameters(self.program), *scratch_parameters(self.program), *counters)
        parameters = needed(candidates, body)
        name = fresh(f"{function_name(self.program.name)}_{loop.variable}", frozenset(self.names))
        self.names.append(name)
        iteration = Iteration(
            self.program,
            name,
            parameters,
            counters[:-1],
            loop.variable,
            loop.start,
            end(loop.node.for_get_cond(), loop.scope.values),
            integer(loop.node.for_get_inc(), loop.scope.values).constant,
            loop.around,
            loop.scope.taken,
        )
        functions, lines = shared_out(iteration, self.threading)
        self.functions.append("\n\n".join([f"{prototype('static void', name, parameters)}\n{body}", *functions]))
        return lines

    def _vectorized(self, loop: Loop, found: tuple[Reduction, ...]) -> list[cgen.Generable]:
        """The loop in vector lanes; what it reduces goes to variables, and from these to the elements after it."""
        inside = loop.node.for_get_body()
        if not found:
            return [cgen.Line(EACH_VECTOR), loop.around(self.write(inside, loop.scope))]
        isl_name = loop.node.for_get_iterator().get_id().get_name()
        read = invariants(inside, self.program, loop.scope.values, loop.variable)
        held = holders(read, StatementPrinter(self._buffers, loop.scope.values), loop.scope.taken)
        scope = replace(loop.scope, held=held.names, taken=loop.scope.taken.union(held.names.values()))

        def body(value: Int, accumulators: Mapping[str, str]) -> list[cgen.Generable]:
            values = {**scope.values, isl_name: value}
            return self.write(inside, replace(scope, values=values, accumulators=accumulators))

        counter, taken = loop.counter, scope.taken
        lanes = LaneLoop(counter, shape(self.program, found, counter.trips), partials(found, taken), body, taken)
        whole = block([*map(cgen.Line, held.lines), *lanes.lines()])
        return [whole if loop.entered in scope.known else cgen.If(cgen.Line(str(loop.entered)), whole)]

    def _user(self, node: isl.AstNode, scope: Scope) -> list[cgen.Generable]:
        name, arguments = called(node, scope.values)
        statement = self.program.statements[name]
        if statement.where is None:
            return self._statement(name, arguments, scope)
        values = {**scope.values, **dict(zip(statement.iterators, arguments, strict=True))}
        holds = cgen.Line(str(condition(statement.where, values)))
        return [cgen.If(holds, block(self._statement(name, arguments, scope)))]

    def _statement(self, name: str, arguments: tuple[Int, ...], scope: Scope) -> list[cgen.Generable]:
        statement = self.program.statements[name]
        if isinstance(statement.body, Text):
            lines = statement.body.all_lines(self.bounds)
            return [text_block(statement.iterators, arguments, lines, scope.taken)]
        values = {**scope.values, **dict(zip(statement.iterators, arguments, strict=True))}
        printer = StatementPrinter(self._buffers, values, scope.held)
        asserted = checks(statement.body, self.program, printer) if self.bounds else []
        into = scope.accumulators.get(name)
        line = printer.assign(statement.body) if into is None else printer.update(into, statement.body)
        return [cgen.Line(text) for text in (" ".join(asserted), line) if text]


def once(node: isl.AstNode, scope: Scope) -> Scope:
    """What is known in the only iteration of a `for` node."""
    start = integer(node.for_get_init(), scope.values)
    values = {**scope.values, node.for_get_iterator().get_id().get_name(): start}
    return replace(scope, mark=NO_MARK, values=values, parallel=scope.parallel or scope.mark.parallel)


def opened(node: isl.AstNode, scope: Scope) -> Loop:
    """A `for` node as a C loop, called as the scope's mark says."""
    isl_name = node.for_get_iterator().get_id().get_name()
    variable = fresh(scope.mark.name or isl_name, scope.taken)
    inner = replace(
        scope,
        mark=NO_MARK,
        parallel=scope.parallel or scope.mark.parallel,
        values={**scope.values, isl_name: Linear.name(variable)},
        taken=scope.taken | {variable},
        variables=(*scope.variables, variable),
    )
    return Loop(node, variable, integer(node.for_get_init(), scope.values), inner)


def text_block(
    iterators: tuple[str, ...], values: tuple[Int, ...], text: Sequence[str], taken: frozenset[str]
) -> cgen.Generable:
    """The lines below declarations of the iterators that they use; one that already has its value needs none.

    An iterator whose name something else has there is given another one.
    """
    words = frozenset(word for line in text for word in WORD.findall(line))
    declared = [(i, v) for i, v in zip(iterators, values, strict=True) if i in words and v != Linear.name(i)]
    names: dict[str, str] = {}
    for iterator, _ in declared:
        names[iterator] = fresh(iterator, taken | words) if iterator in taken else iterator
        taken |= {names[iterator]}
    lines = [f"const int64_t {names[i]} = {v};" for i, v in declared]
    lines += [WORD.sub(lambda found: names.get(found.group(), found.group()), line) for line in text]
    return block([cgen.Line(line) for line in lines])


def block(nodes: Sequence[cgen.Generable]) -> cgen.Block:
    """The nodes in braces; nodes that are one block already as they are."""
    return nodes[0] if len(nodes) == 1 and isinstance(nodes[0], cgen.Block) else cgen.Block(list(nodes))
