"""Sums that a vector loop adds to several times in one iteration, as statements of their own.

for j < N:  # vectorize                 for j < N:  # vectorize
  for i < 4:  # unroll 4                  S(0, j)
    S(i, j): x[i] += A[i, j]      ->      S_2(1, j)
                                          S_3(2, j)
                                          S_4(3, j)

Each then has vectors of its own to add to (codegen/lanes/reductions.py).
"""

from __future__ import annotations

from dataclasses import replace

from codegen.ir.loop_ir import For, Node, Run, mapped, written_out
from codegen.ir.program import Assign, PrintedStatement, Program
from codegen.lanes.simd import printer_of, uses
from codegen.names import fresh


def told_apart(program: Program) -> Program:
    """The program in which each run of such a statement has a name of its own."""
    made: dict[str, PrintedStatement] = {}

    def visit(node: Node) -> Node:
        if not isinstance(node, For) or not node.mark.vectorize:
            return mapped(node, visit)
        body, met = written_out(node.body), set[str]()
        names = [use.statement for use in uses(body) if _is_reduced(use.statement, body, node.variable, program)]
        if len(set(names)) == len(names):
            return node

        def named(inner: Node) -> Node:
            if not isinstance(inner, Run) or inner.statement not in names:
                return mapped(inner, named)
            if inner.statement not in met:
                met.add(inner.statement)
                return inner
            name = fresh(inner.statement, frozenset((*program.statements, *made)))
            made[name] = program.statements[inner.statement]
            return Run(name, inner.values)

        return replace(node, body=named(body))

    loops = visit(program.loops)
    return replace(program, loops=loops, statements={**program.statements, **made}) if made else program


def _is_reduced(name: str, body: Node, variable: str, program: Program) -> bool:
    """Whether all runs of a statement in a loop's body update elements that its iterations share."""
    assign = program.statements[name].body
    if not isinstance(assign, Assign) or assign.op == "=":
        return False
    targets = (printer_of(use, program).at(assign.target) for use in uses(body) if use.statement == name)
    return all(variable not in target.names for target in targets)
