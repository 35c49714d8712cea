"""CLBlast's C interface: products, matrix times vector, convolutions, and its parameters."""

from __future__ import annotations

import ctypes.util
import functools
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.contender import Failed, NotInstalled
from microkernels.dtypes import DType

ROW_MAJOR, COLUMN_MAJOR, NO_TRANSPOSE, TRANSPOSE, CROSS_CORRELATION = 101, 102, 111, 112, 151
"""CLBlast's enumerations."""

MATRICES = "void *, size_t, size_t, void *, size_t, size_t, {t}, void *, size_t, size_t"
GEMM = "int, int, int, size_t, size_t, size_t, {t}, " + MATRICES + ", void **, void **, void *"
STRIDED = (
    "int, int, int, size_t, size_t, size_t, {t}, void *, size_t, size_t, size_t, void *, size_t, size_t, size_t, "
    "{t}, void *, size_t, size_t, size_t, size_t, void **, void **"
)
GEMV = "int, int, size_t, size_t, {t}, " + MATRICES + ", void **, void **"
CONVOLUTION = "int, " + "size_t, " * 13 + "void *, size_t, void *, size_t, void *, size_t, void **, void **"
SIZE = "int, int, int, size_t, size_t, size_t, size_t, size_t, size_t, size_t, size_t, size_t, void **, size_t *"
FUNCTIONS = {
    "CLBlast{l}gemmWithTempBuffer": GEMM,
    "CLBlast{l}GemmTempBufferSize": SIZE,
    "CLBlast{l}gemmStridedBatched": STRIDED,
    "CLBlast{l}gemv": GEMV,
    "CLBlast{l}convgemm": CONVOLUTION,
}
"""The parameter types of each function, by its name with a placeholder for the type's letter."""

PREFIX = "libclblast.so."
LETTERS = {"f32": ("S", "float"), "f64": ("D", "double")}


@dataclass(frozen=True)
class ClblastLibrary:
    """The loaded library."""

    ffi: Any
    lib: Any

    def call(self, name: str, dtype: DType, *arguments: Any) -> None:
        """Call a function of FUNCTIONS. Raises Failed with the status."""
        letter, _ = LETTERS[dtype.name]
        self._check(getattr(self.lib, name.format(l=letter))(*arguments), name.format(l=letter))

    def enqueue(self, name: str, dtype: DType, queue: Any, *arguments: Any, last: tuple[Any, ...] = ()) -> Any:
        """Call a function that enqueues launches, and return the event; `last` are the arguments after the event's."""
        import pyopencl as cl

        event = self.ffi.new("void **")
        self.call(name, dtype, *arguments, self.queue(queue), event, *last)
        return cl.Event.from_int_ptr(int(self.ffi.cast("intptr_t", event[0])), retain=False)

    def handle(self, thing: Any) -> Any:
        """The C handle of a pyopencl object."""
        return self.ffi.cast("void *", thing.int_ptr)

    def queue(self, queue: Any) -> Any:
        """A pointer to a queue's handle, as CLBlast's functions take it."""
        return self.ffi.new("void **", self.handle(queue))

    def override(self, device: Any, kernel: str, dtype: DType, parameters: Mapping[str, int]) -> None:
        """Give a kernel of CLBlast other parameters; the next call recompiles it. Raises Failed."""
        names = [self.ffi.new("char[]", name.encode()) for name in parameters]
        values = self.ffi.new("size_t[]", list(parameters.values()))
        status = self.lib.CLBlastOverrideParameters(
            self.handle(device), kernel.encode(), 8 * dtype.size, len(names), self.ffi.new("char *[]", names), values
        )
        self._check(status, f"CLBlastOverrideParameters of {kernel}")

    @staticmethod
    def _check(status: int, what: str) -> None:
        if status:
            raise Failed(f"{what} returns status {status}")


@functools.cache
def library() -> ClblastLibrary:
    """The shared library. Raises NotInstalled."""
    import cffi

    path = ctypes.util.find_library("clblast")
    if path is None:
        raise NotInstalled("the shared library libclblast (Debian: libclblast1)")
    ffi = cffi.FFI()
    ffi.cdef("int CLBlastOverrideParameters(void *, char *, int, size_t, char **, size_t *);")
    for letter, c_type in LETTERS.values():
        for name, types in FUNCTIONS.items():
            ffi.cdef(f"int {name.format(l=letter)}({types.format(t=c_type)});")
    try:
        lib = ffi.dlopen(path)
        return ClblastLibrary(ffi, lib)
    except (OSError, AttributeError) as error:
        raise NotInstalled(f"a usable libclblast: {error}") from error


def version() -> str:
    """The version, from the loaded file's name, as CLBlast has no function for it."""
    names = {line.rpartition("/")[2] for line in Path("/proc/self/maps").read_text().splitlines()}
    loaded = next((name for name in sorted(names) if name.startswith(PREFIX)), PREFIX + "unknown")
    return loaded.removeprefix(PREFIX)
