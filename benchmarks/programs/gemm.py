"""Our plain GEMM, whose rate is what programs that are mostly contractions are judged by."""

from __future__ import annotations

from functools import partial

import poly
from benchmarks.case import Case
from benchmarks.problems.program import Program
from benchmarks.programs.polybench import KERNELS, SIZES
from benchmarks.programs.polybench_nests import plain_gemm
from microkernels.dtypes import f64


def gemm_case(size: str) -> Case:
    """`C += A B` in the sizes of the suite's product."""
    (kernel,) = (kernel for kernel in KERNELS if kernel.name == "gemm")
    values = {name: values[SIZES.index(size)] for name, values in kernel.sizes.items()}
    nest = partial(poly.nest, plain_gemm)
    operations = round(kernel.operations(**values)) if kernel.operations else None
    return Case("gemm", "plain", f64, Program("plain gemm", nest, values, operations=operations), nest, values)
