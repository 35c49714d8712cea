"""Analysis of loops whose iterations go into vector lanes: each reduction needs variables of its own.

for (j…)                            f32x16 s_sum[4];
  s[i] += A[i*N + j];       ->      for (j…)
                                      …
                                    s[i] += sum_f32x16(s_sum, 4);
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from codegen.arithmetic import least, most, update
from codegen.declarations import touched
from codegen.elements import Element
from codegen.ir.expr import Binary, Cast, Load, loads, looked_up, placed
from codegen.ir.expr import Node as ExprNode
from codegen.ir.expr import walk as expressions
from codegen.ir.integer import Int, Test
from codegen.ir.loop_ir import Declare, For, If, Node, Run, inside, walk, written_out
from codegen.ir.program import Assign, Buffer, Program
from codegen.names import c_name
from codegen.scalar import StatementPrinter
from codegen.typed_text import literal
from microkernels.dtypes import DType, f32, f64, i32, i64

WORDS = {"+": "sum", "*": "product"}
"""Operators as words, where they are not words already."""
OFFSETS = {f32: i32, i32: i32, f64: i64, i64: i64}
"""The types of keys whose extreme is looked for in lanes, and integers of the same size that count iterations."""


@dataclass(frozen=True)
class LaneReduction:
    """A statement that reduces into one element, the same in each iteration of the loop."""

    statement: str
    op: str
    element: Element
    place: str
    """The element's C text."""
    dtype: DType
    names: frozenset[str]
    """The names in that text."""

    @property
    def operation(self) -> str:
        """The operator as a word."""
        return WORDS.get(self.op, self.op)

    @property
    def root(self) -> str:
        """The prefix of the names of its variables."""
        return c_name(self.element.array)

    @property
    def name(self) -> str:
        """The name of the variable."""
        return reduced(self.element.array, self.op)

    def store(self, value: str) -> str:
        """C text that combines the element with a value; for max and min, an element that is NaN stays NaN."""
        return update(self.op, self.dtype, self.place, value)


def reduced(array: str, op: str) -> str:
    """What to call a variable that an array's element is reduced into first: `s_sum`."""
    return f"{c_name(array)}_{WORDS.get(op, op)}"


def neutral(op: str, dtype: DType) -> str:
    """An operator's neutral element: 0, 1, or the largest or smallest number of the type."""
    if op in "+*":
        return literal(int(op == "*"), dtype)[0]
    if dtype.is_float:
        return "INFINITY" if op == "min" else "-INFINITY"
    return least(dtype) if op == "max" else most(dtype)


@dataclass(frozen=True)
class Use:
    """A statement instance in a loop's body: its iterators' values, and the loops and conditions in between."""

    statement: str
    arguments: tuple[Int, ...]
    inner: tuple[str, ...] = ()
    """The variables of the loops between, outermost first."""
    conditional: bool = False

    @property
    def nested(self) -> bool:
        return bool(self.inner)


def reductions(body: Node, program: Program, variable: str) -> tuple[LaneReduction, ...] | None:
    """The reductions of a loop's `body` over the loop's `variable`; None if the loop must stay scalar.

    It must if it contains a statement that is a text, or an element shared by all iterations that is not written by
    reductions of one kind, directly in the loop, and accessed nowhere else in it. Elements differ if their indices do:
    a mark `vectorize` requires a proof that iterations depend on each other only through reductions, and that none
    accesses what all of them reduce into. That says nothing of a reduction that runs under a condition: it may run in
    one iteration alone, into an element of that iteration's.
    """
    every, own = list(uses(body)), declared(body)
    assigns = [program.statements[use.statement].body for use in every]
    found, elements, at_times = [], [], []
    for use, assign in zip(every, assigns, strict=True):
        if not isinstance(assign, Assign):
            return None
        printer = printer_of(use, program)
        target = printer.at(assign.target)
        elements += [target, *map(printer.at, loads(assign.expr))]
        if variable in target.names or target.array in own:
            continue
        dtype = printer.buffers[target.array].dtype
        if assign.op == "=" or use.nested or dtype.is_stored:
            return None
        place, names = printer.element(target), printer.element_names(target)
        found.append(LaneReduction(use.statement, assign.op, target, place, dtype, names))
        at_times += [target] * use.conditional
    ops = [(reduction.element, reduction.op) for reduction in found]
    shared = any(elements.count(element) > ops.count((element, op)) for element, op in ops)
    met = any(other != one and not is_apart(other, one) for one in at_times for other in elements)
    repeated = len({reduction.statement for reduction in found}) < len(found)
    return None if shared or met or repeated else tuple(found)


def left_to_compilers(found: tuple[LaneReduction, ...], body: Node, program: Program) -> bool:
    """Whether a loop only reduces integers of smaller types than the results, or sums distances of such.

    The order of integers makes no difference, so compilers vectorise the loop as it is, with as many iterations as a
    vector has of the smallest elements. A loop over the lanes of the results would have the smallest in parts of one.
    """
    sizes = {buffer.name: buffer.dtype.size for buffer in program.buffers}
    every = {use.statement for use in uses(body)}
    assigns = (program.statements[name].body for name in every)
    read = [sizes[load.array] for one in assigns if isinstance(one, Assign) for load in loads(one.expr)]
    plain = all(one.op != "*" and not one.dtype.is_float for one in found)
    return (
        plain
        and (every == {one.statement for one in found} or sums_distances(found, body, program))
        and any(size < min(one.dtype.size for one in found) for size in read)
    )


def sums_distances(found: Sequence[LaneReduction], body: Node, program: Program) -> bool:
    """Whether a loop only sums integers, elements' products, and the magnitudes and products of their differences.

    Compilers have instructions for these if nothing is converted in between. The differences may be in locals.
    """
    every, own = list(uses(body)), declared(body)
    dtypes = {buffer.name: buffer.dtype for buffer in program.buffers}
    sums = {one.statement for one in found if one.op == "+" and not one.dtype.is_float}

    def is_element(expr: ExprNode) -> bool:
        inner = uncast(expr)
        return isinstance(inner, Load) and inner.array not in own

    def may_be(assign: Assign) -> bool:
        made = [node for node in expressions(assign.expr) if isinstance(node, Binary)]
        differences = [node for node in made if node.op == "-"]
        products = [node for node in made if node.op == "*"]
        factors = (uncast(factor) for node in products for factor in (node.left, node.right))
        return (
            len(differences) + len(products) == len(made)
            and all(is_element(part) for node in differences for part in (node.left, node.right))
            and all(isinstance(factor, Load) or factor in differences for factor in factors)
        )

    def is_distance(use: Use) -> bool:
        assign = program.statements[use.statement].body
        if not isinstance(assign, Assign) or use.nested or use.conditional or not may_be(assign):
            return False
        value, target = uncast(assign.expr), assign.target.array
        difference = isinstance(value, Binary) and value.op == "-"
        return use.statement in sums or (target in own and difference and not dtypes[target].is_float)

    return len(sums) == len(found) and all(map(is_distance, every))


def uncast(expr: ExprNode) -> ExprNode:
    """What is converted, once or more often."""
    return uncast(expr.operand) if isinstance(expr, Cast) else expr


def narrowest(body: Node, program: Program, variable: str) -> int | None:
    """The bytes of the smallest elements that a loop reads one after the other; None if it reads none so."""
    sizes = {buffer.name: buffer.dtype.size for buffer in program.buffers}
    read = []
    for use in uses(body):
        assign = program.statements[use.statement].body
        for load in loads(assign.expr) if isinstance(assign, Assign) else ():
            if variable in printer_of(use, program).at(load).names and not looked_up(load):
                read.append(sizes[load.array])
    return min(read, default=None)


@dataclass(frozen=True)
class Lasting:
    """The reductions of a vector loop into elements that stay the same in all iterations of a loop around it.

    They run if `tests` hold, which are the same in all these iterations.
    """

    loop: For
    found: tuple[LaneReduction, ...]
    tests: tuple[Test, ...]


def lasting(loop: For, program: Program) -> tuple[Lasting, ...]:
    """The vector loops inside a loop whose lanes may go on from one of its iterations to the next.

    Nothing else in the loop accesses what they reduce into.
    """
    runs = [use.statement for use in uses(loop.body)]
    own = declared(loop.body)

    def are_alone(found: tuple[LaneReduction, ...]) -> bool:
        every = {reduction.statement for reduction in found}
        others = {array for run in runs if run not in every for array in touched(program.statements[run])}
        return all(
            runs.count(reduction.statement) == 1 and reduction.element.array not in others | own for reduction in found
        )

    made = []
    for inner, tests, variables in _vector_loops(loop.body, (loop.entered,), frozenset((loop.variable,))):
        found = reductions(written_out(inner.body), program, inner.variable) or ()
        names = frozenset[str]().union(*(part.names for part in (*tests, *(r.element for r in found))))
        compiled = left_to_compilers(found, inner.body, program)
        if found and not compiled and variables.isdisjoint(names) and are_alone(found):
            made.append(Lasting(inner, found, tests))
    return tuple(made)


def _vector_loops(
    node: Node, tests: tuple[Test, ...], variables: frozenset[str]
) -> Iterator[tuple[For, tuple[Test, ...], frozenset[str]]]:
    """The vector loops below a node, each with the conditions and the variables of the loops around it."""
    if isinstance(node, For):
        tests = (*tests, node.entered)
        if node.mark.vectorize and node.end is not None:
            yield node, tests, variables
            return
        variables |= {node.variable}
    elif isinstance(node, If):
        if node.other is not None:
            return
        tests = (*tests, node.test)
    for child in inside(node):
        yield from _vector_loops(child, tests, variables)


def is_apart(one: Element | Load, other: Element | Load) -> bool:
    """Whether two elements are never the same in one iteration, as their arrays differ, or indices by a constant."""
    if one.array != other.array:
        return True
    return any((a - b).number for a, b in zip(one.indices, other.indices, strict=True))


def declared(body: Node) -> frozenset[str]:
    """The locals of which each iteration of a loop with this body has its own."""
    return frozenset(name for node in walk(body) if isinstance(node, Declare) for name in node.buffers)


def invariants(body: Node, program: Program, variable: str) -> tuple[Element, ...]:
    """The elements that each iteration of a loop reads and none writes.

    They are loaded before the loop, as lanes that are masked out could not load them.
    """
    found: dict[Element, None] = {}
    every = list(uses(body))
    assigns = [program.statements[use.statement].body for use in every]
    written = {assign.target.array for assign in assigns if isinstance(assign, Assign)} | declared(body)
    for use, assign in zip(every, assigns, strict=True):
        if not isinstance(assign, Assign) or use.nested or use.conditional:
            continue
        for element in map(printer_of(use, program).at, loads(assign.expr)):
            if element.indices and element.array not in written and variable not in element.names:
                found[element] = None
    return tuple(found)


def kept_by_order(body: Node, program: Program, variable: str) -> tuple[Element, ...]:
    """The elements of an array that a vector loop's only statement reads in each iteration, and writes elsewhere.

    Were one of them written in the loop, another iteration would have to run before or after that one, and the loop
    would have no lanes. Compilers do not know, and would load it each time.
    """
    found = list(uses(body))
    if len(found) != 1:
        return ()
    [only] = found
    assign = program.statements[only.statement].body
    if not isinstance(assign, Assign) or only.nested or only.conditional or only.statement in declared(body):
        return ()
    printer = printer_of(only, program)
    target, read = printer.at(assign.target), map(printer.at, loads(assign.expr))
    if variable not in target.names:
        return ()
    own = (element for element in read if element.array == target.array and variable not in element.names)
    return tuple(dict.fromkeys(own))


def confuses_gcc(body: Node, program: Program, variable: str) -> bool:
    """Whether gcc 12 may miscompile a loop of step 1: see `codegen.macros.IN_ORDER`."""
    found: dict[str, list[_Write]] = {}
    own = declared(body)
    for use in uses(body):
        assign = program.statements[use.statement].body
        if isinstance(assign, Assign) and assign.target.array not in own:
            found.setdefault(assign.target.array, []).append(_Write.of(use, assign, program))
    floats = {name for name, buffer in _buffers(program).items() if buffer.dtype.is_float}
    return any(_adds_twice(variable, writes, array in floats) for array, writes in found.items())


@dataclass(frozen=True)
class _Write:
    """A statement in a loop's body that writes one array: the subscripts of its element."""

    places: tuple[frozenset[str], ...]
    """The names in each subscript."""
    inner: tuple[str, ...]
    reads_itself: bool
    adds: bool
    """Whether the element's new value is a sum with its old one, as it is not in `x if x > y else y`."""

    @staticmethod
    def of(use: Use, assign: Assign, program: Program) -> _Write:
        printer = printer_of(use, program)
        target = printer.at(assign.target)

        def itself(expr: ExprNode) -> bool:
            return target in map(printer.at, loads(expr))

        sums = (node for node in expressions(assign.expr) if isinstance(node, Binary) and node.op in "+-")
        adds = assign.op == "+" or (assign.op == "=" and any(map(itself, sums)))
        places = tuple(index.names for index in target.indices)
        return _Write(places, use.inner, itself(assign.expr), adds)

    def counts(self, loop: str) -> bool:
        """Whether the element depends on a loop."""
        return any(loop in place for place in self.places)

    def is_alone(self, loop: str, loops: tuple[str, ...]) -> bool:
        """Whether some subscript depends on this loop and on none of the others in `loops`."""
        return any(place & {loop, *loops} == {loop} for place in self.places)


def _adds_twice(variable: str, writes: list[_Write], floats: bool) -> bool:
    """Whether an iteration adds floats more than once to an element that all iterations share."""
    sums = [w for w in writes if w.adds and not w.counts(variable)]
    again = len(sums) > 1 or any(w.reads_itself or not all(w.is_alone(i, w.inner) for i in w.inner) for w in sums)
    return floats and again


def _buffers(program: Program) -> dict[str, Buffer]:
    return {buffer.name: buffer for buffer in program.buffers}


def placed_assign(use: Use, assign: Assign, program: Program) -> Assign:
    """An instance's assignment in terms of C's variables."""
    iterators = dict(zip(program.statements[use.statement].iterators, use.arguments, strict=True))
    values = {**program.size_names, **iterators}
    return Assign(placed(assign.target, values), assign.op, placed(assign.expr, values))


def printer_of(use: Use, program: Program) -> StatementPrinter:
    """Prints a statement with the values of its iterators."""
    iterators = dict(zip(program.statements[use.statement].iterators, use.arguments, strict=True))
    return StatementPrinter(_buffers(program), {**program.size_names, **iterators})


def uses(node: Node, inner: tuple[str, ...] = (), conditional: bool = False) -> Iterator[Use]:
    """The statements below a node, in textual order."""
    if isinstance(node, Run):
        yield Use(node.statement, node.values, inner, conditional)
    around = (*inner, node.variable) if isinstance(node, For) else inner
    for child in inside(node):
        yield from uses(child, around, conditional or isinstance(node, If))
