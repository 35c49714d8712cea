"""The walk through a function's body: loops, conditions and assignments become statements and the loop tree."""

from __future__ import annotations

import ast
from dataclasses import replace

import islpy as isl

from codegen.expr import Binary, Expr, Load, loads
from codegen.promotion import misfits
from microkernels.dtypes import DType
from poly.errors import SpecError
from poly.frontends.affine import condition, shortened
from poly.frontends.expressions import expression
from poly.frontends.ranges import loop_of, values
from poly.frontends.reductions import as_reduction
from poly.frontends.scope import Scope
from poly.frontends.source import Source
from poly.frontends.targets import Targets
from poly.ir.instances import coordinate
from poly.ir.nest import Op, Statement
from poly.ir.sets import set_space
from poly.ir.tree import Band, Leaf, Node, Sequence, statements

UPDATES: dict[type[ast.operator], str] = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}


class Walker:
    """Walks one function, and collects its `statements` and the locals of `targets`."""

    def __init__(self, scope: Scope, targets: Targets, sizes: tuple[str, ...], prefix: str) -> None:
        self.statements: list[Statement] = []
        self._scope = scope
        self._targets = targets
        self._sizes = sizes
        self._prefix = prefix
        self._around: tuple[ast.For, ...] = ()

    def walk(self, definition: ast.FunctionDef) -> Node:
        """The tree of the function's loops.

        Raises:
            SpecError: the function has something that a nest can't have, or assigns nothing.
        """
        nodes = self._block(definition.body, isl.Set.universe(set_space(self._sizes, 0)))
        if not nodes:
            raise self._scope.source.error(
                definition, "the function assigns nothing", "Write at least one assignment, such as `A[i] = ...`."
            )
        return _sequence(nodes)

    def _block(self, body: list[ast.stmt], domain: isl.Set) -> list[Node]:
        return [node for statement in body for node in self._statement(statement, domain)]

    def _statement(self, node: ast.stmt, domain: isl.Set) -> list[Node]:
        match node:
            case ast.For():
                return self._for(node, domain)
            case ast.If():
                return self._if(node, domain)
            case ast.Assign(targets=[target], value=value):
                return [self._assign(node, target, value, domain)]
            case ast.AnnAssign(target=ast.Name() as target, value=value):
                self._targets.declare(node, target, self._scope)
                return [] if value is None else [self._assign(node, target, value, domain)]
            case ast.AugAssign():
                return [self._update(node, domain)]
            case ast.Pass() | ast.Expr(value=ast.Constant(value=str())):
                return []
        raise _refusal(node, self._scope.source)

    def _for(self, node: ast.For, domain: isl.Set) -> list[Node]:
        scope, around = self._scope, self._around
        loop = loop_of(node, scope, self._sizes)
        self._scope, self._around = replace(scope, loops=(*scope.loops, loop)), (*around, node)
        nodes = self._block(node.body, values(loop, domain, scope.indices))
        self._scope, self._around = scope, around
        if not nodes:
            return []
        body = _sequence(nodes)
        depth = len(scope.loops)
        return [Band(loop.name, tuple((name, self._index(name, depth, loop.step)) for name in statements(body)), body)]

    def _index(self, statement: str, depth: int, step: int) -> isl.PwAff:
        """The schedule function of a loop: its index, negated if the loop counts down."""
        domain = next(s.domain for s in self.statements if s.name == statement)
        index = coordinate(domain, depth)
        return index if step > 0 else index.neg()

    def _if(self, node: ast.If, domain: isl.Set) -> list[Node]:
        before = self._scope
        test = condition(node.test, before, domain.get_space())
        nodes = self._block(node.body, domain.intersect(test))
        then = self._scope.assigned
        self._scope = before
        nodes += self._block(node.orelse, domain.subtract(test))
        self._scope = replace(before, assigned=then & self._scope.assigned)
        return nodes

    def _assign(self, node: ast.stmt, target: ast.expr, value: ast.expr, domain: isl.Set) -> Node:
        expr = expression(value, self._scope)
        around = self._around[-1] if self._around else None
        place = self._targets.assigned(node, target, expr, self._scope, around)
        self._scope = replace(self._scope, assigned=self._scope.assigned | {place.array})
        return self._add(node, place, *as_reduction(place, expr), domain)

    def _update(self, node: ast.AugAssign, domain: isl.Set) -> Node:
        expr = expression(node.value, self._scope)
        place = self._targets.updated(node.target, self._scope)
        op = UPDATES.get(type(node.op))
        if op is None:
            raise self._scope.source.error(
                node, "this is not one of the assignments = += -= *= /=", "Write it with these, or with max and min."
            )
        return self._add(node, place, *as_reduction(place, Binary(op, place, expr)), domain)

    def _add(self, node: ast.stmt, place: Load, op: Op, expr: Expr, domain: isl.Set) -> Node:
        source = self._scope.source
        types = sorted({self._targets.type_of(load, self._scope).name for load in (place, *loads(expr))})
        if len(types) > 1:
            raise source.error(
                node,
                f"the types {', '.join(types)} meet in one assignment",
                "Give all arrays and scalars in it one type.",
            )
        self._check_numbers(node, place, op, expr)
        name = f"{self._prefix}{len(self.statements)}"
        text = source.line(node.lineno).strip()
        line = source.first + node.lineno - 1
        named = domain.set_tuple_name(name)
        self.statements.append(Statement(name, self._scope.indices, named, place, op, expr, line, text))
        return Leaf(name)

    def _check_numbers(self, node: ast.stmt, place: Load, op: Op, expr: Expr) -> None:
        """Refuse an integer that is not representable in the type which it takes, as NumPy does."""

        def dtype_of(array: str) -> DType:
            return self._targets.type_of(Load(array, ()), self._scope)

        whole = expr if op == "=" else Binary(op, place, expr)
        for value in misfits(whole, dtype_of(place.array), dtype_of):
            kind = dtype_of(place.array).name
            raise self._scope.source.error(
                node,
                f"the integer {shortened(value)} meets the type {kind}, which has no such number",
                "Give the arrays a type that has it, or compute in f64 with a fraction: `2.0 * x`.",
            )


def _sequence(nodes: list[Node]) -> Node:
    return nodes[0] if len(nodes) == 1 else Sequence(tuple(nodes))


def _refusal(node: ast.stmt, source: Source) -> SpecError:
    """The error for a kind of statement that a nest can't have."""
    match node:
        case ast.While(test=test):
            return source.error(test, "a `while` loop has no affine bounds", "Write `for i in range(N):`.")
        case ast.Return():
            return source.error(node, "a nest returns nothing", "Write results into an argument: `C[i, j] = ...`.")
        case ast.Break() | ast.Continue():
            word = "break" if isinstance(node, ast.Break) else "continue"
            remedy = "Put the rest of the loop's body below an affine `if`."
            return source.error(node, f"`{word}` lets the data decide which iterations run", remedy)
        case ast.Assign():
            return source.error(node, "several targets are assigned at once", "Write one assignment for each target.")
        case ast.AnnAssign(target=target):
            return source.error(target, f"`{ast.unparse(target)}` can't be declared", "Declare a name: `tmp: f32[N]`.")
        case ast.Expr(value=value):
            return source.error(value, "this value goes nowhere", "Assign it to an element: `A[i] = ...`.")
    word = ast.unparse(node).split()[0]
    return source.error(node, f"`{word}` is not allowed in a nest", "Use `for` over `range`, `if` and assignments.")
