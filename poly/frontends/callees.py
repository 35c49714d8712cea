"""The functions and nests that a nest calls: their text, the values of their names, and what a call gives them."""

from __future__ import annotations

import ast
import inspect
import math
from collections.abc import Mapping
from dataclasses import dataclass
from inspect import Parameter, Signature
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

from microkernels.dtypes import ANNOTATED
from poly.errors import SpecError
from poly.frontends import names
from poly.frontends.rewriting import too_deep
from poly.frontends.source import Source
from poly.ir.nest import Nest

Given = Mapping[str, ast.expr]
"""The expression that each parameter stands for."""


@dataclass(frozen=True)
class Callee:
    """A function whose body replaces its calls, with the values of its free names; `nest` if it is one."""

    definition: ast.FunctionDef
    environment: Mapping[str, Any]
    signature: Signature
    of: FunctionType | Nest

    @property
    def name(self) -> str:
        return self.definition.name

    @property
    def nest(self) -> Nest | None:
        return self.of if isinstance(self.of, Nest) else None

    @property
    def assigned(self) -> set[str]:
        """The names that the body assigns, which include the indices of its loops."""
        return {node.id for node in self._names() if not isinstance(node.ctx, ast.Load)}

    @property
    def used(self) -> set[str]:
        """The names in the body."""
        return {node.id for node in self._names()}

    def _names(self) -> list[ast.Name]:
        return names_in(self.definition.body)

    @property
    def parameters(self) -> set[str]:
        """The names that stand for what is given; a nest's sizes follow from that."""
        return set(self.signature.parameters).difference(self.nest.sizes if self.nest else ())


def names_in(body: list[ast.stmt]) -> list[ast.Name]:
    """The names in statements, also in annotations that are strings."""
    nodes = [node for statement in body for node in ast.walk(statement)]
    texts = [node.annotation for node in nodes if isinstance(node, ast.AnnAssign)]
    kinds = [ast.parse(t.value, mode="eval") for t in texts if isinstance(t, ast.Constant) and isinstance(t.value, str)]
    return [node for node in (*nodes, *(n for kind in kinds for n in ast.walk(kind))) if isinstance(node, ast.Name)]


def called(func: ast.expr, environment: Mapping[str, Any]) -> FunctionType | Nest | None:
    """The nest, or function of the user's, that a call names; None for all other functions."""
    match func:
        case ast.Name(id=name):
            value = environment.get(name)
        case ast.Attribute(value=ast.Name(id=holder), attr=name) if isinstance(environment.get(holder), ModuleType):
            value = getattr(environment[holder], name, None)
        case _:
            return None
    known = (getattr(value, "__module__", None) or "").partition(".")[0] in ("math", "numpy", "builtins")
    return value if isinstance(value, Nest) or (isinstance(value, FunctionType) and not known) else None


def callee(of: FunctionType | Nest, call: ast.Call, source: Source) -> Callee:
    """What a call runs.

    Raises:
        SpecError: its text can't be read.
    """
    if isinstance(of, Nest):
        definition = _parsed(of.source, call, source)
        sizes = [Parameter(size, Parameter.KEYWORD_ONLY, default=None) for size in of.sizes]
        plain = [Parameter(array.name, Parameter.POSITIONAL_OR_KEYWORD) for array in of.arguments]
        known = {**ANNOTATED, **_modules(definition), **dict(of.names)}
        return Callee(definition, known, Signature([*plain, *sizes]), of)
    if hasattr(of, "__wrapped__"):
        why = f"`{of.__name__}` is decorated: it may do something else than its text says"
        raise source.error(call, why, "Call a plain function.")
    try:
        text = Source.of(of).text
    except SpecError:
        text = ""
    return Callee(_parsed(text, call, source), names.environment(of), inspect.signature(of), of)


def given(call: ast.Call, to: Callee, source: Source) -> tuple[Given, Mapping[str, Any]]:
    """The expressions that a call gives to parameters, and the values of the others, which have defaults.

    Raises:
        SpecError: the arguments don't fit.
    """
    keywords = {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg is not None}
    starred = any(isinstance(arg, ast.Starred) for arg in call.args) or len(keywords) < len(call.keywords)
    parameters = to.signature.parameters.values()
    several = any(p.kind in (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD) for p in parameters)
    why = "there is a `*`" if starred or several else ""
    try:
        bound = to.signature.bind(*call.args, **keywords)
    except TypeError as error:
        why = why or str(error)
    if why:
        shown = ", ".join(to.signature.parameters)
        problem = f"the arguments don't fit `{to.name}({shown})`: {why}"
        raise source.error(call, problem, "Give one value for each parameter.")
    defaults = {p.name: p.default for p in parameters if p.name not in bound.arguments}
    return bound.arguments, {} if to.nest else defaults


def _parsed(text: str, call: ast.Call, source: Source) -> ast.FunctionDef:
    try:
        found = ast.parse(text).body[0]
    except (SyntaxError, ValueError, RecursionError, MemoryError, IndexError):
        found = None
    if not isinstance(found, ast.FunctionDef):
        why = f"the text of `{ast.unparse(call.func)}` can't be read"
        raise source.error(call, why, "Write it with `def`, at the start of a line.")
    if too_deep(found) is not None:
        raise source.error(call, f"`{found.name}` is nested too deeply", "Write it as several statements.")
    return found


def _modules(definition: ast.FunctionDef) -> dict[str, ModuleType]:
    """The modules whose functions a nest calls, such as `np`: any that has these functions."""
    found: dict[str, set[str]] = {}
    for node in ast.walk(definition):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            found.setdefault(node.value.id, set()).add(node.attr)
    return {name: math if all(hasattr(math, each) for each in used) else np for name, used in found.items()}
