"""A header of BLAS routines as a library to call from Python; operands with NaN around and between their values."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from cffi import FFI
from headers import GCC, NUMBERS, SHARED, at_any_level, declared, need, once, quick, succeed
from numpy.typing import NDArray

from poly.blas import ROUTINES, write_blas

Layout = Literal["rows", "columns"]
Trans = Literal["N", "T", "C"]
LAYOUTS: dict[Layout, int] = {"rows": 101, "columns": 102}
TRANS: dict[Trans, int] = {"N": 111, "T": 112, "C": 113}
UPLO = {"upper": 121, "lower": 122}
LETTERS = {np.dtype("f4"): "s", np.dtype("f8"): "d"}

GUARD = 40
"""Elements before and behind an operand."""

ROUTINES_ALONE = """#include <stddef.h>
void *take(size_t bytes);
void give(void *memory);
void note(int number, const char *routine);
#define BLAS_XERBLA note
#define BLAS_MALLOC take
#define BLAS_FREE give
#define BLAS_IMPLEMENTATION
#include "blas.h"
"""
"""What takes a compiler long, without what a program puts beside it."""

PROGRAM = """#include <stdlib.h>
static int wrong, taken, refused;
static const char *where;
void *take(size_t bytes) { taken++; return refused ? NULL : malloc(bytes); }
void give(void *memory) { free(memory); }
void note(int number, const char *routine) { wrong = number; where = routine; }
int wrong_argument(void) { return wrong; }
const char *wrong_routine(void) { return where; }
int allocations(void) { return taken; }
void reset(int refuse) { wrong = taken = 0; where = ""; refused = refuse; }
"""
MORE = "int wrong_argument(void); const char *wrong_routine(void); int allocations(void); void reset(int refuse);"


def blas_header(folder: Path, names: Sequence[str] = ROUTINES, **options: Any) -> Path:
    """`blas.h` with these routines in `folder`, without threads unless asked; it is made once in a run of the tests."""
    options = {"threads": "none", **options}
    return Path(shutil.copy(once("blas.h", (names, options), lambda path: write_blas(path, names, **options)), folder))


def blas_with(program: str, folder: Path, *flags: str, level: Sequence[str] = ("-O2",)) -> Path:
    """A library of the routines of `blas.h` in a folder and of a program's text that has what they call.

    The routines are compiled once in a run of the tests, whatever the program is.
    """
    need(GCC)
    flags = (*level, "-DBLAS_THREADS=2", *flags)

    def compiled(target: Path) -> None:
        (folder / "blas.c").write_text(ROUTINES_ALONE)
        succeed(["gcc", "-c", "-fPIC", *flags, folder / "blas.c", "-o", target])

    def linked(target: Path) -> None:
        (folder / "program.c").write_text(program)
        routines = once("blas.o", asked, compiled)
        succeed(["gcc", *SHARED, *flags, "-I", folder, folder / "program.c", routines, "-o", target, "-lm", "-pthread"])

    asked = (ROUTINES_ALONE, (folder / "blas.h").read_text(), flags)
    return once("blas.so", (program, asked), linked)


class Blas:
    """The routines, called with operands; `trouble` is the last call's complaint."""

    def __init__(self, folder: Path, names: Sequence[str] = ROUTINES, optimised: bool = True, **options: Any) -> None:
        header = blas_header(folder, names, **options)
        level = ("-O2",) if optimised else quick(GCC)
        if not optimised:
            at_any_level(header)
        made = blas_with(PROGRAM, folder, *["-fopenmp"] * (options.get("threads") == "openmp"), level=level)
        self.path = Path(shutil.copy(made, folder))
        self.ffi = FFI()
        self.ffi.cdef(declared(header) + MORE)
        self.lib = self.ffi.dlopen(str(self.path))
        self.lib.reset(0)

    def force(self, isa: str) -> None:
        """Select an instruction set for the following calls."""
        self.lib.reset(0)
        assert self.lib.blas_force_isa(NUMBERS[isa]) == 0

    @property
    def trouble(self) -> tuple[int, str]:
        found = self.lib.wrong_argument(), self.ffi.string(self.lib.wrong_routine()).decode()
        self.lib.reset(0)
        return found

    def gemm(
        self, layout: Layout, ta: Trans, tb: Trans, alpha: float, a: Operand, b: Operand, beta: float, c: Operand
    ) -> None:
        (m, n), k = c.at.shape, a.at.shape[ta == "N"]
        codes = LAYOUTS[layout], TRANS[ta], TRANS[tb]
        matrices = self.pointer(a), a.step, self.pointer(b), b.step, beta, self.pointer(c), c.step
        self.function("gemm", c)(*codes, m, n, k, alpha, *matrices)

    def gemv(self, layout: Layout, trans: Trans, alpha: float, a: Operand, x: Operand, beta: float, y: Operand) -> None:
        vectors = self.pointer(x), x.step, beta, self.pointer(y), y.step
        self.function("gemv", y)(LAYOUTS[layout], TRANS[trans], *a.at.shape, alpha, self.pointer(a), a.step, *vectors)

    def syrk(self, layout: Layout, uplo: str, trans: Trans, alpha: float, a: Operand, beta: float, c: Operand) -> None:
        n, k = len(c.at), a.at.shape[trans == "N"]
        codes = LAYOUTS[layout], UPLO[uplo], TRANS[trans]
        self.function("syrk", c)(*codes, n, k, alpha, self.pointer(a), a.step, beta, self.pointer(c), c.step)

    def function(self, name: str, output: Operand) -> Any:
        return getattr(self.lib, f"cblas_{LETTERS[output.memory.dtype]}{name}")

    def pointer(self, operand: Operand) -> Any:
        kind = {"s": "float *", "d": "double *"}[LETTERS[operand.memory.dtype]]
        return self.ffi.cast(kind, operand.memory.ctypes.data + GUARD * operand.memory.itemsize)


@dataclass(frozen=True)
class Operand:
    """A matrix or vector in `memory`, at the places `at`, and NaN elsewhere; `step` is the lda or the increment."""

    memory: NDArray[Any]
    at: NDArray[np.int_]
    step: int
    original: NDArray[Any]

    @staticmethod
    def of(values: NDArray[Any], at: NDArray[np.int_], step: int) -> Operand:
        memory = np.full(2 * GUARD + at.max(initial=0) + 1, np.nan, values.dtype)
        memory[GUARD + at] = values
        return Operand(memory, GUARD + at, step, memory.copy())

    @property
    def values(self) -> NDArray[Any]:
        return self.memory[self.at]

    def only(self, changed: NDArray[np.bool_] | bool = True) -> None:
        """Assert that only the values have changed, and of these only the marked ones."""
        kept = np.ones(len(self.memory), bool)
        kept[self.at[np.broadcast_to(changed, self.at.shape)]] = False
        assert self.memory[kept].tobytes() == self.original[kept].tobytes()


def matrix(values: NDArray[Any], layout: Layout, gap: int) -> Operand:
    """A matrix with `gap` elements between its rows or columns."""
    rows, columns = values.shape
    step = max(1, columns if layout == "rows" else rows) + gap
    down, along = (step, 1) if layout == "rows" else (1, step)
    return Operand.of(values, down * np.arange(rows)[:, None] + along * np.arange(columns), step)


def vector(values: NDArray[Any], step: int) -> Operand:
    """A vector with an increment; where that is negative, the first element comes last."""
    at = abs(step) * np.arange(len(values))
    return Operand.of(values, at if step > 0 else at[::-1], step)


def op(values: NDArray[Any], trans: Trans) -> NDArray[Any]:
    return values if trans == "N" else values.T


def close(found: NDArray[Any], exact: NDArray[Any], bound: NDArray[Any], length: int) -> None:
    """Assert that a sum of `length` rounded terms is close to the exact one; `bound` is the sum of their magnitudes."""
    allowed = np.finfo(found.dtype).eps * (length + 4) * bound
    error = np.abs(found - exact)
    assert np.all(error <= allowed), f"{np.max(error - allowed, initial=0)} too far, or NaN"


def scaled(factor: float, values: NDArray[Any]) -> NDArray[Any]:
    """The product in higher precision; 0 if the factor is 0, whatever the values are."""
    wide = values.astype(np.longdouble)
    return factor * wide if factor else np.zeros_like(wide)


SIZES, FACTORS = "0 1 2 3 5 7 16 31 65", "0.0 1.0 0.7 -1.0"


@dataclass(frozen=True)
class Level:
    """A level of BLAS: the parameters of its tester, and the number of calls of each routine in each layout."""

    number: int
    values: tuple[str, ...]
    calls: dict[str, int]

    def told(self, letter: str) -> str:
        """The input of the tester, one value per line.

        No snapshots, go on after failures, test wrong arguments and both layouts, the ratio that errors are allowed;
        the number of values and the values of each parameter; the routines to test.
        """
        values = [line for some in self.values for line in (str(len(some.split())), some)]
        routines = [f"cblas_{letter}{name}  T" for name in self.calls]
        return "\n".join(["'none'", "-1", "F", "F", "T", "2", "16.0", *values, *routines, ""])


LEVELS = (
    Level(2, (SIZES, "0", "1 2 -1 -2", FACTORS, FACTORS), {"gemv": 10756}),
    Level(3, (SIZES, FACTORS, FACTORS), {"gemm": 104976, "syrk": 7776}),
)
