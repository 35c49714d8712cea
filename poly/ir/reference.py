"""An interpreter for the loops as written, on NumPy arrays: the oracle of all tests, without sets or schedules."""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from codegen.ir.expr import FUNCTIONS
from codegen.ir.integer import Linear
from microkernels.dtypes import DTYPES, bf16
from poly.ir.choices import affine_first, as_choice
from poly.ir.lookups import check_indices, index_reads
from poly.ir.nest import Array, Nest
from poly.ir.operations import COMPARISONS, cast, functions, local, maker
from poly.ir.sizes import fitted

OPERATORS: dict[type[ast.operator], str] = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "divide",
    ast.FloorDiv: "floordiv", ast.Mod: "mod", ast.LShift: "lshift", ast.RShift: "rshift", ast.BitAnd: "and",
    ast.BitOr: "or", ast.BitXor: "xor",
}  # fmt: skip
"""The names, in `_functions`, of the functions that replace operators."""
CALLS: dict[str, str] = {
    **{name: name for name in (*FUNCTIONS, *DTYPES)},
    **{dtype.numpy_name: dtype.name for dtype in DTYPES.values()},
    "power": "pow", "arctan": "atan", "arctan2": "atan2", "fabs": "abs", "absolute": "abs",
    "maximum": "max", "minimum": "min",
}  # fmt: skip
"""The functions and types that a nest may call, by their names in poly, Python, math and NumPy."""
PREFIX = "_poly_"
"""The prefix of the names that this module adds to the loops."""


def reference(nest: Nest, arguments: tuple[Any, ...], **keywords: Any) -> None:
    """Run the loops of a nest on its arguments; arrays are updated in place.

    Each operation has the type that NumPy gives it, each local its declared type. `keywords` are arguments by name, and
    the sizes that do not follow from the arrays. Overflows and NaNs cause no warnings. Integers wrap around, as does a
    loop's index that is combined with a smaller type; a fraction that is assigned to an integer is truncated, and
    becomes the type's least value if the type cannot represent the result. Python's own numbers are divided by 0 as
    NumPy's floats are. A statement that would read an element of an empty array, or a local without a value since its
    own statement did so, is left out, whatever the conditions on data around it say.

    Raises:
        ArgumentError: the arguments don't fit the nest.
    """
    taken = fitted(nest, arguments, keywords)
    check_indices(nest, index_reads(nest), taken)
    if all(taken.values[name].size == 0 for name in nest.written & taken.values.keys()):
        return  # there is nothing to write, and the other extents of empty arrays may be huge
    values = {array.name: _argument(array, taken.values[array.name]) for array in nest.arguments}
    with np.errstate(all="ignore"):
        _function(nest, taken.sizes, any(np.size(value) == 0 for value in values.values()))(**values)


def _argument(array: Array, value: Any) -> Any:
    if array.is_complex:
        parts = (*value.strides, array.dtype.size)
        return as_strided(value.view(np.ndarray).real, (*value.shape, 2), parts)
    return cast(array.dtype)(value) if array.kind == "scalar" else value


def _function(nest: Nest, sizes: Mapping[str, int], has_empty: bool) -> Callable[..., None]:
    """The nest's source as a Python function, with values for its free names."""
    known = {**dict(nest.fixed), **sizes}
    names: dict[str, Any] = {n: v.evaluate(known) if isinstance(v, Linear) else v for n, v in nest.names}
    module = _Runnable(nest, names, has_empty).visit(ast.parse(nest.source))
    names |= {PREFIX + name: function for name, function in functions().items()}
    if has_empty:
        names[PREFIX + "local"] = lambda shape, dtype: _Partial(local(shape, dtype))
    names |= {PREFIX + dtype.name: maker(dtype) for dtype in DTYPES.values()}
    exec(compile(ast.fix_missing_locations(module), nest.file, "exec"), names)
    function: Callable[..., None] = names[nest.name]
    return function


class _Partial:
    """A local array; an element has no value where the statement that would assign it was left out."""

    def __init__(self, values: np.ndarray) -> None:
        self._values, self._lost = values, np.zeros(values.shape, bool)

    def __getitem__(self, place: Any) -> Any:
        if self._lost[place]:
            raise IndexError
        return self._values[place]

    def __setitem__(self, place: Any, value: Any) -> None:
        self._values[place], self._lost[place] = value, False

    def __delitem__(self, place: Any) -> None:
        self._lost[place] = True


class _Runnable(ast.NodeTransformer):
    """The function without types and decorators; locals get their types, and calls are replaced by `_functions`.

    Divisions are replaced too and, if the nest has integers or bf16, all operators and assignments: NumPy refuses
    a Python integer that an array's type cannot represent, and does not make a Python number a bf16. In other nests
    operators stay, since functions are slower.
    """

    def __init__(self, nest: Nest, names: Mapping[str, Any], has_empty: bool) -> None:
        self._names = names
        self._has_empty = has_empty
        self._local = frozenset(array.name for array in nest.arrays if array.kind == "local")
        self._types = {array.name: array.dtype.name for array in nest.arrays}
        self._bf16 = any(array.dtype == bf16 for array in nest.arrays)
        self._wraps = self._bf16 or any(not array.dtype.is_float for array in nest.arrays)
        self._guards: tuple[ast.expr, ...] = ()
        """What the conditions on data around have told, if arrays are empty."""
        self._tests = 0
        self._begun: set[str] = set()
        """The local scalars that are assigned so far."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        arguments = [ast.arg(arg.arg) for arg in node.args.args]
        body = self._block(node.body)
        signature = ast.arguments([], arguments, None, [], [], None, [])
        return ast.FunctionDef(node.name, signature, body, [], None)

    def visit_For(self, node: ast.For) -> ast.AST:
        node.body = self._block(node.body)  # the bounds keep Python's min and max
        return node

    def visit_Assign(self, node: ast.Assign) -> ast.AST | list[ast.stmt]:
        value = self.visit(node.value)
        if len(node.targets) == 1:
            return self._assigned(node.targets[0], value)
        kept = ast.Name(PREFIX + "value", ast.Store())
        read = ast.Name(PREFIX + "value", ast.Load())
        return [ast.Assign([kept], value), *(one for target in node.targets for one in self._assigned(target, read))]

    def _assigned(self, target: ast.expr, value: ast.expr) -> list[ast.stmt]:
        """The assignment of a value; below conditions on data, all is read that it or these would read."""
        stored = ast.Assign([target], self._stored(target, value))
        is_new = isinstance(target, ast.Name) and target.id not in self._begun
        self._begun |= {target.id} if isinstance(target, ast.Name) else set()
        if not self._guards or is_new:
            return [stored]
        name = PREFIX + "stored"
        kept = ast.Assign([ast.Name(name, ast.Store())], stored.value)
        stored = ast.Assign([target], ast.Name(name, ast.Load()))
        return [kept, ast.Expr(_loaded(target)), ast.If(_Whole.of(self._guards), [stored], [])]

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST | list[ast.stmt]:
        if not self._wraps and not self._guards:
            node.value = self.visit(node.value)
            return node
        return self._assigned(node.target, self.visit(ast.BinOp(_loaded(node.target), node.op, node.value)))

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        if isinstance(node.op, ast.FloorDiv | ast.Mod) and not self._is_data(node):
            return node  # of indices and sizes: plain Python
        left, right = self.visit(node.left), self.visit(node.right)
        if isinstance(node.op, ast.Pow):
            return self._power([left, right])
        if not (self._wraps or isinstance(node.op, ast.Div)):
            return ast.BinOp(left, node.op, right)
        return self._call(OPERATORS[type(node.op)], [left, right])

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        """Indices are plain Python; an element that is looked up becomes an integer that does not wrap around."""
        found = ast.Subscript(node.value, _LookedUp().visit(node.slice), node.ctx)
        return ast.copy_location(found, node)

    def visit_If(self, node: ast.If) -> ast.AST:
        node.body, node.orelse = (self._block(part) for part in (node.body, node.orelse))
        node.test = self._test(node.test)
        return node

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        then, other = self.visit(node.body), self.visit(node.orelse)
        if not self._is_data(node.test):
            return ast.IfExp(node.test, then, other)
        return self._call("select", [self._test(node.test), then, other])

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        """Comparisons of bf16 are replaced; others stay."""
        left, *others = (self.visit(side) for side in (node.left, *node.comparators))
        if not self._bf16:
            return ast.Compare(left, node.ops, others)
        pairs = zip(node.ops, (left, *others), others, strict=False)
        parts: list[ast.expr] = [self._call(COMPARISONS[type(op)], [first, second]) for op, first, second in pairs]
        return parts[0] if len(parts) == 1 else ast.BoolOp(ast.And(), parts)

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        return ast.Constant(self._names[ast.unparse(node)])  # of math and NumPy, such as math.pi

    def _block(self, body: list[ast.stmt]) -> list[ast.stmt]:
        made: list[ast.stmt] = []
        for statement in body:
            if self._has_empty and isinstance(statement, ast.If) and self._is_data(statement.test):
                made += self._if_data(statement)
                continue
            lost = self._lost(copy.deepcopy(statement)) or [ast.Pass()]
            visited = self.visit(statement)
            steps = visited if isinstance(visited, list) else [visited]
            is_loop = isinstance(statement, ast.For)  # its statements are on their own
            made += steps if is_loop or not self._has_empty else [_left_out_if_empty(steps, lost)]
        return made

    def _if_data(self, node: ast.If) -> list[ast.stmt]:
        """The statements below an `if` on data, each of which reads what it would read where the condition holds.

        if x[i] > 0:              test = x[i] > 0
            y[i] = e[0]    ->     stored = e[0]
                                  if test: y[i] = stored
        """
        whole = affine_first(node, self._is_data) or as_choice(node)
        if whole is not None:
            return self._block([whole])
        self._tests += 1
        name, around = f"{PREFIX}test_{self._tests}", self._guards
        test = ast.Assign([ast.Name(name, ast.Store())], _Whole().visit(self._test(node.test)))
        holds = ast.Name(name, ast.Load())
        self._guards = (*around, holds)
        body = self._block(node.body)
        self._guards = (*around, ast.UnaryOp(ast.Not(), holds))
        other = self._block(node.orelse)
        self._guards = around
        return [_left_out_if_empty([test], ast.parse(f"{name} = None; del {name}").body), *body, *other]

    def _lost(self, statement: ast.stmt) -> list[ast.stmt]:
        """What takes the values from all that a statement would assign of locals."""
        match statement:
            case ast.For(target=index, iter=values, body=body):
                inner = [lost for each in body for lost in self._lost(each)]
                return [ast.For(index, values, inner, [])] if inner else []
            case ast.If(test=test, body=body, orelse=orelse):
                then, other = ([lost for each in side for lost in self._lost(each)] for side in (body, orelse))
                return [*then, *other] if self._is_data(test) else [ast.If(test, then or [ast.Pass()], other)]
            case ast.Assign(targets=targets):
                return [lost for target in targets for lost in self._without(target)]
            case ast.AugAssign(target=target) | ast.AnnAssign(target=target, value=ast.expr()):
                return self._without(target)
        return []

    def _without(self, target: ast.expr) -> list[ast.stmt]:
        if isinstance(target, ast.Name):
            return ast.parse(f"{target.id} = None; del {target.id}").body
        is_local = isinstance(target, ast.Subscript) and ast.unparse(target.value) in self._local
        return ast.parse(f"del {ast.unparse(target)}").body if is_local else []

    def _test(self, test: ast.expr) -> ast.expr:
        """A condition: one on data has the arithmetic of data, any other is plain Python."""
        if self._is_data(test):
            return self.visit(test)  # type: ignore[no-any-return]
        return test

    def _is_data(self, test: ast.expr) -> bool:
        """Whether a condition reads data or numbers that are no integers."""
        return any(
            isinstance(node, ast.Subscript)
            or (isinstance(node, ast.Name) and (node.id in self._types or isinstance(self._names.get(node.id), float)))
            or (isinstance(node, ast.Constant) and isinstance(node.value, float))
            for node in ast.walk(test)
        )

    def _stored(self, target: ast.expr, value: ast.expr) -> ast.expr:
        """The value that an assignment stores, converted unless the array does it: for local scalars and integers."""
        if isinstance(target, ast.Name):
            return self._call(self._types[target.id], [value])
        assert isinstance(target, ast.Subscript), "the front end takes names and elements alone"
        dtype = self._types[ast.unparse(target.value)]
        return self._call(dtype, [value]) if self._wraps else value

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST | list[ast.stmt]:
        assert isinstance(node.target, ast.Name), "the front end takes annotations on names alone"
        dtype = self._types.get(node.target.id)
        if dtype is None:
            return ast.Pass()
        if node.value is not None:
            return self._assigned(node.target, self.visit(node.value))
        shape = _shape(node.annotation)
        if shape is None:
            return ast.Pass()
        return ast.Assign([node.target], self._call("local", [shape, ast.Constant(dtype)]))

    def visit_Call(self, node: ast.Call) -> ast.AST:
        arguments = [self.visit(arg) for arg in node.args]
        name = node.func.attr if isinstance(node.func, ast.Attribute) else ast.unparse(node.func)
        return self._power(arguments) if CALLS[name] == "pow" else self._call(CALLS[name], arguments)

    def _power(self, arguments: list[ast.expr]) -> ast.Call:
        """A power; a square is a product."""
        match arguments:
            case [base, ast.Constant(value=2)]:
                return self._call("square", [base])
        return self._call("pow", arguments)

    def _call(self, name: str, arguments: list[ast.expr]) -> ast.Call:
        return ast.Call(ast.Name(PREFIX + name, ast.Load()), arguments, [])


def _loaded(target: ast.expr) -> ast.expr:
    """What is assigned, as a value."""
    place = copy.deepcopy(target)
    place.ctx = ast.Load()  # type: ignore[attr-defined]
    return place


class _Whole(ast.NodeTransformer):
    """Evaluates all parts of a condition, also where the first ones decide it."""

    @staticmethod
    def of(tests: Sequence[ast.expr]) -> ast.expr:
        """Whether all of several conditions hold."""
        return ast.Call(ast.Name(PREFIX + "all", ast.Load()), [ast.Tuple([*tests], ast.Load())], [])

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        function = "all" if isinstance(node.op, ast.And) else "any"
        parts = ast.Tuple([self.visit(part) for part in node.values], ast.Load())
        return ast.Call(ast.Name(PREFIX + function, ast.Load()), [parts], [])


def _left_out_if_empty(steps: list[ast.stmt], lost: list[ast.stmt]) -> ast.stmt:
    """Steps that are left out if what they read does not exist; then what they assign of locals is `lost`."""
    missing = ast.Tuple([ast.Name(error.__name__, ast.Load()) for error in (IndexError, UnboundLocalError)], ast.Load())
    return ast.Try(steps, [ast.ExceptHandler(missing, None, lost)], [], [])


class _LookedUp(ast.NodeTransformer):
    """Makes integers of the elements in a subscript."""

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        inner = ast.Subscript(node.value, self.visit(node.slice), ast.Load())
        return ast.Call(ast.Name(PREFIX + "index", ast.Load()), [inner], [])


def _shape(annotation: ast.expr) -> ast.expr | None:
    """The shape in `f32[M, K]` as a tuple; None for a scalar's type."""
    match annotation:
        case ast.Constant(value=str(text)):
            return _shape(ast.parse(text, mode="eval").body)
        case ast.Subscript(slice=ast.Tuple() as shape):
            return shape
        case ast.Subscript(slice=extent):
            return ast.Tuple([extent], ast.Load())
    return None
