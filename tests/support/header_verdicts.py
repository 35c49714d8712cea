"""The answers that a header's functions must give, computed with Python's integers and sets of bytes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from math import prod

from header_calls import CODES, OWN_MEMORY, Answer, Call

from codegen.ir.program import Buffer
from codegen.names import c_name
from codegen.package import Header, Routine

Piece = tuple[int, int]
"""Bytes from the first number up to the second."""


@dataclass(frozen=True)
class Placed:
    """An array of a call: `steps` are its extents and strides, outermost first."""

    buffer: Buffer
    address: int
    steps: tuple[tuple[int, int], ...]

    @property
    def empty(self) -> bool:
        return any(extent == 0 for extent, _ in self.steps)

    @property
    def bytes(self) -> int:
        return 0 if self.empty else self.reach(0) * self.buffer.dtype.size

    @property
    def count(self) -> int:
        return prod(extent for extent, _ in self.steps)

    def places(self) -> Iterator[int]:
        """The addresses of all bytes of all elements, element by element."""
        for index in product(*(range(extent) for extent, _ in self.steps)):
            at = sum(i * stride for i, (_, stride) in zip(index, self.steps, strict=True))
            start = self.address + at * self.buffer.dtype.size
            yield from range(start, start + self.buffer.dtype.size)

    def reach(self, dimension: int) -> int:
        """The elements from the first to past the last, over the dimensions from this one on."""
        return 1 + sum((extent - 1) * stride for extent, stride in self.steps[dimension:])


def verdict(header: Header, bits: int, call: Call) -> Answer:
    """The right answer for addresses of this many bits."""
    routine = header.routines[call.routine]
    status = _sizes_status(header, routine, bits, call)
    if call.function == 2:
        return Answer(-CODES[status] if status != "OK" else _room(call.need + call.more))
    arrays = placed(routine, call) if status == "OK" else []
    status = status if status != "OK" else _arrays_status(arrays, bits)
    if status != "OK" or all(array.empty for array in arrays if array.buffer.kind != "in"):
        return Answer(CODES[status])
    return _run(header, routine, bits, call, arrays)


def limit(bits: int) -> int:
    return 2**48 - 1 if bits == 64 else 2**30 - 1


def overlap(a: Placed, b: Placed, bits: int) -> bool:
    """Whether the byte ranges of two arrays overlap, other than as blocks of one matrix."""
    if not _meet(_pieces(a.address, a.bytes, 2**bits), _pieces(b.address, b.bytes, 2**bits)):
        return False
    if not all(array.buffer.strides and len(array.steps) > 1 for array in (a, b)):
        return True
    around = a.steps[0][1] * a.buffer.dtype.size
    if around != b.steps[0][1] * b.buffer.dtype.size:
        return True
    rows = [_pieces(array.address % around, array.reach(1) * array.buffer.dtype.size, around) for array in (a, b)]
    return _meet(*rows)


def _sizes_status(header: Header, routine: Routine, bits: int, call: Call) -> str:
    sizes = _sizes(routine, call)
    if any(not 0 <= value <= limit(bits) for value in sizes.values()):
        return "BAD_SIZE"
    local = [b for b in routine.reference.buffers if b.kind == "local"]
    for buffer in (*routine.signature.arrays, *local):
        count = buffer.dtype.size
        for extent in buffer.shape:
            value = extent.evaluate(sizes)
            if value < 0:
                return "BAD_SIZE"
            count *= max(value, 1)
        if count > limit(bits):
            return "BAD_SIZE"
    if header.threads != "none" and not 1 <= call.values["threads"] <= 256:
        return "BAD_THREADS"
    return "OK"


def _sizes(routine: Routine, call: Call) -> dict[str, int]:
    return {size: call.values[c_name(size)] for size in routine.sizes}


def placed(routine: Routine, call: Call) -> list[Placed]:
    """The arrays, with dense strides where those given are 0."""
    sizes = _sizes(routine, call)
    found = []
    for buffer in routine.signature.arrays:
        shape = [extent.evaluate(sizes) for extent in buffer.shape]
        strides = [1] * len(shape)
        for at in reversed(range(len(shape) - 1)):
            given = call.values[c_name(buffer.strides[at])] if buffer.strides else 0
            strides[at] = given or shape[at + 1] * strides[at + 1]
        found.append(Placed(buffer, call.values[c_name(buffer.name)], tuple(zip(shape, strides, strict=True))))
    return found


def _arrays_status(arrays: list[Placed], bits: int) -> str:
    for array in arrays:
        most = limit(bits) // array.buffer.dtype.size
        for at, (extent, stride) in enumerate(array.steps[:-1]):
            if not 0 <= stride <= limit(bits) or extent * stride > most:
                return "BAD_STRIDE"
            if not array.empty and stride < array.reach(at + 1):
                return "BAD_STRIDE"
    if any(array.address == 0 and not array.empty for array in arrays):
        return "NULL_POINTER"
    if any(array.address % array.buffer.dtype.size for array in arrays):
        return "MISALIGNED"
    for at, array in enumerate(arrays):
        others = [other for b, other in enumerate(arrays) if b != at]
        if array.buffer.kind != "in" and any(overlap(array, other, bits) for other in others):
            return "OVERLAP"
    return "OK"


def _room(need: int) -> int:
    """The bytes in which this many are found at a multiple of 64."""
    return need + 63 if need else 0


def _run(header: Header, routine: Routine, bits: int, call: Call, arrays: list[Placed]) -> Answer:
    """The answer to a call whose arguments are right, except perhaps the workspace."""
    workspace, taken, most = call.workspace, 0, _room(call.need + call.more)
    if call.function == 0 and call.need:
        taken = _room(call.need)
        if taken > limit(bits) or call.fails:
            return Answer(CODES["OUT_OF_MEMORY"], None, taken if taken <= limit(bits) else 0)
        workspace = OWN_MEMORY
    elif call.function == 1 and most:
        if not workspace or call.workspace_bytes < most or workspace + most >= 2**bits:
            return Answer(CODES["WORKSPACE_TOO_SMALL"])
        own = _pieces(workspace, most, 2**bits)
        if any(_meet(own, _pieces(array.address, array.bytes, 2**bits)) for array in arrays):
            return Answer(CODES["OVERLAP"])
    memory = -(-workspace // 64) * 64 % 2**bits if call.need else 0
    threads = 1 if header.threads == "none" else call.values["threads"]
    seen = tuple(value % 2**64 for value in (1, *_data(routine, call, arrays), threads, memory))
    return Answer(0, seen, taken, int(taken > 0))


def _data(routine: Routine, call: Call, arrays: list[Placed]) -> Iterator[int]:
    """Sizes, strides, then arrays and scalars."""
    strides: Mapping[str, int] = {
        name: stride
        for array in arrays
        for name, (_, stride) in zip(array.buffer.strides or (), array.steps, strict=False)
    }
    for size in routine.signature.sizes:
        yield strides[size] if size in strides else call.values[c_name(size)]
    for buffer in routine.signature.buffers:
        yield call.values[c_name(buffer.name)]


def _pieces(start: int, count: int, around: int) -> list[Piece]:
    """`count` places from `start` on, cyclically."""
    if count == 0:
        return []
    end = start + count
    return [(start, end)] if end <= around else [(start, around), (0, end - around)]


def _meet(some: list[Piece], others: list[Piece]) -> bool:
    return any(a < d and c < b for a, b in some for c, d in others)
