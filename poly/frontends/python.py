"""From a Python function of plain loops to a `Nest`."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Mapping
from types import FunctionType
from typing import Any

from codegen.ir.expr import looked_up
from codegen.ir.integer import Affine, Linear
from microkernels.dtypes import ComplexType, DType
from microkernels.errors import shown
from poly.checks import checked_flag
from poly.errors import SpecError
from poly.frontends import names
from poly.frontends.complex_numbers import in_parts
from poly.frontends.inlining import inlined
from poly.frontends.integers import with_values
from poly.frontends.locals import Locals
from poly.frontends.rewriting import DEEPEST, too_deep
from poly.frontends.scope import Scope
from poly.frontends.source import Source
from poly.frontends.targets import Targets
from poly.frontends.walker import Walker
from poly.ir.budget import QUESTION, limited
from poly.ir.nest import Array, Nest, Statement

READ = QUESTION
"""Operations that isl may use for the domains of a nest's statements."""


def parse(function: Callable[..., Any], reassociate: bool = True) -> Nest:
    """The loops of a function as a nest.

    Its arguments are annotated with `f32[M, K]` (arrays) or `f32` (scalars by value). The body consists of `for` over
    `range`, `if`, and assignments, with bounds, conditions and indices that are affine in sizes and outer indices.
    `reassociate` says whether a reduction's updates of one element may be reordered.

    Raises:
        SpecError: anything else in the function; the message shows where, and how to write it instead.
        TooCostly: the conditions of its statements have too many parts.
    """
    if not isinstance(function, FunctionType) or function.__name__ == "<lambda>":
        raise SpecError(f"{shown(function)} can't hold loops. Write them as a function with `def`.")
    return parse_text(Source.of(function), names.environment(function), reassociate)


def parse_text(source: Source, environment: Mapping[str, Any], reassociate: bool = True) -> Nest:
    """The loops of a function given as text; `environment` has the values of its free names.

    Raises:
        SpecError, TooCostly: as for `parse`.
    """
    function = _definition(source)
    whole = inlined(function, source, environment, reassociate)
    made, environment = whole or (function, environment)
    if too_deep(made) is None:
        made, environment = in_parts(made, source, environment)
    made = made if too_deep(made) is not None else with_values(made, source, environment) or made
    text = source.text if made is function else ast.unparse(made) + "\n"
    return nest_of(made, source, environment, reassociate, text)


@limited(READ)
def nest_of(
    function: ast.FunctionDef, source: Source, environment: Mapping[str, Any], reassociate: bool, text: str
) -> Nest:
    """The loops of a function whose places are in `source`; `text` has them as Python.

    Raises:
        SpecError, TooCostly: as for `parse`.
    """
    checked_flag("reassociate", reassociate)
    deep = too_deep(function)
    if deep is not None:
        why = f"this is nested more than {DEEPEST} levels deep"
        raise source.error(deep, why, "Write it as several statements, such as `t = ...` and `t += ...`.")
    constants = names.constants(function, source, environment)
    arguments = _arguments(function, source, environment)
    sizes = _sizes(arguments, constants)
    _check_sizes(sizes, arguments, function, source)
    locals_ = Locals(sizes, arguments)
    scope = Scope(source, arguments, constants, names.functions(function, environment), locals_.current)
    walker = Walker(scope, Targets(function, locals_, environment), sizes, _prefix(arguments))
    tree = walker.walk(function)
    _check_looked_up(function, walker.statements, source)
    return Nest(
        name=function.name,
        sizes=sizes,
        arrays=(*arguments.values(), *locals_.arrays),
        statements=tuple(walker.statements),
        tree=tree,
        context=walker.context,
        source=text,
        file=source.file,
        names=tuple(constants.items()),
        reassociate=reassociate,
    )


def _check_looked_up(function: ast.FunctionDef, statements: Iterable[Statement], source: Source) -> None:
    """Refuse a nest that writes an array whose elements are looked up as indices: they are checked before it runs."""
    given = {load.array: load for s in statements for access in s.reads for load in looked_up(access)}
    written = given.keys() & {s.target.array for s in statements}
    for node in ast.walk(function):
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store) and ast.unparse(node.value) in written:
            why = f"`{ast.unparse(node.value)}` is written, and its elements are looked up as indices"
            raise source.error(node, why, "Compute the indices in a nest of its own, and call that one first.")


def _definition(source: Source) -> ast.FunctionDef:
    try:
        module = ast.parse(source.text)
    except (SyntaxError, ValueError) as error:
        raise _unreadable(source, error.msg if isinstance(error, SyntaxError) else str(error)) from None
    except (RecursionError, MemoryError):
        raise _unreadable(source, "an expression is nested too deeply") from None
    if not module.body or not isinstance(module.body[0], ast.FunctionDef):
        raise source.error(module, "this is no plain function", "Write the loops as a function with `def`.")
    function = module.body[0]
    others = [*function.args.posonlyargs, *function.args.kwonlyargs, function.args.vararg, function.args.kwarg]
    for arg in others:
        if arg is not None:
            raise source.error(
                arg, f"`{arg.arg}` is not a plain argument", "Name each array and scalar: `A: f32[M, K]`."
            )
    for default in function.args.defaults:
        raise source.error(default, "arguments have no defaults in a nest", "Pass the value with each call.")
    return function


def _unreadable(source: Source, why: str) -> SpecError:
    return SpecError(
        f"{source.file}:{source.first}: the text of this function can't be read alone ({why}).\n"
        "Write the loops as a function with `def`, at the start of a line."
    )


def _arguments(function: ast.FunctionDef, source: Source, environment: Mapping[str, Any]) -> dict[str, Array]:
    arguments: dict[str, Array] = {}
    for arg in function.args.args:
        names.check(arg.arg, arg, source)
        if arg.annotation is None:
            remedy = f"Annotate it: `{arg.arg}: f32[M, N]` for an array, `{arg.arg}: f32` for a scalar."
            raise source.error(arg, f"`{arg.arg}` has no type", remedy)
        kind = names.annotation(arg.annotation, source, environment)
        dtype, shape = (kind, ()) if isinstance(kind, DType) else (kind.dtype, kind.shape)
        extents = tuple(Affine.of(extent) for extent in shape)
        if isinstance(dtype, ComplexType):
            arguments[arg.arg] = Array(arg.arg, dtype.part, (*extents, Affine.of(2)), is_complex=True)
        else:
            arguments[arg.arg] = Array(arg.arg, dtype, extents, "scalar" if isinstance(kind, DType) else "array")
    return arguments


def _sizes(arguments: Mapping[str, Array], constants: Mapping[str, Affine | float]) -> tuple[str, ...]:
    """Every size, in order of appearance, first in the shapes and then in the body."""
    extents = [extent for array in arguments.values() for extent in array.shape]
    extents += [value for value in constants.values() if isinstance(value, Linear)]
    return tuple(dict.fromkeys(name for extent in extents for name, _ in extent.terms))


def _check_sizes(
    sizes: tuple[str, ...], arguments: Mapping[str, Array], function: ast.FunctionDef, source: Source
) -> None:
    for size in sizes:
        names.check(size, function, source)
        if size in arguments:
            arg = next(arg for arg in function.args.args if arg.arg == size)
            raise source.error(arg, f"`{size}` is both a size and an argument", "Rename one of them.")


def _prefix(arguments: Mapping[str, Array]) -> str:
    """The prefix of statement names: `S`, unless an argument is called `S0` or the like."""
    prefix = "S"
    while any(name.startswith(prefix) and name[len(prefix) :].isdecimal() for name in arguments):
        prefix += "_"
    return prefix
