"""Checks of a call's arguments, whose errors say what is wrong and what to do about it.

This is the slow path of a call: the fast path only finds that something does not fit.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from numbers import Number, Real
from typing import Any, cast

import numpy as np

from codegen.calls import remedies
from codegen.calls.numpy_types import numpy_type
from codegen.errors import ArgumentError
from codegen.ir.integer import Affine
from codegen.ir.program import Buffer
from codegen.ir.promotion import LARGEST_INDEX
from codegen.ir.signature import Signature, condition, describe
from microkernels.dtypes import bf16
from microkernels.errors import did_you_mean, plain, shown

MOST_THREADS = 4096
OVERLAP_WORK: Any = 1_000_000
"""The most steps of a search for a byte that two strided arrays share: some hundredths of a second."""
Values = Mapping[str, Any]
"""Arguments by name."""


@dataclass(frozen=True)
class Fitted:
    """Arguments that fit the kernel, and the sizes. Other libraries' arrays are now NumPy arrays on the same memory.

    `given` are the arguments as the caller passed them.
    """

    values: Values
    sizes: Mapping[str, int]
    contiguous: bool
    given: Values


def bind(names: Sequence[str], positional: Sequence[Any], keywords: Values) -> dict[str, Any]:
    """The arguments by name, whether passed by position or by name.

    Raises ArgumentError if one is passed both ways.
    """
    bound = dict(zip(names, positional, strict=False))
    for name, value in keywords.items():
        if name in bound:
            raise ArgumentError(f"got {name} twice, by position and by name")
        if name in names:
            bound[name] = value
    return bound


def fit(
    signature: Signature,
    bound: Values,
    extra: Sequence[Any],
    keywords: Values,
    any_strides: bool = False,
    may_overlap: bool = False,
) -> Fitted:
    """Check the arguments of a call one by one.

    `bound` are the arguments by name, `extra` surplus positional ones, `keywords` the sizes passed by keyword: those
    that no array determines are required, others are optional and compared with the arrays. With `any_strides` an array
    may have any strides, for a caller that copies it. With `may_overlap` the caller asks `overlap`.
    Raises ArgumentError at the first that doesn't fit. Nothing is changed or copied.
    """
    _check_names(signature, bound, extra, keywords)
    checks = {b.name: _number if b.kind == "scalar" else _array for b in signature.buffers}
    values = {b.name: checks[b.name](b, bound[b.name]) for b in signature.buffers}
    given = {size: _given_size(size, value) for size, value in keywords.items()}
    sizes = _solve(signature, values, given)
    _check_given(signature, given, sizes)
    _check_conditions(signature, sizes)
    for buffer in signature.arrays:
        _check_shape(buffer, values[buffer.name], sizes, signature)
    for buffer in signature.outputs:
        _check_writable(buffer, values[buffer.name], bound[buffer.name])
    fitted = Fitted(values, sizes, all(values[b.name].flags.c_contiguous for b in signature.arrays), bound)
    found = None if may_overlap else overlap(signature, values)
    if found:
        raise overlapping(fitted, *found)
    if not any_strides:
        check_strides(signature, fitted)
    return fitted


def check_strides(signature: Signature, fitted: Fitted) -> None:
    """Refuse strides that no kernel takes: rows must be contiguous, other strides nonnegative and whole elements.

    Raises ArgumentError.
    """
    for buffer in signature.arrays:
        _check_strides(buffer, fitted.values[buffer.name], fitted.given[buffer.name], signature.strided)


def check_threads(threads: Any) -> int:
    """The number of threads as an `int`. Raises ArgumentError."""
    if isinstance(threads, bool) or not isinstance(threads, int | np.integer) or not 1 <= threads <= MOST_THREADS:
        raise ArgumentError(f"threads must be an integer from 1 to {MOST_THREADS}; got {shown(threads)}")
    return int(threads)


def _check_names(signature: Signature, bound: Values, extra: Sequence[Any], keywords: Values) -> None:
    names = [b.name for b in signature.buffers]
    takes = f"{signature.name} takes {_count(len(names), 'argument')}: {', '.join(map(describe, signature.buffers))}"
    missing = [name for name in names if name not in bound]
    if extra:
        raise ArgumentError(f"{takes}. Got {len(names) + len(extra)}.")
    known = (*signature.sizes, *dict(signature.fixed))
    for name in keywords:
        if name not in known:
            sizes = f"; by keyword also {', '.join(signature.given)}" if signature.given else ""
            hint = did_you_mean(name, (*known, *names, *OWN_KEYWORDS))
            raise ArgumentError(f"{takes}{sizes}. It has no {plain(name)}.{hint}")
    if missing:
        raise ArgumentError(f"{takes}. Missing: {', '.join(missing)}.")
    untold = [size for size in signature.given if size not in keywords]
    if untold:
        raise _untold(signature, untold)


OWN_KEYWORDS = ("threads", "queue", "wait_for")
"""Keywords with a meaning of their own in a call, so that a size of this name cannot be passed."""


def _untold(signature: Signature, sizes: Sequence[str]) -> ArgumentError:
    """The error for missing sizes: which they are, and the call to write."""
    if set(sizes) & set(OWN_KEYWORDS):
        remedy = f"Fix them before: poly.compile({signature.name}, sizes={{{', '.join(f'{s!r}: …' for s in sizes)}}})"
    else:
        arguments = ", ".join([*(b.name for b in signature.buffers), *(f"{size}=…" for size in signature.given)])
        remedy = f"Call {signature.name}({arguments})"
    one = len(sizes) == 1
    which = f"{'size' if one else 'sizes'} {', '.join(sizes)}, which no array's shape tells"
    return ArgumentError(f"{signature.name} needs the {which}. {remedy}")


def _given_size(size: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 0:
        raise ArgumentError(f"the size {size} must be an integer, 0 or larger; got {shown(value)}")
    if value > LARGEST_INDEX:
        raise ArgumentError(f"the size {size} must be at most 2**48; got {shown(value)}")
    return int(value)


def _check_given(signature: Signature, given: Mapping[str, int], sizes: Mapping[str, int]) -> None:
    """Refuse sizes passed by keyword that contradict the arrays, or the sizes fixed at compile time."""
    fixed = dict(signature.fixed)
    for size, value in given.items():
        if size in fixed and fixed[size] != value:
            raise ArgumentError(
                f"{size} = {value} is given, but {signature.name} was made for {size} = {fixed[size]}. "
                f"Leave {size} out, or take the nest with {size} open"
            )
        if size in sizes and sizes[size] != value:
            step = next(step for step in signature.solved if step.size == size)
            place = f"{'stride' if step.stride else 'dimension'} {step.dimension} of {step.array}"
            raise ArgumentError(
                f"{size} = {value} is given, but the arrays tell {size} = {sizes[size]} ({place}). Leave {size} out"
            )


def _check_conditions(signature: Signature, sizes: Mapping[str, int]) -> None:
    for value in signature.conditions:
        if value.evaluate(sizes) < 0:
            given = " and ".join(f"{name} = {sizes[name]}" for name, _ in value.terms)
            raise ArgumentError(f"{signature.name} is made for {condition(value)}; got {given}")


def _number(buffer: Buffer, value: Any) -> Any:
    if type(value) is np.ndarray and value.shape == ():
        value = value[()]
    if buffer.dtype.is_float:
        if not isinstance(value, Real):
            problem = f"{buffer.name} must be a number ({buffer.dtype.name}); got {_kind(value)}"
            raise ArgumentError(problem + remedies.as_number(buffer, value))
        try:
            return float(value)
        except OverflowError:
            raise ArgumentError(f"{buffer.name} = {shown(value)} does not fit in {buffer.dtype.name}") from None
    if not isinstance(value, int | np.integer):
        problem = f"{buffer.name} must be an integer ({buffer.dtype.name}); got {_kind(value)}"
        raise ArgumentError(problem + remedies.as_number(buffer, value))
    limits = np.iinfo(buffer.dtype.numpy_name)
    if not limits.min <= value <= limits.max:
        raise ArgumentError(f"{buffer.name} = {shown(value)} does not fit in {buffer.dtype.name}")
    return value


def _array(buffer: Buffer, value: Any) -> np.ndarray:
    wanted = numpy_type(buffer.element)
    is_number = buffer.is_complex_value and isinstance(value, Number)
    array = np.array(value, wanted) if is_number else _as_numpy(buffer, value)
    if array.dtype != wanted:
        swapped = array.dtype.byteorder != "=" and array.dtype.name == wanted.name
        got = f"{array.dtype.name} with its bytes in the other order" if swapped else array.dtype.name
        problem = f"{buffer.name} has dtype {got}; expected {describe(buffer)}"
        raise ArgumentError(f"{problem}. {remedies.cast(buffer, value)}")
    if array.ndim != len(buffer.extents):
        dims, got = _count(len(buffer.extents), "dimension"), _count(array.ndim, "dimension")
        raise ArgumentError(f"{buffer.name} has {got}, shape {array.shape}; expected {dims}: {describe(buffer)}")
    if not array.flags.aligned:
        raise ArgumentError(
            f"{buffer.name} is not aligned: its elements don't start at multiples of their size. "
            f"{remedies.aligned(buffer, value)}"
        )
    return array


def _as_numpy(buffer: Buffer, value: Any) -> np.ndarray:
    """The array itself, or a NumPy array on the same memory. Raises ArgumentError if that would take a copy."""
    if isinstance(value, np.ma.MaskedArray):
        raise ArgumentError(f"{buffer.name} is a masked array, and masks are ignored. {remedies.unmasked(buffer)}")
    kind = type(value)
    if kind is np.ndarray:
        return cast(np.ndarray, value)
    if issubclass(kind, np.ndarray):
        return np.ndarray.view(value, np.ndarray)  # a subclass may report any shape
    check_memory(buffer, value)
    try:
        if hasattr(kind, "__dlpack__"):
            return np.from_dlpack(value) if buffer.dtype != bf16 else _from_bits(value)
        return np.asarray(memoryview(value))
    except Exception as error:  # an object's own protocol may raise anything
        raise ArgumentError(
            f"{buffer.name} is {_kind(value)}; expected a NumPy array, {describe(buffer)}, or an object that shares "
            f"its memory by DLPack or the buffer protocol ({error}). {remedies.shared(buffer, value)}"
        ) from error


def _from_bits(value: Any) -> np.ndarray:
    """A tensor of bf16, which NumPy does not take by DLPack, on the same memory."""
    if str(value.dtype).rpartition(".")[2] != bf16.numpy_name:
        return np.from_dlpack(value)
    bits = value.view(sys.modules[type(value).__module__.partition(".")[0]].int16)
    return np.from_dlpack(bits).view(numpy_type(bf16))


DEVICES = {2: "CUDA", 4: "OpenCL", 7: "Vulkan", 8: "Metal", 10: "ROCm", 14: "oneAPI"}
"""The devices whose memory a CPU cannot access, by their numbers in DLPack."""


PENDING = {"neg": "negated", "conj": "conjugated"}
"""What PyTorch leaves to whoever reads a tensor, by the names in its methods."""


def check_memory(buffer: Buffer, value: Any) -> None:
    """Refuse an array of another library whose values are not in this CPU's memory as they are."""
    place, pending = None, list[str]()
    with suppress(Exception):  # an object's own protocol may raise anything
        place = DEVICES.get(int(value.__dlpack_device__()[0]))
    for operation in ("neg", "conj"):
        with suppress(Exception):
            pending += [operation] * (getattr(value, f"is_{operation}")() is True)
    if place is not None:
        where = f"on a {place} device, and the kernel runs on this CPU"
        raise ArgumentError(f"{buffer.name} is {_kind(value)} {where}. {remedies.by_method(buffer, 'cpu')}")
    for operation in pending:
        raise ArgumentError(
            f"{buffer.name} is {_kind(value)} whose memory has its values {PENDING[operation]}. "
            f"{remedies.by_method(buffer, f'resolve_{operation}')}"
        )


def _solve(signature: Signature, values: Values, given: Mapping[str, int]) -> dict[str, int]:
    """The value of each size, in the signature's order."""
    sizes = {size: given[size] for size in signature.given}
    units = {b.name: b.dtype.size for b in signature.arrays}
    for step in signature.solved:
        array = values[step.array]
        if step.stride:
            sizes[step.size] = array.strides[step.dimension] // units[step.array]
            continue
        size, left = divmod(array.shape[step.dimension] - step.rest.evaluate(sizes), step.coefficient)
        if left or size < 0:
            buffer = next(b for b in signature.arrays if b.name == step.array)
            equation = f"{buffer.shape[step.dimension]} = {array.shape[step.dimension]}{_known(sizes)}"
            raise ArgumentError(
                f"{buffer.name} has shape {array.shape}; expected {describe(buffer)}: "
                f"no size {step.size} makes {equation}"
            )
        sizes[step.size] = size
    return {size: sizes[size] for size in signature.sizes}


def _check_shape(buffer: Buffer, array: np.ndarray, sizes: Mapping[str, int], signature: Signature) -> None:
    for dimension, extent in enumerate(buffer.extents):
        wanted = extent.evaluate(sizes)
        if array.shape[dimension] != wanted:
            expected = tuple(e.evaluate(sizes) for e in buffer.extents)
            because = _because(buffer, extent, sizes, signature)
            raise ArgumentError(f"{buffer.name} has shape {array.shape}; expected {expected}{because}")


def _because(buffer: Buffer, extent: Affine, sizes: Mapping[str, int], signature: Signature) -> str:
    """The source of the expected extent: `: it is B: f32[K, N], and K = 4 (dimension 1 of A)`."""
    steps = {step.size: step for step in signature.solved}
    places = {name: f"dimension {step.dimension} of {step.array}" for name, step in steps.items()}
    reasons = [f"{name} = {sizes[name]} ({places.get(name, 'given')})" for name, _ in extent.terms]
    if reasons:
        return f": it is {describe(buffer)}, and {', '.join(reasons)}"
    return f". {_made_for(signature)}" if signature.fixed else ""


def _made_for(signature: Signature) -> str:
    """The sizes that were fixed at compile time, and what to do about them."""
    fixed = ", ".join(f"{size} = {value}" for size, value in signature.fixed)
    return f"{signature.name} was made for {fixed}; take the nest with its sizes open"


def _check_writable(buffer: Buffer, array: np.ndarray, given: Any) -> None:
    if not array.flags.writeable:
        problem = f"{buffer.name} is read-only, and the kernel writes it"
        raise ArgumentError(f"{problem}. {remedies.writable(buffer, given)}")
    if array.size == 0:
        return
    extents = sorted((abs(s), n) for s, n in zip(array.strides, array.shape, strict=True) if n > 1)
    reach = array.itemsize
    for stride, count in extents:
        if stride < reach:
            raise ArgumentError(
                f"{buffer.name} is written, but several of its elements share memory (strides {array.strides}). "
                f"{remedies.writable(buffer, given)}"
            )
        reach += stride * (count - 1)


def overlap(signature: Signature, values: Values) -> tuple[Buffer, Buffer] | None:
    """The first output that shares memory with another array, and this array; None if there is none."""
    for output in signature.outputs:
        for other in signature.arrays:
            if other is not output and _share(values[output.name], values[other.name]):
                return output, other
    return None


def overlapping(fitted: Fitted, output: Buffer, other: Buffer, because: str = "") -> ArgumentError:
    """The error for an output that shares memory with another array, and why that may not be."""
    reason = f": {because}" if because else ""
    return ArgumentError(
        f"{output.name} is written and shares memory with {other.name}{reason}. "
        f"{remedies.apart(other, fitted.given[other.name], output)}"
    )


def are_same(output: Buffer, other: Buffer, values: Values) -> bool:
    """Whether an output is the same elements in memory as an input that has its shape in the nest."""
    if other.kind != "in" or (other.dtype, other.shape) != (output.dtype, output.shape):
        return False
    one, two = values[output.name], values[other.name]
    return (one.ctypes.data, one.strides) == (two.ctypes.data, two.strides)


def _share(one: np.ndarray, other: np.ndarray) -> bool:
    """Whether two arrays have a byte in common; True as well if that would take too long to find out."""
    try:
        return np.shares_memory(one, other, max_work=OVERLAP_WORK)
    except np.exceptions.TooHardError:
        return True


def _check_strides(buffer: Buffer, array: np.ndarray, given: Any, strided: bool) -> None:
    if strided and buffer.strides is None and not array.flags.c_contiguous:
        raise not_contiguous(buffer, array, given)
    if array.size == 0:
        return
    strides = [stride for stride, extent in zip(array.strides, array.shape, strict=True) if extent > 1]
    whole = all(stride >= 0 and stride % array.itemsize == 0 for stride in strides)
    rows = array.ndim == 0 or array.shape[-1] <= 1 or array.strides[-1] == array.itemsize
    if not (whole and rows):
        raise not_contiguous(buffer, array, given)


def not_contiguous(buffer: Buffer, array: np.ndarray, given: Any) -> ArgumentError:
    """The error for an array that is not contiguous in row-major order, which the caller passed as `given`."""
    problem = f"{buffer.name} is not contiguous: shape {array.shape}, strides {array.strides} bytes"
    return ArgumentError(f"{problem}. {remedies.made_dense(buffer, given)}")


def _known(sizes: Mapping[str, int]) -> str:
    return " where " + ", ".join(f"{name} = {value}" for name, value in sizes.items()) if sizes else ""


def _kind(value: Any) -> str:
    name = type(value).__name__
    return f"{'an' if name[0] in 'aeiou' else 'a'} {name}"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'s' * (number != 1)}"
