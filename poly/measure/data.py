"""The arrays that all candidates run on, with guards around them, and the comparison of results.

The arrays start where NumPy puts its own, since the best schedule for aligned arrays need not be the best for those
that users have. A result is right if it equals the trusted one up to rounding.
"""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np

from codegen.calls.numpy_types import numpy_type
from poly.machine.description import LINE, PAGE
from poly.measure.orders import Data

Array = np.ndarray[Any, Any]

GUARD = 4096
"""The least bytes before and after each array. All bits are set, which reads as NaN."""

HEADER = 16
"""Bytes that `malloc` writes before a block."""
LARGE = 128 * 1024
"""Bytes from which glibc's `malloc` gives a block pages of its own."""
SMALL = (16, 48)
"""Bytes behind a cache line at which small arrays start in turn: by chance with NumPy, so two that no vector likes."""

SCALAR = 1.5
"""The value of every floating-point scalar."""

STEPS = 512
"""Floats are multiples of 1/512, or of 1/1024 around 1, which even half precision represents exactly."""

SLACK = 32
"""The tolerance, in multiples of the expected rounding error of a sum."""

BLOCK = 1 << 20
"""Elements generated or compared at a time, to keep temporary arrays small."""


class Arena:
    """The arguments of a kernel by name, in order. `reset` restores the initial values of the arrays it writes."""

    def __init__(self, data: Data) -> None:
        buffers, indices = data.signature.buffers, {name: (low, end) for name, low, end in data.indices}
        self.values: dict[str, Any] = {}
        self.written = tuple(b.name for b in buffers if b.kind in ("out", "inout"))
        self._memory: dict[str, Array] = {}
        self._starts: dict[str, Array] = {}
        for number, buffer in enumerate(buffers):
            if buffer.kind == "scalar":
                self.values[buffer.name] = SCALAR if buffer.dtype.is_float else 1
                continue
            shape = tuple(max(0, extent.evaluate(dict(data.sizes))) for extent in buffer.shape)
            memory, values = guarded(shape, numpy_type(buffer.dtype), number)
            self._memory[buffer.name], self.values[buffer.name] = memory, values
            if buffer.kind != "out" and buffer.name not in data.fresh:
                if buffer.name in indices:
                    low, end = indices[buffer.name]
                    values[...] = np.random.default_rng(data.seed + number).integers(low, max(low + 1, end), shape)
                else:
                    fill(values, data.seed + number, data.delicate)
                if buffer.kind == "inout":
                    self._starts[buffer.name] = values.copy()

    def reset(self) -> None:
        """Restore the initial values of arrays that the kernel updates, and set pure outputs to NaN (integers: -1)."""
        for name in self.written:
            if name not in self._starts:
                values = self.values[name]
                values[...] = np.nan if values.dtype.kind == "f" else -1
        self.restart()

    def restart(self) -> None:
        """Restore the initial values of arrays that the kernel updates."""
        for name, start in self._starts.items():
            self.values[name][...] = start

    def overrun(self) -> str:
        """The name of an array whose guards were overwritten; empty if there is none."""
        for name, memory in self._memory.items():
            values = self.values[name]
            if overrun(memory, values):
                return name
        return ""


def overrun(memory: Array, values: Array) -> bool:
    """Whether a guard around the array in a memory has changed."""
    start = values.ctypes.data - memory.ctypes.data
    return not ((memory[:start] == 0xFF).all() and (memory[start + values.nbytes :] == 0xFF).all())


def guarded(shape: tuple[int, ...], dtype: np.dtype[Any], number: int) -> tuple[Array, Array]:
    """Memory with all bits set, and the `number`-th array of a call inside it with a guard on either side."""
    size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    memory = np.full(size + 2 * GUARD + PAGE, 0xFF, np.uint8)
    start = GUARD + start_by_numpy(memory[GUARD:], size, number)
    return memory, memory[start : start + size].view(dtype).reshape(shape)


def start_by_numpy(memory: Array, size: int, number: int) -> int:
    """The first byte of a memory where NumPy might put the `number`-th array of a call, of `size` bytes.

    It is less than a page behind the memory's start. `malloc` writes a header before each block: large arrays, which
    get pages of their own, start 16 bytes behind a page, and small ones 16, 32 or 48 bytes behind a cache line as often
    as on one.
    """
    offset, unit = (HEADER, PAGE) if size >= LARGE else (SMALL[number % len(SMALL)], LINE)
    return (offset - int(memory.ctypes.data)) % unit


def fill(values: Array, seed: int, delicate: bool) -> None:
    """Fill with random values that every floating-point type holds exactly: floats in [-1, 1), integers in [-3, 3],
    and unsigned ones in [0, 6].

    With `delicate`, floats are in [0.5, 1.5), and square matrices are diagonally dominant.
    """
    generator = np.random.default_rng(seed)
    flat = values.reshape(-1)
    for start in range(0, flat.size, BLOCK):
        block = flat[start : start + BLOCK]
        if values.dtype.kind in "iu":
            low = -3 if values.dtype.kind == "i" else 0
            block[...] = generator.integers(low, low + 7, block.size)
        else:
            drawn = generator.integers(-STEPS, STEPS, block.size, np.int16)
            block[...] = 1 + drawn / (2 * STEPS) if delicate else drawn / STEPS
    if delicate and values.dtype.kind == "f" and values.ndim >= 2 and values.shape[-1] == values.shape[-2]:
        diagonal = np.arange(values.shape[-1])
        values[..., diagonal, diagonal] = 2 * values.shape[-1]


def difference(name: str, found: Array, expected: Array, length: int) -> str:
    """A description of the worst error in an array; empty if there is none.

    Integers must be equal. Floats may differ by the rounding error of sums of `length` terms, which grows with the root
    of `length`, relative to the element and to the mean of all. Elements whose trusted value is not finite, or so large
    that summation in another order may overflow, are not checked.
    """
    flat, wanted = found.reshape(-1), expected.reshape(-1)
    average = mean(wanted) if wanted.dtype.kind == "f" else 0.0
    worst, place = 1.0, -1
    for start in range(0, flat.size, BLOCK):
        errors = excess(flat[start : start + BLOCK], wanted[start : start + BLOCK], average, length)
        at = int(errors.argmax())
        if errors[at] > worst:
            worst, place = float(errors[at]), start + at
    if place < 0:
        return ""
    index = ", ".join(map(str, np.unravel_index(place, found.shape)))
    return f"wrong result: {name}[{index}] is {flat[place]}, not {wanted[place]}"


def mean(wanted: Array) -> float:
    """The mean of the finite absolute values."""
    total, count = 0.0, 0
    for start in range(0, wanted.size, BLOCK):
        block = np.abs(wanted[start : start + BLOCK])
        finite = np.isfinite(block)
        total += float(block.sum(dtype=np.float64, where=finite))
        count += int(finite.sum())
    return total / max(1, count)


def excess(found: Array, wanted: Array, average: float, length: int) -> Array:
    """The error of each element relative to the tolerance: wrong if above 1, and 0 for elements not checked."""
    if wanted.dtype.kind != "f":
        return np.where(found == wanted, 0.0, np.inf)
    kind = np.finfo(wanted.dtype)
    with np.errstate(all="ignore"):
        allowed = SLACK * float(kind.eps) * sqrt(max(1, length)) * (np.abs(wanted.astype(np.float64)) + average)
        errors = np.abs(found.astype(np.float64) - wanted) / (allowed + float(kind.tiny))
    errors[~np.isfinite(errors)] = np.inf
    errors[~(np.abs(wanted) <= float(kind.max) / max(1, length))] = 0.0
    return errors
