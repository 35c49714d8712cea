"""Matrix products through a BLAS library's C interface, in a C loop. OpenBLAS, BLIS and MKL share it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from benchmarks.arrays import Array
from benchmarks.clock import pointers
from benchmarks.problems.matmul import Matmul
from codegen.calls.clock import CFunction
from codegen.toolchain.build import load

ROW_MAJOR, NO_TRANSPOSE, TRANSPOSE = 101, 111, 112
"""CBLAS's enumerations."""

GEMM_TYPES = ("int", "int", "int", "{i}", "{i}", "{i}", "{t}", "{t} *", "{i}", "{t} *", "{i}", "{t}", "{t} *", "{i}")
GEMV_TYPES = ("int", "int", "{i}", "{i}", "{t}", "{t} *", "{i}", "{t} *", "{i}", "{t}", "{t} *", "{i}")

BATCH = """
/* One product after the other, as a program without a batched interface does. */
void batched(void *gemm, int64_t batch, {i} m, {i} n, {i} k, {t} *a, {t} *b, {t} *c)
{{
    for (int64_t i = 0; i < batch; i++)
        ((void (*)({types}))gemm)(101, 111, 111, m, n, k, 1, a + i * m * k, k, b + i * k * n, n, 1, c + i * m * n, n);
}}
"""


@dataclass(frozen=True)
class CBlas:
    """A library's entry points, `gemm` and `gemv` by NumPy dtype name, and its integer type."""

    library: Any
    gemm: dict[str, Any]
    gemv: dict[str, Any]
    integer: str

    def product(self, problem: Matmul, arrays: tuple[Array, ...]) -> CFunction:
        """`C += A B` as one call; for a vector times a matrix, `gemv`."""
        if problem.batch > 1:
            return self._batched(problem, arrays)
        if problem.m == 1 and problem.transpose == "NN":
            return self._vector(problem, arrays)
        a, b, c = pointers(arrays)
        lda, ldb, ldc = problem.leading
        transposes = [TRANSPOSE if letter == "T" else NO_TRANSPOSE for letter in problem.transpose]
        arguments = (ROW_MAJOR, *transposes, problem.m, problem.n, problem.k, 1, a, lda, b, ldb, 1, c, ldc)
        dtype = arrays[0].dtype.name
        return CFunction(self.gemm[dtype], "void", self._types(GEMM_TYPES, dtype), arguments, self.library)

    def _vector(self, problem: Matmul, arrays: tuple[Array, ...]) -> CFunction:
        a, b, c = pointers(arrays)
        arguments = (ROW_MAJOR, TRANSPOSE, problem.k, problem.n, 1, b, problem.n, a, 1, 1, c, 1)
        dtype = arrays[0].dtype.name
        return CFunction(self.gemv[dtype], "void", self._types(GEMV_TYPES, dtype), arguments, self.library)

    def _batched(self, problem: Matmul, arrays: tuple[Array, ...]) -> CFunction:
        dtype = arrays[0].dtype.name
        names = {"i": self.integer, "t": c_type(dtype)}
        types = ", ".join(self._types(GEMM_TYPES, dtype))
        source = BATCH.format(types=types, **names)
        head = source[source.index("void batched") : source.index("{\n")].strip()
        library = load(f"#include <stdint.h>\n{source}", f"{head};")
        signature = ("void *", "int64_t", *[self.integer] * 3, *[f"{names['t']} *"] * 3)
        gemm = library.ffi.cast("void *", self.gemm[dtype])
        arguments = (gemm, problem.batch, problem.m, problem.n, problem.k, *pointers(arrays))
        return CFunction(
            library.ffi.addressof(library.lib, "batched"), "void", signature, arguments, (library, self.library)
        )

    def _types(self, pattern: tuple[str, ...], dtype: str) -> tuple[str, ...]:
        return tuple(type_.format(i=self.integer, t=c_type(dtype)) for type_ in pattern)


def c_type(dtype: str) -> str:
    return {"float32": "float", "float64": "double"}[dtype]


def entry_points(path: str, integer: str, prefix: str = "", suffix: str = "") -> CBlas:
    """Find `cblas_sgemm` and its variants in a library; `prefix` and `suffix` are what its build adds to the names.

    Raises OSError if the library cannot be loaded, AttributeError if it lacks them.
    """
    import cffi

    ffi = cffi.FFI()
    found: dict[str, dict[str, Any]] = {"gemm": {}, "gemv": {}}
    names = []
    for letter, dtype in (("s", "float32"), ("d", "float64")):
        for operation, pattern in (("gemm", GEMM_TYPES), ("gemv", GEMV_TYPES)):
            types = ", ".join(type_.format(i=integer, t=c_type(dtype)) for type_ in pattern)
            name = f"{prefix}cblas_{letter}{operation}{suffix}"
            ffi.cdef(f"void {name}({types});")
            names.append((name, operation, dtype))
    library = ffi.dlopen(path)
    for name, operation, dtype in names:
        found[operation][dtype] = ffi.addressof(library, name)
    return CBlas(library, found["gemm"], found["gemv"], integer)
