"""What to do about an argument that does not fit, in the words of the user's library, such that no result is lost.

A copy is enough for an input. For an array that the kernel writes, a remedy also says where the results are found.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from codegen.ir.program import Buffer


def cast(buffer: Buffer, value: Any) -> str:
    """The remedy for another dtype."""
    if is_torch(value):
        return _by_copy(buffer, value, f"{buffer.name}.to(torch.{buffer.element.numpy_name})")
    return _by_copy(buffer, value, f"{_as_numpy(buffer, value)}.astype(np.{buffer.element.numpy_name})")


def made_dense(buffer: Buffer, value: Any) -> str:
    """The remedy for strides that the kernel does not take."""
    if is_torch(value):
        return _by_copy(buffer, value, f"{buffer.name}.contiguous()")
    return _by_copy(buffer, value, f"np.ascontiguousarray({_as_numpy(buffer, value)})")


def aligned(buffer: Buffer, value: Any) -> str:
    """The remedy for elements that do not start at multiples of their size."""
    return _by_copy(buffer, value, _copy(buffer, value))


def writable(buffer: Buffer, value: Any) -> str:
    """The remedy for an output that cannot take its results: nothing can be copied back to it."""
    return f"Remedy: work = {_copy(buffer, value)}, pass work, and take the results from it"


def apart(buffer: Buffer, value: Any, output: Buffer) -> str:
    """The remedy for an argument that shares memory with an output."""
    if buffer.kind == "in":
        return f"Remedy: pass a copy of {buffer.name}, {_copy(buffer, value)}"
    return f"Both are written: pass an array of its own for each of {output.name} and {buffer.name}"


def unmasked(buffer: Buffer) -> str:
    """The remedy for a masked array."""
    if buffer.kind == "in":
        return f"Remedy: {buffer.name}.filled(0)"
    return f"Remedy: {buffer.name}.data, the array below the mask, which then has the results"


def shared(buffer: Buffer, value: Any) -> str:
    """The remedy for an object whose memory NumPy cannot share."""
    if is_torch(value):
        if value.requires_grad:
            return f"Remedy: {buffer.name}.detach(), which has the same memory"
        if value.device.type != "cpu":
            return _by_copy(buffer, value, f"{buffer.name}.cpu()")
    if buffer.kind == "in":
        return f"Remedy: {_to_numpy(buffer)}"
    return f"Remedy: {buffer.name} = {_to_numpy(buffer)} before the call; the results are then in it"


def by_method(buffer: Buffer, method: str) -> str:
    """The remedy for a tensor whose method makes one that fits, whatever library it is of."""
    back = f", and copy it back after the call: {buffer.name}.copy_(it)" if buffer.kind != "in" else ""
    return f"Remedy: {buffer.name}.{method}(){back}"


def as_number(buffer: Buffer, value: Any) -> str:
    """The remedy for an array of one element in place of a number; empty for anything else."""
    return f". Remedy: {buffer.name}.item()" if isinstance(value, np.ndarray) and value.size == 1 else ""


def is_torch(value: Any) -> bool:
    """Whether a value is a tensor of PyTorch, which need not be imported for that."""
    return type(value).__module__.partition(".")[0] == "torch" and hasattr(value, "requires_grad")


def _by_copy(buffer: Buffer, value: Any, copy: str) -> str:
    """The remedy by a copy of an argument, whose results are copied back if it is an output."""
    if buffer.kind == "in":
        return f"Remedy: {copy}"
    back = f"{buffer.name}.detach().copy_(work)" if is_torch(value) else f"{_as_numpy(buffer, value)}[...] = work"
    return f"Remedy: work = {copy}, and copy it back after the call: {back}"


def _copy(buffer: Buffer, value: Any) -> str:
    return f"{buffer.name}.clone()" if is_torch(value) else f"{_as_numpy(buffer, value)}.copy()"


def _to_numpy(buffer: Buffer) -> str:
    return f"np.asarray({buffer.name}, dtype=np.{buffer.element.numpy_name})"


def _as_numpy(buffer: Buffer, value: Any) -> str:
    """The argument as a NumPy array on the same memory."""
    if isinstance(value, np.ndarray):
        return buffer.name
    return f"np.from_dlpack({buffer.name})" if hasattr(value, "__dlpack__") else f"np.asarray({buffer.name})"
