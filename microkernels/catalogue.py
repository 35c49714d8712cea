"""The microkernels there are: names, register tiles, contracts, and the C text that a generated program holds.

A GEMM microkernel is named after its tile, `gemm_avx512_6x64`: 6 rows of 64 columns of the result live in registers.
Any tile that fits in the registers exists; `shapes` lists those worth choosing from.
"""

from __future__ import annotations

import difflib
import re

from microkernels import gpu_catalogue
from microkernels.ctext import Space, part, vector_layer
from microkernels.dtypes import DType, f32, f64
from microkernels.errors import TargetError, shown
from microkernels.isa import ISA, ISAS
from microkernels.kernel import Microkernel as Microkernel
from microkernels.opencl_isa import OPENCL_ISAS, OPENCLGPU, is_gpu

GEMM_CONTRACT = "C[i, j] += A[i, k] * B[k, j]"

CPU_ISAS: dict[str, ISA] = {**ISAS, **{name: isa for name, isa in OPENCL_ISAS.items() if not isa.is_gpu}}
"""What code for CPUs is made for, by name: in C, and in OpenCL C."""


def fits(isa: ISA, rows: int, vectors: int) -> bool:
    """Whether the sums, a row of B and one broadcast fit in the registers (a single vector of B needs no broadcast
    register where the multiply-add can broadcast from memory; without multiply-adds, a product needs one)."""
    broadcast = 0 if isa.name == "avx512" and vectors == 1 else 1
    product = 1 if isa.name == "portable" else 0
    return rows >= 1 and vectors >= 1 and rows * vectors + vectors + broadcast + product <= isa.registers


TUNED = (f32, f64)
"""The types that microkernels of one core are made for."""


def gemm(isa: ISA, dtype: DType, rows: int, vectors: int) -> Microkernel:
    """The outer-product microkernel with a tile of `rows` rows of `vectors` vectors.

    Raises TargetError if the tile does not fit in the registers, or is of a type that no core has such kernels for.
    """
    columns = vectors * isa.lanes(dtype)
    name = f"gemm_{isa.name}_{rows}x{columns}"
    if dtype not in TUNED:
        raise TargetError(f"{name} does not exist for {dtype}: microkernels of one core compute in f32 or f64.")
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
    "opencl512": ((6, 4), (8, 3), (4, 4), (9, 3), (12, 2), (14, 2), (8, 2), (9, 2), (28, 1), (16, 1)),
    "opencl256": ((4, 3), (6, 2), (5, 2), (14, 1), (12, 1)),
    "opencl128": ((4, 3), (6, 2), (12, 1)),
}


def shapes(isa: ISA, dtype: DType) -> tuple[Microkernel, ...]:
    """The tiles worth choosing from, the best for large packed operands first."""
    if is_gpu(isa):
        return gpu_catalogue.shapes(isa, dtype)
    return tuple(gemm(isa, dtype, rows, vectors) for rows, vectors in SHAPES[isa.name])


def find(name: str, dtype: DType) -> Microkernel:
    """The microkernel of that name, as `gemm_avx512_6x64`.

    Raises TargetError if there is none, naming the closest ones.
    """
    if name.startswith(f"gemm_{OPENCLGPU.name}_"):
        return gpu_catalogue.find(name, dtype)
    match = re.fullmatch(r"gemm_([a-z0-9]+)_(\d{1,4})x(\d{1,4})", name)
    isa = CPU_ISAS.get(match[1]) if match else None
    if match is None or isa is None:
        known = [kernel.name for one in CPU_ISAS.values() for kernel in shapes(one, dtype)]
        close = difflib.get_close_matches(name[:80], known, n=3, cutoff=0) or known[:3]
        raise TargetError(f"unknown microkernel {shown(name)}: the closest are {', '.join(close)}.")
    rows, columns, lanes = int(match[2]), int(match[3]), isa.lanes(dtype)
    if columns % lanes:
        raise TargetError(
            f"{name} does not exist for {dtype}: the columns must be a multiple of {lanes} on {isa.name}."
        )
    return gemm(isa, dtype, rows, columns // lanes)


def gemv_source(isa: ISA, dtype: DType) -> str:
    """C text that defines `gemvn_f32_avx512` and `gemvt_f32_avx512`."""
    return vector_layer(isa, dtype) + part("gemv", isa, dtype)


def pack_source(isa: ISA, dtype: DType, to: Space = "global") -> str:
    """C text that defines `pack_f32_avx512` and its kin: across, along, gather, turned.

    On a device the panel lies in the address space `to`: `pack_f32_opencl512_l` writes a `__local` one.
    """
    return vector_layer(isa, dtype) + part("pack", isa, dtype, (to,))


def scatter_source(isa: ISA, dtype: DType) -> str:
    """C text that defines `store_run_f32_avx512`, for results that are contiguous only in runs."""
    return vector_layer(isa, dtype) + part("scatter", isa, dtype)
