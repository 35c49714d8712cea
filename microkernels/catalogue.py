"""The microkernels there are: names, register tiles, contracts, and the C text that a generated program holds.

A GEMM microkernel is named after its tile, `gemm_avx512_6x64`: 6 rows of 64 columns of the result live in registers.
Any tile that fits in the registers exists; `shapes` lists those worth choosing from.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from dataclasses import dataclass

from microkernels.ctext import guarded, part, specialise, suffix, vector_layer
from microkernels.dispatch import gemm_function
from microkernels.dtypes import DType
from microkernels.errors import TargetError
from microkernels.isa import ISA, ISAS

GEMM_CONTRACT = "C[i, j] += A[i, k] * B[k, j]"


@dataclass(frozen=True)
class Microkernel:
    """One microkernel: `rows` x `columns` elements of the result, held in registers.

    `contract` is a nest: what one call computes, over i < m <= rows, j < n <= columns and all k. docs/microkernels.md
    has the arguments of the C function.
    """

    name: str
    family: str
    isa: ISA
    dtype: DType
    rows: int
    columns: int
    contract: str

    @property
    def c_name(self) -> str:
        """The C function: `gemm_f32_avx512_6x64`."""
        return f"{self.family}_{suffix(self.isa, self.dtype)}_{self.rows}x{self.columns}"

    @property
    def vectors(self) -> int:
        """How many registers a row of the tile takes."""
        return self.columns // self.isa.lanes(self.dtype)

    def source(self, rows: Iterable[int] | None = None, columns: Iterable[int] | None = None) -> str:
        """C text that defines the function, with all that it needs.

        `rows` and `columns` are the values that m and n take in the calls (None: any from 1 to the tile's). A program
        must ask once for a kernel, with the values of all its calls: the text has an include guard.
        """
        row_values = None if rows is None else frozenset(rows)
        column_values = None if columns is None else frozenset(columns)
        function = gemm_function(
            self.c_name, self.rows, self.columns, self.isa.lanes(self.dtype), row_values, column_values
        )
        text = specialise(function, self.isa, self.dtype)
        return vector_layer(self.isa, self.dtype) + part("gemm", self.isa, self.dtype) + guarded(self.c_name, text)


def fits(isa: ISA, rows: int, vectors: int) -> bool:
    """Whether the sums, a row of B and one broadcast fit in the registers (a single vector of B needs no broadcast
    register where the multiply-add can broadcast from memory; without multiply-adds, a product needs one)."""
    broadcast = 0 if isa.name == "avx512" and vectors == 1 else 1
    product = 1 if isa.name == "portable" else 0
    return rows >= 1 and vectors >= 1 and rows * vectors + vectors + broadcast + product <= isa.registers


def gemm(isa: ISA, dtype: DType, rows: int, vectors: int) -> Microkernel:
    """The outer-product microkernel with a tile of `rows` rows of `vectors` vectors.

    Raises TargetError if the tile does not fit in the registers.
    """
    columns = vectors * isa.lanes(dtype)
    name = f"gemm_{isa.name}_{rows}x{columns}"
    if not fits(isa, rows, vectors):
        raise TargetError(
            f"{name} does not fit for {dtype}: {rows} x {vectors} sums, {vectors} vectors of B and a broadcast "
            f"in the {isa.registers} registers of {isa.name}. Take fewer rows or columns."
        )
    return Microkernel(name, "gemm", isa, dtype, rows, columns, GEMM_CONTRACT)


SHAPES = {
    "avx512": ((6, 4), (8, 3), (4, 4), (9, 3), (12, 2), (13, 2), (14, 2), (8, 2), (9, 2), (28, 1), (16, 1)),
    "avx2": ((6, 2), (4, 3), (5, 2), (14, 1), (12, 1)),
    "neon": ((8, 3), (6, 4), (12, 2), (8, 2), (24, 1)),
    "portable": ((6, 2), (4, 2), (12, 1)),
}


def shapes(isa: ISA, dtype: DType) -> tuple[Microkernel, ...]:
    """The tiles worth choosing from, the best for large packed operands first."""
    return tuple(gemm(isa, dtype, rows, vectors) for rows, vectors in SHAPES[isa.name])


def find(name: str, dtype: DType) -> Microkernel:
    """The microkernel of that name, as `gemm_avx512_6x64`.

    Raises TargetError if there is none, naming the closest ones.
    """
    match = re.fullmatch(r"gemm_([a-z0-9]+)_(\d+)x(\d+)", name)
    isa = ISAS.get(match[1]) if match else None
    if match is None or isa is None:
        known = [kernel.name for one in ISAS.values() for kernel in shapes(one, dtype)]
        close = difflib.get_close_matches(name, known, n=3, cutoff=0) or known[:3]
        raise TargetError(f"unknown microkernel {name!r}: the closest are {', '.join(close)}.")
    rows, columns, lanes = int(match[2]), int(match[3]), isa.lanes(dtype)
    if columns % lanes:
        raise TargetError(
            f"{name} does not exist for {dtype}: the columns must be a multiple of {lanes} on {isa.name}."
        )
    return gemm(isa, dtype, rows, columns // lanes)


def gemv_source(isa: ISA, dtype: DType) -> str:
    """C text that defines `gemvn_f32_avx512` and `gemvt_f32_avx512`."""
    return vector_layer(isa, dtype) + part("gemv", isa, dtype)


def pack_source(isa: ISA, dtype: DType) -> str:
    """C text that defines `pack_f32_avx512` and its kin: across, along, gather, turned."""
    return vector_layer(isa, dtype) + part("pack", isa, dtype)


def scatter_source(isa: ISA, dtype: DType) -> str:
    """C text that defines `store_run_f32_avx512`, for results that are contiguous only in runs."""
    return vector_layer(isa, dtype) + part("scatter", isa, dtype)
