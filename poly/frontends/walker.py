"""The walk through a function's body: loops, conditions and assignments become statements and the loop tree."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import islpy as isl

from codegen.ir.expr import Binary, Cast, Expr, Load, Logic, Predicate, Ternary, Truth, operands
from codegen.ir.expr import Node as ExprNode
from codegen.ir.integer import Affine
from codegen.ir.promotion import misfits
from microkernels.dtypes import DType
from poly.errors import SpecError
from poly.frontends.affine import shortened
from poly.frontends.conditions import condition, parted
from poly.frontends.expressions import WHOLE, expression, is_data, truth
from poly.frontends.ranges import loop_of, values
from poly.frontends.reductions import as_reduction, guarded_update
from poly.frontends.scope import Scope
from poly.frontends.selecting import tested_last, with_kept
from poly.frontends.source import Source
from poly.frontends.targets import Targets
from poly.ir.choices import affine_first, as_choice
from poly.ir.instances import coordinate
from poly.ir.nest import Op, Statement
from poly.ir.sets import at_least, set_space
from poly.ir.tree import Band, Leaf, Node, Sequence, statements

Assign = Callable[[ast.expr, ast.expr, isl.Set], Node]
"""Makes the statement that assigns a value to a target in a domain."""
UPDATES: dict[type[ast.operator], str] = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}


class Walker:
    """Walks one function, and collects its `statements` and the locals of `targets`."""

    def __init__(self, scope: Scope, targets: Targets, sizes: tuple[str, ...], prefix: str) -> None:
        self.statements: list[Statement] = []
        self.context = at_least(sizes, map(Affine.name, sizes), 0)
        """What the sizes satisfy: none is negative, and what the function asserts before its loops."""
        self._scope = scope
        self._targets = targets
        self._sizes = sizes
        self._prefix = prefix
        self._around: tuple[ast.For, ...] = ()
        self._guards: tuple[Truth, ...] = ()
        """The conditions on data around the present place."""
        self._names: set[str] = set()

    def walk(self, definition: ast.FunctionDef) -> Node:
        """The tree of the function's loops.

        Raises:
            SpecError: the function has something that a nest can't have, or assigns nothing.
        """
        self._names = {name.id for name in ast.walk(definition) if isinstance(name, ast.Name)}
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
            case ast.Assign(targets=targets, value=value):
                return self._chain(node, targets, value, domain)
            case ast.AnnAssign(target=ast.Name() as target, value=value):
                self._targets.declare(node, target, self._scope)
                return [] if value is None else self._by_case(target, value, domain, partial(self._assign, node))
            case ast.AugAssign(target=target, value=value):
                return self._by_case(target, value, domain, partial(self._update, node))
            case ast.Pass() | ast.Expr(value=ast.Constant(value=str())):
                return []
            case ast.Assert(test=test):
                self._assert(node, test, domain)
                return []
        raise _refusal(node, self._scope.source)

    def _assert(self, node: ast.Assert, test: ast.expr, domain: isl.Set) -> None:
        """Add a condition on the sizes to the context."""
        error, text = self._scope.source.error, ast.unparse(test)
        if self.statements or not domain.is_equal(isl.Set.universe(domain.get_space())):
            raise error(node, "an `assert` is a condition on the sizes", "Move it before the loops and assignments.")
        if is_data(test, self._scope):
            raise error(test, f"`{text}` depends on data", "Check it before the call, and assert what sizes satisfy.")
        context = self.context.intersect(condition(test, self._scope, domain).params()).coalesce()
        if context.is_empty():
            raise error(test, f"no sizes satisfy `{text}`", "Correct it, or what is asserted before it.")
        if context.n_basic_set() != 1 or context.get_basic_sets()[0].dim(isl.dim_type.div):
            remedy = "Assert sums of sizes with < <= > >= ==, joined by `and`."
            raise error(test, f"the sizes that satisfy `{text}` have gaps", remedy)
        self.context = context

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
        if is_data(node.test, self._scope):
            return self._if_data(node, domain)
        test = condition(node.test, self._scope, domain)
        return self._either(
            lambda: self._block(node.body, domain.intersect(test)),
            lambda: self._block(node.orelse, domain.subtract(test)),
        )

    def _either(self, *alternatives: Callable[[], list[Node]]) -> list[Node]:
        """The nodes of alternatives; what only some of them assign may have no value afterwards."""
        before = self._scope
        nodes: list[Node] = []
        assigned = []
        for made in alternatives:
            self._scope = before
            nodes += made()
            assigned.append(self._scope.assigned)
        self._scope = replace(before, assigned=frozenset.intersection(*assigned))
        return nodes

    def _if_data(self, node: ast.If, domain: isl.Set) -> list[Node]:
        """An `if` on data: every instance runs, and what it assigns stays as it is where the condition is false."""
        match affine_first(node, lambda test: is_data(test, self._scope)):
            case ast.If() as outer:
                return self._if(outer, domain)
        choice = as_choice(node)
        if choice is not None:
            return self._statement(choice, domain)
        kept = with_kept(node, self._names)
        if kept is not None:
            copies, test_of_copies = kept
            return [*self._block(copies, domain), *self._if_data(test_of_copies, domain)]
        parts = parted(node.test, self._scope, domain)
        if parts is not None:
            tests = ((where, ast.copy_location(ast.If(test, node.body, node.orelse), node)) for where, test in parts)
            return self._either(*(partial(self._if_data, test, where) for where, test in tests))
        test = truth(node.test, self._scope)
        around = self._guards
        self._guards = (*around, test)

        def otherwise() -> list[Node]:
            self._guards = (*around, Logic("not", (test,)))
            return self._block(node.orelse, domain)

        nodes = self._either(lambda: self._block(tested_last(node.test, node.body), domain), otherwise)
        self._guards = around
        return nodes

    def _by_case(self, target: ast.expr, value: ast.expr, domain: isl.Set, assign: Assign) -> list[Node]:
        """The statements of an assignment, one for each case.

        Choices with affine conditions make cases, quotients and remainders by sizes, and extremes in subscripts.
        """
        parts = parted(ast.Tuple([target, value], ast.Load()), self._scope, domain)
        if parts is None:
            return [assign(target, value, domain)]
        sides = ((both.elts, where) for where, both in parts)
        return self._either(*(partial(self._by_case, new[0], new[1], where, assign) for new, where in sides))

    def _chain(self, node: ast.stmt, targets: list[ast.expr], value: ast.expr, domain: isl.Set) -> list[Node]:
        """`a = b = value`, one assignment after the other, left to right."""
        first = len(self.statements)
        nodes = []
        for target in targets:
            nodes += self._by_case(target, value, domain, partial(self._assign, node))
        written = {s.target.array for s in self.statements[first:]}
        read = {load.array for s in self.statements[first:] for load in s.reads}
        if len(targets) > 1 and written & read:
            raise self._scope.source.error(
                node,
                "several targets are assigned a value that reads one of them",
                f"Keep the value in a scalar first: `t = {ast.unparse(value)}`.",
            )
        return nodes

    def _assign(self, node: ast.stmt, target: ast.expr, value: ast.expr, domain: isl.Set) -> Node:
        expr = expression(value, self._scope)
        around = self._around[-1] if self._around else None
        known = len(self._targets.locals.arrays)
        place = self._targets.assigned(node, target, expr, self._scope, around)
        is_new = len(self._targets.locals.arrays) > known
        self._scope = replace(self._scope, assigned=self._scope.assigned | {place.array})
        return self._add(node, place, *self._guarded(node, place, expr, domain, is_new), domain)

    def _update(self, node: ast.AugAssign, target: ast.expr, value: ast.expr, domain: isl.Set) -> Node:
        place = self._targets.updated(target, self._scope)
        if type(node.op) in WHOLE:
            read = ast.parse(ast.unparse(target), mode="eval").body
            whole = ast.copy_location(ast.BinOp(ast.copy_location(read, target), node.op, value), node)
            expr = expression(ast.fix_missing_locations(whole), self._scope)
            return self._add(node, place, *self._guarded(node, place, expr, domain), domain)
        expr = expression(value, self._scope)
        op = UPDATES.get(type(node.op))
        if op is None:
            raise self._scope.source.error(
                node, "this assignment has an operator that poly has not", "Write it as `y = …`, with max, min or pow."
            )
        return self._add(node, place, *self._guarded(node, place, Binary(op, place, expr), domain), domain)

    def _guarded(
        self, node: ast.stmt, place: Load, expr: Expr, domain: isl.Set, is_new: bool = False
    ) -> tuple[Op, Expr]:
        """The operator and operand of `place = expr` below the present conditions on data.

        A local that begins here needs none of them: nothing reads it where they are false.
        """
        if not self._guards:
            return as_reduction(place, expr, self._type_of)
        test = self._guards[0] if len(self._guards) == 1 else Logic("and", self._guards)
        return ("=", expr) if is_new else guarded_update(test, place, expr, self._type_of)

    def _add(self, node: ast.stmt, place: Load, op: Op, expr: Expr, domain: isl.Set) -> Node:
        source = self._scope.source
        types = self._mixed(Binary("+", place, expr))
        if types:
            raise source.error(
                node,
                f"the types {', '.join(sorted(types))} meet in one assignment",
                "Give all arrays and scalars in it one type, or convert one of them: `f64(x)`.",
            )
        self._check_numbers(node, place, op, expr)
        name = f"{self._prefix}{len(self.statements)}"
        text = source.line(node.lineno).strip()
        where = source.place(node.lineno)
        named = domain.set_tuple_name(name)
        self.statements.append(Statement(name, self._scope.indices, named, place, op, expr, where, text))
        return Leaf(name)

    def _mixed(self, expr: Expr) -> frozenset[str]:
        """The types that meet in an expression without a conversion; none if there is one type alone."""

        def types(node: ExprNode) -> frozenset[str]:
            match node:
                case Load():
                    return frozenset({self._type_of(node.array).name})
                case Cast(dtype, operand):
                    return types(operand) if len(types(operand)) > 1 else frozenset({dtype.name})
                case Predicate() | Logic():
                    found = [types(part) for part in operands(node)]
                    return next((kinds for kinds in found if len(kinds) > 1), joined(found, isinstance(node, Logic)))
                case Ternary(test, then, other):
                    return types(test) or types(then) | types(other)
            return frozenset().union(*map(types, operands(node)))

        def joined(found: list[frozenset[str]], apart: bool) -> frozenset[str]:
            together = frozenset() if apart else frozenset().union(*found)
            return together if len(together) > 1 else frozenset()

        found = types(expr)
        return found if len(found) > 1 else frozenset()

    def _type_of(self, array: str) -> DType:
        return self._targets.type_of(array, self._scope)

    def _check_numbers(self, node: ast.stmt, place: Load, op: Op, expr: Expr) -> None:
        """Refuse an integer that is not representable in the type which it takes, as NumPy does."""
        whole = expr if op == "=" else Binary(op, place, expr)
        for value, dtype in misfits(whole, self._type_of(place.array), self._type_of):
            raise self._scope.source.error(
                node,
                f"the integer {shortened(value)} meets the type {dtype}, which has no such number",
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
        case ast.AnnAssign(target=target):
            return source.error(target, f"`{ast.unparse(target)}` can't be declared", "Declare a name: `tmp: f32[N]`.")
        case ast.Expr(value=value):
            return source.error(value, "this value goes nowhere", "Assign it to an element: `A[i] = ...`.")
    word = ast.unparse(node).split()[0]
    return source.error(node, f"`{word}` is not allowed in a nest", "Use `for` over `range`, `if` and assignments.")
