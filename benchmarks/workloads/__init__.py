"""The cases of each workload."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from benchmarks.case import Case
from benchmarks.workloads import bandwidth, cold, conv2d, einsum, gemm, stencil
from microkernels.dtypes import DTYPES, DType

WORKLOADS: Mapping[str, Callable[[DType], Iterator[Case]]] = {
    "gemm": gemm.cases,
    "einsum": einsum.cases,
    "conv2d": conv2d.cases,
    "stencil": stencil.cases,
    "bandwidth": bandwidth.cases,
    "cold": cold.cases,
}
"""The functions that yield a workload's cases, by its name."""


def selected(workload: str, dtype: str | None, quick: bool, only: str) -> Iterator[Case]:
    """The cases of a workload whose size contains a text, of one scalar type or of all, the quick ones or all."""
    for name in [dtype] if dtype else ["f32", "f64"]:
        for case in WORKLOADS[workload](DTYPES[name]):
            if only in case.size and (case.quick or not quick):
                yield case
