"""Calls of other functions and nests, replaced by their bodies before the loops are read.

    def relu(v):                              for i in range(N):
        return v if v > 0 else 0.0                y[i] = x[i] if x[i] > 0 else 0.0
                                       ->     for i_2 in range(N):
    for i in range(N):                            x[i_2] *= 2.0
        y[i] = relu(x[i])
    double(x)   # a nest

A function of values has assignments to names, `if`, and `return`. A nest, or a function of loops, is a statement, or
the value of an assignment if it ends with a `return`: its loops and locals get names of their own. Every node of a body
has the place of the call.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, NoReturn

from codegen.ir.integer import PYTHON, Affine, Linear
from codegen.names import another
from microkernels.dtypes import ArrayType, DType
from poly.frontends import names
from poly.frontends.callees import Callee, Given, called, callee, given, names_in
from poly.frontends.rewriting import moved, substituted, too_deep
from poly.frontends.source import Source
from poly.ir.nest import Array, Nest
from poly.ir.reference import CALLS

LARGEST = 4000
"""The most nodes of a value after the calls in it are replaced."""
STEPS = 500
"""The most statements of a function of values, of which those after an `if` count for each of its sides."""
Above = tuple[object, ...]
"""The functions and nests whose bodies are being put in place."""
FORM = "A function of values has assignments to names, `if`, and `return`; call one of loops as a statement."


def inlined(
    function: ast.FunctionDef, source: Source, environment: Mapping[str, Any], reassociate: bool
) -> tuple[ast.FunctionDef, Mapping[str, Any]] | None:
    """The function with the bodies of those that it calls, and the values of its free names; None if it calls none.

    Raises:
        SpecError: a body does what it can't do in a nest, or its arguments don't fit.
    """
    calls = (node for node in ast.walk(function) if isinstance(node, ast.Call))
    if not any(called(call.func, environment) for call in calls) or too_deep(function) is not None:
        return None
    inliner = _Inliner(function, source, environment, reassociate)
    made = ast.FunctionDef(function.name, function.args, inliner.block(function.body, ()), [], None)
    return ast.fix_missing_locations(ast.copy_location(made, function)), inliner.environment


class _Inliner:
    """Replaces the calls in one function; `environment` grows with the names that bodies bring."""

    def __init__(
        self, function: ast.FunctionDef, source: Source, environment: Mapping[str, Any], reassociate: bool
    ) -> None:
        self.source = source
        self.environment = dict(environment)
        self._reassociate = reassociate
        used = names_in(function.body)
        self._bound = {arg.arg for arg in function.args.args}
        self._bound |= {node.id for node in used if not isinstance(node.ctx, ast.Load)}
        self._taken = self._bound | {node.id for node in used}
        self._annotations = {arg.arg: arg.annotation for arg in function.args.args}
        self._aliases: dict[tuple[str, Any], str] = {}

    def block(self, body: Iterable[ast.stmt], above: Above) -> list[ast.stmt]:
        return [made for statement in body for made in self._statement(statement, above)]

    def _statement(self, node: ast.stmt, above: Above) -> list[ast.stmt]:
        calls = _Calls(self, above)
        match node:
            case ast.For():
                node.iter = calls.visit(node.iter)
                node.body, node.orelse = self.block(node.body, above), self.block(node.orelse, above)
                return [node]
            case ast.If():
                node.test = calls.visit(node.test)
                node.body, node.orelse = self.block(node.body, above), self.block(node.orelse, above)
                return [node]
            case ast.Expr(value=ast.Call() as call) if (found := self.callee(call)) is not None:
                return self._loops(call, found, above, found.definition.body)[0]
            case ast.Assign(value=ast.Call() as call) | ast.AnnAssign(value=ast.Call() as call):
                if (found := self.callee(call)) is not None and _has_loops(found):
                    return self._assigned(node, call, found, above)
        match node:
            case ast.AnnAssign(target=ast.Name(id=name), annotation=annotation):
                self._annotations[name] = annotation
        return [calls.visit(node)]

    def callee(self, call: ast.Call) -> Callee | None:
        """The nest, or function of the user's, that is called."""
        found = called(call.func, self.environment)
        return None if found is None else callee(found, call, self.source)

    def value(self, call: ast.Call, to: Callee, above: Above) -> ast.expr:
        """The value of a call."""
        inner = self._entered(call, to, above)
        values = {**self._free(call, to, {}), **self._given(call, to)}
        returned = _Returned(self, call, to).of(to.definition.body, values)
        return self.checked(call, to, _Calls(self, inner).visit(returned))

    def checked(self, call: ast.Call, to: Callee, value: ast.expr) -> ast.expr:
        """A value that is not too large."""
        if sum(1 for _ in ast.walk(value)) > LARGEST:
            self.refuse_large(call, to)
        return value

    def refuse_large(self, call: ast.Call, to: Callee) -> NoReturn:
        why = f"the value of `{to.name}` has too many parts"
        raise self.source.error(
            call, why, "Write fewer `if`s one after the other, and keep values in scalars: `t = f(x)`."
        )

    def _assigned(self, node: ast.Assign | ast.AnnAssign, call: ast.Call, to: Callee, above: Above) -> list[ast.stmt]:
        """The statements of a function that ends with `return`, and the assignment of its value."""
        *body, last = to.definition.body
        if not isinstance(last, ast.Return) or last.value is None:
            what = "is a nest, and has no value" if to.nest else "does not end with `return`"
            raise self.source.error(call, f"`{to.name}` {what}", f"Call it as a statement: `{ast.unparse(call)}`.")
        made, values = self._loops(call, to, above, body)
        node.value = moved(substituted(last.value, values), call)
        return [*made, *self.block([node], (*above, to.of))]

    def _loops(
        self, call: ast.Call, to: Callee, above: Above, body: Iterable[ast.stmt]
    ) -> tuple[list[ast.stmt], Given]:
        """The statements of a body, and what its names stand for."""
        inner = self._entered(call, to, above)
        self._check_order(call, to)
        _Calls(self, above).generic_visit(call)
        values = self._given(call, to)
        own = to.assigned
        for name in sorted(own & values.keys()):
            why = f"`{to.name}` assigns its parameter `{name}`"
            raise self.source.error(call, why, "Assign a local of another name there.")
        sizes = self._sizes(call, to.nest, values) if to.nest is not None else {}
        fresh: Given = {name: ast.Name(self._fresh(name), ast.Load()) for name in sorted(own)}
        kept, kinds = self._kept(to, values)
        values = {**self._free(call, to, sizes), **fresh, **values, **kinds}
        statements = [*kept, *(moved(substituted(s, values), call) for s in body)]
        return self.block((moved(s, call) for s in statements), inner), values

    def _check_order(self, call: ast.Call, to: Callee) -> None:
        if to.nest is not None and self._reassociate and not to.nest.reassociate:
            why = f"`{to.name}` keeps the order of its updates, and this nest does not"
            raise self.source.error(call, why, "Make this nest with `reassociate=False`, too.")

    def _kept(self, to: Callee, values: Given) -> tuple[list[ast.stmt], Given]:
        """Statements that keep the arguments which a body may change or converts, and the names of these."""
        scalars = {a.name: a for a in to.nest.arguments if a.kind == "scalar"} if to.nest else {}
        kept: list[ast.stmt] = []
        found: dict[str, ast.expr] = {}
        for name, value in values.items():
            scalar = scalars.get(name)
            if not (scalar and not self._fits(scalar, value)) and not _reads_element(value):
                continue
            target, read = ast.Name(self._fresh(name), ast.Store()), value
            kind = self.alias(scalar.dtype.name, scalar.dtype) if scalar else None
            if kind is not None:
                kept.append(ast.AnnAssign(target, kind, ast.Call(kind, [read], []), 1))
            else:
                kept.append(ast.Assign([target], read))
            found[name] = ast.Name(target.id, ast.Load())
        return kept, found

    def _fits(self, scalar: Array, value: ast.expr) -> bool:
        """Whether an argument needs no conversion to a nest's type of it."""
        if isinstance(value, ast.Constant) and isinstance(value.value, float):
            return scalar.dtype.name == "f64"
        annotation = self._annotations.get(value.id) if isinstance(value, ast.Name) else None
        return annotation is not None and names.annotation(annotation, self.source, self.environment) == scalar.dtype

    def _entered(self, call: ast.Call, to: Callee, above: Above) -> Above:
        if any(each is to.of for each in above):
            raise self.source.error(call, f"`{to.name}` calls itself", "Write its loops without recursion.")
        return (*above, to.of)

    def _given(self, call: ast.Call, to: Callee) -> dict[str, ast.expr]:
        """The expression that each parameter stands for."""
        expressions, defaults = given(call, to, self.source)
        return {**{name: self._constant(name, value) for name, value in defaults.items()}, **expressions}

    def _constant(self, name: str, value: Any) -> ast.expr:
        if isinstance(value, int | float) and not isinstance(value, bool):
            return ast.parse(repr(value), mode="eval").body if abs(value) < float("inf") else self.alias(name, value)
        return self.alias(name, value)

    def _free(self, call: ast.Call, to: Callee, sizes: Mapping[str, Affine]) -> dict[str, ast.expr]:
        """The names by which the free names of a body go here."""
        found: dict[str, ast.expr] = {}
        for name in sorted(to.used - to.assigned - to.parameters):
            if _is_known(name, to.environment):
                if name in self._bound or not _is_known(name, self.environment):
                    why = f"`{to.name}` calls `{name}`, which stands for something else here"
                    raise self.source.error(call, why, f"Rename this `{name}`.")
                if name in to.environment:
                    self.environment.setdefault(name, to.environment[name])
            elif name not in to.environment:
                why = f"`{name}` in `{to.name}` is not defined"
                raise self.source.error(call, why, "Define it before the nest.")
            else:
                value = to.environment[name]
                is_size = isinstance(value, Linear)
                found[name] = self._size(name, value.substitute(sizes)) if is_size else self.alias(name, value)
        return found

    def _size(self, name: str, value: Affine) -> ast.expr:
        """A sum of sizes by their names here."""
        if all(self.environment.get(size) == Affine.name(size) and size not in self._bound for size in value.names):
            return ast.parse(PYTHON.integer(value), mode="eval").body
        return self.alias(name, value)

    def alias(self, name: str, value: Any) -> ast.Name:
        """A name whose value here is this one: the same, if nothing else is called so."""
        if name not in self._bound and name in self.environment and _is_same(self.environment[name], value):
            return ast.Name(name, ast.Load())
        key = name, value if isinstance(value, Linear) else id(value)
        if key not in self._aliases:
            self._aliases[key] = self._fresh(name)
            self.environment[self._aliases[key]] = value
        return ast.Name(self._aliases[key], ast.Load())

    def _fresh(self, name: str) -> str:
        new = another(name, frozenset({*self._taken, *self.environment}))
        self._taken.add(new)
        return new

    def _sizes(self, call: ast.Call, nest: Nest, values: Given) -> dict[str, Affine]:
        """A nest's sizes in terms of those here: as given by keyword, else as the arrays tell."""
        found = {_own(size): self._stated(values[size]) for size in nest.sizes if size in values}
        own = {size: Affine.name(_own(size)) for size in nest.sizes}
        shapes = [(array, self._shape(call, values[array.name])) for array in nest.arguments if array.kind == "array"]
        pairs = [
            (wanted.substitute(own), Affine.of(extent))
            for array, kind in shapes
            for wanted, extent in zip(array.extents, kind.shape, strict=False)
        ]
        for wanted, extent in sorted(pairs, key=lambda pair: len(pair[0].terms)):
            rest = wanted.substitute(found)
            unknown = [name for name in rest.names if name.endswith("'")]
            if len(unknown) == 1 and rest.coefficient(unknown[0]) == 1:
                found[unknown[0]] = extent - (rest - Affine.name(unknown[0]))
        for size in nest.sizes:
            if _own(size) not in found:
                why = f"the size `{size}` of `{nest.name}` does not follow from its arrays"
                raise self.source.error(call, why, f"Give it by keyword: `{size}=...`.")
        sizes = {size: found[_own(size)] for size in nest.sizes}
        for array, kind in shapes:
            extents = [extent.substitute(sizes) for extent in array.extents]
            if array.element != kind.dtype or extents != list(map(Affine.of, kind.shape)):
                text = f"{kind.dtype.name}[{', '.join(map(str, kind.shape))}]"
                why = f"`{ast.unparse(values[array.name])}` is {text}, which is no {array} of `{nest.name}`"
                raise self.source.error(call, why, "Give an array of the shape and type that the nest takes.")
        return sizes

    def _stated(self, node: ast.expr) -> Affine:
        """A sum of sizes and integers."""
        with suppress(Exception):  # the user's expression may raise anything
            value = eval(ast.unparse(node), {"__builtins__": {}}, dict(self.environment))
            if isinstance(value, int | Linear) and not isinstance(value, bool):
                return Affine.of(value)
        why = f"`{ast.unparse(node)}` is no sum of sizes and integers"
        raise self.source.error(node, why, "Give the size of a nest in terms of sizes and integers.")

    def _shape(self, call: ast.Call, array: ast.expr) -> ArrayType:
        annotation = self._annotations.get(array.id) if isinstance(array, ast.Name) else None
        kind = annotation and names.annotation(annotation, self.source, self.environment)
        if isinstance(kind, ArrayType):
            return kind
        why = f"`{ast.unparse(array)}` is no whole array"
        raise self.source.error(call, why, "Give a nest the names of arrays, and scalars as they are.")


class _Returned:
    """The value that a body returns."""

    def __init__(self, inliner: _Inliner, call: ast.Call, to: Callee) -> None:
        self._inliner, self._call, self._to = inliner, call, to
        self._assigned = to.assigned
        self._steps = 0

    def of(self, body: Sequence[ast.stmt], values: Given) -> ast.expr:
        """The value of the rest of a body, with the expressions that stand for its names so far."""
        self._steps += 1
        if self._steps > STEPS:
            self._inliner.refuse_large(self._call, self._to)
        match list(body):
            case [ast.Return(value=value), *_] if value is not None:
                return self._at(value, values)
            case [ast.Expr(value=ast.Constant()) | ast.Pass(), *rest]:
                return self.of(rest, values)
            case [ast.Assign(targets=[ast.Name(id=name)], value=value), *rest]:
                return self.of(rest, {**values, name: self._at(value, values)})
            case [ast.AnnAssign(target=ast.Name(id=name), annotation=kind, value=value), *rest] if value is not None:
                return self.of(rest, {**values, name: self._at(self._converted(kind, value), values)})
            case [ast.AugAssign(target=ast.Name(id=name), op=op, value=value), *rest]:
                updated = ast.BinOp(ast.Name(name, ast.Load()), op, value)
                return self.of(rest, {**values, name: self._at(updated, values)})
            case [ast.If(test=test, body=then, orelse=other), *rest]:
                sides = (self.of([*side, *rest], values) for side in (then, other))
                return moved(ast.IfExp(self._at(test, values), *sides), self._call)
        what = f"does more than return a value: `{ast.unparse(body[0]).splitlines()[0]}`" if body else "returns nothing"
        raise self._inliner.source.error(self._call, f"`{self._to.name}` {what}", FORM)

    def _converted(self, kind: ast.expr, value: ast.expr) -> ast.expr:
        """The value of `t: f32 = value`."""
        dtype = names.annotation(moved(substituted(kind, {}), self._call), self._inliner.source, self._to.environment)
        if not isinstance(dtype, DType):
            raise self._inliner.source.error(self._call, f"`{self._to.name}` has a local array", FORM)
        return ast.Call(self._inliner.alias(dtype.name, dtype), [value], [])

    def _at(self, value: ast.expr, values: Given) -> ast.expr:
        unset = {node.id for node in ast.walk(value) if isinstance(node, ast.Name)} & self._assigned - values.keys()
        if unset:
            why = f"`{min(unset)}` in `{self._to.name}` may be read before it has a value"
            raise self._inliner.source.error(self._call, why, "Assign it first.")
        return self._inliner.checked(self._call, self._to, moved(substituted(value, values), self._call))


class _Calls(ast.NodeTransformer):
    """Puts values in place of calls in an expression or simple statement."""

    def __init__(self, inliner: _Inliner, above: Above) -> None:
        self._inliner = inliner
        self._above = above

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        found = self._inliner.callee(node)
        if found is None:
            return node
        if found.nest is not None:
            remedy = "Call it as a statement: `nest(A, B)`."
            raise self._inliner.source.error(node, f"the nest `{found.name}` has no value", remedy)
        return self._inliner.value(node, found, self._above)


def _has_loops(to: Callee) -> bool:
    return any(isinstance(node, ast.For) for node in ast.walk(to.definition))


def _reads_element(value: ast.expr) -> bool:
    return any(isinstance(node, ast.Subscript) for node in ast.walk(value))


def _is_known(name: str, environment: Mapping[str, Any]) -> bool:
    """Whether a name stands for `range`, or for a function that a nest may call."""
    if name == "range":
        return environment.get(name, range) is range
    return names.function_of(ast.Name(name), environment) is not None and name in CALLS


def _is_same(known: Any, value: Any) -> bool:
    return known is value or (type(known) is type(value) and isinstance(value, int | float) and known == value)


def _own(size: str) -> str:
    """The name of a nest's size that no size here has."""
    return f"{size}'"
