"""`poly.einsum`: an einsum as a nest, or of arrays at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import lru_cache
from typing import Any, NamedTuple, SupportsIndex, overload

import numpy as np

from codegen.errors import ArgumentError
from microkernels.dtypes import DType, f32
from microkernels.errors import shown
from poly.checks import checked_flag, checked_size
from poly.errors import SpecError
from poly.frontends.contraction_order import Optimize
from poly.frontends.einsum import checked_optimize, size_names
from poly.frontends.einsum import einsum as nest_of
from poly.frontends.subscripts import Subscripts, parse_subscripts
from poly.function import Function
from poly.ir.nest import Nest
from poly.operands import AnyArray, ArrayForm, as_array, by_strides, common_type, empty, form_of, laid_out

NESTS = 64
"""The most einsums of arrays whose nests, with their kernels, are remembered."""

PLANS = 512
"""The most combinations of shapes and layouts of arrays that are remembered."""


@dataclass(frozen=True)
class EinsumChoice:
    """What an einsum was made of."""

    subscripts: Subscripts
    optimize: Optimize


@dataclass(frozen=True, repr=False)
class Einsum(Function):
    """An einsum as a function: where its sizes come with a call, they decide the order of its products."""

    _choice: EinsumChoice = field(default=EinsumChoice(Subscripts("", ("",), ""), True), compare=False, repr=False)

    def __reduce__(self) -> tuple[Any, ...]:
        values = {f.name: getattr(self, f.name) for f in fields(Nest)} | {"opened": self.structure}
        return _function, (Nest(**values), self._choice)

    def for_sizes(self, values: Mapping[str, SupportsIndex]) -> Nest:
        """The nest whose products are in the best order for these sizes, and for those that are known already."""
        fixed = self.with_sizes(values)
        parsed = self._choice.subscripts
        if len(parsed.operands) < 3:
            return fixed
        letters = {size: letter for letter, size in size_names(parsed).items()}
        known = {letters[size]: value for size, value in fixed.fixed}
        return _made(parsed, self.arguments[0].element, self.reassociate, self._choice.optimize, known)


@overload
def einsum(
    subscripts: str,
    *,
    shapes: Any = None,
    dtype: DType | None = None,
    reassociate: bool = True,
    optimize: Any = True,
    **sizes: int,
) -> Function: ...


@overload
def einsum(
    subscripts: str,
    operand: Any,
    /,
    *operands: Any,
    out: Any = None,
    dtype: DType | None = None,
    reassociate: bool = True,
    optimize: Any = True,
) -> Any: ...


def einsum(
    subscripts: str,
    *operands: Any,
    out: Any = None,
    shapes: Any = None,
    dtype: DType | None = None,
    reassociate: bool = True,
    optimize: Any = True,
    **sizes: int,
) -> Any:
    """An einsum as a nest, `poly.einsum("mk,kn->mn", m=512, n=512, k=512)`, or of arrays: `poly.einsum("mk,kn", A, B)`.

    The nest takes the operands and then the output, which it assigns. `...` in the subscripts stands for the dimensions
    that have no letter, and a dimension of one element is broadcast, as in NumPy; a nest needs the shapes for both,
    `shapes=[(8, 4, 5), (5, 6)]`, in which None is an extent that stays open. An index that an operand has twice is its
    diagonal. The types of a nest's arrays are `dtype` (default: f32).

    With arrays, the result is a new array, or `out`; among PyTorch's tensors it is a tensor. The kernel is made for the
    arrays' sizes at the first call, as for any nest that is called. Arrays in any order of their dimensions are read as
    they are, such as transposed and Fortran-ordered ones; others with gaps between the elements of each dimension are
    copied. Arrays of several types are converted to the one that NumPy would choose, or safely to `dtype`.

    Several operands are multiplied two at a time, in the order that the model expects to take the least time: of all
    orders up to 10 operands, beyond by a greedy search, and by opt_einsum if it is installed. The order is that for the
    sizes, which come with `poly.einsum`, `poly.compile`, `poly.tune` or the arrays of a call; those that are not known
    count as equally long. `optimize` chooses it: False multiplies all operands in one nest of loops, "greedy" searches
    greedily, "optimal" among all orders up to 14 operands, and a path as `numpy.einsum_path` gives it is followed,
    `[(0, 1), (0, 1)]`. With `reassociate=False`, as in `poly.nest`, the products of all operands are added one by one,
    in the order of the letters.

    Raises:
        SpecError: subscripts that NumPy would refuse, shapes that do not fit, or a size for a letter that is not in
            them.
        ArgumentError: an operand that is no array of numbers, or an `out` that does not fit.
    """
    if not isinstance(subscripts, str):
        raise SpecError(f'the subscripts of an einsum are a text such as "mk,kn->mn", not {shown(subscripts)}.')
    if dtype is not None and not isinstance(dtype, DType):
        raise SpecError(f"the dtype of an einsum is one of poly's, such as poly.f32, not {shown(dtype)}.")
    if operands:
        if shapes is not None or sizes:
            surplus = "shapes" if shapes is not None else next(iter(sizes))
            raise SpecError(f"einsum: the sizes come with the arrays. Leave {surplus} out.")
        return _of_arrays(subscripts, operands, out, dtype, checked_flag("reassociate", reassociate), optimize)
    if out is not None:
        raise SpecError("einsum: out is for an einsum of arrays, and none is given. Leave it out.")
    parsed = parse_subscripts(subscripts, None if shapes is None else _checked_shapes(shapes))
    return _made(parsed, dtype or f32, reassociate, optimize, sizes)


def _made(parsed: Subscripts, dtype: DType, reassociate: bool, optimize: object, sizes: Mapping[str, int]) -> Function:
    """The function for a text whose shapes are known."""
    from poly.model.products import pricing

    order = checked_optimize(optimize, len(parsed.operands), reassociate)
    plain = nest_of(parsed, dtype=dtype, reassociate=reassociate, optimize=order, price=pricing(dtype), **sizes)
    return _function(plain, EinsumChoice(parsed, order))


def _function(plain: Nest, choice: EinsumChoice) -> Function:
    return Einsum(**{f.name: getattr(plain, f.name) for f in fields(Nest)}, _choice=choice)


def _checked_shapes(shapes: Any) -> list[tuple[int | None, ...]]:
    """The shapes of the operands. Raises SpecError."""
    if not isinstance(shapes, list | tuple) or not all(isinstance(shape, list | tuple) for shape in shapes):
        raise SpecError(f"shapes must be a shape for each operand, such as [(8, 4, 5), (5, 6)], not {shown(shapes)}.")
    return [
        tuple(None if e is None else checked_size(f"einsum: an extent of operand {n}", e) for e in shape)
        for n, shape in enumerate(shapes)
    ]


def _of_arrays(
    subscripts: str, operands: Sequence[Any], out: Any, dtype: DType | None, reassociate: bool, optimize: object
) -> Any:
    """The result for some arrays."""
    order = checked_optimize(optimize, len(operands), reassociate)
    arrays = [as_array(f"operand {number}", value) for number, value in enumerate(operands)]
    target = None if out is None else as_array("out", out)
    plan = _plan(
        subscripts,
        tuple([form_of(array) for array in arrays]),
        None if target is None else form_of(target),
        dtype,
        reassociate,
        order,
    )
    values = [turn(array) for turn, array in zip(plan.turns, arrays, strict=True)]
    if target is not None:
        plan.function(*values, target.transpose(plan.axes))
        return out
    result = empty(plan.shape, plan.dtype, operands)
    plan.function(*values, result)
    return result if plan.shape or type(result) is not np.ndarray else result[()]


class EinsumPlan(NamedTuple):
    """What computes an einsum of some arrays, and its result, whose dimensions are passed in the order of `axes`."""

    function: Function
    turns: tuple[Callable[[AnyArray], Any], ...]
    shape: tuple[int, ...]
    axes: tuple[int, ...]
    dtype: DType


@lru_cache(PLANS)
def _plan(
    subscripts: str,
    forms: tuple[ArrayForm, ...],
    out: ArrayForm | None,
    dtype: DType | None,
    reassociate: bool,
    order: Optimize,
) -> EinsumPlan:
    """The einsum of arrays of these forms: the letters of each are in the order of its strides."""
    kind = common_type([form.dtype for form in forms], dtype)
    layouts = [laid_out(form, kind) for form in forms]
    parsed = parse_subscripts(subscripts, [form.shape for form in forms])
    extents = dict(parsed.extents)
    shape = tuple(extents[letter] for letter in parsed.output)
    if out is not None and out.shape != shape:
        raise ArgumentError(f"einsum: out has shape {out.shape}; the result has {shape}.")
    axes = tuple(range(len(shape))) if out is None else by_strides(out)
    operands = tuple(layout.ordered(letters) for layout, letters in zip(layouts, parsed.operands, strict=True))
    turned = Subscripts(subscripts, operands, "".join(parsed.output[axis] for axis in axes))
    turns = tuple(layout.turn(kind) for layout in layouts)
    return EinsumPlan(_remembered(turned, kind, reassociate, order), turns, shape, axes, kind)


@lru_cache(NESTS)
def _remembered(parsed: Subscripts, dtype: DType, reassociate: bool, order: Optimize) -> Function:
    return _made(parsed, dtype, reassociate, order, {})
