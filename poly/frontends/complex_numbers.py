"""Complex numbers in a function's text, replaced by their real and imaginary parts before the loops are read.

    C[i, j] += A[i, k] * B[k, j]   ->   C[i, j, 0] += A[i, k, 0] * B[k, j, 0] - A[i, k, 1] * B[k, j, 1]
                                        C[i, j, 1] += A[i, k, 0] * B[k, j, 1] + A[i, k, 1] * B[k, j, 0]

The parts are a last dimension of arrays, as NumPy and C lay them out; a local scalar is two. All behind this reads and
computes real numbers.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any

from microkernels.dtypes import ComplexType
from poly.frontends import complex_values as of
from poly.frontends.apart import Bounds, are_apart, within
from poly.frontends.complex_names import ComplexNames, ComplexScalar, indices
from poly.frontends.complex_values import Parts, whole
from poly.frontends.source import Source

OPERATORS: Mapping[type[ast.operator], Callable[[Parts, Parts], Parts]] = {
    ast.Add: of.plus, ast.Sub: of.minus, ast.Mult: of.times,
}  # fmt: skip
PLACES = (ast.Name, ast.Subscript)
TAKES = "Complex numbers have + - * /, .real, .imag, conj, abs and exp."


def in_parts(
    function: ast.FunctionDef, source: Source, environment: Mapping[str, Any]
) -> tuple[ast.FunctionDef, Mapping[str, Any]]:
    """The function with the parts of complex numbers, and the values of its free names; unchanged if it has none.

    Raises:
        SpecError: complex numbers are used as they can't be, such as in a comparison.
    """
    names = ComplexNames(function, source, environment)
    if not names.ranks and not any(map(names.mentions, function.body)):
        return function, environment
    body = _Numbers(names).block(function.body)
    made = ast.FunctionDef(function.name, function.args, body, [], None)
    return ast.fix_missing_locations(ast.copy_location(made, function)), names.environment


class _Numbers:
    """Replaces the complex numbers of one function."""

    def __init__(self, names: ComplexNames) -> None:
        self._names = names
        self._error = names.source.error
        self._kept: list[ast.stmt] = []
        """The statements before the present one."""
        self._keeps = True
        """Whether there may be some: not where a condition decides what exists."""
        self._around: dict[str, Bounds] = {}
        """The bounds of the loops around the present statement."""

    def block(self, body: Iterable[ast.stmt]) -> list[ast.stmt]:
        """The statements on parts."""
        return [made for statement in body for made in self._placed(statement)]

    def _placed(self, node: ast.stmt) -> Iterator[ast.stmt]:
        """The statements that stand for one, at its place."""
        made = list(self._statement(node))
        kept, self._kept = self._kept, []
        for statement in (*kept, *made):
            yield ast.fix_missing_locations(statement if statement is node else ast.copy_location(statement, node))

    def _statement(self, node: ast.stmt) -> Iterable[ast.stmt]:
        match node:
            case ast.For():
                around = self._around
                self._around = self._within(node)
                made = ast.For(node.target, node.iter, self.block(node.body), node.orelse)
                self._around = around
                return [made]
            case ast.If():
                test = self._test(node.test)
                return [ast.If(test, self.block(node.body), self.block(node.orelse))]
            case ast.AnnAssign(target=ast.Name(id=name)) if name in self._names.ranks:
                return [ast.AnnAssign(node.target, self._array(node.annotation), node.value, 1)]
            case ast.AnnAssign(target=ast.Name(id=name), value=None) if name in self._names.scalars:
                parts = self._names.scalars[name].parts(ast.Store())
                return [self._stored(part, None, node.annotation) for part in (parts.real, parts.imag)]
        if not self._names.mentions(node):
            return [node]
        match node:
            case ast.AnnAssign(target=ast.Name() as target, value=ast.expr() as value):
                if target.id in self._names.scalars:
                    return self._assigned(target, self._value(value), node.annotation)
                return [ast.AnnAssign(target, node.annotation, self._real(value), 1)]
            case ast.Assign(targets=[target], value=value):
                return self._assigned(target, self._value(value))
            case ast.Assign(targets=targets, value=value):
                kept = self._value(value).map(self._keep)
                return [made for target in targets for made in self._assigned(target, kept)]
            case ast.AugAssign(target=target, op=op, value=value):
                return self._updated(node, target, op, self._value(value))
        return [node]

    def _within(self, node: ast.For) -> dict[str, Bounds]:
        match node.target, node.iter:
            case ast.Name(id=index), ast.Call(func=ast.Name(id="range"), args=args):
                return within(self._around, index, args, self._names.own)
        return {}

    def _array(self, annotation: ast.expr) -> ast.expr:
        """The type of an array of parts."""
        node = annotation
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            node = ast.parse(node.value, mode="eval").body
        part = self._names.type_of_parts(annotation)
        if not isinstance(node, ast.Subscript) or part is None:
            raise self._error(annotation, "the type has no extents", "Write it out: `c128[M, N]`.")
        return ast.Subscript(part, ast.Tuple([*indices(node), ast.Constant(2)], ast.Load()), ast.Load())

    def _assigned(self, target: ast.expr, value: Parts, annotation: ast.expr | None = None) -> list[ast.stmt]:
        """`target = value`, of which no part is assigned before the other one is known."""
        place = self._place(target)
        if place is None:
            return [ast.Assign([target], self._checked(target, value))]
        real, imag = whole(value.real), whole(value.imag)
        first, last = place.real, place.imag
        others = set() if _updates(place.real, real) else self._names.passed_as_one(target)
        if self._reads(imag, place.real, others):
            if self._reads(real, place.imag, others):
                real = self._keep(real, always=True)
            first, last, real, imag = last, first, imag, real
        return [self._stored(first, real, annotation), self._stored(last, imag, annotation)]

    def _stored(self, part: ast.expr | None, value: ast.expr | None, annotation: ast.expr | None = None) -> ast.stmt:
        """`part = value`, with the type of a scalar where it is clear."""
        kind = self._names.type_of_parts(annotation) if isinstance(part, ast.Name) else None
        if isinstance(part, ast.Name) and kind is not None:
            return ast.AnnAssign(part, kind, value, 1)
        return ast.Assign([whole(part)], whole(value))

    def _updated(self, node: ast.AugAssign, target: ast.expr, op: ast.operator, value: Parts) -> list[ast.stmt]:
        """`target op= value`."""
        place = self._place(target)
        if place is None:
            return [ast.AugAssign(node.target, op, self._checked(target, value))]
        if isinstance(op, ast.Mult | ast.Div) and value.is_complex:
            own = self._value(_read(target))
            return self._assigned(target, of.times(own, value) if isinstance(op, ast.Mult) else self._over(own, value))
        if isinstance(op, ast.Mult | ast.Div):
            value = Parts(value.real, value.real)
        if value.imag is not None and self._reads(value.imag, place.real):
            value = Parts(value.real, self._keep(value.imag, always=True))
        pairs = ((place.real, value.real), (place.imag, value.imag))
        return [ast.AugAssign(part, op, by) for part, by in pairs if isinstance(part, PLACES) and by is not None]

    def _reads(self, node: ast.expr, place: ast.expr | None, others: Collection[str] = ()) -> bool:
        """Whether an expression may read a part of an element, or of a scalar: other parts it does not.

        A call may pass the arrays `others` as the one that the place is in.
        """
        if isinstance(place, ast.Name):
            return any(isinstance(part, ast.Name) and part.id == place.id for part in ast.walk(node))
        assert isinstance(place, ast.Subscript)
        arrays, own = {ast.unparse(place.value), *others}, indices(place)
        found = (n for n in ast.walk(node) if isinstance(n, ast.Subscript) and ast.unparse(n.value) in arrays)
        return not all(are_apart(own, indices(read), self._around) for read in found)

    def _checked(self, node: ast.expr, value: Parts) -> ast.expr:
        """A value that is assigned to a real place."""
        if value.is_complex:
            why = f"`{ast.unparse(node)}` is real, and gets a complex number"
            raise self._error(node, why, "Take .real, .imag or abs of it, or give the target a complex type.")
        return whole(value.real)

    def _place(self, target: ast.expr) -> Parts | None:
        """The parts of a target; None if it is real."""
        match target:
            case ast.Name(id=name) if name in self._names.scalars:
                return self._names.scalars[name].parts(ast.Store())
            case ast.Name(id=name) if self._names.ranks.get(name) == 0:
                why = f"`{name}` is a scalar passed by value"
                raise self._error(target, why, "Assign a local of another name.")
            case ast.Attribute(attr="real" | "imag"):
                why = f"`{ast.unparse(target)}` can't be assigned"
                raise self._error(target, why, "Assign both parts: `z[i] = complex(a, b)`.")
            case ast.Subscript(value=ast.Name(id=name)) if name in self._names.ranks:
                found = self._element(target, name, ast.Store())
                return found if found.is_complex else None
        return None

    def _element(self, node: ast.Subscript, name: str, ctx: ast.expr_context) -> Parts:
        """An element of a complex array; a part of it if that is named by one index more."""
        rank, given = self._names.ranks[name], indices(node)
        match given[rank:]:
            case [ast.Constant(value=0 | 1)]:
                return Parts(node)
            case [] if len(given) == rank:
                return Parts(*(ast.copy_location(_part(node.value, given, part, ctx), node) for part in (0, 1)))
        takes = f"{rank} dimension{'s' * (rank != 1)}, and gets {len(given)} ind{'ices' if len(given) != 1 else 'ex'}"
        remedy = f"Give one index for each dimension: `{_example(name, rank)}`."
        raise self._error(node, f"`{name}` has {takes}", remedy)

    def _value(self, node: ast.expr) -> Parts:
        """The parts of an expression."""
        if not self._names.mentions(node):
            return Parts(node)
        match node:
            case ast.Constant(value=complex() as value):
                return of.numeral(value)
            case ast.Name(id=name):
                return self._name(node, name)
            case ast.Subscript(value=ast.Name(id=name)) if name in self._names.ranks:
                return self._element(node, name, ast.Load())
            case ast.Attribute(value=value, attr="real" | "imag" as part):
                return Parts(whole(getattr(self._value(value), part)))
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return of.negative(self._value(operand))
            case ast.UnaryOp(op=ast.UAdd(), operand=operand):
                return self._value(operand)
            case ast.BinOp(left=left, op=op, right=right):
                return self._binary(node, op, self._value(left), self._value(right))
            case ast.Call():
                return self._call(node)
            case ast.IfExp(test=test, body=body, orelse=orelse):
                return self._choice(self._test(test), self._inline(body), self._inline(orelse))
        why = f"`{ast.unparse(node)}` is no value of complex numbers that poly knows"
        raise self._error(node, why, TAKES)

    def _name(self, node: ast.Name, name: str) -> Parts:
        if name in self._names.scalars:
            return self._names.scalars[name].parts(ast.Load())
        if name in self._names.ranks:
            if self._names.ranks[name]:
                remedy = f"Name one element of it, such as `{_example(name, self._names.ranks[name])}`, inside loops."
                raise self._error(node, f"`{name}` is a whole array", remedy)
            return Parts(*(_part(node, [], part, ast.Load()) for part in (0, 1)))
        value = complex(self._names.value_of(name))
        made = ComplexScalar(f"{name}_re", f"{name}_im")
        for part, number in ((made.real, value.real), (made.imag, value.imag)):
            if self._names.environment.setdefault(part, number) != number or part in self._names.own:
                raise self._error(node, f"`{part}` is the real or imaginary part of `{name}`", "Rename it.")
        return made.parts(ast.Load())

    def _binary(self, node: ast.BinOp, op: ast.operator, left: Parts, right: Parts) -> Parts:
        if not left.is_complex and not right.is_complex:
            return Parts(ast.BinOp(whole(left.real), op, whole(right.real)))
        match op:
            case ast.Mult():
                return of.times(self._factor(left), self._factor(right))
            case ast.Div():
                return self._over(left, right)
            case ast.Pow() if isinstance(node.right, ast.Constant) and node.right.value == 2:
                factor = self._factor(left)
                return of.times(factor, factor)
        if type(op) not in OPERATORS:
            why = f"`{ast.unparse(node)}` is no operation on complex numbers that poly knows"
            raise self._error(node, why, TAKES)
        return OPERATORS[type(op)](left, right)

    def _over(self, value: Parts, by: Parts) -> Parts:
        if by.is_complex:
            value, by = value.map(self._keep), by.map(self._keep)
        return of.over(value, by, self._keep)

    def _factor(self, value: Parts) -> Parts:
        """A factor, whose parts a product has twice: what has a product in it is computed once."""
        return value.map(lambda part: self._keep(part) if _has_product(part) and value.is_complex else part)

    def _keep(self, value: ast.expr, always: bool = False) -> ast.expr:
        """A value that is used several times, kept in a local; what is as short as a name stays."""
        is_short = isinstance(value, ast.Name | ast.Subscript | ast.Constant)
        if not always and (is_short or not self._keeps):
            return value
        target = ast.Name(self._names.fresh("part"), ast.Store())
        self._kept.append(self._stored(target, value))
        return ast.Name(target.id, ast.Load())

    def _inline(self, node: ast.expr) -> Parts:
        """An expression of which nothing is computed beforehand: what it reads may not exist."""
        before, self._keeps = self._keeps, False
        found = self._value(node)
        self._keeps = before
        return found

    def _choice(self, test: ast.expr, then: Parts, other: Parts) -> Parts:
        real = ast.IfExp(test, whole(then.real), whole(other.real))
        if not then.is_complex and not other.is_complex:
            return Parts(real)
        return Parts(real, ast.IfExp(test, whole(then.imag), whole(other.imag)))

    def _test(self, node: ast.expr) -> ast.expr:
        """A condition, in which parts and absolute values are compared."""
        if not self._names.mentions(node):
            return node
        match node:
            case ast.BoolOp(op=op, values=values):
                made: ast.expr = ast.BoolOp(op, [self._test(value) for value in values])
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                made = ast.UnaryOp(ast.Not(), self._test(operand))
            case ast.Compare(left=left, ops=ops, comparators=others):
                sides = [self._compared(side) for side in (left, *others)]
                made = ast.Compare(sides[0], ops, sides[1:])
            case _:
                made = self._real(node)
        return ast.copy_location(made, node)

    def _compared(self, node: ast.expr) -> ast.expr:
        value = self._inline(node)
        if value.is_complex:
            why = f"`{ast.unparse(node)}` is complex, and such numbers have no order"
            raise self._error(node, why, "Compare its .real, .imag or abs.")
        return whole(value.real)

    def _real(self, node: ast.expr) -> ast.expr:
        """An expression that must be real."""
        value = self._value(node)
        if value.is_complex:
            why = f"`{ast.unparse(node)}` is complex where a real number is needed"
            raise self._error(node, why, "Take its .real, .imag or abs.")
        return whole(value.real)

    def _call(self, node: ast.Call) -> Parts:
        name, args = self._names.function(node.func), node.args
        if isinstance(node.func, ast.Attribute) and not self._names.is_module(node.func.value):
            args = [node.func.value, *args]
        if name == "complex" and len(args) == 2:
            return Parts(self._real(args[0]), self._real(args[1]))
        values = [self._value(arg) for arg in args]
        if len(values) != 1 or name is None:
            self._refuse_complex(node, values)
            return Parts(ast.Call(node.func, [whole(value.real) for value in values], node.keywords))
        value = values[0]
        if isinstance(name, ComplexType):
            value = value.map(lambda part: ast.Call(self._names.type_name(name.part), [part], []))
            return Parts(value.real, whole(value.imag))
        match name:
            case "conj":
                return of.conjugate(value)
            case "real" | "imag":
                return Parts(whole(getattr(value, name)))
            case "abs":
                return Parts(of.modulus(value.map(self._keep) if value.is_complex else value))
            case "exp":
                return of.exponential(value.map(self._keep) if value.is_complex else value, self._keep)
        return Parts(value.real, whole(value.imag))

    def _refuse_complex(self, node: ast.Call, values: Iterable[Parts]) -> None:
        if any(value.is_complex for value in values):
            why = f"`{ast.unparse(node.func)}` takes no complex numbers"
            raise self._error(node, why, TAKES)


def _part(array: ast.expr, given: list[ast.expr], part: int, ctx: ast.expr_context) -> ast.expr:
    """The part of an element."""
    last = ast.Constant(part)
    return ast.Subscript(array, ast.Tuple([*given, last], ast.Load()) if given else last, ctx)


def _example(name: str, rank: int) -> str:
    return f"{name}[{', '.join('ijklmnpq'[:rank]) or '()'}]"


def _read(target: ast.expr) -> ast.expr:
    """A target as an expression that reads it."""
    match target:
        case ast.Name(id=name):
            return ast.copy_location(ast.Name(name, ast.Load()), target)
        case ast.Subscript(value=value, slice=index):
            return ast.copy_location(ast.Subscript(value, index, ast.Load()), target)
    return target


def _updates(place: ast.expr | None, value: ast.expr) -> bool:
    """Whether a value adds to what it is assigned to, as in a sum: such a nest runs on arrays that are apart."""
    match value:
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub(), right=right):
            return place is not None and ast.unparse(place) in (ast.unparse(left), ast.unparse(right))
    return False


def _has_product(node: ast.expr) -> bool:
    return any(isinstance(part, ast.BinOp) and isinstance(part.op, ast.Mult | ast.Div) for part in ast.walk(node))
