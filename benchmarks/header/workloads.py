"""The workloads of a header: products, a convolution, a stencil, a softmax, and a matrix times a vector."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial

from benchmarks.case import Case
from benchmarks.problems.contraction import ContractionProblem
from benchmarks.problems.convolution import Convolution
from benchmarks.problems.loops import LoopsProblem
from benchmarks.problems.matmul import Matmul
from benchmarks.problems.softmax import Softmax
from benchmarks.workloads import nests
from microkernels.dtypes import DType, f32, f64
from microkernels.isa import ISA, ISAS, host


@dataclass(frozen=True)
class Workload:
    """One header. A symbolic one has one kernel, which serves all sizes; else each case has its own kernel.

    If `isa` isn't the best that this CPU has, the header is forced to use it.
    """

    prefix: str
    cases: tuple[Case, ...]
    symbolic: bool
    isa: ISA = field(default_factory=host)

    def title(self, case: Case) -> str:
        """The case's name in the table."""
        isa = "" if self.isa == host() else f" {self.isa.name}"
        return f"{case.title}{' symbolic' * self.symbolic}{isa}"


def workloads(quick: bool) -> Iterator[Workload]:
    """Special kernels and symbolic ones on the same sizes; the `quick` list has fewer sizes."""
    products = (64, 512) if quick else (64, 128, 256, 512, 1024)
    for dtype, sizes in ((f32, products), (f64, (256,) if quick else (128, 512))):
        cases = tuple(product(size, dtype) for size in sizes)
        yield Workload(f"special_{dtype.name}", cases, symbolic=False)
        yield Workload(f"symbolic_{dtype.name}", cases, symbolic=True)
    for isa in lesser():
        cases = (product(512, f32),)
        yield Workload(f"special_{isa.name}", cases, False, isa)
        yield Workload(f"symbolic_{isa.name}", cases, True, isa)
    yield Workload("conv", (convolution(f32),), symbolic=False)
    yield Workload("jacobi", (jacobi(f32),), symbolic=False)
    for symbolic in (False, True):
        kind = "symbolic" if symbolic else "special"
        yield Workload(f"{kind}_softmax", (softmax(f32),), symbolic)
        yield Workload(f"{kind}_gemv", (matrix_vector(f32),), symbolic)


def lesser() -> Iterator[ISA]:
    """The instruction sets that this CPU has besides its best."""
    return (isa for isa in ISAS.values() if isa.runs_here() and isa != host())


def product(size: int, dtype: DType) -> Case:
    """A square matrix product."""
    sizes = {"M": size, "N": size, "K": size}
    return Case("gemm", str(size), dtype, Matmul(size, size, size), partial(nests.make, "gemm_nn", dtype), sizes)


def convolution(dtype: DType) -> Case:
    """A layer of ResNet-50, channels last: 3x3, 128 channels, 28x28."""
    problem = Convolution(128, 128, 28, 3, 1, 1, "NHWC", zeros=True)
    return Case("conv2d", "28² 3x3", dtype, problem, partial(nests.make, "conv2d_nhwc_1", dtype), problem.sizes)


def jacobi(dtype: DType) -> Case:
    """A five-point stencil over time."""
    problem = LoopsProblem("jacobi_2d", (("N", 500), ("T", 20)))
    return Case("jacobi-2d", "500² x 20", dtype, problem, partial(nests.make, "jacobi_2d", dtype), problem.size)


def softmax(dtype: DType) -> Case:
    """A softmax of rows of a thousand elements."""
    problem = Softmax(256, 1000)
    return Case("softmax", "256x1000", dtype, problem, partial(nests.make, "softmax", dtype), {"M": 256, "N": 1000})


def matrix_vector(dtype: DType) -> Case:
    """A matrix times a vector, with a matrix that fits in the L2 cache."""
    sizes = {"M": 480, "K": 512}
    problem = ContractionProblem("i", "ik", "k", (("i", 480), ("k", 512)))
    return Case("gemv", "480x512", dtype, problem, partial(nests.make, "gemv", dtype), sizes)
