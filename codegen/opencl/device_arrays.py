"""Arrays that are already on the device: whether they fit the kernel, and the memory to pass.

`codegen.calls.arguments` checks NumPy arrays. So each array on the device is represented by one of the same form, at a
fictitious address that nobody reads; parts of one buffer share an address range, as they do on the device.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from codegen.calls.arguments import Values, fit
from codegen.errors import ArgumentError
from codegen.ir.program import Buffer
from codegen.ir.signature import Signature, describe
from codegen.opencl.gathering import array_class

PAGE = 4096


class _Form:
    """Looks like an array in memory to NumPy."""

    def __init__(self, array: Any, address: int) -> None:
        self.__array_interface__ = {
            "version": 3,
            "shape": array.shape,
            "strides": array.strides,
            "typestr": array.dtype.str,
            "data": (address, False),
        }


def check_alike(signature: Signature, bound: Values) -> list[Any]:
    """The arrays on the device: all of the call's, or none.

    Raises ArgumentError if some are on the device and some on the host.
    """
    kind = array_class()
    if kind is None:
        return []
    arrays = {b.name: bound[b.name] for b in signature.arrays if b.name in bound}
    there = [name for name, value in arrays.items() if isinstance(value, kind)]
    here = [name for name in arrays if name not in there]
    if there and here:
        first = next(buffer for buffer in signature.arrays if buffer.name in here)
        remedy = _by_copy(first, f"pyopencl.array.to_device(queue, {first.name})", "[...] = work.get()")
        raise ArgumentError(
            f"{', '.join(there)} on the device, and {', '.join(here)} on the host: give all arrays as NumPy's or all "
            f"as pyopencl's. {remedy}"
        )
    return [arrays[name] for name in there]


def fitted_sizes(
    signature: Signature, bound: Values, extra: Sequence[Any], keywords: Values
) -> tuple[Mapping[str, Any], Mapping[str, int]]:
    """The scalars' values, and the sizes, for arrays on the device.

    Raises ArgumentError as for NumPy arrays, and if an array is not dense.
    """
    kind = array_class()
    arrays = {name: value for name, value in bound.items() if isinstance(value, kind)}
    for buffer in signature.arrays:
        if buffer.name in arrays:
            _check_dense(buffer, arrays[buffer.name])
    addresses = _addresses(list(arrays.values()))
    forms = {
        name: np.asarray(_Form(value, addresses[id(value)])) if name in arrays else value
        for name, value in bound.items()
    }
    fitted = fit(signature, forms, extra, keywords)
    return {b.name: fitted.values[b.name] for b in signature.buffers if b.kind == "scalar"}, fitted.sizes


def memory(buffer: Buffer, array: Any, alignment: int) -> Any:
    """The memory of an array: its buffer, or the sub-buffer from its offset; None for one without elements.

    Raises ArgumentError if the device allows no sub-buffer at that offset.
    """
    if array.size == 0:
        return None
    if not array.offset:
        return array.base_data
    base, offset = _whole(array)
    if not hasattr(base, "get_sub_region") or offset % alignment:
        raise ArgumentError(
            f"{buffer.name} begins {offset} bytes into its buffer, and a part of a buffer on this device begins at a "
            f"multiple of {alignment}. {_by_copy(buffer, f'{buffer.name}.copy()')}"
        )
    return base.get_sub_region(offset, array.nbytes)


def check_context(arrays: Iterable[Any], queue: Any, context: Any) -> None:
    """Raise ArgumentError if an array cannot be used on a queue, as it was made in another context."""
    for array in arrays:
        if array.context != context:
            raise ArgumentError(
                f"the arrays and the queue {queue} belong to different contexts of OpenCL. Remedy: pass a queue of the "
                "arrays' context, queue=..., or make the arrays on this queue"
            )


def _whole(array: Any) -> tuple[Any, int]:
    """The buffer that an array's memory is part of, and the array's offset in it in bytes."""
    import pyopencl as cl

    base = array.base_data
    parent = base.get_info(cl.mem_info.ASSOCIATED_MEMOBJECT) if isinstance(base, cl.Buffer) else None
    if parent is None:
        return base, array.offset
    return parent, array.offset + base.get_info(cl.mem_info.OFFSET)


def _check_dense(buffer: Buffer, array: Any) -> None:
    if array.size and not array.flags.c_contiguous:
        problem = f"{buffer.name} is not contiguous: shape {array.shape}, strides {array.strides} bytes"
        dense = f"pyopencl.array.empty(queue, {array.shape}, np.{buffer.dtype.numpy_name})"
        remedy = f"Remedy: make it dense from the beginning, {dense}, as pyopencl copies no array with gaps"
        raise ArgumentError(f"{problem}; expected {describe(buffer)}, row by row. {remedy}")


def _by_copy(buffer: Buffer, copy: str, back: str = "[:] = work") -> str:
    """The remedy by a copy of an array, which is copied back if the kernel writes it."""
    if buffer.kind == "in":
        return f"Remedy: {copy}"
    return f"Remedy: work = {copy}, and copy it back after the call: {buffer.name}{back}"


def _addresses(arrays: Sequence[Any]) -> dict[int, int]:
    """An address for each array by its `id`, so that arrays share memory as they do on the device."""
    addresses = {}
    starts: dict[Any, int] = {}
    free = PAGE
    for array in arrays:
        base, offset = _whole(array)
        key = getattr(base, "int_ptr", id(base))
        if key not in starts:
            starts[key] = free
            free += (-(-int(getattr(base, "size", offset + array.nbytes)) // PAGE) + 1) * PAGE
        addresses[id(array)] = starts[key] + offset
    return addresses
