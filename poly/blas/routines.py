"""The nests as routines of a header: for each instruction set a kernel, scheduled for matrices of any size.

    for k_tile:                    (steps of the reduction for which a panel of B fits in L2)
      for j_tile:
        pack B                     (one panel; `gemm_small` reads it in place)
        for i_tile:
          microkernel              (A in place, since a tile has few rows)

No schedule depends on the machine on which the header is made.
"""

from __future__ import annotations

from collections.abc import Sequence

from codegen.ir.signature import Signature
from codegen.package.values import Routine, Variant
from microkernels.dtypes import DType, f32, f64
from microkernels.isa import ISA
from poly.analysis.bounds import check
from poly.analysis.roles import ASSUMED
from poly.autoschedule.default import default_schedule
from poly.autoschedule.rules.microkernels import contracted
from poly.blas.nests import gemm_panels, gemm_small, gemv_dots, gemv_sums
from poly.embed.routine import USUAL
from poly.ir.nest import Nest
from poly.lowering.lower import lower
from poly.model import Choice
from poly.model.choice import tile_shape
from poly.model.core import Target
from poly.schedules.schedule import Schedule, schedule

DTYPES = (f32, f64)
NESTS = {"gemm": (gemm_panels, gemm_small), "gemv": (gemv_dots, gemv_sums)}
NEEDED = {"gemm": ("gemm", "gemv"), "gemv": ("gemv",), "syrk": ("gemm", "gemv")}
"""The nests that each BLAS routine needs; a product with one row or one column is a matrix-vector product."""

DEPTH = 64
"""Vectors per column of a panel of B: a panel has at most 256 KiB with AVX-512, and 48 KiB with AVX2."""

PANEL = 256 << 10
"""The size of the largest panel in bytes."""


def routines(names: Sequence[str], isas: Sequence[ISA], threads: int) -> tuple[Routine, ...]:
    """The functions that the BLAS routines `names` need, for both types; large products are shared by `threads`."""
    needed = {part for name in names for part in NEEDED[name]}
    nests = [make(dtype) for part in NESTS if part in needed for make in NESTS[part] for dtype in DTYPES]
    return tuple(_routine(check(nest), isas, threads) for nest in nests)


def _routine(nest: Nest, isas: Sequence[ISA], threads: int) -> Routine:
    reference = lower(nest, schedule(nest).tree, isas[-1])
    return Routine(
        name=f"pfx_{nest.name}",
        signature=Signature.of(reference),
        strides=tuple(size for size in reference.sizes if size not in nest.sizes),
        loops=nest.source[nest.source.index("def ") :].rstrip(),
        variants=tuple(_variant(nest, isa, threads) for isa in isas),
        reference=reference,
    )


def _variant(nest: Nest, isa: ISA, threads: int) -> Variant:
    made = scheduled(nest, isa, threads)
    return Variant(isa, lower(nest, made.tree, isa), loops=str(made))


def scheduled(nest: Nest, isa: ISA, threads: int) -> Schedule:
    """The schedule of one of the nests."""
    product, dtype = nest.statements[0].name, nest.array("A").dtype
    if nest.name.startswith("gemm_panels"):
        return contracted(nest, Target.nominal(isa, USUAL, threads), {product: by_panels(isa, dtype, threads)})
    if nest.name.startswith("gemm_small"):
        return contracted(nest, Target.nominal(isa, USUAL, 1), {product: in_place(isa, dtype)})
    return default_schedule(nest, Target.nominal(isa, USUAL, 1))


def in_place(isa: ISA, dtype: DType) -> Choice:
    """No copies, and no tiles but the register tiles."""
    return Choice(
        kernel=tile_shape(ASSUMED, ASSUMED, isa, dtype),
        reduce_cut=None,
        inner=1,
        columns_cut=None,
        rows_cut=None,
        pack_left=False,
        pack_right=False,
        rows_inside=True,
        panel_by_panel=False,
        parallel=None,
    )


def by_panels(isa: ISA, dtype: DType, threads: int) -> Choice:
    """B is packed panel by panel, and each panel is used for all rows; each thread has its own panels."""
    return Choice(
        kernel=tile_shape(ASSUMED, ASSUMED, isa, dtype),
        reduce_cut=DEPTH * isa.lanes(dtype),
        inner=0,
        columns_cut=None,
        rows_cut=None,
        pack_left=False,
        pack_right=True,
        rows_inside=True,
        panel_by_panel=True,
        parallel="columns" if threads > 1 else None,
    )
