"""Loops whose bodies were unrolled by hand, as the loops over the elements that they came from.

for i < N:  # vectorize                   for i < 3*N:  # vectorize
  a[3*i] *= a[3*i + 1]                      a[i] *= a[i + 1]
  a[3*i + 1] *= a[3*i + 2]       ->
  a[3*i + 2] *= a[3*i + 3]

Compilers would load and store every third element for each of the statements.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from codegen.ir.expr import Load, accessed, integers, loads, map_loads, placed, walk
from codegen.ir.integer import Int, Linear, floor_quotient
from codegen.ir.loop_ir import Block, Comment, For, Node, Run, mapped
from codegen.ir.program import Assign, PrintedStatement, Program
from codegen.lanes.simd import Use, placed_assign
from codegen.names import fresh


def rerolled(program: Program) -> Program:
    """The program with such loops over all elements, which run a statement of their own."""
    made: dict[str, PrintedStatement] = {}

    def visit(node: Node) -> Node:
        if isinstance(node, For) and (found := _of_elements(node, program)):
            loop, statement = found
            name = fresh(f"{loop.variable}_each", frozenset((*program.statements, *made)))
            made[name] = statement
            return replace(loop, body=Run(name, (Linear.name(loop.variable),)))
        return mapped(node, visit)

    loops = visit(program.loops)
    return replace(program, loops=loops, statements={**program.statements, **made}) if made else program


def _of_elements(loop: For, program: Program) -> tuple[For, PrintedStatement] | None:
    """The loop over elements and its statement in terms of the variable; None if the body isn't unrolled."""
    runs = list(_runs(loop.body))
    if loop.end is None or len(runs) < 2 or None in runs:
        return None
    first, *others = [_assignment(run, program) for run in runs if run is not None]
    if first is None or not first.target.indices:
        return None
    factor = first.target.indices[-1].coefficient(loop.variable)
    each = _of_element(first, loop.variable, factor)
    if factor * loop.step != len(runs) or each is None or not _keeps_marks(each, loop):
        return None
    place = Linear.name(loop.variable) * factor
    if any(other != _placed(each, {loop.variable: place + at}) for at, other in enumerate(others, 1)):
        return None
    steps = floor_quotient(loop.end - loop.start + (loop.step - 1), loop.step)
    start = loop.start * factor
    whole = For.counted(loop.variable, start + steps * len(runs), loop.body, start)
    return replace(whole, mark=loop.mark), PrintedStatement((loop.variable,), each)


def _runs(node: Node) -> Iterator[Run | None]:
    """The statements of a body; None for all else."""
    match node:
        case Block(nodes):
            for one in nodes:
                yield from _runs(one)
        case Comment():
            yield from _runs(node.body)
        case _:
            yield node if isinstance(node, Run) else None


def _assignment(run: Run, program: Program) -> Assign | None:
    """What an instance assigns; None if it is no plain assignment."""
    statement = program.statements[run.statement]
    if not isinstance(statement.body, Assign) or statement.where is not None:
        return None
    return placed_assign(Use(run.statement, run.values), statement.body, program)


def _of_element(assign: Assign, variable: str, factor: int) -> Assign | None:
    """The assignment with the variable in place of a multiple of it, as the last index only; None if that can't be."""
    place = Linear.name(variable) * (factor - 1)

    def moved(load: Load) -> Load:
        *outer, last = load.indices or (Linear(),)
        along = variable in last.names
        return Load(load.array, (*outer, last - place)) if along else load

    def fits(index: Int) -> bool:
        return index.coefficient(variable) == factor and variable not in (index - Linear.name(variable) * factor).names

    every = (assign.target, *loads(assign.expr))
    lasts = [load.indices[-1] for load in every if load.indices and variable in load.indices[-1].names]
    others = [value for node in walk(assign.expr) if not isinstance(node, Load) for value in integers(node)]
    others += [index for load in every for index in load.indices[:-1]]
    looks_up = len(accessed(assign.expr)) > len(loads(assign.expr)) or accessed(assign.target) != (assign.target,)
    if looks_up or not all(map(fits, lasts)) or any(variable in value.names for value in others):
        return None
    return Assign(moved(assign.target), assign.op, map_loads(assign.expr, moved))


def _keeps_marks(each: Assign, loop: For) -> bool:
    """Whether elements may be computed as the loop is marked: in order, in vectors, or by threads.

    In vectors, an element is read before it is written, as in order, if its own iteration or an earlier one reads it.
    """
    *outer, last = each.target.indices
    own = [load for load in loads(each.expr) if load.array == each.target.array]
    ahead = [(load.indices[-1] - last).number for load in own if load.indices[:-1] == tuple(outer)]
    after = all(number is not None and number >= 0 and not (number and loop.mark.parallel) for number in ahead)
    in_order = not loop.mark.parallel and not loop.mark.vectorize
    return loop.variable in last.names and (in_order or (after and len(ahead) == len(own)))


def _placed(assign: Assign, values: dict[str, Int]) -> Assign:
    target = placed(assign.target, values)
    return Assign(target, assign.op, placed(assign.expr, values))
