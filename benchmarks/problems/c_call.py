"""A nest's loops in C, built as a user builds them, as a function on arrays."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cffi

from benchmarks.arrays import Array
from benchmarks.problems.c_text import FUNCTION, c_declaration, c_text
from benchmarks.toolchain import SHARED, Compiler
from codegen.calls.clock import CFunction
from poly.ir.nest import Nest

TYPES = {"float32": "float[]", "float64": "double[]", "int8": "int8_t[]", "int32": "int32_t[]", "int64": "int64_t[]"}
"""C types of arrays by NumPy's names."""


@dataclass(frozen=True)
class Built:
    """A loaded library with the function of a C text."""

    ffi: Any
    lib: Any


def as_written(
    nest: Nest,
    arrays: tuple[Array, ...],
    compiler: Compiler,
    flags: tuple[str, ...],
    text: Callable[[Nest, Path], str] = lambda nest, folder: c_text(nest),
) -> CFunction:
    """The loops of a nest with fixed sizes on these arrays, built with these flags alone.

    `text` makes the C text, and may use a folder for it. Raises Failed with a compiler's message.
    """
    with tempfile.TemporaryDirectory(prefix="poly-as-written-") as name:
        folder = Path(name)
        return _called(_load(nest, text(nest, folder), compiler, flags, folder), arrays)


def _load(nest: Nest, text: str, compiler: Compiler, flags: tuple[str, ...], folder: Path) -> Built:
    """The library of a text, which need not stay in the folder."""
    source, library = folder / "loops.c", folder / "loops.so"
    source.write_text(text)
    compiler.run(*SHARED, *flags, source, "-o", library, "-lm")
    ffi = cffi.FFI()
    ffi.cdef(c_declaration(nest))
    return Built(ffi, ffi.dlopen(str(library)))


def _called(library: Built, arrays: tuple[Array, ...]) -> CFunction:
    """The function on these arrays; those without dimensions are scalars."""
    arguments = tuple(
        library.ffi.from_buffer(TYPES[array.dtype.name], array) if array.ndim else array.item() for array in arrays
    )
    return CFunction.of(library.ffi.addressof(library.lib, FUNCTION), arguments, library)
