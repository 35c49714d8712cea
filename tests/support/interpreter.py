"""An interpreter of loop trees that shares nothing with the engine: it enumerates instances and sorts them by the tree.

Numbers are integers modulo a prime, so that sums and products are exact in every order.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby

import islpy as isl

from codegen.ir.expr import Binary, Const, Expr, FunctionCall, Index, Load, Unary
from codegen.ir.integer import Affine
from poly.ir.nest import Nest, Statement
from poly.ir.tree import Band, Leaf, Node, Sequence, statements

PRIME = 10007

Element = tuple[str, tuple[int, ...]]
Memory = dict[Element, int]


@dataclass(frozen=True)
class Instance:
    """One iteration of a statement."""

    statement: str
    point: tuple[int, ...]


def points(domain: isl.Set) -> list[tuple[int, ...]]:
    """All points of a bounded set without parameters."""
    found: list[tuple[int, ...]] = []
    size = domain.dim(isl.dim_type.set)
    domain.foreach_point(
        lambda p: found.append(tuple(p.get_coordinate_val(isl.dim_type.set, d).to_python() for d in range(size)))
    )
    return sorted(found)


def value(function: isl.PwAff, point: tuple[int, ...]) -> int:
    where = isl.Point.zero(function.get_domain_space())
    for d, coordinate in enumerate(point):
        where = where.set_coordinate_val(isl.dim_type.set, d, isl.Val(coordinate))
    return function.eval(where).to_python()


def run_order(nest: Nest, tree: Node, backward: frozenset[str] = frozenset()) -> list[Instance]:
    """The instances in the order of a tree; loops in `backward` run from their last iteration to their first."""
    return list(_ordered(tree, instances(nest, tree), backward))


def instances(nest: Nest, tree: Node) -> list[Instance]:
    names = set(statements(tree))
    return [Instance(s.name, p) for s in nest.statements if s.name in names for p in points(s.domain)]


def _ordered(node: Node, found: list[Instance], backward: frozenset[str]) -> Iterator[Instance]:
    match node:
        case Leaf():
            assert len(found) <= 1, "two instances at one time"
            yield from found
        case Sequence(nodes):
            for child in nodes:
                present = set(statements(child))
                yield from _ordered(child, [i for i in found if i.statement in present], backward)
        case Band():
            for part in iterations(node, found, node.name in backward):
                yield from _ordered(node.body, part, backward)


def iterations(band: Band, found: list[Instance], backward: bool = False) -> list[list[Instance]]:
    """The instances of each iteration of a loop, in order."""
    functions = dict(band.functions)

    counts = {i: value(functions[i.statement], i.point) for i in found}
    ordered = sorted(found, key=lambda i: counts[i], reverse=backward)
    return [list(part) for _, part in groupby(ordered, key=lambda i: counts[i])]


def loop_runs(node: Node, name: str, found: list[Instance]) -> Iterator[list[list[Instance]]]:
    """For each time that the loop `name` is entered, the instances of its iterations."""
    match node:
        case Sequence(nodes):
            for child in nodes:
                present = set(statements(child))
                yield from loop_runs(child, name, [i for i in found if i.statement in present])
        case Band():
            parts = iterations(node, found)
            if node.name == name:
                yield parts
            else:
                for part in parts:
                    yield from loop_runs(node.body, name, part)


def execute(nest: Nest, order: list[Instance]) -> Memory:
    """The final contents of the arrays, from start values that all differ."""
    memory: Memory = {}
    for instance in order:
        statement = nest.statement(instance.statement)
        values = dict(zip(statement.iterators, instance.point, strict=True))
        target = _element(statement.target, values)
        new = _evaluate(statement.expr, values, memory)
        memory[target] = _update(statement, _read(memory, target), new)
    return memory


def conflict(nest: Nest, first: Instance, second: Instance) -> bool:
    """Whether both access one element, and at least one of them writes it."""
    one, other = accesses(nest, first), accesses(nest, second)
    return any(a == b and (x or y) for a, x in one for b, y in other)


def accesses(nest: Nest, instance: Instance) -> list[tuple[Element, bool]]:
    """The elements that an instance accesses, and whether it writes them."""
    statement = nest.statement(instance.statement)
    values = dict(zip(statement.iterators, instance.point, strict=True))
    return [(_element(statement.target, values), True), *((_element(load, values), False) for load in statement.reads)]


def _update(statement: Statement, old: int, new: int) -> int:
    match statement.op:
        case "=":
            return new
        case "+":
            return (old + new) % PRIME
        case "*":
            return old * new % PRIME
        case "min":
            return min(old, new)
    return max(old, new)


def _element(load: Load, values: Mapping[str, int]) -> Element:
    return load.array, tuple(index.evaluate(values) for index in load.indices)


def _read(memory: Memory, element: Element) -> int:
    array, indices = element
    start = sum(ord(letter) for letter in array) + sum(37 * (d + 1) * (i + 11) for d, i in enumerate(indices))
    return memory.get(element, start % PRIME)


def _evaluate(expr: Expr, values: Mapping[str, int], memory: Memory) -> int:
    match expr:
        case Const(number):
            return int(number) % PRIME
        case Index(affine):
            return Affine.evaluate(affine, values) % PRIME
        case Load():
            return _read(memory, _element(expr, values))
        case Unary(_, operand):
            return -_evaluate(operand, values, memory) % PRIME
        case Binary(op, left, right):
            a, b = _evaluate(left, values, memory), _evaluate(right, values, memory)
            return {"+": a + b, "-": a - b, "*": a * b}[op] % PRIME
        case FunctionCall(function, args):
            return {"min": min, "max": max}[function](_evaluate(arg, values, memory) for arg in args)
    raise TypeError(type(expr).__name__)
