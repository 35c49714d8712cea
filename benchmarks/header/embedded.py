"""A header to be measured: the file, and its function as called from C."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cffi

import poly
from benchmarks.arrays import Array, aligned
from benchmarks.clock import pointers
from benchmarks.contender import Failed
from benchmarks.peers.cblas import c_type
from benchmarks.toolchain import Compiler
from codegen.calls.clock import CFunction
from codegen.ir.program import Threading
from codegen.package.header.isas import NUMBERS
from microkernels.dtypes import i8
from microkernels.isa import ISA

WORKSPACE = ("void *", "int64_t")


@dataclass(frozen=True)
class Embedded:
    """A header with kernels of one nest, whose arguments are arrays. The first kernel takes all its sizes."""

    path: Path
    prefix: str
    kernels: tuple[poly.Kernel, ...]

    @property
    def function(self) -> str:
        """The name of the header's function."""
        name = self.kernels[0].nest.name
        return self.prefix if name == self.prefix else f"{self.prefix}_{name}"

    @property
    def sizes(self) -> tuple[str, ...]:
        """The sizes that a caller passes, in order."""
        return self.kernels[0].nest.sizes

    @property
    def source(self) -> str:
        """The text of a C file with the implementation."""
        return f'#define {self.prefix.upper()}_IMPLEMENTATION\n#include "{self.path.name}"\n'

    def types(self) -> tuple[str, ...]:
        """The C types of the function's parameters."""
        arrays: list[str] = []
        for array in self.kernels[0].signature.arrays:
            arrays += [f"{c_type(array.dtype.numpy_name)} *", *["int64_t"] * (len(array.shape) - 1)]
        return (*["int64_t"] * len(self.sizes), *arrays)

    def declarations(self) -> str:
        """The header's functions, for cffi."""
        types, sizes = ", ".join(self.types()), ", ".join(["int64_t"] * len(self.sizes)) or "void"
        return (
            f"int {self.function}({types});\n"
            f"int {self.function}_with_workspace({types}, {', '.join(WORKSPACE)});\n"
            f"int64_t {self.function}_workspace_size({sizes});\n"
            f"int {self.prefix}_force_isa(int);\n"
        )


def write(
    kernels: Sequence[poly.Kernel],
    prefix: str,
    folder: Path,
    isas: Sequence[str] | None = None,
    threads: Threading = "none",
) -> Embedded:
    """Write the header of these kernels; `isas` are its instruction sets, by default all.

    `build` and `EmbeddedHeader.call` require a header without threads.
    """
    path = folder / f"{prefix}.h"
    poly.write_header(path, kernels, prefix=prefix, isas=isas, threads=threads)
    return Embedded(path, prefix, tuple(kernels))


@dataclass(frozen=True)
class EmbeddedHeader:
    """A header in a shared library."""

    embedded: Embedded
    ffi: cffi.FFI
    lib: Any

    def call(self, arrays: Sequence[Array], sizes: Mapping[str, int], allocate: bool = False) -> CFunction:
        """The call on dense arrays by one thread, checked once; it allocates its workspace, or gets one."""
        arguments = self._arguments(arrays, sizes)
        types, name = self.embedded.types(), self.embedded.function
        if not allocate:
            arguments += self._workspace(sizes)
            types += WORKSPACE
            name = f"{name}_with_workspace"
        function = CFunction(self.ffi.addressof(self.lib, name), "int", types, arguments, self)
        status = function.pointer(*arguments)
        if status != 0:
            raise Failed(f"{name} returns status {status}")
        return function

    def _arguments(self, arrays: Sequence[Array], sizes: Mapping[str, int]) -> tuple[Any, ...]:
        passed: list[Any] = [sizes[name] for name in self.embedded.sizes]
        for array, pointer in zip(arrays, pointers(arrays), strict=True):
            passed += [pointer, *[0] * (array.ndim - 1)]
        return tuple(passed)

    def _workspace(self, sizes: Mapping[str, int]) -> tuple[Any, int]:
        ask = getattr(self.lib, f"{self.embedded.function}_workspace_size")
        count = ask(*(sizes[name] for name in self.embedded.sizes))
        if count < 0:
            raise Failed(f"{self.embedded.function}_workspace_size returns {count}")
        return self.ffi.from_buffer("char[]", aligned((count,), i8)), count


def build(embedded: Embedded, compiler: Compiler, isa: ISA) -> EmbeddedHeader:
    """Compile the header with plain flags, load it, and force an instruction set. Raises Failed."""
    stem = f"{embedded.prefix}_{compiler.family}"
    source, library = (embedded.path.with_name(f"{stem}{suffix}") for suffix in (".c", ".so"))
    source.write_text(embedded.source)
    compiler.shared(source, library)
    ffi = cffi.FFI()
    ffi.cdef(embedded.declarations())
    lib = ffi.dlopen(str(library))
    status = getattr(lib, f"{embedded.prefix}_force_isa")(NUMBERS[isa.name])
    if status != 0:
        raise Failed(f"the header refuses {isa.name}: status {status}")
    return EmbeddedHeader(embedded, ffi, lib)
