"""The model: a loop nest as integer sets. Front ends make it, everything else reads it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import islpy as isl

from codegen.affine import Affine
from codegen.expr import Expr, Load, loads
from microkernels.dtypes import DType
from poly.tree import Node

Kind = Literal["array", "scalar", "local"]
Op = Literal["=", "+", "*", "min", "max"]


@dataclass(frozen=True)
class Array:
    """An argument (`array`, or `scalar` passed by value) or a `local` of the nest."""

    name: str
    dtype: DType
    shape: tuple[Affine, ...]
    kind: Kind = "array"


@dataclass(frozen=True)
class Statement:
    """`target op= expr` for each point of `domain`.

    `op` is "=" or a reduction's ("-=" is "+" of the negative). `iterators` name the domain's dimensions, outermost first.
    A local scalar is an array over the loops around its definition, so it carries no false dependence.
    """

    name: str
    iterators: tuple[str, ...]
    domain: isl.Set
    target: Load
    op: Op
    expr: Expr
    line: int = 0

    @property
    def reads(self) -> tuple[Load, ...]:
        """What it reads: for a reduction the target too."""
        return (() if self.op == "=" else (self.target,)) + loads(self.expr)

    def relation(self, access: Load) -> isl.Map:
        """The access relation `{ S[i, k] -> A[i, k] : domain }`."""
        sizes = ", ".join(self.domain.get_var_names(isl.dim_type.param))
        inputs = ", ".join(self.iterators)
        outputs = ", ".join(str(index) for index in access.indices)
        text = f"[{sizes}] -> {{ {self.name}[{inputs}] -> {access.array}[{outputs}] }}"
        return isl.Map(text).intersect_domain(self.domain)


@dataclass(frozen=True)
class Nest:
    """A loop nest.

    `sizes` are its parameters that are still symbolic; `fixed` those that were given a value. Every set's parameters are exactly
    `sizes`, in that order, and `context` holds what is known of them (each at least 0). `tree` is the order as written.
    `source` is the text of the loops as a Python function of the arrays and, by keyword, the sizes.
    """

    name: str
    sizes: tuple[str, ...]
    arrays: tuple[Array, ...]
    statements: tuple[Statement, ...]
    tree: Node
    context: isl.Set
    source: str
    fixed: tuple[tuple[str, int], ...] = ()
    reassociate: bool = True

    def statement(self, name: str) -> Statement:
        return next(s for s in self.statements if s.name == name)

    def array(self, name: str) -> Array:
        return next(a for a in self.arrays if a.name == name)

    @property
    def arguments(self) -> tuple[Array, ...]:
        """The arrays and scalars that a caller passes, in order."""
        return tuple(a for a in self.arrays if a.kind != "local")

    @property
    def written(self) -> frozenset[str]:
        """The names of the arrays that some statement writes."""
        return frozenset(s.target.array for s in self.statements)

    def with_sizes(self, values: Mapping[str, int]) -> Nest:
        """The same nest with some sizes fixed: they leave the sets, shapes and expressions."""
        raise NotImplementedError
