"""Memory-bound cases: softmax of rows, and a matrix times a vector."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from benchmarks.case import Case
from benchmarks.problems.contraction import ContractionProblem
from benchmarks.problems.softmax import Softmax
from benchmarks.workloads import nests
from microkernels.dtypes import DType

ROWS, COLUMNS = 4096, 1024
ORDER = 4096


def cases(dtype: DType) -> Iterator[Case]:
    """The cases, with arrays larger than the caches of a core."""
    quick = dtype.name == "f32"
    softmax = partial(nests.make, "softmax", dtype)
    sizes = {"M": ROWS, "N": COLUMNS}
    yield Case("bandwidth", f"softmax {ROWS}x{COLUMNS}", dtype, Softmax(ROWS, COLUMNS), softmax, sizes, quick)
    product = ContractionProblem("i", "ik", "k", (("i", ORDER), ("k", ORDER)))
    vector = partial(nests.make, "gemv", dtype)
    yield Case("bandwidth", f"matvec {ORDER}", dtype, product, vector, {"M": ORDER, "K": ORDER}, quick)
