"""libxsmm: a kernel generated at run time for exactly the given shape. One thread."""

from __future__ import annotations

import functools
from typing import Any

from benchmarks.arrays import Array
from benchmarks.case import Problem
from benchmarks.clock import pointers
from benchmarks.contender import Contender, NotInstalled
from benchmarks.peers.package import Package, Packaged
from benchmarks.problems.matmul import Matmul
from codegen.calls.clock import CFunction
from codegen.errors import ToolchainError
from codegen.toolchain.build import load

SOURCE = """
#include <stdint.h>
#include <libxsmm.h>

/* libxsmm's matrices are column-major: our C = A B is its C' = B' A'. */
#define DEFINE(T, LETTER)                                                                                    \\
void *dispatch_##T(int m, int n, int k, int lda, int ldb, int ldc, int flags) {                              \\
    const T one = 1;                                                                                         \\
    return (void *)libxsmm_##LETTER##mmdispatch(n, m, k, &ldb, &lda, &ldc, &one, &one, &flags, 0);           \\
}                                                                                                            \\
void run_##T(void *kernel, int64_t batch, int64_t a_step, int64_t b_step, int64_t c_step, T *a, T *b, T *c) { \\
    for (int64_t i = 0; i < batch; i++)                                                                      \\
        ((libxsmm_##LETTER##mmfunction)kernel)(b + i * b_step, a + i * a_step, c + i * c_step);              \\
}
DEFINE(float, s)
DEFINE(double, d)

const char *version(void) { return LIBXSMM_VERSION; }
const char *target(void) { return libxsmm_get_target_arch(); }
"""

DECLARATIONS = """
void *dispatch_float(int m, int n, int k, int lda, int ldb, int ldc, int flags);
void *dispatch_double(int m, int n, int k, int lda, int ldb, int ldc, int flags);
void run_float(void *, int64_t, int64_t, int64_t, int64_t, float *, float *, float *);
void run_double(void *, int64_t, int64_t, int64_t, int64_t, double *, double *, double *);
const char *version(void);
const char *target(void);
"""

LARGEST = 2048**3
"""The most multiply-adds of a product: without cache blocking, larger ones are not worth the time."""


class Libxsmm(Packaged):
    """Products by a dispatched kernel, on one thread. Some transposes have no kernel."""

    name = "libxsmm"
    package = Package("apt", "libxsmm-dev")

    def find(self) -> object:
        return loaded()

    def prepare(self, problem: Problem, arrays: tuple[Array, ...], threads: int) -> Contender | None:
        if not isinstance(problem, Matmul) or threads > 1 or problem.flop > 2 * LARGEST:
            return None
        library = loaded()
        m, n, k = problem.m, problem.n, problem.k
        scalar = {"float32": "float", "float64": "double"}[arrays[0].dtype.name]
        flags = (problem.transpose[1] == "T") + 2 * (problem.transpose[0] == "T")
        kernel = getattr(library.lib, f"dispatch_{scalar}")(m, n, k, *problem.leading, flags)
        if kernel == library.ffi.NULL:
            return None
        types = ("void *", *["int64_t"] * 4, *[f"{scalar} *"] * 3)
        arguments = (kernel, problem.batch, m * k, k * n, m * n, *pointers(arrays))
        function = library.ffi.addressof(library.lib, f"run_{scalar}")
        target = library.ffi.string(library.lib.target()).decode()
        version = library.ffi.string(library.lib.version()).decode()
        timed = CFunction(function, "void", types, arguments, library).timed()
        return Contender(self.name, version, f"JIT kernel for {target}", timed, lambda: arrays[2])


@functools.cache
def loaded() -> Any:
    """The C wrapper around the library. Raises NotInstalled."""
    flags = ("-O2", "-DLIBXSMM_NOBLAS", "-lxsmm", "-lxsmmnoblas", "-ldl", "-lpthread", "-lm")
    try:
        return load(SOURCE, DECLARATIONS, flags)
    except (ToolchainError, OSError) as error:
        raise NotInstalled("libxsmm with its headers (Debian: libxsmm-dev)") from error
