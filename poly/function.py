"""Nests that are called like functions, and two ways to write them: `@poly.nest` on plain loops, and C."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields
from functools import partial, update_wrapper
from numbers import Integral
from os import PathLike
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple, SupportsIndex, TypeAlias, overload

from codegen.ir.integer import Affine
from microkernels.dtypes import ArrayType
from microkernels.errors import shown
from poly.direct import BY_MODEL, Direct, direct
from poly.errors import SpecError
from poly.frontends.python import parse
from poly.ir.lookups import index_reads
from poly.ir.nest import Nest
from poly.ir.reference import reference
from poly.ir.sizes import deduce_sizes
from poly.kernel import Kernel, caller
from poly.lowering.arguments import signature
from poly.opencl_kernel import OpenCLKernel

if TYPE_CHECKING:
    from codegen.calls.call import Caller

SPECIALISED = 8
"""How many combinations of sizes a nest that is called directly is specialised for; one kernel serves all others."""

Form: TypeAlias = tuple[Any, ...]
"""The shapes and sizes of a call's arguments."""
FORMS = 512
"""The most forms whose kernels a nest remembers; at the next one it forgets them all."""


class Served(NamedTuple):
    """A kernel for some calls, and what takes the call after one of them."""

    kernel: Kernel | OpenCLKernel
    next: Caller


class CallSignature:
    """The attribute that `inspect.signature` asks for: the arguments of a nest, and the sizes that a call must give.

    The class itself has no such attribute, so that its own signature is that of its constructor.
    """

    def __get__(self, nest: Nest | None, owner: type) -> inspect.Signature:
        if nest is None:
            raise AttributeError("__signature__")
        types = [(a.name, ArrayType(a.element, a.extents) if a.kind == "array" else a.element) for a in nest.arguments]
        kind = inspect.Parameter
        return inspect.Signature(
            [
                *(kind(name, kind.POSITIONAL_OR_KEYWORD, annotation=of) for name, of in types),
                *(kind(size, kind.KEYWORD_ONLY, annotation=int) for size in signature(nest, scratch=False).given),
            ],
            return_annotation=None,
        )


@dataclass(frozen=True, repr=False)
class Function(Nest):
    """A nest that can be called like the function it was made from: `matmul(A, B, C)` updates C in place.

    The first call with new sizes compiles a kernel for them, or tunes one if the nest was made by
    `@poly.nest(tune=…)`. `reference` interprets the loops as written, in Python. Name, docstring, signature and source
    are those of the function, for `help`, `inspect` and editors.
    """

    _direct: Direct = field(default=BY_MODEL, compare=False, repr=False)

    _kernels: dict[tuple[int, ...] | None, Served] = field(default_factory=dict, init=False, compare=False, repr=False)
    """Kernels by their sizes; under None, the one that serves all other sizes."""
    _forms: dict[Form, Served] = field(default_factory=dict, init=False, compare=False, repr=False)
    _next: list[Caller] = field(default_factory=list, init=False, compare=False, repr=False)
    """One function, which takes the next call."""

    __signature__ = CallSignature()

    def __post_init__(self) -> None:
        super().__post_init__()
        self._next.append(self._call)
        vars(self).update(__name__=self.name, __qualname__=self.name)

    def __reduce__(self) -> tuple[Any, ...]:
        """The nest alone: kernels, and the function that it was made from, belong to this process."""
        values = {f.name: getattr(self, f.name) for f in fields(Nest)} | {"opened": self.structure}
        return _callable, (Nest(**values), None, self._direct)

    def __dask_tokenize__(self) -> tuple[str, ...]:
        return *super().__dask_tokenize__(), repr(self._direct)

    def with_sizes(self, values: Mapping[str, SupportsIndex]) -> Function:
        """As `Nest.with_sizes`; it stays callable, and keeps the name and docstring of the function."""
        made = super().with_sizes(values)
        assert isinstance(made, Function)
        return _wrapping(made, vars(self).get("__wrapped__"))

    def __call__(self, *arguments: Any, **keywords: Any) -> None:
        """Run the nest on NumPy arrays and scalars.

        Sizes that do not follow from the arrays' shapes are given by keyword: `jacobi(x, T=3)`. The others may be
        given too, and `threads=`, as in a call of a kernel.

        Raises:
            ArgumentError: an argument does not fit, or a size is missing; no array has been changed.
            ToolchainError: the kernel could not be built.
        """
        if keywords:
            self._next[0](*arguments, **keywords)
        else:  # Python would make a dictionary
            self._next[0](*arguments)

    def forget(self) -> None:
        """Forget the kernels of earlier calls, so that the next call looks at the tuning records again."""
        self._kernels.clear()
        self._forms.clear()
        self._next[0] = self._call

    def reference(self, *arguments: Any, **sizes: int) -> None:
        """Interpret the loops as written, in Python: the oracle of every test."""
        reference(self, arguments, **sizes)

    def _call(self, *arguments: Any, **keywords: Any) -> None:
        """Run the kernel for these arguments, and let it take the next call if it is for known sizes."""
        form = (*[getattr(a, "shape", None) for a in arguments], *map(self._named, keywords.items()))
        try:
            served = self._forms.get(form)
        except TypeError:  # a shape that is not hashable
            served = self._serving(self._sizes_of(arguments, keywords))
        served = served or self._found(form, arguments, keywords)
        self._next[0] = served.next
        if keywords and not served.kernel.nest.sizes:  # the kernel is for the sizes in the form
            keywords = {name: value for name, value in keywords.items() if name not in self.sizes}
        served.kernel(*arguments, **keywords)

    def _call_again(
        self, usual: int, values: Sequence[Any], extra: Sequence[Any], threads: Any, keywords: Mapping[str, Any]
    ) -> None:
        """The same for a call that does not fit the kernel of the call before, which has `usual` threads."""
        from codegen.calls.call import MISSING

        if threads.__class__ is int and threads == usual and not keywords and not extra:
            served = None
            with suppress(TypeError):  # a shape that is not hashable
                served = self._forms.get(tuple([getattr(value, "shape", None) for value in values]))
            if served is not None:
                self._next[0] = served.next
                served.kernel(*values)
                return
        given = {name: value for name, value in keywords.items() if value is not MISSING}
        if threads.__class__ is not int or threads != usual:
            given["threads"] = threads
        self._call(*[value for value in values if value is not MISSING], *extra, **given)

    def _named(self, argument: tuple[str, Any]) -> tuple[Any, ...]:
        """The part of a form that stands for a keyword argument: a size's value, or the shape of anything else."""
        name, value = argument
        if name not in self.sizes:
            return name, getattr(value, "shape", None)
        return name, value.__class__, value if isinstance(value, Integral) else None

    def _found(self, form: Form, arguments: tuple[Any, ...], keywords: Mapping[str, Any]) -> Served:
        """The kernel for these arguments, compiled if their sizes are new, and remembered under their form."""
        served = self._serving(self._sizes_of(arguments, keywords))
        if len(self._forms) >= FORMS:
            self._forms.clear()
        self._forms[form] = served
        return served

    def _sizes_of(self, arguments: tuple[Any, ...], keywords: Mapping[str, Any]) -> dict[str, int]:
        """The sizes of a call, deduced from its arguments."""
        return deduce_sizes(self, arguments, {name: value for name, value in keywords.items() if name != "threads"})

    def _serving(self, sizes: Mapping[str, int]) -> Served:
        """The kernel for some sizes."""
        key = tuple(sizes.values())
        found = self._kernels.get(key)
        if found is None and (len(self._kernels) < SPECIALISED or self._direct.tune):
            found = self._kernels.setdefault(key, self._served(self._direct.kernel(self, sizes)))
        return found or self._kernels.get(None) or self._kernels.setdefault(None, self._general())

    def _general(self) -> Served:
        """The kernel for all sizes."""
        return self._served(self._direct.kernel(self, {}))

    def _served(self, kernel: Kernel | OpenCLKernel) -> Served:
        """The kernel takes the next call if the arrays' shapes tell that it is the right one."""
        if isinstance(kernel, OpenCLKernel) or index_reads(self) or signature(self, scratch=False).given:
            return Served(kernel, self._call)
        special = self._kernels if kernel.nest.sizes else None
        return Served(kernel, caller(kernel, partial(self._call_again, kernel.threads), special))


@overload
def nest(
    function: Callable[..., Any],
    *,
    reassociate: bool = True,
    tune: bool | int | Mapping[str, Any] | None = None,
    target: str = "c",
    threads: int | None = None,
) -> Function: ...


@overload
def nest(
    *,
    reassociate: bool = True,
    tune: bool | int | Mapping[str, Any] | None = None,
    target: str = "c",
    threads: int | None = None,
) -> Callable[[Callable[..., Any]], Function]: ...


def nest(
    function: Callable[..., Any] | None = None,
    *,
    reassociate: bool = True,
    tune: bool | int | Mapping[str, Any] | None = None,
    target: str = "c",
    threads: int | None = None,
) -> Function | Callable[[Callable[..., Any]], Function]:
    """Read a function of plain loops as a nest (a decorator).

        @poly.nest
        def matmul(A: f32[M, K], B: f32[K, N], C: f32[M, N]):
            for i in range(M):
                for j in range(N):
                    for k in range(K):
                        C[i, j] += A[i, k] * B[k, j]

    With `@poly.nest(reassociate=False)` each element is updated in the order in which the loops are written, and each
    operation is rounded separately, so that the results are bitwise those of the loops as written.

    Arithmetic follows NumPy. A number or an index takes the type of the operand that it is combined with. `/` is true
    division; division by 0 gives an infinity or a NaN. Integers wrap around. An integer that its type cannot represent
    is refused, as in NumPy; a fraction that is assigned to an integer is truncated, and becomes the type's least value
    if the type cannot represent the result. Expressions of numbers and indices alone are evaluated as in Python, and
    rounded once; beyond 64 bits, those with indices are rounded to f64 after each operation, or wrap around if their
    value is assigned to an integer. `x ** 2` is a product; other powers, and functions such as `log`, of integers are
    computed in f64. Arrays of several types meet only where one is converted: `f64(x[i])`.

    Complex numbers, `c64` and `c128`, have + - * /, `conj`, `.real`, `.imag`, `abs`, `exp`, `complex(a, b)` and
    literals such as `2j`. They are read and computed as their parts, by the formulas of schoolbooks and Smith's for a
    quotient: a number that is real by its notation has no imaginary part that could make a NaN of an infinity, and
    `abs` overflows where the squares of the parts do. They have no order. An argument `alpha: c128` is a number.

    An `if`, or `a if c else b`, may depend on data: all iterations then run, and elements keep their values where the
    condition is false. All elements that it names must therefore exist, whether the condition holds or not.
    A condition on indices and sizes alone is affine, and decides which iterations exist.

    Subscripts, bounds and conditions may have quotients and remainders by positive integers, rounded down as in
    Python: `x[i // 2]`, `x[i % 4]`. By a size, as in `x[(i + 1) % N]`, they make one statement for each quotient,
    which must be from -2 to 3. A subscript that reads may look up an element of an argument with integers, and add
    integers and sizes to it: `x[idx[i] + 1]`. Each call first checks that the elements which are looked up are inside
    of the array; of `a` in `x[a[b[i]]]` it checks all. OpenCL devices don't check, and refuse such nests.

    Calls of other functions and nests are replaced by what these do. A function with assignments to names, `if` and
    `return` is a value, `y[i] = relu(x[i])`, also in a subscript or bound; the types of its parameters mean nothing.
    A nest, or a function of loops, is called as a statement, `scale(A, 2.0)`; a function of loops that ends with
    `return` also as the value of an assignment, `t = dot(x, y)`. Recursion is refused.

    Sizes, indices, and the integers in subscripts and bounds go up to 2**48. A local
    array whose extent comes out negative has no elements.

    `tune`, `target` and `threads` say how the nest runs when it is called; `poly.compile` and `poly.tune` take their
    own. With `@poly.nest(tune=40)` the first call with new sizes tunes them in 40 trials, on data of its own, and then
    runs the best kernel; `tune=True` searches as long as it is worthwhile, and a dictionary has any options of
    `poly.tune`, `tune={"seconds": 5, "show": True}`. The result is a tuning record: later calls, also in other
    processes, follow it, whatever its budget was, unless its search was interrupted; then the first call goes on with
    it. Where there is nothing to search, as with arrays without elements, a SearchWarning says so, and the model
    decides. Without `tune`, at most 8 combinations of sizes get kernels of their own, and one kernel serves all others;
    with it, each is tuned.

    Raises:
        SpecError: something that poly can't read; the message shows where it is, and how to write it instead.
        SearchError: an invalid option of `tune`.
        ArgumentError: a target that is not a text, or an invalid number of threads.
    """
    if function is None:
        return partial(nest, reassociate=reassociate, tune=tune, target=target, threads=threads)
    return _callable(parse(function, reassociate), function, direct(tune, target, threads))


def from_c(
    source: str | PathLike[str],
    function: str | None = None,
    *,
    include: Sequence[str | PathLike[str]] = (),
    define: Mapping[str, object] | None = None,
    reassociate: bool = True,
) -> Function:
    """Read loops in C as a nest: `poly.from_c("gemm.c", function="kernel_gemm")`.

    `source` is the path of a C file, or C text. Of the function, the loops between `#pragma scop` and
    `#pragma endscop` are read, or its whole body if it has no such pragmas. `function` may be left out if one function
    has them, or if there is one function, or one that is not `static`. The compiler's preprocessor runs first:
    `include` are folders of headers, `define` are macros, `{"N": 100}`.

    Integer parameters that a bound, subscript, extent or condition names are sizes, and other parameters, and global
    arrays, are arguments, in the order in C. `double A[n][m]` and `double (*A)[m]` have these extents; those that C
    does not tell, as for `double *A`, are as far as the loops reach, and `A[i*m + j]` is an element of two dimensions.
    Arrays do not overlap; a pointer must promise that by `restrict`.

    Arithmetic is that of C: a float that meets a double, such as the literal `0.1`, is computed as a double. Integers
    wrap around. Quotients and remainders of counters and sizes are rounded towards zero. A subscript may look up an
    element of an array of integers, and numbers may be complex, as in `poly.nest`.

    Raises:
        SpecError: something that poly can't read; the message shows where it is, and how to write it instead.
        ToolchainError: there is no compiler.
    """
    from poly.frontends.c.read import read_c  # pycparser is not needed otherwise

    return _callable(read_c(source, function, include=include, define=define, reassociate=reassociate))


def sizes(names: str) -> Any:
    """Symbolic sizes: `M, N = poly.sizes("M N")`. A single name gives the size itself, not a tuple.

    Raises:
        SpecError: no names, or a name that is not an identifier.
    """
    listed = names.split() if isinstance(names, str) else []
    if not listed or not all(map(str.isidentifier, listed)):
        raise SpecError(f"sizes are names separated by spaces, as in poly.sizes('M N'), not {shown(names)}.")
    made = tuple(Affine.name(name) for name in listed)
    return made[0] if len(made) == 1 else made


def _callable(plain: Nest, function: Callable[..., Any] | None = None, how: Direct = BY_MODEL) -> Function:
    made = Function(**{f.name: getattr(plain, f.name) for f in fields(Nest)}, _direct=how)
    return _wrapping(made, function)


def _wrapping(made: Function, function: Callable[..., Any] | None) -> Function:
    """The nest with the name, docstring and module of the function that it was made from."""
    if function is not None:
        kept: Any = SimpleNamespace()  # a nest is frozen, so that it refuses `update_wrapper` itself
        vars(made).update(vars(update_wrapper(kept, function)))
    return made
