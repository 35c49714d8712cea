"""The walk through a function's body: loops, conditions and assignments become domains, statements and the loop tree."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import islpy as isl

from codegen.affine import Affine
from codegen.expr import Binary, Call, Expr, Load, Unary, loads
from microkernels.dtypes import ArrayType, DType
from poly.frontends import names
from poly.frontends.affine import affine, condition
from poly.frontends.expressions import element, expression, outlived, scalar
from poly.frontends.locals import expand, restarts
from poly.frontends.ranges import loop_of
from poly.frontends.scope import Local, Loop, Scope
from poly.frontends.source import Source
from poly.nest import Array, Op, Statement
from poly.tree import Band, Leaf, Node, Sequence, statements

AUGMENTED: dict[type[ast.operator], Op] = {ast.Add: "+", ast.Sub: "+", ast.Mult: "*"}


class Walker:
    """Walks one function; `statements` and `local_arrays` fill up on the way."""

    def __init__(
        self,
        source: Source,
        definition: ast.FunctionDef,
        sizes: tuple[str, ...],
        arguments: Mapping[str, Array],
        constants: Mapping[str, Affine | float],
        environment: Mapping[str, Any],
    ) -> None:
        self.source = source
        self.definition = definition
        self.sizes = sizes
        self.environment = environment
        self.scope = Scope(source, (), arguments, constants, {}, frozenset())
        self.statements: list[Statement] = []
        self.local_arrays: list[Array] = []
        self._declared: dict[str, DType] = {}
        self._around: tuple[ast.For, ...] = ()

    def function(self) -> Node:
        """The whole body's tree."""
        nodes = self._block(self.definition.body, ())
        if not nodes:
            raise self.source.error(self.definition, "the function assigns nothing", "Write at least one `A[i] = ...`.")
        return _sequence(nodes)

    def _block(self, body: list[ast.stmt], conditions: tuple[str, ...]) -> list[Node]:
        return [node for statement in body for node in self._statement(statement, conditions)]

    def _statement(self, node: ast.stmt, conditions: tuple[str, ...]) -> list[Node]:
        match node:
            case ast.For():
                return self._for(node, conditions)
            case ast.If():
                return self._if(node, conditions)
            case ast.Assign(targets=[target], value=value):
                return self._assign(node, target, value, conditions)
            case ast.AnnAssign(target=ast.Name() as target):
                return self._declare(node, target, conditions)
            case ast.AugAssign():
                return self._augmented(node, conditions)
            case ast.Pass() | ast.Expr(value=ast.Constant(value=str())):
                return []
        raise self._refusal(node)

    def _refusal(self, node: ast.stmt) -> Exception:
        match node:
            case ast.While():
                return self.source.error(
                    node.test, "a `while` loop has no affine bounds", "Write `for i in range(first, end, step):`."
                )
            case ast.Return():
                return self.source.error(
                    node, "a nest returns nothing", "Write results into an array argument: `C[i, j] = ...`."
                )
            case ast.Break() | ast.Continue():
                word = "break" if isinstance(node, ast.Break) else "continue"
                return self.source.error(
                    node, f"`{word}` makes the iterations depend on the way there", "Put an affine `if` around the rest."
                )
            case ast.Assign():
                return self.source.error(
                    node, "several targets are assigned at once", "Write one assignment for each target."
                )
            case ast.Expr(value=value):
                return self.source.error(value, "this value goes nowhere", "Assign it: `A[i] = ...`.")
        return self.source.error(
            node, f"a `{type(node).__name__.lower()}` can't stand in a nest", "Use `for` over `range`, `if` and assignments."
        )

    def _for(self, node: ast.For, conditions: tuple[str, ...]) -> list[Node]:
        outer, around = self.scope, self._around
        loop, bounds = loop_of(node, outer)
        if loop.name in self.sizes:
            raise self.source.error(node.target, f"`{loop.name}` is the name of a size", "Rename the loop.")
        self.scope = replace(outer, loops=(*outer.loops, loop))
        self._around = (*around, node)
        nodes = self._block(node.body, (*conditions, *bounds))
        self.scope = replace(outer, locals=self.scope.locals)
        self._around = around
        if not nodes:
            return []
        body = _sequence(nodes)
        below = {name: self._index(name, len(outer.loops)) for name in statements(body)}
        functions = tuple((name, index if loop.step > 0 else index.neg()) for name, index in below.items())
        return [Band(loop.name, functions, body)]

    def _index(self, statement: str, position: int) -> isl.PwAff:
        domain = next(s.domain for s in self.statements if s.name == statement)
        return isl.PwAff.var_on_domain(isl.LocalSpace.from_space(domain.space), isl.dim_type.set, position)

    def _if(self, node: ast.If, conditions: tuple[str, ...]) -> list[Node]:
        test = condition(node.test, self.scope)
        before = self.scope.assigned
        nodes = self._block(node.body, (*conditions, test))
        then = self.scope.assigned
        self.scope = replace(self.scope, assigned=before)
        nodes += self._block(node.orelse, (*conditions, f"(not {test})"))
        self.scope = replace(self.scope, assigned=then & self.scope.assigned)
        return nodes

    def _declare(self, node: ast.AnnAssign, target: ast.Name, conditions: tuple[str, ...]) -> list[Node]:
        kind = names.annotation(node.annotation, self.source, self.environment)
        self._check_local(target)
        match kind:
            case ArrayType(dtype, shape):
                if node.value is not None:
                    raise self.source.error(
                        node.value, "a local array is declared without a value", "Fill it with loops after the declaration."
                    )
                self._define(target, dtype, tuple(Affine.of(extent) for extent in shape))
                return []
            case DType():
                self._declared[target.id] = kind
        return [] if node.value is None else self._assign(node, target, node.value, conditions)

    def _check_local(self, target: ast.Name) -> None:
        name = target.id
        names.check(name, target, self.source)
        if name in self.sizes or isinstance(self.scope.constants.get(name), Affine):
            raise self.source.error(target, f"`{name}` is a size", "A size can't be assigned; use another name.")
        if self.scope.is_index(name):
            raise self.source.error(target, f"`{name}` is the index of a loop", "An index can't be assigned; use another name.")
        if name in self.scope.arguments:
            scalar = self.scope.arguments[name].kind == "scalar"
            raise self.source.error(
                target,
                f"`{name}` is {'a scalar passed by value' if scalar else 'a whole array'}",
                "Assign a local of another name." if scalar else f"Assign its elements: `{name}[...] = ...`.",
            )

    def _define(self, target: ast.Name, dtype: DType, shape: tuple[Affine, ...]) -> Local:
        """A new local that belongs to the loops here."""
        name, count = target.id, 1
        earlier = self.scope.locals.get(name)
        if earlier is not None and (earlier.array.dtype, earlier.rank) != (dtype, len(shape)):
            raise self.source.error(target, f"`{name}` changes its type", "Use another name for the second one.")
        taken = {array.name for array in self.local_arrays} | set(self.scope.arguments) | set(self.sizes)
        while name in taken:
            count += 1
            name = f"{target.id}_{count}"
        local = expand(name, dtype, shape, self.scope.loops)
        self.local_arrays.append(local.array)
        self.scope = replace(self.scope, locals={**self.scope.locals, target.id: local})
        return local

    def _assign(self, node: ast.stmt, target: ast.expr, value: ast.expr, conditions: tuple[str, ...]) -> list[Node]:
        expr = expression(value, self.scope)
        match target:
            case ast.Name():
                place = self._scalar_target(node, target, expr)
            case ast.Subscript():
                place = element(target, self.scope)
            case _:
                raise self.source.error(
                    target, f"`{ast.unparse(target)}` can't be assigned", "Assign an element `A[i, j]` or a local scalar."
                )
        op, operand = _as_reduction(place, expr)
        return [self._add(node, place, op, operand, conditions)]

    def _scalar_target(self, node: ast.stmt, target: ast.Name, expr: Expr) -> Load:
        """The element that stands for a local scalar which is assigned here."""
        self._check_local(target)
        local = self.scope.locals.get(target.id)
        if local is not None and local.rank:
            raise self.source.error(target, f"`{target.id}` is a whole array", "Assign its elements.")
        new = local is None or local.loops != self.scope.loops[: len(local.loops)]
        if not new and self._around and len(local.loops) < len(self.scope.loops):
            new = restarts(target.id, node, self._around[-1], self.definition)
        if new or local is None:
            local = self._define(target, self._scalar_type(target, expr), ())
        self.scope = replace(self.scope, assigned=self.scope.assigned | {local.array.name})
        return Load(local.array.name, local.prefix)

    def _scalar_type(self, target: ast.Name, expr: Expr) -> DType:
        if target.id in self._declared:
            return self._declared[target.id]
        read = {self._dtype(load) for load in loads(expr)}
        types = read or {array.dtype for array in self.scope.arguments.values()}
        if len(types) != 1:
            raise self.source.error(
                target, f"the type of `{target.id}` is not clear", f"Declare it: `{target.id}: f32 = ...`."
            )
        return types.pop()

    def _dtype(self, load: Load) -> DType:
        arrays = [*self.scope.arguments.values(), *self.local_arrays]
        return next(array.dtype for array in arrays if array.name == load.array)

    def _augmented(self, node: ast.AugAssign, conditions: tuple[str, ...]) -> list[Node]:
        expr = expression(node.value, self.scope)
        place = self._augmented_target(node.target)
        if isinstance(node.op, ast.Div):
            return [self._add(node, place, "=", Binary("/", place, expr), conditions)]
        if type(node.op) not in AUGMENTED:
            raise self.source.error(
                node, "this assignment is not one of = += -= *= /=", "Write the operation with these, or with max and min."
            )
        op = AUGMENTED[type(node.op)]
        if place in loads(expr):
            sign = "-" if isinstance(node.op, ast.Sub) else op
            return [self._add(node, place, "=", Binary(sign, place, expr), conditions)]
        operand = Unary("-", expr) if isinstance(node.op, ast.Sub) else expr
        return [self._add(node, place, op, operand, conditions)]

    def _augmented_target(self, target: ast.expr) -> Load:
        match target:
            case ast.Name():
                if target.id not in self.scope.locals:
                    self._check_local(target)
                    raise self.scope.undeclared(target)
                return scalar(target, self.scope)
            case ast.Subscript():
                return element(target, self.scope)
        raise self.source.error(
            target, f"`{ast.unparse(target)}` can't be assigned", "Assign an element `A[i, j]` or a local scalar."
        )

    def _add(self, node: ast.stmt, place: Load, op: Op, expr: Expr, conditions: tuple[str, ...]) -> Node:
        self._check_types(node, place, expr)
        name = f"S{len(self.statements)}"
        iterators = tuple(loop.name for loop in self.scope.loops)
        where = " and ".join(conditions) or "0 = 0"
        domain = isl.Set(f"[{', '.join(self.sizes)}] -> {{ {name}[{', '.join(iterators)}] : {where} }}")
        line = self.source.first + node.lineno - 1
        self.statements.append(
            Statement(name, iterators, domain, place, op, expr, line, self.source.line(node.lineno).strip())
        )
        return Leaf(name)

    def _check_types(self, node: ast.stmt, place: Load, expr: Expr) -> None:
        types = {self._dtype(load) for load in (place, *loads(expr))}
        if len(types) > 1:
            listed = ", ".join(sorted(dtype.name for dtype in types))
            raise self.source.error(
                node, f"the types {listed} meet in one assignment", "Declare all arrays and scalars in it with one type."
            )


def _sequence(nodes: list[Node]) -> Node:
    return nodes[0] if len(nodes) == 1 else Sequence(tuple(nodes))


def _as_reduction(place: Load, expr: Expr) -> tuple[Op, Expr]:
    """`x = x + e` as `x += e`, and so on for - * min max; anything else stays `x = e`."""
    match expr:
        case Binary("+" | "*" as op, left, right) if left == place and place not in loads(right):
            return op, right
        case Binary("+" | "*" as op, left, right) if right == place and place not in loads(left):
            return op, left
        case Binary("-", left, right) if left == place and place not in loads(right):
            return "+", Unary("-", right)
        case Call("min" | "max" as op, (left, right)) if left == place and place not in loads(right):
            return op, right
        case Call("min" | "max" as op, (left, right)) if right == place and place not in loads(left):
            return op, left
    return "=", expr
