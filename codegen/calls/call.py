"""From NumPy arrays to the C function: a Python function generated for one kernel's arguments.

Its fast path, for arrays that fit, is a few comparisons and one call. Any other arguments go to
`codegen.calls.arguments`, which reports what is wrong or finds that they fit after all.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any, cast

import _cffi_backend
import numpy as np

from codegen.calls import tensors
from codegen.calls.arguments import (
    Fitted,
    are_same,
    bind,
    check_strides,
    check_threads,
    fit,
    not_contiguous,
    overlap,
    overlapping,
)
from codegen.calls.fastcall import caller_source
from codegen.calls.guard import addressed
from codegen.calls.numpy_types import numpy_type
from codegen.calls.turning import ArrayView, Turn, turning
from codegen.errors import ArgumentError
from codegen.ir.program import Buffer
from codegen.ir.signature import Signature
from codegen.names import function_name
from codegen.system.forks import fork_lock
from codegen.toolchain.build import Library

Caller = Callable[..., None]
InPlace = Callable[[str, str], "Caller | str"]
"""For an input and an output that are one array: the caller that takes it as the output alone, or why there is none."""
Otherwise = Callable[[Sequence[Any], Sequence[Any], Any, Mapping[str, Any]], None]
"""A function of a call's arguments: those by position, some MISSING, further ones, the threads, and the keywords."""
PAGE = 4096
FAST = _cffi_backend.FFI()
"""cffi's interface in C, which makes a pointer to an array in less time than the one in Python."""
Array = np.ndarray[Any, Any]
MISSING = object()
"""Marks an argument that was left out."""


def make_caller(
    signature: Signature,
    library: Library,
    threads: int = 1,
    strided: Callable[[], Caller] | None = None,
    otherwise: Otherwise | None = None,
    excluded: Container[Any] | None = None,
    pool: Pool | None = None,
    held: Sequence[Array] = (),
    turned: Turn | None = None,
    in_place: InPlace | None = None,
) -> Caller:
    """A function of the arrays and scalars, by position or by name, that runs a library's kernel on them.

    It takes `threads=` (by default the number given here) and sizes by keyword: those that no array determines are
    required, others are compared with the arrays.
    `strided` makes the caller of the kernel that takes strides: it is called the first time that an array is not
    contiguous; without it such an array is refused. `turned` makes that of the kernel for views of arrays (see
    `codegen.calls.turning`). `otherwise` takes the calls whose arguments do not fit at first
    sight, in place of `SlowCall`, and those whose sizes are `excluded`; workspaces then
    come from the `pool` of the callers that it calls. `held` are the values of `signature.held`. `in_place` is asked
    the first time that an output is the same array as an input; without it this is refused. Several threads may call
    the function at the same time.

    The caller raises ArgumentError, and then leaves the arrays unchanged.
    """
    with fork_lock:
        slow = SlowCall(
            signature, library, strided, pool or Pool(signature, library), held, turned=turned, in_place=in_place
        )
        names = _names(signature, library, slow, otherwise) | _held(held)
    names |= {"_THREADS": threads, "_excluded": excluded}
    exec(caller_source(signature, excluded is not None), names)
    return cast(Caller, names[function_name(signature.name)])


def _names(signature: Signature, library: Library, slow: SlowCall, otherwise: Otherwise | None) -> dict[str, Any]:
    """The global names in a caller's text."""
    name = function_name(signature.name)
    return {
        "_guarded": getattr(library.lib, f"{name}_guarded"),
        "_guarded_at": library.ffi.cast(addressed(signature), getattr(library.lib, f"{name}_guarded")),
        "_buffer": FAST.from_buffer,
        "_CHARS": FAST.typeof("char[]"),
        "_free": slow.pool.free,
        "_give": slow.pool.give,
        "_NO_MEMORY": (0, library.ffi.NULL),
        "_slow": otherwise or slow,
        "_NULL": library.ffi.NULL,
        "_MISSING": MISSING,
        "_ndarray": np.ndarray,
        "_array": np.array,
        **{f"_{b.element.name}": numpy_type(b.element) for b in signature.arrays},
        **{f"_tensor_{b.element.name}": tensors.known(numpy_type(b.element)) for b in signature.arrays},
    }


def _held(arrays: Sequence[Array]) -> dict[str, Any]:
    """The names in a caller's text of the arrays that a kernel holds: buffers, which keep them alive, and addresses."""
    buffers = {f"_held_{number}": FAST.from_buffer(array) for number, array in enumerate(arrays)}
    return buffers | {f"_held_at_{number}": array.ctypes.data for number, array in enumerate(arrays)}


def c_arguments(
    signature: Signature,
    library: Library,
    arrays: Sequence[Any],
    threads: int = 1,
    held: Sequence[Array] = (),
    /,
    **sizes: int,
) -> tuple[Any, ...]:
    """The C function's arguments for these arrays and scalars, to call it repeatedly without checks.

    They include a workspace of their own, and keep the arrays alive. `held` are the values of `signature.held`, and
    `sizes` those that no array determines.
    Raises ArgumentError, also if an array is not contiguous.
    """
    bound = {b.name: value for b, value in zip(signature.buffers, arrays, strict=False)}
    fitted = fit(signature, bound, arrays[len(signature.buffers) :], sizes)
    for b in signature.arrays:
        if not fitted.values[b.name].flags.c_contiguous:
            raise not_contiguous(b, fitted.values[b.name], fitted.given[b.name])
    extents = tuple(fitted.sizes.values())
    _, memory = Pool(signature, library).take((*extents, check_threads(threads)))
    values = [
        value if b.kind == "scalar" else library.ffi.from_buffer(value)
        for b, value in ((b, fitted.values[b.name]) for b in signature.buffers)
    ]
    return (*extents, *values, *map(library.ffi.from_buffer, held), threads, memory)


class Pool:
    """Workspaces for calls: each call takes one and gives it back, so calls may run concurrently.

    Appending to a list and popping from it are atomic in CPython, so no lock is needed.
    """

    def __init__(self, signature: Signature, library: Library) -> None:
        self.free: list[tuple[int, Any]] = []
        self._bytes = lru_cache(getattr(library.lib, f"{function_name(signature.name)}_workspace"))
        self._from_buffer = library.ffi.from_buffer
        self.give = self.free.append

    def take(self, key: tuple[int, ...]) -> tuple[int, Any]:
        """The size and the memory of a workspace for a call with these sizes and threads, aligned to a page."""
        size = self._bytes(*key)
        try:
            found = self.free.pop()
        except IndexError:
            return self._new(size)
        return found if found[0] >= size else self._new(size)

    def _new(self, size: int) -> tuple[int, Any]:
        memory = np.empty(size + PAGE, np.uint8)
        start = -memory.ctypes.data % PAGE
        return size, self._from_buffer(memory[start : start + size])


def _is_contiguous(value: Any) -> bool:
    if isinstance(value, np.ndarray):
        return value.flags.c_contiguous
    return not tensors.is_known(value) or bool(value.is_contiguous())


Turning = tuple[ArrayView | None, ...]
"""For each argument, the view that is passed in place of it; None if it is passed as it is."""

TURNED = 16
"""The most kernels for turned arrays that a caller remembers; at the next one it forgets them all."""


def _turning(value: Any) -> ArrayView | None:
    if type(value) is np.ndarray:
        return turning(value.shape, value.strides, value.itemsize)
    return turning(tuple(value.shape), tuple(value.stride()), 1) if tensors.is_known(value) else None


def _turned(value: Any, view: ArrayView | None) -> Any:
    if view is None:
        return value
    return view.of_array(value) if type(value) is np.ndarray else view.of_tensor(value)


def _call_turned(caller: Caller, key: Turning, values: Sequence[Any], given: Mapping[str, Any], threads: Any) -> None:
    caller(*map(_turned, values, key), **given, threads=threads)


class SlowCall:
    """The slow path, for calls that the fast path rejects: it raises ArgumentError, or runs the kernel after all."""

    def __init__(
        self,
        signature: Signature,
        library: Library,
        strided: Callable[[], Caller] | None,
        pool: Pool,
        held: Sequence[Array],
        turned: Turn | None,
        in_place: InPlace | None,
    ) -> None:
        self.signature = signature
        self.pool = pool
        self._make_strided = strided
        self._strided: Caller | None = None
        self._make_turned = turned
        self._turned: dict[Turning, Caller] = {}
        self._pointer = partial(library.ffi.cast, library.ffi.typeof("void *"))
        self._function = getattr(library.lib, function_name(signature.name))
        self._in_place = None if in_place is None else lru_cache(in_place)
        self._merged: tuple[int, int, Caller] | None = None
        """The last call in which an output was an input: the positions of the input and the output, and its caller."""
        self._held = [library.ffi.from_buffer(array) for array in held]

    def __call__(self, values: Sequence[Any], extra: Sequence[Any], threads: Any, keywords: Mapping[str, Any]) -> None:
        if self._merged is not None and not keywords and not extra and not any(value is MISSING for value in values):
            place, output, caller = self._merged
            if values[place] is values[output]:
                caller(*values[:place], *values[place + 1 :], threads=threads)
                return
        names = [b.name for b in self.signature.buffers]
        positional = [value for value in values if value is not MISSING]
        given = {name: value for name, value in keywords.items() if value is not MISSING}
        key = tuple(map(_turning, positional)) if self._turned or self._strided else ()
        if self._turned and not extra and self._ran_turned(positional, key, threads, given):
            return
        if self._strided is not None and not any(key) and not all(map(_is_contiguous, positional)):
            self._strided(*positional, *extra, **given, threads=threads)
            return
        bound = bind(names, positional, given)
        given = {name: value for name, value in given.items() if name not in bound}
        fitted = fit(self.signature, bound, extra, given, any_strides=True, may_overlap=True)
        if shared := overlap(self.signature, fitted.values):
            self._run_in_place(fitted, *shared, threads)
            return
        threads = check_threads(threads)
        if not fitted.contiguous and self._run_turned(bound, fitted, threads):
            return
        check_strides(self.signature, fitted)
        self._learn(bound, fitted)
        if fitted.contiguous or self.signature.strided:
            self._run(fitted, threads)
        else:
            self._strided_caller(fitted)(*fitted.values.values(), **self._given(fitted), threads=threads)

    def _given(self, fitted: Fitted) -> dict[str, int]:
        """The sizes that a call of another kernel on the same arrays has to give."""
        return {size: fitted.sizes[size] for size in self.signature.given}

    def _learn(self, bound: Mapping[str, Any], fitted: Fitted) -> None:
        """Know the classes of the arrays from now on."""
        for b in self.signature.arrays:
            tensors.learn(bound[b.name], fitted.values[b.name])

    def _ran_turned(self, values: Sequence[Any], key: Turning, threads: Any, given: Mapping[str, Any]) -> bool:
        """Run the kernel for turned arrays if some were passed before that lay like these, and if these fit it."""
        known = self._turned.get(key)
        if known is None:
            return False
        try:
            _call_turned(known, key, values, given, threads)
        except ArgumentError:  # which tells of the turned arrays
            return False
        return True

    def _run_turned(self, bound: Mapping[str, Any], fitted: Fitted, threads: int) -> bool:
        """Run the kernel for views of these arrays, made at the first call, if it can be made."""
        values = [fitted.values[b.name] for b in self.signature.buffers]
        key = tuple(map(_turning, values))
        views = {b.name: view for b, view in zip(self.signature.buffers, key, strict=True) if view}
        made = self._turned.get(key)
        if made is None and views and self._make_turned is not None:
            made = self._make_turned(views)
        if made is None:
            return False
        if len(self._turned) >= TURNED:
            self._turned.clear()
        self._turned[key] = made
        self._learn(bound, fitted)
        _call_turned(made, key, values, self._given(fitted), threads)
        return True

    def _run_in_place(self, fitted: Fitted, output: Buffer, other: Buffer, threads: Any) -> None:
        """Run the kernel in which an output and an input are one array, if they are here, and may be."""
        found: Caller | str = ""
        if self._in_place is not None and are_same(output, other, fitted.values):
            found = self._in_place(other.name, output.name)
        if isinstance(found, str):
            raise overlapping(fitted, output, other, found)
        places = [b.name for b in self.signature.buffers]
        self._merged = places.index(other.name), places.index(output.name), found
        values = (value for name, value in fitted.values.items() if name != other.name)
        found(*values, **self._given(fitted), threads=threads)

    def _strided_caller(self, fitted: Fitted) -> Caller:
        if self._strided is None:
            if self._make_strided is None:
                arrays = ((b, fitted.values[b.name]) for b in self.signature.arrays)
                first, array = next((b, array) for b, array in arrays if not array.flags.c_contiguous)
                raise not_contiguous(first, array, fitted.given[first.name])
            self._strided = self._make_strided()
        return self._strided

    def _run(self, fitted: Fitted, threads: int) -> None:
        if all(fitted.values[b.name].size == 0 for b in self.signature.outputs):
            return
        sizes = list(fitted.sizes.values())
        memory = self._memory((*sizes, threads))
        values = [
            value if b.kind == "scalar" else self._pointer(value.ctypes.data)
            for b, value in ((b, fitted.values[b.name]) for b in self.signature.buffers)
        ]
        self._function(*sizes, *values, *self._held, threads, memory[1])
        self.pool.give(memory)

    def _memory(self, key: tuple[int, ...]) -> tuple[int, Any]:
        try:
            return self.pool.take(key)
        except (MemoryError, ValueError) as error:
            problem = f"{self.signature.name} needs more memory besides its arrays than there is: {error}"
            raise ArgumentError(f"{problem}. Remedy: smaller arrays, or fewer threads") from error
