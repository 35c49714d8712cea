"""Calls of the compiled kernels of this package: it checks arguments, and needs NumPy and the standard library alone.

poly wrote this package. Arrays are NumPy arrays, or objects that share their memory by DLPack or the buffer protocol;
they are read and written in place. What does not fit raises ArgumentError, and then no array has been changed.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Number
from pathlib import Path
from typing import Any

import numpy as np

MOST_THREADS = 256
LARGEST = 2**48 - 1
BFLOAT16 = "bfloat16"
FOLDER = Path(__file__).parent


class ArgumentError(ValueError):
    """An argument doesn't fit: the message names it, what was expected, what was passed, and the remedy."""


@dataclass(frozen=True)
class Argument:
    """An array or a scalar: `extents` are Python expressions of sizes; of `strides` dimensions the call passes one."""

    name: str
    dtype: str
    kind: str
    extents: tuple[str, ...] = ()
    strides: int = 0
    text: str = ""

    @property
    def written(self) -> bool:
        return self.kind in ("out", "inout")

    @property
    def types(self) -> tuple[str, ...]:
        """The names of NumPy's types that it may have; bf16 is that of the package ml_dtypes, or its bits."""
        return (BFLOAT16, "uint16") if self.dtype == BFLOAT16 else (self.dtype,)


@dataclass(frozen=True)
class Size:
    """A size that an array tells: `(extent of the dimension - rest)/coefficient`."""

    name: str
    array: str
    dimension: int
    coefficient: int
    rest: str


class Library:
    """The shared library of this package, and what it says about itself."""

    def __init__(self, file: str, prefix: str, isas: Mapping[str, int]) -> None:
        self.loaded = ctypes.CDLL(str(FOLDER / file))
        self._isas = isas
        self._text = self.function(f"{prefix}_status_text", [ctypes.c_int], ctypes.c_char_p)
        self._in_use = self.function(f"{prefix}_isa_in_use", [])
        self._force = self.function(f"{prefix}_force_isa", [ctypes.c_int])

    def function(self, name: str, arguments: Sequence[Any], result: Any = ctypes.c_int) -> Any:
        """A C function of the library."""
        found = getattr(self.loaded, name)
        found.argtypes, found.restype = list(arguments), result
        return found

    def status(self, number: int) -> str:
        """A status in words."""
        return str(self._text(number).decode())

    def isa_in_use(self) -> str:
        """The instruction set of calls from now on."""
        number = self._in_use()
        return next(name for name, value in self._isas.items() if value == number)

    def force_isa(self, name: str | None) -> None:
        """Use an instruction set from now on; None leaves the choice to the CPU again. Raises ValueError."""
        if name is not None and name not in self._isas:
            raise ValueError(f"there is no instruction set {name!r}: expected one of {', '.join(self._isas)}")
        status = self._force(0 if name is None else self._isas[name])
        if status:
            raise ValueError(f"{name}: {self.status(status)}")


class Routine:
    """One function of the library; a call takes all arguments by name."""

    def __init__(
        self,
        library: Library,
        symbol: str,
        name: str,
        arguments: Sequence[Argument],
        sizes: Sequence[str],
        solved: Sequence[Size],
        fixed: Mapping[str, int],
        threaded: bool,
    ) -> None:
        self.name, self.arguments, self.sizes, self.solved, self.fixed = name, arguments, sizes, solved, fixed
        self.library, self.threaded = library, threaded
        self.given = [size for size in sizes if size not in {one.name for one in solved}]
        self._codes: dict[str, Any] = {}
        types: list[Any] = [ctypes.c_int64] * len(sizes)
        for one in arguments:
            if one.kind == "scalar":
                types.append(np.ctypeslib.as_ctypes_type(np.dtype(one.dtype)))
            else:
                types += [ctypes.c_void_p, *[ctypes.c_int64] * one.strides]
        self._function = library.function(symbol, [*types, *[ctypes.c_int32] * threaded])

    def __call__(self, values: Mapping[str, Any], threads: int | None, given: Mapping[str, Any]) -> None:
        """Check the arguments, and run the kernel."""
        fitted = {one.name: self._fitted(one, values[one.name]) for one in self.arguments}
        sizes = self._solve(fitted, {name: self._size(name, given[name]) for name in self.given})
        for one in self.arguments:
            if one.kind != "scalar":
                self._check(one, fitted[one.name], sizes)
        data: list[Any] = [sizes[name] for name in self.sizes]
        for one in self.arguments:
            array = fitted[one.name]
            data += [array] if one.kind == "scalar" else [array.ctypes.data, *self._strides(one, array)]
        if self.threaded:
            data.append(self._threads(threads))
        status = self._function(*data)
        if status:
            raise self._refused(status, fitted)

    def _size(self, name: str, value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or not 0 <= value <= LARGEST:
            raise ArgumentError(f"the size {name} must be an integer from 0 to 2**48 - 1; got {value!r}")
        return int(value)

    def _threads(self, threads: Any) -> int:
        if threads is None:
            return min(len(os.sched_getaffinity(0)), MOST_THREADS)
        if isinstance(threads, bool) or not isinstance(threads, int | np.integer) or not 1 <= threads <= MOST_THREADS:
            raise ArgumentError(f"threads must be an integer from 1 to {MOST_THREADS}; got {threads!r}")
        return int(threads)

    def _fitted(self, one: Argument, value: Any) -> Any:
        """A number that fits its type, or a NumPy array on the same memory."""
        if one.kind == "scalar":
            return self._number(one, value)
        array = self._array(one, value)
        if array.dtype.name not in one.types:
            back = f", and copy it back after the call: {one.name}[...] = it" if one.written else ""
            package = "ml_dtypes" if one.dtype == BFLOAT16 else "np"
            remedy = f"{one.name}.astype({package}.{one.dtype}){back}"
            raise ArgumentError(f"{one.name} has dtype {array.dtype}; expected {one.text}. Remedy: {remedy}")
        if array.ndim != len(one.extents):
            raise ArgumentError(f"{one.name} has {array.ndim} dimensions, shape {array.shape}; expected {one.text}")
        if one.written and not array.flags.writeable:
            raise ArgumentError(f"{one.name} is read-only, and the kernel writes it. Remedy: {one.name}.copy()")
        return array

    def _array(self, one: Argument, value: Any) -> Any:
        if isinstance(value, np.ma.MaskedArray):
            raise ArgumentError(f"{one.name} is a masked array. Remedy: {one.name}.filled(0)")
        if one.dtype.startswith("complex") and not (one.extents or one.written) and isinstance(value, Number):
            return np.array(value, one.dtype)
        if isinstance(value, np.ndarray):
            return value
        try:
            if not hasattr(value, "__dlpack__"):
                return np.asarray(memoryview(value))
            if str(getattr(value, "dtype", "")).endswith(BFLOAT16):  # a tensor, which NumPy takes as its bits alone
                value = value.view(sys.modules[type(value).__module__.partition(".")[0]].int16)
                return np.from_dlpack(value).view(np.uint16)
            return np.from_dlpack(value)
        except Exception as error:  # an object's own protocol may raise anything
            raise ArgumentError(
                f"{one.name} is {type(value).__name__}; expected {one.text}, as a NumPy array or an object that shares "
                f"its memory by DLPack or the buffer protocol ({error})"
            ) from error

    def _number(self, one: Argument, value: Any) -> Any:
        dtype = np.dtype(one.dtype)
        try:
            number = float(value) if dtype.kind == "f" else value.__index__()
        except (TypeError, ValueError, OverflowError, AttributeError) as error:
            raise ArgumentError(f"{one.name} must be a number, {one.text}; got {value!r}") from error
        if dtype.kind != "f" and not np.iinfo(dtype).min <= number <= np.iinfo(dtype).max:
            raise ArgumentError(f"{one.name} = {value!r} does not fit in {one.dtype}")
        return number

    def _solve(self, fitted: Mapping[str, Any], given: Mapping[str, int]) -> dict[str, int]:
        sizes = {**self.fixed, **given}
        for one in self.solved:
            extent = fitted[one.array].shape[one.dimension]
            size, left = divmod(extent - self._value(one.rest, sizes), one.coefficient)
            if left or size < 0:
                raise ArgumentError(
                    f"dimension {one.dimension} of {one.array} is {extent}, for which no {one.name} fits"
                )
            sizes[one.name] = size
        return sizes

    def _value(self, text: str, sizes: Mapping[str, int]) -> int:
        if text in sizes:  # most extents are a size
            return sizes[text]
        if text not in self._codes:
            self._codes[text] = compile(text, text, "eval")  # the text is this package's own
        return int(eval(self._codes[text], {"__builtins__": {}}, dict(sizes)))

    def _check(self, one: Argument, array: Any, sizes: Mapping[str, int]) -> None:
        """Refuse another shape, and gaps that the kernel does not take."""
        expected = tuple(self._value(extent, sizes) for extent in one.extents)
        if array.shape != expected:
            known = ", ".join(f"{name} = {sizes[name]}" for name in (*self.fixed, *self.sizes))
            because = f": it is {one.text}, and {known}" if known else ""
            raise ArgumentError(f"{one.name} has shape {array.shape}; expected {expected}{because}")
        if array.flags.c_contiguous:
            return
        whole = all(stride >= 0 and stride % array.itemsize == 0 for stride in array.strides)
        rows = array.ndim == 0 or array.shape[-1] <= 1 or array.strides[-1] == array.itemsize
        if array.size and one.strides and whole and rows:
            return
        back = f", and copy it back after the call: {one.name}[...] = it" if one.written else ""
        raise ArgumentError(
            f"{one.name} is not contiguous: shape {array.shape}, strides {array.strides} bytes. "
            f"Remedy: np.ascontiguousarray({one.name}){back}"
        )

    def _strides(self, one: Argument, array: Any) -> list[int]:
        """The strides in elements, those of complex arrays in parts; 0 if there are no gaps."""
        if array.flags.c_contiguous:
            return [0] * one.strides
        size = array.real.itemsize
        return [stride // size for stride in array.strides[: one.strides]]

    def _refused(self, status: int, fitted: Mapping[str, Any]) -> ArgumentError:
        """The error for a status: of overlapping arrays it names them."""
        arrays = [one for one in self.arguments if one.kind != "scalar"]
        for output in arrays:
            for other in arrays:
                if (
                    output.written
                    and other is not output
                    and np.may_share_memory(fitted[output.name], fitted[other.name])
                ):
                    return ArgumentError(
                        f"{output.name} is written and shares memory with {other.name}. Remedy: {other.name}.copy()"
                    )
        return ArgumentError(f"{self.name}: {self.library.status(status)}")
