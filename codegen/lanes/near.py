"""Which of a loop's iterations take functions of near numbers: these take less time.

                                              for (i_first…)  // a chunk at a time
                                                for (i…) far |= far_f32(x[i]);
for (i…)  // vectorize                          if (far)
  x[i] = sin(x[i]);                    ->         for (i…) x[i] = sin_f32(x[i]);  // C's
                                                else
                                                  for (i…) x[i] = near_sin_f32(x[i]);  // in vectors

sin, cos and tan run in vectors if all their arguments are near. Logarithms always do, and take half the time if all are
of positive normal numbers, unless there are functions of whole vectors
(`codegen.elementary.vector_functions`). Where C's
functions would run, a loop that may run again is taken to be near at first, which saves most of the time of the tests:

for (i…) { far |= far_f32(x[i]); y[i] = near_sin_f32(x[i]); }
if (far)
  for (i…) y[i] = sin_f32(x[i]);
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import cgen

from codegen import style
from codegen.elementary import logarithms, powers
from codegen.ir.expr import (
    CHOOSING,
    FUNCTIONS,
    PERIODIC,
    Binary,
    Cast,
    Expr,
    FunctionCall,
    Load,
    Ternary,
    accessed,
    loads,
    looked_up,
    map_loads,
    walk,
)
from codegen.ir.integer import Int, Linear, minimum, replaced
from codegen.ir.loop_ir import For, Node
from codegen.ir.program import Assign, Program
from codegen.ir.promotion import Weak
from codegen.lanes.division import divisors
from codegen.lanes.simd import declared, placed_assign, printer_of, uses
from codegen.macros import EACH_VECTOR
from codegen.names import all_fresh
from codegen.scalar import StatementPrinter
from codegen.style import Line, around, block
from microkernels.dtypes import DType, f32, f64

CHUNK = 1024
"""The iterations whose arguments are looked at together: they stay in L1."""


FAR = {PERIODIC: "far", frozenset(logarithms.NAMES): "abnormal"}
"""The functions with a form for near numbers, which a loop uses of one group, and the test for far numbers.

It gives a word whose highest bit is set for these: all instruction sets have vectors of such words.
"""


@dataclass(frozen=True)
class Taken:
    """C text of what a function takes, its type, and the names in the text."""

    text: str
    dtype: DType
    names: frozenset[str]


@dataclass(frozen=True)
class NearFunctions:
    """Functions that have a form for near numbers, and what they take in an iteration."""

    functions: frozenset[str]
    arguments: tuple[Taken, ...]
    repeatable: bool = False
    """Whether iterations only set elements that none reads, so that they may run again."""

    @property
    def size(self) -> int:
        """The bytes of the largest argument."""
        return max(one.dtype.size for one in self.arguments)

    def tests(self, is_far: str) -> list[cgen.Generable]:
        """The lines of an iteration after which a word's highest bit is set if a number is far."""
        test = FAR[self.functions]
        calls = ((one, f"{test}_{one.dtype.name}({one.text})") for one in self.arguments)
        words = ((one, call if one.dtype.size == self.size else f"(uint64_t){call} << 32") for one, call in calls)
        return [Line(f"{is_far} |= {word};", one.names) for one, word in words]

    @property
    def in_lanes(self) -> bool:
        """Whether iterations with far numbers have lanes, too."""
        return PERIODIC.isdisjoint(self.functions)


def near_functions(loop: For, program: Program) -> NearFunctions | None:
    """The functions for which a loop's iterations are told apart, and their arguments; None if that can't be or pay.

    An argument is known before an iteration, unless it belongs to a loop inside, is below a condition, or depends on
    elements that the iteration writes before. Scalars that only the iteration has are replaced by their values.
    """
    called = _called(loop.body, program)
    functions = next((functions for functions in FAR if called & functions), frozenset[str]())
    found = _arguments(loop.body, program, functions) if functions else ()
    made = NearFunctions(functions, found)
    return replace(made, repeatable=not made.in_lanes and _is_repeatable(loop, program)) if found else None


def _is_repeatable(loop: For, program: Program) -> bool:
    """Whether iterations only set elements that none reads, and no form of the loop but the usual one is better."""
    own, written, read = declared(loop.body), set[str](), set[str]()
    for use in uses(loop.body):
        assign = program.statements[use.statement].body
        if not isinstance(assign, Assign) or assign.op != "=" or use.nested or use.conditional:
            return False
        target = printer_of(use, program).at(assign.target)
        if target.array not in own and loop.variable not in target.names:
            return False
        written.add(target.array)
        read |= {load.array for load in (*accessed(assign.expr), *looked_up(assign.target))}
    return read.isdisjoint(written - own) and not divisors(loop, program, {})


def _arguments(body: Node, program: Program, functions: frozenset[str]) -> tuple[Taken, ...]:
    found: list[Taken] = []
    own, written = declared(body), set[str]()
    known: dict[Load, Expr] = {}
    for use in uses(body):
        assign = program.statements[use.statement].body
        if not isinstance(assign, Assign):
            return ()
        printer = printer_of(use, program)
        assign = placed_assign(use, assign, program)
        expr = map_loads(assign.expr, lambda load: known.get(load, load))
        taken = list(_taken(expr, printer, functions))
        depends = any(load.array in written for arg, _ in taken for load in loads(arg))
        apart = use.nested or use.conditional or program.statements[use.statement].where is not None
        costly = PERIODIC.isdisjoint(functions) and (_chooses(expr) or any(_is_costly(arg) for arg, _ in taken))
        if taken and (apart or depends or costly):
            return ()
        found += (Taken(printer.value(arg, dtype), dtype, printer.names_of(arg)) for arg, dtype in taken)
        written.add(assign.target.array)
        if assign.op == "=" and assign.target.array in own and not apart:
            known[assign.target] = Cast(printer.buffers[assign.target.array].dtype, expr)
        else:
            known.pop(assign.target, None)
    return tuple(dict.fromkeys(found))


def _is_costly(arg: Expr) -> bool:
    """Whether an argument takes as long as the form for near numbers saves."""
    costly = FUNCTIONS.keys() - CHOOSING
    return any(
        (isinstance(node, FunctionCall) and node.function in costly) or (isinstance(node, Binary) and node.op == "/")
        for node in walk(arg)
    )


def _chooses(expr: Expr) -> bool:
    """Whether a value is chosen: the argument of a function may only be far where the other is."""
    return any(isinstance(node, Ternary) for node in walk(expr))


def calls_library(body: Node, program: Program, near: frozenset[str]) -> bool:
    """Whether iterations call C's functions, of which compilers have no vectors; of `near` functions they have."""
    by_library = {"pow"} if powers.functions(program.isa) is powers.OF_LIBRARY else frozenset[str]()
    return bool(_called(body, program) & (by_library | PERIODIC - near))


def _called(body: Node, program: Program) -> frozenset[str]:
    """The functions that iterations call."""
    assigns = [program.statements[use.statement].body for use in uses(body)]
    nodes = (node for assign in assigns if isinstance(assign, Assign) for node in walk(assign.expr))
    return frozenset(node.function for node in nodes if isinstance(node, FunctionCall))


def _taken(expr: Expr, printer: StatementPrinter, functions: frozenset[str]) -> Iterator[tuple[Expr, DType]]:
    """The arguments of functions, and the types in which they are computed."""
    for node in walk(expr):
        if isinstance(node, FunctionCall) and node.function in functions:
            own = printer.type_of(node)
            yield node.args[0], f64 if isinstance(own, Weak) else f32 if own.is_stored else own


Printed = Callable[[For, frozenset[str], list[cgen.Generable]], list[cgen.Generable]]
"""The C of a loop, where some more names are in use, with some lines at the start of each iteration."""


def chunked(
    loop: For, end: Int, found: NearFunctions, taken: frozenset[str], near: Printed, far: Printed
) -> cgen.Generable:
    """The loop in chunks, each `near` or `far` as a whole."""
    names = all_fresh((f"{loop.variable}_first", f"{loop.variable}_past", "is_far"), taken)
    first, past, is_far = names
    taken |= frozenset(names)
    part = replace(For.counted(loop.variable, Linear.name(past), loop.body, Linear.name(first)), mark=loop.mark)
    until, tests = minimum(end, Linear.name(first) + CHUNK), found.tests(is_far)
    again, bits, is_true = block(far(part, taken, [])), 8 * found.size, Line(f"{is_far} >> {8 * found.size - 1}")
    if found.repeatable:
        forms = [*near(part, taken, tests), style.IfStatement(is_true, again)]
    else:
        forms = [Line(EACH_VECTOR), around(part, tests)]
        forms.append(style.IfStatement(is_true, again, block(near(part, taken, []))))
    body = [Line(f"const int64_t {past} = {until};", until.names), Line(f"uint{bits}_t {is_far} = 0;"), *forms]
    whole = replace(loop, variable=first, test=replaced(loop.test, {loop.variable: Linear.name(first)}), step=CHUNK)
    return around(whole, body)
