"""Single calls by threads that slept, as in a program that calls a kernel now and then."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from benchmarks.case import Case
from benchmarks.workloads import gemm
from microkernels.dtypes import DType

SIZES = ("128", "256", "512", "1024")


def cases(dtype: DType) -> Iterator[Case]:
    """Square products: the smaller, the more of their time passes before the last thread has woken."""
    for case in gemm.cases(dtype):
        if case.size in SIZES:
            yield replace(case, workload="cold", cold=True, quick=dtype.name == "f32")
