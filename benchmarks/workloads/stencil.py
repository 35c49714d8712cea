"""Nests that are not contractions: stencils over time and triangular solves. The peer is the compiler on the loops."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from benchmarks.case import Case
from benchmarks.problems.loops import LoopsProblem
from benchmarks.workloads import nests
from microkernels.dtypes import DType

PROBLEMS = (
    ("jacobi-2d 2000² x 50", LoopsProblem("jacobi_2d", (("N", 2000), ("T", 50)))),
    ("heat-3d 120³ x 20", LoopsProblem("heat_3d", (("N", 120), ("T", 20)))),
    ("seidel-2d 1000² x 10", LoopsProblem("seidel_2d", (("N", 1000), ("T", 10)))),
    ("trsv 2000", LoopsProblem("trsv", (("N", 2000),))),
    ("trsm 512x512", LoopsProblem("trsm", (("N", 512), ("M", 512)))),
)


def cases(dtype: DType) -> Iterator[Case]:
    """All cases."""
    for size, problem in PROBLEMS:
        nest = partial(nests.make, problem.name, dtype)
        yield Case("stencil", size, dtype, problem, nest, problem.size, dtype.name == "f32")
