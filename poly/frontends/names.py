"""The meaning of a function's free names, and the names that a nest may use."""

from __future__ import annotations

import ast
import builtins
import keyword
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from numbers import Integral, Real
from types import FrameType, ModuleType
from typing import Any

from codegen.ir.integer import Affine, Linear
from codegen.ir.promotion import LARGEST_INDEX
from codegen.names import KEYWORDS
from microkernels.dtypes import ArrayType, DType
from microkernels.errors import shown
from poly.frontends.source import Source
from poly.ir.reference import CALLS

CALLED = frozenset(("abs", "exp", "max", "min", "sqrt", "tanh"))
"""Functions whose names nothing else has; a local may be called `log`."""
_WORDS = "and or not exists implies mod floor ceil floord ceild min max rat true false infty infinity nan"
SET_WORDS = frozenset(_WORDS.split())
"""Reserved words of isl's notation for sets, in which sizes, indices and arrays appear; in any case of letters."""


def environment(function: Callable[..., Any]) -> dict[str, Any]:
    """The names visible in a function: builtins, globals, locals of the running function that defines it, its closure.

    The defining function's locals matter for annotations that are strings: Python keeps no cells for names in them.
    """
    names = dict(vars(builtins))
    names.update(function.__globals__)
    names.update(_defining_locals(function))
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            names[name] = cell.cell_contents
        except ValueError:
            continue  # not assigned yet, such as the function's own name
    return names


def _defining_locals(function: Callable[..., Any]) -> Mapping[str, Any]:
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if function.__code__ in frame.f_code.co_consts:
            return frame.f_locals
        frame = frame.f_back
    return {}


def constants(function: ast.FunctionDef, source: Source, names: Mapping[str, Any]) -> dict[str, Affine | float]:
    """The sizes and numbers among the free names of a function's body.

    Raises:
        SpecError: a name stands for a product of sizes.
    """
    own = {arg.arg for arg in function.args.args}
    own |= {node.id for node in _names(function) if not isinstance(node.ctx, ast.Load)}
    found: dict[str, Affine | float] = {}
    for node in _names(function):
        value = names.get(node.id)
        if node.id in own or isinstance(value, bool):
            continue
        if isinstance(value, Linear) and not value.is_affine:
            why = f"`{node.id}` stands for {value}, which is not affine: it multiplies two sizes"
            raise source.error(node, why, "Use sums of sizes, each times an integer.")
        if isinstance(value, Linear | Integral):
            found[node.id] = value if isinstance(value, Linear) else Affine.of(int(value))
        elif isinstance(value, Real):
            found[node.id] = float(value)
    return found | _of_modules(function, names) | _infinities(function, names)


def _infinities(function: ast.FunctionDef, names: Mapping[str, Any]) -> dict[str, float]:
    """The calls of Python's float for numbers without a literal, as written: `{"float('inf')": inf}`."""
    found: dict[str, float] = {}
    for node in ast.walk(function):
        match node:
            case ast.Call(func=ast.Name(id="float"), args=[ast.Constant(value=str(text))], keywords=[]):
                with suppress(ValueError):
                    found |= {ast.unparse(node): float(text)} if names.get("float", float) is float else {}
    return found


def _of_modules(function: ast.FunctionDef, names: Mapping[str, Any]) -> dict[str, float]:
    """The numbers of math and NumPy in a body, as written: `{"math.pi": 3.14…}`."""
    found: dict[str, float] = {}
    for node in ast.walk(function):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            module = names.get(node.value.id)
            if isinstance(module, ModuleType) and module.__name__ in ("math", "numpy"):
                value = getattr(module, node.attr, None)
                if isinstance(value, float):
                    found[ast.unparse(node)] = value
    return found


def functions(function: ast.FunctionDef, names: Mapping[str, Any]) -> dict[str, str]:
    """The calls in a body, as written, that stand for one of FUNCTIONS or a type: `{"np.exp": "exp", "f64": "f64"}`.

    The functions may come from Python, math or NumPy; an undefined bare name stands for the function too. Types are
    those of poly and NumPy.
    """
    called = {ast.unparse(node.func): node.func for node in ast.walk(function) if isinstance(node, ast.Call)}
    return {text: name for text, node in called.items() if (name := function_of(node, names)) is not None}


def function_of(node: ast.expr, names: Mapping[str, Any]) -> str | None:
    """The one of FUNCTIONS, or the type, that a name or attribute stands for, if it does."""
    match node:
        case ast.Name(id=name):
            value = names.get(name)
        case ast.Attribute(value=ast.Name(id=module), attr=name):
            value = getattr(names.get(module), name, node)
        case _:
            return None
    if isinstance(value, DType):
        return value.name if value.name == name else None
    origin = getattr(value, "__module__", None) or type(value).__module__
    known = value is None or origin.partition(".")[0] in ("builtins", "math", "numpy")
    return CALLS.get(name) if known else None


def _names(function: ast.FunctionDef) -> Iterator[ast.Name]:
    for statement in function.body:
        yield from (node for node in ast.walk(statement) if isinstance(node, ast.Name))


def check(name: str, node: ast.AST, source: Source) -> None:
    """Refuse a name that can't be used in C or isl.

    Raises:
        SpecError: it is not an ASCII identifier, or it is a reserved word of C, Python or isl, or a known function.
    """
    if not name.isascii() or not name.isidentifier():
        raise source.error(node, f"`{name}` is not an ASCII identifier", "Use letters, digits and underscores.")
    if name in KEYWORDS or keyword.iskeyword(name):
        language = "C" if name in KEYWORDS else "Python"
        raise source.error(node, f"`{name}` is a keyword of {language}", f"Use another name, such as `{name}_`.")
    if name in CALLED or name.lower() in SET_WORDS:
        raise source.error(node, f"`{name}` is reserved in poly", f"Use another name, such as `{name}_`.")


def annotation(node: ast.expr, source: Source, environment: Mapping[str, Any]) -> DType | ArrayType:
    """The type that an annotation stands for: `f32`, or `f32[M, K]` with a shape of sizes and integers.

    Raises:
        SpecError: it is neither, or an extent is negative, not affine or too large.
    """
    text = node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ast.unparse(node)
    remedy = "Write `f32[M, K]` with integers and sizes made by poly.sizes, or `f32` for a scalar."
    try:
        value = eval(text, {"__builtins__": {}}, dict(environment))
    except Exception as error:  # the user's expression may raise anything
        raise source.error(node, f"`{text}` is no type ({error})", remedy) from None
    if isinstance(value, DType):
        return value
    if not isinstance(value, ArrayType):
        raise source.error(node, f"`{text}` is no type of poly", remedy)
    for extent in value.shape:
        if isinstance(extent, bool) or not isinstance(extent, Integral | Linear):
            raise source.error(node, f"`{extent!r}` in the shape is neither a size nor an integer", remedy)
        if isinstance(extent, Integral) and int(extent) < 0:
            raise source.error(node, f"the extent {extent} is negative", remedy)
        if isinstance(extent, Linear) and not extent.is_affine:
            why = f"`{extent}` in the shape is not affine: it multiplies two sizes"
            raise source.error(node, why, "Give the array one more dimension instead, `f32[M, N]` for `f32[M*N]`.")
        largest = extent.largest if isinstance(extent, Linear) else int(extent)
        if largest > LARGEST_INDEX:
            why = f"the extent {shown(extent)} has the integer {shown(largest)} in it"
            raise source.error(node, why, "Extents and their factors go up to 2**48.")
    return value
