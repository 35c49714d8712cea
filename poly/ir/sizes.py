"""The sizes of a nest, deduced from the arguments of a call."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from codegen.calls.arguments import Fitted, bind, fit
from codegen.ir.program import Buffer
from codegen.ir.signature import Signature
from poly.ir.nest import Array, Nest


def deduce_sizes(nest: Nest, arguments: tuple[Any, ...], keywords: Mapping[str, Any]) -> dict[str, int]:
    """The value of each open size: from plain extents first, then from composite ones such as `P + R - 1`.

    `keywords` may have arguments by name, and must have the sizes that do not follow from the arrays. It may have other
    sizes, which must agree with the arrays. Arrays that share memory tell sizes as well as others.

    Raises:
        ArgumentError: the arguments don't fit the nest or each other.
    """
    return dict(fitted(nest, arguments, keywords, may_overlap=True).sizes)


def fitted(nest: Nest, arguments: tuple[Any, ...], keywords: Mapping[str, Any], may_overlap: bool = False) -> Fitted:
    """The arguments by name, checked but for their strides, and the sizes.

    `may_overlap` leaves out whether arrays share memory.

    Raises:
        ArgumentError: as for `deduce_sizes`.
    """
    buffers = tuple(_buffer(array, nest) for array in nest.arguments)
    names = [buffer.name for buffer in buffers]
    bound = bind(names, arguments, keywords)
    sizes = {name: value for name, value in keywords.items() if name not in names}
    signature = Signature(nest.name, nest.sizes, buffers, fixed=nest.fixed, conditions=nest.conditions)
    return fit(signature, bound, arguments[len(names) :], sizes, any_strides=True, may_overlap=may_overlap)


def _buffer(array: Array, nest: Nest) -> Buffer:
    if array.kind == "scalar":
        return Buffer(array.name, array.dtype, (), "scalar")
    kind: Literal["in", "inout"] = "inout" if array.name in nest.written else "in"
    return Buffer(array.name, array.dtype, array.shape, kind, is_complex=array.is_complex)
