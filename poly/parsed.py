"""`poly.parse`: a nest from Python text, such as code that a program generates."""

from __future__ import annotations
import __future__

import ast
import linecache
import re
import textwrap
from collections.abc import Mapping
from types import CodeType, FunctionType
from typing import Any

from codegen.system.cache import digest
from microkernels.dtypes import ANNOTATED
from microkernels.errors import PolyError, did_you_mean, plain, shown
from poly.checks import checked_flag, checked_text
from poly.errors import SpecError
from poly.function import Function, nest

FORM = "'def scale(x: f32[N]): …'"


def parse(
    text: str, names: Mapping[str, Any] | None = None, *, function: str | None = None, reassociate: bool = True
) -> Function:
    """Read a nest from Python text: a function of loops, or a module that defines one.

        double = poly.parse('''
            def double(x: f32[N]):
                for i in range(N):
                    x[i] = 2 * x[i]
            ''', {"N": poly.sizes("N")})

    The text is run as a module is when it is imported, so only pass text that you trust. It knows poly's scalar types
    and `names`: sizes, numbers, functions and nests that it may call. What else it needs it imports or defines itself.

    Args:
        text: the text; it may be indented as a whole.
        names: values of names in the text.
        function: the name of the function, if the text has several. It may be left out if one is a nest already, by
            `@poly.nest`, or if no one is and one has loops.
        reassociate: as for `poly.nest`; a function that is a nest already keeps its own.

    Raises:
        SpecError: no valid text, an error when it runs, no such function, or something that poly can't read; the
            message shows the line, and how to write it instead.
    """
    source = textwrap.dedent(checked_text("text", text, FORM, SpecError)).strip("\n") + "\n"
    checked_flag("reassociate", reassociate)
    if function is not None:
        checked_text("function", function, "'scale'", SpecError)
    if re.search("[\\ud800-\\udfff]", source):
        raise SpecError("the text has characters that no file can hold (halves of UTF-16 pairs). Leave them out.")
    module: dict[str, Any] = {**ANNOTATED, **_checked_names(names), "__name__": "parsed"}
    file = f"<poly.parse {digest(source)[:8]}>"
    code = _compiled(source, file)
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)  # where `inspect` finds it
    _run(code, module, file)
    found = _chosen(function, module, file, source)
    return found if isinstance(found, Function) else nest(found, reassociate=reassociate)


def _checked_names(names: Any) -> dict[str, Any]:
    if names is None:
        return {}
    if not isinstance(names, Mapping) or not all(isinstance(name, str) for name in names):
        raise SpecError(f"names must be a dictionary such as {{'N': poly.sizes('N')}}, not {shown(names)}.")
    return dict(names)


def _compiled(source: str, file: str) -> CodeType:
    """The text as code whose annotations are not evaluated: poly reads them itself, and says what is wrong."""
    try:
        flags = __future__.annotations.compiler_flag
        code: CodeType = compile(source, file, "exec", flags=flags, dont_inherit=True)
    except SyntaxError as error:
        line = (error.text or "").strip()
        shows = f"\n    {plain(line)}" if line else ""
        raise SpecError(f"{file}:{error.lineno or 1}: this is no valid Python ({error.msg}).{shows}") from None
    except (ValueError, RecursionError, MemoryError) as error:
        raise SpecError(f"{file}: this is no valid Python ({error or 'it is nested too deeply'}).") from None
    return code


def _run(code: CodeType, module: dict[str, Any], file: str) -> None:
    try:
        exec(code, module)
    except PolyError:
        raise
    except (Exception, SystemExit) as error:  # the text may raise anything
        line = _line_of(error, file)
        remedy = "Define the name in the text, or pass its value: names={…}." if isinstance(error, NameError) else ""
        why = f"the text can't be run ({type(error).__name__}: {error})."
        raise SpecError(f"{file}:{line}: {why} {remedy}".rstrip()) from error


def _line_of(error: BaseException, file: str) -> int:
    """The line of the text that was running when the error was raised."""
    line, trace = 1, error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == file:
            line = trace.tb_lineno
        trace = trace.tb_next
    return line


def _chosen(name: str | None, module: Mapping[str, Any], file: str, source: str) -> Function | FunctionType:
    """The nest or function of that name, or the only one that can be meant."""
    nests = {key: value for key, value in module.items() if isinstance(value, Function) and value.file == file}
    functions = {key: value for key, value in module.items() if _is_of(value, file)}
    every: dict[str, Function | FunctionType] = {**functions, **nests}
    listed = ", ".join(every) or "none"
    if name is not None:
        if name in every:
            return every[name]
        hint = did_you_mean(name, every)
        raise SpecError(f"the text defines no function {plain(name)}.{hint} Its functions: {listed}.")
    looping = {node.name for node in ast.parse(source).body if isinstance(node, ast.FunctionDef) and _has_loops(node)}
    meant = list(nests.values()) or [functions[key] for key in functions if key in looping]
    if len(meant) == 1:
        return meant[0]
    if len(every) == 1:
        return next(iter(every.values()))
    problem = "defines no function with loops" if not meant else "defines several that have loops"
    remedy = f"Write the loops as a function with `def`, {FORM}." if not meant else "Name one: function='…'."
    raise SpecError(f"the text {problem}. Its functions: {listed}. {remedy}")


def _is_of(value: object, file: str) -> bool:
    return isinstance(value, FunctionType) and value.__code__.co_filename == file


def _has_loops(function: ast.FunctionDef) -> bool:
    return any(isinstance(node, ast.For) for node in ast.walk(function))
