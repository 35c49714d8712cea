"""Checks of a call's arguments: a status for each error, and no undefined behaviour for any argument.

Each routine has two functions in C. `ROUTINE_sizes` checks the arguments of `NAME_workspace_size`, sizes and threads;
`ROUTINE_check` checks the arrays, once the sizes are right and no stride is 0. For what they accept, every product of
extents, every distance between elements and every array's bytes are far within 64 bits.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from math import prod

from codegen.calls.guard import pairs
from codegen.ir.integer import Affine, extent, in_c, product
from codegen.ir.program import Buffer
from codegen.ir.signature import describe
from codegen.names import c_name
from codegen.package.api import array_parameters, block, filled, listed, open_strides, own_name, size_arguments
from codegen.package.values import Header, Routine
from codegen.parameters import Parameter, prototype, size_parameters

LIMITS = """/* The most that a size, a stride, and the bytes of an array may be; the most threads. */
#if UINTPTR_MAX > 0xFFFFFFFFu
#define PFX_SIZE_LIMIT INT64_C(0xFFFFFFFFFFFF)
#else
#define PFX_SIZE_LIMIT INT64_C(0x3FFFFFFF)
#endif
#define PFX_MAX_THREADS 256"""

WIDE, NARROW = 48, 30
"""The bits of PFX_SIZE_LIMIT, all ones, with 64-bit addresses and with shorter ones."""

ORDER = """Arguments are checked in this order, and the first that is wrong makes the status: sizes, and the shapes that
follow from them; threads; strides; null pointers; alignment; overlaps; the workspace. An array's bytes are limited as
if each dimension of 0 were 1. An array without elements may be null, and overlaps nothing. Two arrays overlap where the
bytes from the first element to the last do, unless their first strides are equal and they are blocks of one matrix,
side by side. Where no output has an element, a call that is right so far returns PFX_OK and takes no workspace."""
"""Text for the contract."""

HELPERS = {
    "PFX_BITS": """#if UINTPTR_MAX > 0xFFFFFFFFu
#define PFX_BITS(wide, narrow) wide
#else
#define PFX_BITS(wide, narrow) narrow
#endif""",
    "pfx_some": """/* An extent, 0 counted as 1. */
static inline int64_t pfx_some(int64_t count) { return count > 1 ? count : 1; }""",
    "pfx_times": """/* The product of two numbers from 0 up; INT64_MAX where it is more than that. */
static inline int64_t pfx_times(int64_t a, int64_t b)
{
    uint64_t result;
    const int wraps = __builtin_mul_overflow((uint64_t)a, (uint64_t)b, &result);
    return wraps || result > (uint64_t)INT64_MAX ? INT64_MAX : (int64_t)result;
}""",
    "pfx_beyond": """/* Whether the product of two numbers from 0 up is beyond a limit. */
static inline int pfx_beyond(int64_t a, int64_t b, int64_t limit)
{
    uint64_t result;
    return __builtin_mul_overflow((uint64_t)a, (uint64_t)b, &result) || result > (uint64_t)limit;
}""",
    "pfx_overlap": """/* Whether two arrays share bytes; addresses are subtracted modulo all addresses. */
PFX_WRAPS static inline int pfx_overlap(const void *a, int64_t a_bytes, const void *b, int64_t b_bytes)
{
    const uintptr_t distance = (uintptr_t)b - (uintptr_t)a;
    return distance < (uintptr_t)a_bytes || (uintptr_t)0 - distance < (uintptr_t)b_bytes;
}""",
    "pfx_blocks": """/* Whether two arrays are blocks of one matrix: their parts lie equally far apart, side by side. */
static int pfx_blocks(const void *a, int64_t a_part, int64_t a_stride, const void *b, int64_t b_part, int64_t b_stride)
{
    const uintptr_t from = (uintptr_t)a, to = (uintptr_t)b, stride = (uintptr_t)a_stride;
    const uintptr_t gap = from <= to ? (to - from) % stride : stride - 1 - (from - to - 1) % stride;
    return a_stride == b_stride && gap >= (uintptr_t)a_part && gap <= stride - (uintptr_t)b_part;
}""",
}
"""The C text of what the checks call, by name."""


def helpers(code: str) -> str:
    """The helpers that the code calls."""
    return "\n\n".join(text for name, text in HELPERS.items() if re.search(rf"\b{name}\(", code))


def check(routine: Routine, header: Header) -> str:
    """The C text of `ROUTINE_sizes` and `ROUTINE_check`."""
    return f"{_sizes_function(routine, header)}\n\n{_check_function(routine)}"


def check_parameters(routine: Routine) -> tuple[Parameter, ...]:
    """The parameters of `ROUTINE_check`; it stores each array's bytes, valid if it has elements, in the last one."""
    shapes = frozenset[str]().union(*(size.names for b in routine.signature.arrays for size in b.shape))
    scalars = {c_name(b.name) for b in routine.signature.buffers if b.kind == "scalar"}
    sizes = size_parameters([size for size in routine.sizes if size in shapes])
    arrays = tuple(p for p in array_parameters(routine) if p.name not in scalars)
    return (*sizes, *arrays, Parameter("int64_t *", own_name(routine, "bytes")))


def resolved(routine: Routine) -> list[str]:
    """C lines that give strides of 0 their dense values; they follow the check of the sizes."""
    return [line for buffer in routine.signature.arrays for line in _resolved(routine, buffer)]


def spans(routine: Routine) -> dict[str, str]:
    """C text of the variable that holds the bytes of each array."""
    return {b.name: f"{own_name(routine, 'bytes')}[{at}]" for at, b in enumerate(routine.signature.arrays)}


def _sizes_function(routine: Routine, header: Header) -> str:
    lines = [*_limit_lines(routine), *_shape_lines(routine)]
    lines += [f"if ({in_c(value)} < 0) return PFX_BAD_SIZE;" for value in routine.signature.conditions]
    if header.threads != "none":
        lines.append("if (threads < 1 || threads > PFX_MAX_THREADS) return PFX_BAD_THREADS;")
    return _function(f"{routine.name}_sizes", size_arguments(routine, header), lines)


def _check_function(routine: Routine) -> str:
    arrays = routine.signature.arrays
    bytes_of = spans(routine)
    strided = any(b.strides is not None for b in arrays)
    lines = [f"int64_t {own_name(routine, 'reach')};"] * strided + list(_stride_limits(routine))
    for buffer in arrays:
        lines += _span_lines(routine, buffer, bytes_of[buffer.name])
    lines += [f"if ({_all(f'!{c_name(b.name)}', filled(b))}) return PFX_NULL_POINTER;" for b in arrays]
    for size in sorted({b.dtype.size for b in arrays} - {1}):
        addresses = " | ".join(f"(uintptr_t){c_name(b.name)}" for b in arrays if b.dtype.size == size)
        lines.append(f"if (({addresses}) % {size} != 0) return PFX_MISALIGNED;")
    for a, b in pairs(routine.signature):
        overlap = f"pfx_overlap({c_name(a.name)}, {bytes_of[a.name]}, {c_name(b.name)}, {bytes_of[b.name]})"
        lines.append(f"if ({_all(overlap, filled(a, b), _no_blocks(routine, a, b))}) return PFX_OVERLAP;")
    return _function(f"{routine.name}_check", check_parameters(routine), lines)


def _no_blocks(routine: Routine, a: Buffer, b: Buffer) -> str:
    """C text of the condition that two arrays are not blocks of one matrix; empty if they never are."""
    if not (open_strides(routine, a) and open_strides(routine, b)):
        return ""
    return f"!pfx_blocks({_block(a)}, {_block(b)})"


def _block(array: Buffer) -> str:
    """C text of an array, the bytes of one part along its first stride, and the bytes from one part to the next."""
    size = array.dtype.size
    stride = c_name((array.strides or ("",))[0])
    return f"{c_name(array.name)}, {_part(array)}*{size}, {stride}*{size}"


def _part(array: Buffer) -> str:
    """C text of the elements that one part along an array's first stride spans."""
    part = extent(array.shape[-1])
    inner = list(zip(array.shape, array.strides or (), strict=False))[1:-1]
    for shape, stride in reversed(inner):
        part = f"(({extent(shape)} - 1)*{c_name(stride)} + {part})"
    return part


def _function(name: str, parameters: Sequence[Parameter], lines: Sequence[str]) -> str:
    return f"{prototype('PFX_INLINE pfx_status', name, listed(parameters))}\n{block((*lines, 'return PFX_OK;'))}"


def _all(*conditions: str) -> str:
    return " && ".join(condition for condition in conditions if condition)


def _limit_lines(routine: Routine) -> Iterator[str]:
    """Checks that sizes and the arrays' bytes are within the limit; for small sizes the arrays need no check."""
    if not routine.sizes:
        return
    every = f"({' | '.join(f'(uint64_t){c_name(size)}' for size in routine.sizes)})"
    limits = [f"if ({every} > (uint64_t)PFX_SIZE_LIMIT) return PFX_BAD_SIZE;"]
    rooms = [room for buffer in _all_arrays(routine) for room in _room_lines(buffer)]
    if rooms:
        wide, narrow = (min(_small(buffer, bits) for buffer in _all_arrays(routine)) for bits in (WIDE, NARROW))
        yield f"if ({every} >> PFX_BITS({wide}, {narrow}) != 0) {{"
        yield from (f"    {line}" for line in (*limits, *_factor_lines(routine), *rooms))
        yield "}"
    else:
        yield from limits


def _all_arrays(routine: Routine) -> list[Buffer]:
    """The arrays that a caller passes, and those that a call allocates."""
    return [*routine.signature.arrays, *(b for b in routine.reference.buffers if b.kind == "local")]


def _small(buffer: Buffer, bits: int) -> int:
    """The most bits that sizes may have so that the array's bytes have no more than `bits`."""
    opened = [size for size in buffer.shape if size.terms]
    known = (_known_bytes(buffer) - 1).bit_length() + sum((_factors(size) - 1).bit_length() for size in opened)
    return max(bits - known, 0) // len(opened) if opened else bits


def _known_bytes(buffer: Buffer) -> int:
    """An element's bytes times the constant extents."""
    return prod((max(size.constant, 1) for size in buffer.shape if not size.terms), start=buffer.dtype.size)


def _factors(size: Affine) -> int:
    """An extent is at most this many times the largest size."""
    return sum(abs(factor) for _, factor in size.terms) + abs(size.constant)


def _room_lines(buffer: Buffer) -> Iterator[str]:
    """Checks that the bytes of a dense array are within the limit."""
    known = _known_bytes(buffer)
    opened = [size for size in buffer.shape if size.terms]
    if not opened and known < 1 << NARROW:
        return
    room = str(min(known, 1 << WIDE))
    for size in opened:
        room = f"pfx_times({room}, pfx_some({extent(size)}))"
    yield f"/* {describe(buffer)} */"
    yield f"if ({room} > PFX_SIZE_LIMIT) return PFX_BAD_SIZE;"


def _factor_lines(routine: Routine) -> Iterator[str]:
    """Checks that no extent overflows, however large its factors are."""
    for size in _shapes(_all_arrays(routine)):
        if _factors(size) >= 1 << (62 - WIDE):
            tests = [f"{c_name(name)} > PFX_SIZE_LIMIT/{_factors(size)}" for name in sorted(size.names)]
            yield f"if ({' || '.join(tests)}) return PFX_BAD_SIZE;"


def _shape_lines(routine: Routine) -> Iterator[str]:
    """Checks that extents such as `P + R - 1` are not negative; negative ones of local arrays mean 0."""
    for size in _shapes(routine.signature.arrays):
        if size.constant < 0 or any(factor < 0 for _, factor in size.terms):
            yield f"if ({extent(size)} < 0) return PFX_BAD_SIZE;"


def _shapes(arrays: Sequence[Buffer]) -> list[Affine]:
    """Every extent of the arrays that depends on sizes, once."""
    return list(dict.fromkeys(size for buffer in arrays for size in buffer.shape if size.terms))


def _stride_limits(routine: Routine) -> Iterator[str]:
    if routine.strides:
        every = " | ".join(f"(uint64_t){c_name(stride)}" for stride in routine.strides)
        yield f"if (({every}) > (uint64_t)PFX_SIZE_LIMIT) return PFX_BAD_STRIDE;"


def _span_lines(routine: Routine, buffer: Buffer, span: str) -> Iterator[str]:
    """Checks strides, and sets `span` to the bytes from an array's first element to the end of its last."""
    size = buffer.dtype.size
    if buffer.strides is None:
        yield f"{span} = {product([*map(in_c, buffer.shape), size])};"
        return
    reach = own_name(routine, "reach")
    yield f"/* {describe(buffer)} */"
    yield f"{reach} = {extent(buffer.shape[-1])};"
    for shape, stride in reversed(list(zip(buffer.shape, map(c_name, buffer.strides[:-1]), strict=False))):
        if not stride.isdigit():
            yield f"if ({_all(f'{stride} < {reach}', filled(buffer))}) return PFX_BAD_STRIDE;"
        yield f"if (pfx_beyond({extent(shape)}, {stride}, PFX_SIZE_LIMIT/{size})) return PFX_BAD_STRIDE;"
        yield f"{reach} += ({extent(shape)} - 1)*{stride};"
    yield f"{span} = {reach}*{size};"


def _resolved(routine: Routine, buffer: Buffer) -> Iterator[str]:
    """`if (A_ld == 0) A_ld = K;`, from the innermost stride outwards."""
    opened = open_strides(routine, buffer)
    steps = pairwise(zip(buffer.strides or (), buffer.shape, strict=False))
    for (stride, _), (inner, size) in reversed(list(steps)):
        if stride in opened:
            dense = extent(size) if inner == "1" else f"pfx_times({extent(size)}, {c_name(inner)})"
            yield f"if ({c_name(stride)} == 0) {c_name(stride)} = {dense};"
