"""The operands of an einsum of arrays: NumPy arrays on their memory, of one type, in the order of their strides."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from codegen.calls import turning
from codegen.calls.arguments import check_memory
from codegen.calls.numpy_types import numpy_type
from codegen.errors import ArgumentError
from codegen.ir.program import Buffer
from microkernels.dtypes import COMPLEX, DTYPES, DType, bf16, f16, f32

AnyArray = np.ndarray[Any, Any]


class ArrayForm(NamedTuple):
    """What tells how an array is passed to a kernel."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: np.dtype[Any]
    aligned: bool


@dataclass(frozen=True)
class OperandLayout:
    """The dimensions of an operand in the order in which a kernel takes them; with `copied`, of a copy."""

    axes: tuple[int, ...]
    copied: bool = False

    def ordered(self, letters: str) -> str:
        """The letters of the dimensions in that order."""
        return "".join(letters[axis] for axis in self.axes)

    def turn(self, dtype: DType) -> Callable[[AnyArray], Any]:
        """The function that makes an array of this layout what a kernel takes; numbers are passed by value."""
        if not self.axes:
            return partial(_number, numpy_type(dtype))
        if self.copied:
            return partial(np.require, dtype=dtype.numpy_name, requirements=["C", "A"])
        in_order = self.axes == tuple(range(len(self.axes)))
        return _itself if in_order else partial(np.transpose, axes=self.axes)


def form_of(array: AnyArray) -> ArrayForm:
    """The form of an array."""
    return ArrayForm(array.shape, array.strides, array.dtype, array.flags.aligned)


def as_array(name: str, value: Any) -> AnyArray:
    """A NumPy array on the same memory; numbers and lists of them become new arrays.

    Raises:
        ArgumentError: no array of numbers, or one that this CPU cannot read.
    """
    if type(value) is np.ndarray:
        return value
    if isinstance(value, np.ma.MaskedArray):
        raise ArgumentError(f"einsum: {name} is a masked array, and masks are ignored. Remedy: its filled(0)")
    if isinstance(value, np.ndarray):
        return np.ndarray.view(value, np.ndarray)
    check_memory(Buffer(f"einsum: {name}", f32, (), "in"), value)
    try:
        return np.from_dlpack(value) if hasattr(type(value), "__dlpack__") else np.asarray(value)
    except Exception as error:  # an object's own protocol may raise anything
        wanted = "an array, a number, or an object that shares its memory by DLPack or the buffer protocol"
        problem = f"{name} is of type {type(value).__name__}; expected {wanted} ({error})"
        raise ArgumentError(f"einsum: {problem}.") from error


def common_type(dtypes: Sequence[np.dtype[Any]], dtype: DType | None) -> DType:
    """The type of the products: `dtype`, if the arrays convert to it without loss, or the one that NumPy chooses.

    Raises:
        ArgumentError: a type that poly does not compute with, or a conversion that loses.
    """
    if dtype is not None:
        for number, own in enumerate(dtypes):
            if not np.can_cast(own, dtype.numpy_name, "safe"):
                name = f"operand {number} has dtype {own.name}, which {dtype.name} does not represent"
                raise ArgumentError(f"einsum: {name}. Convert it: astype(np.{dtype.numpy_name}).")
        return dtype
    types = (*DTYPES.values(), *COMPLEX.values())
    known = {found.numpy_name: found for found in types if found not in (f16, bf16)}
    try:
        name = np.result_type(*dtypes).name
    except TypeError:
        name = "no common type"
    if name not in known:
        given = ", ".join(dict.fromkeys(own.name for own in dtypes))
        raise ArgumentError(f"einsum: operands of {given} make {name}; poly computes with {', '.join(known)}.")
    return known[name]


def laid_out(form: ArrayForm, dtype: DType) -> OperandLayout:
    """The layout in which a kernel reads an array: in the order of its strides, or of a copy if it does not take it."""
    axes = by_strides(form)
    shape, strides = [form.shape[axis] for axis in axes], [form.strides[axis] for axis in axes]
    if turning.has_rows(shape, strides, dtype.size) and form.aligned and form.dtype == dtype.numpy_name:
        return OperandLayout(axes)
    return OperandLayout(tuple(range(len(axes))), copied=True)


def by_strides(form: ArrayForm) -> tuple[int, ...]:
    """The dimensions in the order of their strides."""
    return turning.by_strides(form.shape, form.strides)


def empty(shape: tuple[int, ...], dtype: DType, operands: Sequence[Any]) -> Any:
    """A new array for the result: a tensor if one of the operands is one of that type, as PyTorch's."""
    for value in operands:
        if hasattr(type(value), "new_empty") and str(value.dtype).rpartition(".")[2] == dtype.numpy_name:
            return value.new_empty(shape)
    return np.empty(shape, dtype.numpy_name)


def _itself(array: AnyArray) -> AnyArray:
    return array


def _number(dtype: np.dtype[Any], array: AnyArray) -> Any:
    return dtype.type(array[()])
