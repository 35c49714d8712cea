"""The microkernels for CPUs and OpenCL devices, and those that users add: by name, and those worth choosing from.

A microkernel is named after its family, instruction set and tile. `gemm_avx512_6x64` holds 6 rows of 64 columns of the
result in registers, and so does `min_add_avx512_6x64` of a product by minima and sums.
`gemm_openclgpu_128x128x8_8x8_db` is a work-group's tile of 128 rows and 128 columns in slabs of 8 steps, with 8 x 8
sums per work-item and double-buffered panels. Names are parsed only here. Any tile that fits in the registers exists;
`tiles` and `group_tiles` list those worth choosing from.
"""

from __future__ import annotations

import difflib
import re
from dataclasses import replace
from functools import lru_cache

from microkernels.ctext import PLAIN, Elements, Space, conversion, multiply_adds, part, vector_layer
from microkernels.custom_kernel import CustomKernel
from microkernels.dot import NAMES, DotProduct, dots
from microkernels.dtypes import DType, f16, f32, f64, i32
from microkernels.errors import TargetError, shown
from microkernels.gpu_text import Scalar
from microkernels.group_kernel import FROM_ANYWHERE, GroupKernel
from microkernels.isa import ISA, ISAS
from microkernels.isa import find as find_isa
from microkernels.kernel import (
    ALONG_COLUMNS,
    ALONG_REDUCTION,
    OUTER_PRODUCT,
    MatrixVector,
    Microkernel,
    OuterProduct,
)
from microkernels.opencl_isa import OPENCL_ISAS, OPENCLGPU, DeviceISA, is_device
from microkernels.plugins import load
from microkernels.plugins import names as offered_names
from microkernels.product import MULTIPLY_ADD, PRODUCTS, StepOperation

CPU_ISAS: dict[str, ISA] = {**ISAS, **{name: isa for name, isa in OPENCL_ISAS.items() if not isa.is_gpu}}
"""The instruction sets of CPUs by name, for C and for OpenCL C."""


KNOWN = 256
"""The register tiles that are kept, as many as a grid has."""


def fits(isa: ISA, rows: int, vectors: int, dtype: DType = f32, by: StepOperation = MULTIPLY_ADD) -> bool:
    """Whether the sums, a row of B and one broadcast fit in the registers (a single vector of B needs no broadcast
    register if the multiply-add can broadcast from memory; what is combined before it is added needs a register)."""
    if isinstance(by, DotProduct):
        broadcast, combined = 1, 0 if by.is_fused else 1
    else:
        fused = isa.name == "neon" or (dtype.is_float and isa.name != "portable")
        broadcast = 0 if isa.name == "avx512" and vectors == 1 and fused else 1
        combined = max(by.registers, 0 if fused else 1)
    return rows >= 1 and vectors >= 1 and rows * vectors + vectors + broadcast + combined <= isa.registers


GROUP = "poly.microkernels"
"""The entry point group in which packages offer microkernels, each under the microkernel's name."""

TUNED = (f32, f64)
"""The types of floats of the microkernels for one core."""
GROUP_TUNED = (f16, f32, f64)
"""The types of the microkernels for work-groups."""


def sums(isa: ISA, dtype: DType) -> bool:
    """Whether there are outer products of one core with sums of this type; devices and users' sets have no integers."""
    return dtype in TUNED or (dtype == i32 and isa.name in ISAS)


@lru_cache(KNOWN)
def gemm(isa: ISA, dtype: DType, rows: int, vectors: int, by: StepOperation = MULTIPLY_ADD) -> OuterProduct:
    """The outer-product microkernel with a tile of `rows` rows of `vectors` vectors, for what it does in a step.

    Raises TargetError if the tile does not fit in the registers, if there are no results of this type, or if a device
    or an integer has no such operations.
    """
    dot, product = (by, MULTIPLY_ADD) if isinstance(by, DotProduct) else (None, by)
    made_for = dot.extended(isa) if dot else isa
    contract = replace(OUTER_PRODUCT, product=product)
    kernel = OuterProduct(product.family, contract, made_for, dtype, rows, vectors * isa.lanes(dtype), dot)
    if not sums(isa, dtype):
        raise TargetError(
            f"{kernel} does not exist for {dtype}: microkernels of one core compute in f32 or f64, on a CPU in i32 too."
        )
    if product != MULTIPLY_ADD and (is_device(isa) or not dtype.is_float):
        raise TargetError(
            f"{kernel} does not exist: on devices and for integers there are only sums of products, gemm."
        )
    if not fits(isa, rows, vectors, dtype, by):
        raise TargetError(
            f"{kernel} does not fit for {dtype}: {rows} x {vectors} sums, {vectors} vectors of B and a broadcast "
            f"in the {isa.registers} registers of {isa.name}. Take fewer rows or columns."
        )
    return kernel


STREAMS = {"gemvn": ALONG_COLUMNS, "gemvt": ALONG_REDUCTION}
"""The families of matrix-vector kernels: the matrix contiguous along the columns, or along the reduction."""


def gemv(family: str, isa: ISA, dtype: DType) -> MatrixVector:
    """The matrix-vector kernel of a family, `gemvn` or `gemvt`.

    Raises TargetError if the type is not in TUNED.
    """
    kernel = MatrixVector(family, STREAMS[family], isa, dtype)
    if dtype not in TUNED:
        raise TargetError(f"{kernel} does not exist for {dtype}: microkernels of one core compute in f32 or f64.")
    return kernel


def group_gemm(
    dtype: DType, rows: int, columns: int, slab: int, item_rows: int, item_columns: int, double: bool
) -> GroupKernel:
    """The work-group microkernel with these tile sizes; its `misfit` says whether it exists."""
    numbers = (rows, columns, slab, item_rows, item_columns)
    return GroupKernel("gemm", FROM_ANYWHERE, OPENCLGPU, dtype, *numbers, double)


SHAPES = {
    "avx512": ((6, 4), (8, 3), (4, 4), (9, 3), (12, 2), (13, 2), (14, 2), (8, 2), (9, 2), (28, 1), (16, 1)),
    "avx2": ((6, 2), (4, 3), (5, 2), (14, 1), (12, 1)),
    "neon": ((8, 3), (6, 4), (12, 2), (8, 2), (24, 1)),
    "portable": ((6, 2), (4, 2), (12, 1)),
    "opencl512": ((6, 4), (8, 3), (4, 4), (9, 3), (12, 2), (14, 2), (8, 2), (9, 2), (28, 1), (16, 1)),
    "opencl256": ((4, 3), (6, 2), (5, 2), (14, 1), (12, 1)),
    "opencl128": ((4, 3), (6, 2), (12, 1)),
}
"""The rows and vectors of the tiles worth choosing from, by instruction set."""

GROUP_SHAPES = {
    4: (
        (128, 128, 8, 8, 8, False),
        (128, 128, 8, 8, 8, True),
        (128, 128, 16, 8, 8, True),
        (128, 64, 8, 8, 8, True),
        (64, 128, 8, 8, 8, True),
        (64, 64, 16, 8, 4, True),
        (64, 64, 8, 8, 8, True),
        (64, 64, 16, 4, 4, True),
        (32, 64, 16, 4, 4, True),
        (32, 32, 32, 4, 4, True),
        (32, 32, 16, 4, 4, True),
        (64, 64, 16, 4, 4, False),
        (32, 32, 16, 4, 4, False),
    ),
    8: (
        (64, 64, 8, 8, 4, True),
        (64, 64, 8, 4, 4, True),
        (128, 64, 8, 8, 4, True),
        (64, 64, 16, 4, 4, True),
        (32, 64, 8, 4, 4, True),
        (32, 32, 8, 4, 4, True),
        (64, 64, 8, 4, 4, False),
        (32, 32, 8, 4, 4, False),
    ),
}
"""The tiles of work-groups worth choosing from, by the size in bytes of the type computed in, the best for large
operands first: rows, columns, slab, rows and columns of a work-item, and whether the panels are double-buffered."""


def tiles(isa: ISA, dtype: DType, by: StepOperation = MULTIPLY_ADD) -> tuple[OuterProduct, ...]:
    """The tiles of one core worth choosing from, the best for large packed operands first."""
    known = isa.tiles or SHAPES[isa.name]
    return tuple(gemm(isa, dtype, *tile, by) for tile in known if fits(isa, *tile, dtype, by))


def group_tiles(isa: DeviceISA, dtype: DType) -> tuple[GroupKernel, ...]:
    """The tiles of work-groups worth choosing from that a device can hold.

    Raises TargetError if the type is not in GROUP_TUNED.
    """
    return tuple(kernel for kernel in every_group_tile(dtype) if kernel.fits(isa))


def every_group_tile(dtype: DType) -> tuple[GroupKernel, ...]:
    """The tiles of work-groups worth choosing from on any device. Raises as `group_tiles`."""
    if dtype not in GROUP_TUNED:
        raise TargetError(f"microkernels of work-groups compute in f16, f32 or f64, not in {dtype}.")
    return tuple(group_gemm(dtype, *numbers) for numbers in GROUP_SHAPES[Scalar(dtype).computed.size])


TILE = re.compile(rf"({'|'.join(PRODUCTS)})_(?:({'|'.join(NAMES)})_)?([a-z0-9]+)_(\d{{1,4}})x(\d{{1,4}})")
GROUP_TILE = re.compile(r"gemm_openclgpu_(\d{1,4})x(\d{1,4})x(\d{1,4})_(\d{1,4})x(\d{1,4})(_db)?")
STREAM = re.compile(rf"({'|'.join(STREAMS)})_([a-z0-9]+)")


def find(name: str, dtype: DType) -> Microkernel:
    """The microkernel of this name for a type.

    Raises TargetError if there is none; the message lists the closest names, or says why the type or the tile does not
    fit.
    """
    if name.startswith(f"gemm_{OPENCLGPU.name}_"):
        return _group_tile(name, dtype)
    tile, stream = TILE.fullmatch(name), STREAM.fullmatch(name)
    if tile and (isa := _cpu_isa(tile[3])) is not None:
        return _tile(name, isa, dtype, int(tile[4]), int(tile[5]), _step_operation(name, isa, dtype, tile[1], tile[2]))
    if stream and (isa := _cpu_isa(stream[2])) is not None:
        return gemv(stream[1], isa, dtype)
    return _custom(name, dtype)


def _cpu_isa(name: str) -> ISA | None:
    return CPU_ISAS.get(name) or find_isa(name)


_CUSTOM: dict[tuple[str, DType], CustomKernel] = {}
"""Users' microkernels by name and type."""


def register(kernel: CustomKernel) -> None:
    """Add a user's microkernel; it replaces one of the same name and type."""
    _CUSTOM[kernel.name, kernel.dtype] = kernel


def registered(name: str) -> tuple[CustomKernel, ...]:
    """Users' microkernels of this name, of any type; if none is known, installed packages' entry points are loaded."""
    if any(pattern.fullmatch(name) for pattern in (TILE, GROUP_TILE, STREAM)):
        return ()
    if not any(known == name for known, _ in _CUSTOM):
        _load(name)
    return tuple(kernel for (known, _), kernel in _CUSTOM.items() if known == name)


def _custom(name: str, dtype: DType) -> CustomKernel:
    found = {kernel.dtype: kernel for kernel in registered(name)}
    if dtype in found:
        return found[dtype]
    if found:
        types = " and ".join(sorted(map(str, found)))
        raise TargetError(f"{name} does not exist for {dtype}: it computes in {types}.")
    raise _unknown(name, _names(dtype) + sorted({*offered_names(GROUP), *(known for known, _ in _CUSTOM)}))


def _load(name: str) -> None:
    """Load the microkernel that an installed package offers under this name by an entry point."""
    offered = load(
        GROUP,
        name,
        lambda one: isinstance(one, CustomKernel) and one.name == name,
        "microkernel of that name, made by poly.microkernel",
    )
    if offered is not None:
        register(offered)


def _step_operation(name: str, isa: ISA, dtype: DType, family: str, elements: str | None) -> StepOperation:
    """What a microkernel with this name does in a step. Raises TargetError if it does not exist."""
    found = {dot.name: dot for dot in dots(isa, dtype)} if family == MULTIPLY_ADD.family else {}
    if elements is None:
        return PRODUCTS[family]
    if elements not in found:
        known = " and ".join(found) or "none"
        raise TargetError(f"{name} does not exist for {dtype}: {isa.name} multiplies and adds words of {known} to it.")
    return found[elements]


def _tile(name: str, isa: ISA, dtype: DType, rows: int, columns: int, by: StepOperation) -> OuterProduct:
    lanes = isa.lanes(dtype)
    if columns % lanes:
        raise TargetError(
            f"{name} does not exist for {dtype}: the columns must be a multiple of {lanes} on {isa.name}."
        )
    return gemm(isa, dtype, rows, columns // lanes, by)


def _group_tile(name: str, dtype: DType) -> GroupKernel:
    known = [kernel.name for kernel in every_group_tile(dtype)]
    match = GROUP_TILE.fullmatch(name)
    if match is None or 0 in map(int, match.groups()[:5]):
        raise _unknown(name, known)
    rows, columns, slab, item_rows, item_columns = map(int, match.groups()[:5])
    kernel = group_gemm(dtype, rows, columns, slab, item_rows, item_columns, match[6] is not None)
    misfit = kernel.misfit()
    if misfit:
        raise TargetError(f"{name} does not exist for {dtype}: {misfit}.")
    return kernel


def _names(dtype: DType) -> list[str]:
    """The names of the kernels for one core that are worth choosing from."""
    known = dtype if dtype in TUNED else TUNED[0]
    streams = [gemv(family, isa, known).name for isa in CPU_ISAS.values() for family in STREAMS]
    return [kernel.name for isa in CPU_ISAS.values() for kernel in tiles(isa, known)] + streams


def _unknown(name: str, known: list[str]) -> TargetError:
    close = difflib.get_close_matches(name[:80], known, n=3, cutoff=0) or known[:3]
    return TargetError(f"unknown microkernel {shown(name)}: the closest are {', '.join(close)}.")


def gemv_source(isa: ISA, dtype: DType) -> str:
    """C text that defines `gemvn_f32_avx512` and `gemvt_f32_avx512`."""
    return vector_layer(isa, dtype) + part("gemv", isa, dtype)


def pack_source(isa: ISA, dtype: DType, to: Space = "global", elements: Elements = PLAIN) -> str:
    """C text that defines `pack_f32_avx512` and its variants: across, along, gather, turned.

    On a device the panel is in the address space `to`: `pack_f32_opencl512_l` writes a `__local` one. `elements` are
    those of the array and of the panel, where they are not of the type itself: `pack_f32_avx512_bf16` converts,
    `pack_i32_avx512_i16x2_i8` makes words.
    """
    layer = vector_layer(isa, dtype) + multiply_adds(isa, dtype, elements.dot) + part("turn", isa, dtype)
    if elements.words:  # pack.h says how far a store may spill
        return layer + part("pack", isa, dtype) + part("pack_words", isa, dtype, elements=elements)
    converted = conversion(isa, dtype, elements.source) if elements.source else ""
    return layer + converted + part("pack", isa, dtype, (to,), elements)


def scatter_source(isa: ISA, dtype: DType) -> str:
    """C text that defines `store_run_f32_avx512` and `store_apart_…`, for results in runs, or at one distance."""
    return vector_layer(isa, dtype) + part("turn", isa, dtype) + part("scatter", isa, dtype)
