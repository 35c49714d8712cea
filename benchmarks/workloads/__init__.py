"""The cases of each workload."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping

from benchmarks.case import Case
from benchmarks.workloads import bandwidth, cold, conv2d, einsum, fused, gemm, mixed, reductions, stencil
from microkernels.dtypes import DTYPES, DType

WORKLOADS: Mapping[str, Callable[[DType], Iterator[Case]]] = {
    "gemm": gemm.cases,
    "mixed": mixed.cases,
    "einsum": einsum.cases,
    "conv2d": conv2d.cases,
    "stencil": stencil.cases,
    "bandwidth": bandwidth.cases,
    "reductions": reductions.cases,
    "fusion": fused.fusion,
    "attention": fused.attention,
    "cold": cold.cases,
}
"""The functions that yield a workload's cases, by its name."""


def selected(workload: str, dtype: str | None, quick: bool, only: Collection[str] | None = None) -> Iterator[Case]:
    """The cases of a workload, of some sizes or of all, of one scalar type or of all, the quick ones or all."""
    for name in [dtype] if dtype else ["f32", "f64"]:
        for case in WORKLOADS[workload](DTYPES[name]):
            if (only is None or case.size in only) and (case.quick or not quick):
                yield case
