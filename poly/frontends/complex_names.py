"""Which names and expressions of a function are complex numbers, and what the functions of them are called."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Complex, Real
from types import ModuleType
from typing import Any

import numpy as np

from codegen.names import another
from microkernels.dtypes import COMPLEX, ArrayType, ComplexType, DType
from poly.frontends import names
from poly.frontends.complex_values import Parts
from poly.frontends.source import Source

FUNCTIONS = {
    "conj": "conj", "conjugate": "conj", "real": "real", "imag": "imag", "abs": "abs", "absolute": "abs", "exp": "exp",
    "complex": "complex",
}  # fmt: skip
"""The functions of complex numbers, by their names in Python and NumPy."""
MODULES = ("builtins", "cmath", "math", "numpy")


@dataclass(frozen=True)
class ComplexScalar:
    """A complex scalar as two names."""

    real: str
    imag: str

    def parts(self, ctx: ast.expr_context) -> Parts:
        return Parts(ast.Name(self.real, ctx), ast.Name(self.imag, ctx))


class ComplexNames:
    """The names of one function; `environment` grows with those of types and parts."""

    def __init__(self, function: ast.FunctionDef, source: Source, environment: Mapping[str, Any]) -> None:
        self.environment = dict(environment)
        self.source = source
        self.ranks: dict[str, int] = {}
        """The ranks of the complex arrays, and of the arguments that are complex numbers."""
        self._arguments = {arg.arg for arg in function.args.args}
        used = [node for node in ast.walk(function) if isinstance(node, ast.Name)]
        self.own = self._arguments | {node.id for node in used if not isinstance(node.ctx, ast.Load)}
        elements = (n for n in ast.walk(function) if isinstance(n, ast.Subscript) and isinstance(n.ctx, ast.Store))
        self._stored = {ast.unparse(node.value) for node in elements}
        self._taken = {*self.own, *(node.id for node in used), *environment}
        self.scalars: dict[str, ComplexScalar] = {}
        """The local scalars that are complex."""
        self.types: set[DType] = set()
        """The types of the parts."""
        self._declare(function)

    def _declare(self, function: ast.FunctionDef) -> None:
        """Find the names that stand for complex numbers, by their types or by what they are assigned."""
        for arg in function.args.args:
            if arg.annotation is not None:
                self._declare_type(arg.arg, arg.annotation)
        assigned: list[tuple[str, ast.expr]] = []
        declared = set[str]()
        for node in ast.walk(function):
            match node:
                case ast.AnnAssign(target=ast.Name(id=name), annotation=annotation):
                    declared.add(name)
                    self._declare_type(name, annotation)
                case ast.Assign(targets=targets, value=value):
                    assigned += [(target.id, value) for target in targets if isinstance(target, ast.Name)]
                case ast.AugAssign(target=ast.Name(id=name), value=value):
                    assigned.append((name, value))
        own = [(name, value) for name, value in assigned if name not in declared | self._arguments]
        while new := {n for n, value in own if n not in self.scalars and self.is_complex(value)}:
            self.scalars |= {name: self._scalar(name) for name in sorted(new)}

    def _declare_type(self, name: str, annotation: ast.expr) -> None:
        kind = names.annotation(annotation, self.source, self.environment)
        dtype = kind.dtype if isinstance(kind, ArrayType) else kind
        if not isinstance(dtype, ComplexType):
            return
        self.types.add(dtype.part)
        if isinstance(kind, ArrayType) or name in self._arguments:
            self.ranks[name] = len(kind.shape) if isinstance(kind, ArrayType) else 0
        elif name not in self.scalars:
            self.scalars[name] = self._scalar(name)

    def _scalar(self, name: str) -> ComplexScalar:
        return ComplexScalar(self.fresh(f"{name}_re"), self.fresh(f"{name}_im"))

    def fresh(self, name: str) -> str:
        found = another(name, frozenset(self._taken))
        self._taken.add(found)
        return found

    def value_of(self, name: str) -> Any:
        """What a free name stands for; None for others."""
        return None if name in self.own else self.environment.get(name)

    def passed_as_one(self, target: ast.expr) -> set[str]:
        """The complex arguments that a call may pass as the array of a target: those of its rank that stay."""
        array = ast.unparse(target.value) if isinstance(target, ast.Subscript) else ""
        if array not in self._arguments:
            return set()
        return {n for n in self._arguments & self.ranks.keys() - self._stored if self.ranks[n] == self.ranks[array]}

    def is_complex(self, node: ast.expr) -> bool:
        """Whether an expression is a complex number."""
        match node:
            case ast.Constant(value=complex()):
                return True
            case ast.Name(id=name):
                return name in self.scalars or self.ranks.get(name) == 0 or _is_number(self.value_of(name))
            case ast.Subscript(value=ast.Name(id=name)):
                return self.ranks.get(name) == len(indices(node))
            case ast.UnaryOp(operand=operand):
                return self.is_complex(operand)
            case ast.BinOp(left=left, right=right) | ast.IfExp(body=left, orelse=right):
                return self.is_complex(left) or self.is_complex(right)
            case ast.Call(func=func, args=args):
                called = self.function(func)
                if isinstance(func, ast.Attribute) and called == "conj" and not args:
                    return self.is_complex(func.value)
                if called in ("conj", "exp"):
                    return any(map(self.is_complex, args))
                return isinstance(called, ComplexType) or called == "complex"
        return False

    def mentions(self, node: ast.AST) -> bool:
        """Whether there are complex numbers in it, or functions of them."""

        def is_one(part: ast.AST) -> bool:
            match part:
                case ast.Name(id=name) if name in self.ranks:
                    return True
                case ast.Attribute(value=value, attr="real" | "imag"):
                    return not self.is_module(value)
                case ast.Call(func=func):
                    return self.function(func) in ("conj", "complex", "real", "imag") or self.is_complex(part)
                case ast.Constant() | ast.Name():
                    return self.is_complex(part)
            return False

        return any(map(is_one, ast.walk(node)))

    def is_module(self, node: ast.expr) -> bool:
        return isinstance(node, ast.Name) and isinstance(self.value_of(node.id), ModuleType)

    def function(self, func: ast.expr) -> str | ComplexType | None:
        """The function of complex numbers, or the type, that a call names; a method counts as its function."""
        match func:
            case ast.Name(id=name):
                value = self.value_of(name)
            case ast.Attribute(value=base, attr=name) if self.is_module(base):
                value = getattr(self.value_of(ast.unparse(base)), name, None)
            case ast.Attribute(attr="conj" | "conjugate"):
                return "conj"
            case _:
                return None
        if isinstance(value, ComplexType):
            return value
        for dtype in COMPLEX.values():
            if value is getattr(np, dtype.numpy_name):
                return dtype
        origin = getattr(value, "__module__", None) or type(value).__module__
        return FUNCTIONS.get(name) if value is None or origin.partition(".")[0] in MODULES else None

    def type_name(self, dtype: DType) -> ast.Name:
        """A name for a type."""
        for name in (dtype.name, self.fresh(dtype.name)):
            if name not in self.own and self.environment.setdefault(name, dtype) is dtype:
                break
        return ast.Name(name, ast.Load())

    def type_of_parts(self, annotation: ast.expr | None = None) -> ast.Name | None:
        """The type of the parts of a scalar that is declared so, or else of all; None if these have several."""
        kind = None if annotation is None else names.annotation(annotation, self.source, self.environment)
        if isinstance(kind, ComplexType):
            return self.type_name(kind.part)
        return self.type_name(next(iter(self.types))) if len(self.types) == 1 else None


def _is_number(value: Any) -> bool:
    """Whether it is a complex number of Python or NumPy that is not real."""
    return isinstance(value, Complex) and not isinstance(value, Real)


def indices(node: ast.Subscript) -> list[ast.expr]:
    """The indices of an element."""
    return list(node.slice.elts) if isinstance(node.slice, ast.Tuple) else [node.slice]
