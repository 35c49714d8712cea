"""The polyhedral model: a loop nest as integer sets. Front ends make it, and all else reads it."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, SupportsIndex

import islpy as isl

from codegen.ir.expr import Expr, Load, accessed
from codegen.ir.integer import Affine, Linear
from codegen.system.cache import digest
from microkernels.cached import cached_property
from microkernels.dtypes import CallerElements, DType
from microkernels.errors import did_you_mean, plain, shown
from poly.checks import checked_size, checked_sizes
from poly.display import Block, Displayed, Preformatted
from poly.errors import SpecError
from poly.ir.budget import QUESTION, limited, printed, unlimited
from poly.ir.fixing import fix_expr, fix_load, fix_set, fix_tree
from poly.ir.sets import PARAM, access_map, box, integer
from poly.ir.tree import Node, bands, statements

Kind = Literal["array", "scalar", "local"]
Op = Literal["=", "+", "*", "min", "max"]


@dataclass(frozen=True)
class Array(CallerElements):
    """An argument (`array`, or `scalar` passed by value) or a `local` of the nest.

    `strides` (in elements) are integers or names of sizes, for an array that is not dense; None means dense, row-major.
    A negative extent of a local, at sizes for which no loop around it runs, means 0. The last dimension of an argument
    that `is_complex` has two elements, the real and the imaginary part of a number that the caller passes.
    """

    name: str
    dtype: DType
    shape: tuple[Affine, ...]
    kind: Kind = "array"
    strides: tuple[str | int, ...] | None = None
    is_complex: bool = False

    def with_sizes(self, values: Mapping[str, int]) -> Array:
        """The same array with some sizes fixed."""
        shape = tuple(extent.substitute(values) for extent in self.shape)
        if self.kind == "local":
            shape = tuple(extent if extent.terms else Affine.of(max(extent.constant, 0)) for extent in shape)
        return replace(self, shape=shape)

    def elements(self, sizes: Sequence[str]) -> isl.Set:
        """`{ A[x, y] : 0 <= x < M and 0 <= y < N }`, with these sizes as parameters."""
        return box(sizes, self.name, self.shape)

    def __str__(self) -> str:
        extents = ", ".join(map(str, self.extents)) or "()"
        shape = f"[{extents}]" if self.extents or (self.kind == "array" and not self.is_complex) else ""
        return f"{'local ' if self.kind == 'local' else ''}{self.name}: {self.element.name}{shape}"


@dataclass(frozen=True)
class Statement:
    """`target op= expr` for each point of `domain`.

    `op` is "=" or a reduction's operator ("-=" is "+" of the negated value). `iterators` name the domain's dimensions,
    outermost first; `place` and `text` are where it stands, as `file:line`, and its source line.
    A local scalar is an array over the loops around its definition, so that it causes no false dependences.
    """

    name: str
    iterators: tuple[str, ...]
    domain: isl.Set
    target: Load
    op: Op
    expr: Expr
    place: str = ""
    text: str = ""

    @cached_property
    def reads(self) -> tuple[Load, ...]:
        """The accesses that read, which include the target of a reduction."""
        return (() if self.op == "=" else (self.target,)) + accessed(self.expr)

    @cached_property
    def spans(self) -> dict[str, tuple[int, int] | None]:
        """The least value of each iterator, and the number of values to its greatest; None if they depend on a size."""
        with limited(QUESTION, apart=True):
            ends = [(self.domain.dim_min_val(at), self.domain.dim_max_val(at)) for at in range(len(self.iterators))]
        spans = (
            (low.to_python(), high.to_python() - low.to_python() + 1) if low.is_int() and high.is_int() else None
            for low, high in ends
        )
        return dict(zip(self.iterators, spans, strict=True))

    def __str__(self) -> str:
        """The statement's source line, then its domain and access relations, each on its own line."""
        kind = "" if self.op == "=" else f"   (reduction by {self.op})"
        text = printed(self.domain)
        domain = text.partition(" -> ")[2] if self.domain.dim(isl.dim_type.param) else text
        instance = f"{self.name}[{', '.join(self.iterators)}]"
        writes = f"    writes  {{ {instance} -> {self.target} }}"
        reads = [f"    reads   {{ {instance} -> {load} }}" for load in dict.fromkeys(self.reads)]
        return "\n".join((f"{self.name}: {self.text}{kind}", f"    domain  {domain}", writes, *reads))

    def relation(self, access: Load) -> isl.Map:
        """The access relation `{ S[i, k] -> A[i, k] : domain }`."""
        return access_map(self.domain, self.iterators, access.array, access.indices)


@dataclass(frozen=True, repr=False)
class Nest(Displayed):
    """A loop nest.

    `sizes` are the parameters that are symbolic, `fixed` those that have a value. The parameters of each set are
    exactly `sizes`, in that order, and `context` has the constraints on them (each is at least 0). `tree` is the order
    as written. `source` is the text of the loops as a Python function, from `file`; `names` has the values of its free
    names. `opened` is the digest of the nest before sizes were fixed or a statement was parted.
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
    file: str = ""
    names: tuple[tuple[str, Affine | float], ...] = ()
    opened: str = field(default="", compare=False, repr=False)

    def __post_init__(self) -> None:
        _ = self.structure  # now, since isl may print a set differently after operations on it

    def statement(self, name: str) -> Statement:
        """The statement with that name. Raises SpecError if there is none."""
        for statement in self.statements:
            if isinstance(name, str) and statement.name == name:
                return statement
        known = ", ".join(s.name for s in self.statements)
        raise SpecError(f"{self.name} has no statement {plain(name)}. Its statements: {known}.")

    def array(self, name: str) -> Array:
        """The argument or local with that name. Raises SpecError if there is none."""
        for array in self.arrays:
            if isinstance(name, str) and array.name == name:
                return array
        known = ", ".join(a.name for a in self.arrays) or "none"
        raise SpecError(f"{self.name} has no array {plain(name)}. Its arrays: {known}.")

    @property
    def arguments(self) -> tuple[Array, ...]:
        """The arrays and scalars that a caller passes, in order."""
        return tuple(a for a in self.arrays if a.kind != "local")

    @property
    def integers(self) -> tuple[str, ...]:
        """The integers that a kernel takes before the arrays: open sizes, then symbolic strides."""
        return (*self.sizes, *(s for array in self.arrays for s in array.strides or () if isinstance(s, str)))

    @property
    def open_or_fixed(self) -> tuple[str, ...]:
        """The names of all sizes."""
        return (*self.sizes, *(name for name, _ in self.fixed))

    @property
    def written(self) -> frozenset[str]:
        """The names of the arrays that some statement writes."""
        return frozenset(s.target.array for s in self.statements)

    @cached_property
    def conditions(self) -> tuple[Affine, ...]:
        """What the open sizes must satisfy beyond being 0 or more: each value is at least 0."""
        found: list[Affine] = []
        for part in self.context.get_basic_sets():
            for constraint in part.get_constraints():
                factors = (integer(constraint.get_coefficient_val(PARAM, at)) for at in range(len(self.sizes)))
                value = Affine.make(dict(zip(self.sizes, factors, strict=True)), integer(constraint.get_constant_val()))
                found += [value, -value] if constraint.is_equality() else [value]
        return tuple(value for value in found if value not in [Affine.name(size) for size in self.sizes])

    @cached_property
    def temporaries(self) -> frozenset[str]:
        """Locals of which one element is written and read in each iteration of the loops around: values of the body.

        for i: for j:
          s[i, j] = A[i, j] + A[i, j + 1]       s is a temporary, which is best kept in a register:
          B[i, j] = s[i, j] * s[i, j]           its statements stay in one iteration
        """
        loops = [(id(band), statements(band)) for band in bands(self.tree)]
        around = {s.name: [loop for loop, below in loops if s.name in below] for s in self.statements}
        return frozenset(a.name for a in self.arrays if a.kind == "local" and self._is_temporary(a.name, around))

    def _is_temporary(self, local: str, around: Mapping[str, list[int]]) -> bool:
        accesses = {s.name: {load for load in (s.target, *s.reads) if load.array == local} for s in self.statements}
        users = [name for name, found in accesses.items() if found]
        places = {load.indices for found in accesses.values() for load in found}
        if len(places) != 1 or any(around[name] != around[users[0]] for name in users):
            return False
        own = frozenset(self.statement(users[0]).iterators)
        alone = (index.names & own for index in places.pop() if index.is_affine)
        return {next(iter(names)) for names in alone if len(names) == 1} == own

    @cached_property
    def structure(self) -> str:
        """A digest of arrays, statements and loops with all sizes open, which identifies the nest but for its name."""
        return self.opened or self.contents

    @cached_property
    def contents(self) -> str:
        """A digest of arrays, statements and loops as they are: nests with the same one have the same dependences."""
        arrays = [(a.name, a.dtype.name, a.kind, str(a.shape), a.strides) for a in self.arrays]
        with unlimited():
            statements = [(s.name, s.iterators, str(s.domain), s.target, s.op, s.expr) for s in self.statements]
            text = repr((self.sizes, arrays, statements, self.tree, str(self.context), self.reassociate))
        return digest(text)

    @property
    def identity(self) -> tuple[Any, ...]:
        """Texts and numbers that tell a nest from all others: nests with the same ones have the same kernels."""
        arrays = [(a.name, a.element.name, a.kind, str(a.shape), a.strides) for a in self.arrays]
        return (self.name, self.structure, self.source, self.fixed, self.reassociate, arrays)

    def __dask_tokenize__(self) -> tuple[str, ...]:
        """What dask names tasks by, the same in all processes."""
        return type(self).__name__, repr(self.identity)

    def __str__(self) -> str:
        """The loops as written, and each statement with its domain and access relations."""
        fixed = "".join(f", {name} = {value}" for name, value in self.fixed)
        head = f"{self.name}({', '.join(map(str, self.arguments))}), sizes {', '.join(self.sizes) or 'none'}{fixed}"
        return "\n".join((head, textwrap.indent(self._loops(), "    "), *self._sets()))

    def _title(self) -> str:
        return f"nest {self.name}({', '.join(map(str, self.arguments))})"

    def _parts(self) -> Iterable[Block]:
        yield Preformatted(self._loops())
        yield Preformatted("\n".join(self._sets()), "domains and accesses of the statements")

    def _loops(self) -> str:
        """The loops as written."""
        return self.source[self.source.index("def ") :].rstrip()

    def _sets(self) -> tuple[str, ...]:
        """The locals, and each statement with its domain and access relations."""
        return (*(str(a) for a in self.arrays if a.kind == "local"), *map(str, self.statements))

    def with_sizes(self, values: Mapping[str, SupportsIndex]) -> Nest:
        """The same nest with some sizes replaced by values, in the sets, shapes and expressions.

        Raises:
            SpecError: not a dictionary, no such open size, or a value that is not an integer from 0 to 2**48.
        """
        fixed = _checked_values(self, values)
        return replace(
            self,
            sizes=tuple(size for size in self.sizes if size not in fixed),
            arrays=tuple(array.with_sizes(fixed) for array in self.arrays),
            statements=tuple(_fixed_statement(s, fixed) for s in self.statements),
            tree=fix_tree(self.tree, fixed),
            context=fix_set(self.context, fixed),
            fixed=(*self.fixed, *fixed.items()),
            names=tuple((n, v.substitute(fixed) if isinstance(v, Linear) else v) for n, v in self.names),
            opened=self.structure,
        )

    def for_sizes(self, values: Mapping[str, SupportsIndex]) -> Nest:
        """What is compiled or tuned for these sizes where no schedule is given: `with_sizes`.

        A nest that is written otherwise for other sizes, such as an einsum whose products have an order, is that nest.
        """
        return self.with_sizes(values)


def difference(one: Nest, other: Nest) -> str | None:
    """The first difference between the loops of two nests; None if only their names and values of sizes differ."""
    if one.structure == other.structure:
        return None
    if _arguments(one) != _arguments(other):
        return f"they take {_arguments(one)}, and {_arguments(other)}"
    if one.reassociate != other.reassociate:
        return "only one of them allows reassociation of reductions"
    numbers, others = _numbers(one), _numbers(other)
    unlike = (name for name in numbers if name in others and numbers[name] != others[name])
    difference = (f"{name} is {numbers[name]} in the one, {others[name]} in the other" for name in unlike)
    return next(difference, "their loops differ")


def _arguments(nest: Nest) -> str:
    return ", ".join(f"{a.name}: {a.element.name}{'[' + ', '.join(':' * len(a.extents)) + ']'}" for a in nest.arguments)


def _numbers(nest: Nest) -> dict[str, str]:
    """The values of the free names in the loops, except for fixed sizes."""
    return {name: shown(value) for name, value in nest.names if name not in dict(nest.fixed)}


def checked_nest(value: Any) -> Nest:
    """The nest, unchanged. Raises SpecError for anything else."""
    if not isinstance(value, Nest):
        raise SpecError(f"{shown(value)} is no nest. Make one with @poly.nest or poly.einsum.")
    return value


def _checked_values(nest: Nest, values: Mapping[str, SupportsIndex]) -> dict[str, int]:
    for name in (given := checked_sizes(values, {})):
        if not isinstance(name, str) or name not in nest.sizes:
            known = ", ".join(nest.sizes) or "none"
            hint = did_you_mean(name, nest.sizes)
            raise SpecError(f"{nest.name} has no size {plain(name)} that is still open.{hint} Its open sizes: {known}.")
    return {name: checked_size(f"the size {name} of {nest.name}", value) for name, value in given.items()}


def _fixed_statement(statement: Statement, values: Mapping[str, int]) -> Statement:
    return replace(
        statement,
        domain=fix_set(statement.domain, values),
        target=fix_load(statement.target, values),
        expr=fix_expr(statement.expr, values),
    )
