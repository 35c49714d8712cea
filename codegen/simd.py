"""Loops whose iterations go into vector lanes: what they reduce needs a variable of its own.

for (j…)                            float s_sum = 0.0f;
  s[i] += A[i*N + j];       ->      #pragma omp simd reduction(+:s_sum)
                                    for (j…)
                                      s_sum += A[i*N + j];
                                    s[i] += s_sum;
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import islpy as isl

from codegen.affine import Affine
from codegen.expr import loads
from codegen.integer import Values, called, children, integer, kind
from codegen.program import Assign, Buffer, Program
from codegen.scalar import Body, literal
from microkernels.dtypes import DType


@dataclass(frozen=True)
class Reduction:
    """A statement that reduces into one element, the same in each iteration of the loop."""

    statement: str
    op: str
    element: str
    dtype: DType

    @property
    def name(self) -> str:
        """What to call the variable."""
        return self.element.partition("[")[0] + {"+": "_sum", "*": "_product"}.get(self.op, f"_{self.op}")

    def declaration(self, variable: str) -> str:
        """The variable, holding the operator's neutral element."""
        return f"{self.dtype.c_name} {variable} = {neutral(self.op, self.dtype)};"

    def store(self, variable: str) -> str:
        """The element takes in the variable; for max and min an element that is NaN stays so."""
        if self.op in ("min", "max"):
            return f"{self.element} = {self.op}_{self.dtype.name}({self.element}, {variable});"
        return f"{self.element} {self.op}= {variable};"


def neutral(op: str, dtype: DType) -> str:
    """The value that changes nothing: 0, 1, and the largest or smallest number of the type."""
    if op in "+*":
        return literal(int(op == "*"), dtype)[0]
    if dtype.is_float:
        return "INFINITY" if op == "min" else "-INFINITY"
    return f"INT{8 * dtype.size}_{'MAX' if op == 'min' else 'MIN'}"


@dataclass(frozen=True)
class _Use:
    """A statement's call in the loop's body: its iterators' values, and whether another loop lies between."""

    statement: str
    arguments: tuple[Affine, ...]
    nested: bool


def reductions(body: isl.AstNode, program: Program, values: Values, variable: str) -> tuple[Reduction, ...] | None:
    """The reductions of a loop's `body` over the loop's `variable`; None where the loop must stay scalar.

    It must where a text stands in it, or where an element that all iterations share is written otherwise than by one
    reduction, directly in the loop, and looked at by nothing else there. Elements are told apart by their text: whoever
    marks a loop `vectorize` has proven that its iterations don't depend on each other but through reductions.
    """
    uses = list(_uses(body, values, nested=False))
    assigns = [program.statements[use.statement].body for use in uses]
    found, elements = [], []
    for use, assign in zip(uses, assigns, strict=True):
        if not isinstance(assign, Assign):
            return None
        target, *others = _elements(use, assign, program, values)
        elements += [target, *others]
        if re.search(rf"\b{variable}\b", target):
            continue
        if assign.op == "=" or use.nested:
            return None
        found.append(Reduction(use.statement, assign.op, target, _buffers(program)[assign.target.array].dtype))
    shared = any(elements.count(reduction.element) > 1 for reduction in found)
    repeated = len({reduction.statement for reduction in found}) < len(found)
    return None if shared or repeated else tuple(found)


def _buffers(program: Program) -> dict[str, Buffer]:
    return {buffer.name: buffer for buffer in program.buffers}


def _elements(use: _Use, assign: Assign, program: Program, values: Values) -> list[str]:
    """The texts of the element that a statement writes, and of those that its expression reads."""
    iterators = dict(zip(program.statements[use.statement].iterators, use.arguments, strict=True))
    printer = Body(_buffers(program), {**values, **iterators})
    return [printer.element(access) for access in (assign.target, *loads(assign.expr))]


def _uses(node: isl.AstNode, values: Values, nested: bool) -> Iterator[_Use]:
    """The statements below a node, in textual order."""
    match kind(node):
        case "user":
            yield _Use(*called(node, values), nested)
        case "mark":
            yield from _uses(node.mark_get_node(), values, nested)
        case "block":
            for child in children(node):
                yield from _uses(child, values, nested)
        case "if_":
            yield from _uses(node.if_get_then_node(), values, nested)
            if node.if_has_else_node():
                yield from _uses(node.if_get_else_node(), values, nested)
        case _:
            name = node.for_get_iterator().get_id().get_name()
            once = node.for_is_degenerate()
            value = integer(node.for_get_init(), values) if once else Affine.name(name)
            yield from _uses(node.for_get_body(), {**values, name: value}, nested or not once)
