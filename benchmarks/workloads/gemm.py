"""Matrix multiplication `C += A B`: squares, skinny and odd shapes, the four transposes, and a batch of small ones."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from benchmarks.case import Case
from benchmarks.problems.matmul import Matmul
from benchmarks.workloads import nests
from microkernels.dtypes import DType

SQUARES = (13, 32, 64, 128, 256, 512, 1024, 2048, 4096)
SHAPES = (
    (7, 333, 1001),
    (49, 512, 2048),
    (3136, 64, 64),
    (512, 512, 64),
    (2048, 2048, 32),
    (1, 4096, 4096),
)
"""Rows, columns, reduction."""
TRANSPOSES = ("NT", "TN", "TT")
BATCH = (10_000, 16)
"""The number of products in the batch, and their size."""
QUICK = {
    "f32": {
        "13",
        "32",
        "64",
        "128",
        "256",
        "512",
        "1024",
        "2048",
        "512 NT",
        "10000 x 16",
        *("x".join(map(str, s)) for s in SHAPES),
    },
    "f64": {"64", "256", "512", "1024"},
}


def cases(dtype: DType) -> Iterator[Case]:
    """Every shape; the transposes at 512."""
    for size in SQUARES:
        yield _case(str(size), Matmul(size, size, size), dtype)
    for m, n, k in SHAPES:
        yield _case(f"{m}x{n}x{k}", Matmul(m, n, k), dtype)
    for transpose in TRANSPOSES:
        yield _case(f"512 {transpose}", Matmul(512, 512, 512, transpose), dtype)
    count, size = BATCH
    yield _case(f"{count} x {size}", Matmul(size, size, size, batch=count), dtype)


def _case(size: str, problem: Matmul, dtype: DType) -> Case:
    sizes = {"M": problem.m, "N": problem.n, "K": problem.k}
    name = f"gemm_{problem.transpose.lower()}"
    if problem.batch > 1:
        sizes["B"] = problem.batch
        name = "gemm_batched"
    return Case("gemm", size, dtype, problem, partial(nests.make, name, dtype), sizes, size in QUICK[dtype.name])
