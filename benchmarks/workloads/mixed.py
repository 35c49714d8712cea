"""Products of narrow operands: of i8 in i32, and of bf16 in f32; their peak is that of f32."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from importlib.util import find_spec

from benchmarks.case import Case
from benchmarks.problems.mixed import MixedMatmul
from benchmarks.workloads import nests
from microkernels.dtypes import DType, bf16, f32, i8

SQUARES = (512, 1024, 2048)


def cases(dtype: DType) -> Iterator[Case]:
    """Squares. Without the package ml_dtypes, NumPy has no arrays of bf16."""
    if dtype != f32:
        return
    for operands in (i8, bf16) if find_spec("ml_dtypes") else (i8,):
        for size in SQUARES:
            nest = partial(nests.make, "gemm_halves" if operands.is_float else "gemm_integers", operands)
            sizes = dict.fromkeys("MNK", size)
            problem = MixedMatmul(size, size, size, operands)
            yield Case("mixed", f"{size} {operands.name}", dtype, problem, nest, sizes, quick=size <= 1024)
