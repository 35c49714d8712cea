"""A C text of a nest's loops, built as a user builds it, and its function on arrays."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cffi

from benchmarks.arrays import Array
from benchmarks.problems.c_text import FUNCTION, c_declaration
from benchmarks.toolchain import SHARED, Compiler
from codegen.clock import CFunction
from poly.ir.nest import Nest

TYPES = {"float32": "float[]", "float64": "double[]", "int8": "int8_t[]", "int32": "int32_t[]", "int64": "int64_t[]"}
"""C types of arrays by NumPy's names."""


@dataclass(frozen=True)
class Built:
    """A loaded library with the function of a C text."""

    ffi: Any
    lib: Any


def load(nest: Nest, text: str, compiler: Compiler, flags: tuple[str, ...], folder: Path) -> Built:
    """Build the text with these flags alone, in a folder, and load it. Raises Failed with the compiler's message."""
    source, library = folder / "loops.c", folder / "loops.so"
    source.write_text(text)
    compiler.run(*SHARED, *flags, source, "-o", library, "-lm")
    ffi = cffi.FFI()
    ffi.cdef(c_declaration(nest))
    return Built(ffi, ffi.dlopen(str(library)))


def called(library: Built, arrays: tuple[Array, ...]) -> CFunction:
    """The function on these arrays; those without dimensions are scalars."""
    arguments = tuple(
        library.ffi.from_buffer(TYPES[array.dtype.name], array) if array.ndim else array.item() for array in arrays
    )
    return CFunction.of(library.ffi.addressof(library.lib, FUNCTION), arguments, library)
