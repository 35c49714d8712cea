"""Arrays of other libraries that tell their address, such as PyTorch's tensors, and are called without DLPack.

A class is known once one of its arrays has passed all checks of a call, and DLPack gave the address that it tells. A
call with arrays of known classes asks each of them only

    is_cpu, requires_grad, is_neg()   whether its memory is its values, for this CPU to read and write
    shape, stride(), is_contiguous()  in elements
    dtype, data_ptr()                 an object that stands for the type of its elements, and the address

and `permute(axes)`, if its dimensions lie in another order, for itself with them in this order.
"""

from __future__ import annotations

from typing import Any

import numpy as np

KNOWN: dict[np.dtype[Any], dict[type, object]] = {}
"""For a type of elements, each class whose arrays are known, with the object that is their `dtype`."""


def known(dtype: np.dtype[Any]) -> dict[type, object]:
    """The known classes for a type of elements; later ones are added to the same dictionary."""
    return KNOWN.setdefault(dtype, {})


def is_known(value: Any) -> bool:
    """Whether a value is an array of a known class."""
    return any(type(value) in classes for classes in KNOWN.values())


def learn(value: Any, array: np.ndarray[Any, Any]) -> None:
    """Know a value's class from now on, if the value says about itself what `array` is, on the same memory."""
    try:
        same = (
            value.dtype is value.dtype
            and tuple(value.shape) == array.shape
            and [stride * array.itemsize for stride in value.stride()] == list(array.strides)
            and value.data_ptr() == array.ctypes.data
            and value.is_contiguous() is array.flags.c_contiguous
            and value.is_cpu is True
            and value.requires_grad is False
            and value.is_neg() is False
        )
    except Exception:  # an array without these methods; a method of another library may raise anything
        return
    if same and array.size > 1 and array.flags.writeable:
        known(array.dtype)[type(value)] = value.dtype
