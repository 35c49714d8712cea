"""Reductions that are no products: sums and extremes over pairs, arg-min, prefix sums, pooling, layer norm."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from benchmarks.case import Case
from benchmarks.problems.reductions import ReductionProblem
from benchmarks.workloads import reduction_nests
from microkernels.dtypes import DType

PROBLEMS = (
    ReductionProblem("gauss_sum", 8192, 8192),
    ReductionProblem("nearest", 8192, 8192),
    ReductionProblem("argmin_rows", 8192, 1000),
    ReductionProblem("prefix_rows", 8192, 1000),
    ReductionProblem("prefix_columns", 8192, 1000),
    ReductionProblem("max_pool", 1024, 1024),
    ReductionProblem("layer_norm", 4096, 1024),
)


def cases(dtype: DType) -> Iterator[Case]:
    """Each reduction, at a size that NumPy computes in a second."""
    for problem in PROBLEMS:
        nest = partial(reduction_nests.NESTS[problem.name], dtype)
        size = f"{problem.name} {problem.m}x{problem.n}"
        yield Case("reductions", size, dtype, problem, nest, problem.size, dtype.name == "f32")
