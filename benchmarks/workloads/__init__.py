"""The workloads, by name: each yields its cases."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from benchmarks.case import Case
from benchmarks.workloads import conv2d, einsum, gemm, stencil
from microkernels.dtypes import DType

WORKLOADS: Mapping[str, Callable[[DType], Iterator[Case]]] = {
    "gemm": gemm.cases,
    "einsum": einsum.cases,
    "conv2d": conv2d.cases,
    "stencil": stencil.cases,
}
