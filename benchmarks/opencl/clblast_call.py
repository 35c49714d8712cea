"""CLBlast's routine for a problem, on the device's arrays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchmarks.case import Problem
from benchmarks.opencl.clblast_library import (
    COLUMN_MAJOR,
    CROSS_CORRELATION,
    NO_TRANSPOSE,
    ROW_MAJOR,
    TRANSPOSE,
    library,
)
from benchmarks.opencl.stage import Enqueue, Stage
from benchmarks.problems.contraction import ContractionProblem
from benchmarks.problems.convolution import Convolution
from benchmarks.problems.matmul import Matmul
from microkernels.dtypes import DType

Given = tuple[Any, ...]


def override(here: Stage, dtype: DType, parameters: Mapping[str, Mapping[str, int]]) -> None:
    """Give CLBlast's kernels these parameters. Raises Failed."""
    for kernel, values in parameters.items():
        library().override(here.device.handle, kernel, dtype, values)


def calls(here: Stage, problem: Problem, dtype: DType, given: Given) -> Enqueue | None:
    """The function that enqueues the problem's routine; None if CLBlast has none. Raises NotInstalled."""
    match problem:
        case Matmul() if problem.batch > 1:
            return _batched(here, problem, dtype, given)
        case Matmul(m=1, transpose="NN"):
            return _vector(here, dtype, TRANSPOSE, (problem.k, problem.n), (given[1], given[0], given[2]))
        case Matmul():
            return _product(here, problem, dtype, given)
        case ContractionProblem(first="ik", second="k", output="i"):
            extents = dict(problem.extents)
            return _vector(here, dtype, NO_TRANSPOSE, (extents["i"], extents["k"]), given)
        case Convolution(layout="NCHW") if problem.is_textbook:
            return _convolution(here, problem, dtype, given)
        case Convolution(layout="NHWC", r=1, stride=1) if problem.is_textbook:
            return _product(here, Matmul(problem.out**2, problem.k, problem.c), dtype, given)
    return None


def assigns(problem: Problem) -> bool:
    """Whether the routine assigns its output, while the loops add to it."""
    return isinstance(problem, Convolution) and problem.layout == "NCHW"


def _product(here: Stage, problem: Matmul, dtype: DType, given: Given) -> Enqueue:
    """`C += A B`, with the scratch memory allocated beforehand.

    It is passed as `C' += B' A'` in column-major order, which CLBlast's kernels use: else it would transpose C twice.
    """
    cl_blast = library()
    m, n, k = problem.m, problem.n, problem.k
    lda, ldb, ldc = problem.leading
    a, b, c = (cl_blast.handle(array.data) for array in given)
    head = (COLUMN_MAJOR, *reversed(_transposes(problem)), n, m, k)
    bytes_ = cl_blast.ffi.new("size_t *")
    cl_blast.call(
        "CLBlast{l}GemmTempBufferSize", dtype, *head, 0, ldb, 0, lda, 0, ldc, cl_blast.queue(here.queue), bytes_
    )
    scratch = here.buffer(bytes_[0]) if bytes_[0] else None
    last = (cl_blast.handle(scratch) if scratch is not None else cl_blast.ffi.NULL,)
    arguments = (*head, 1, b, 0, ldb, a, 0, lda, 1, c, 0, ldc)

    def enqueue(_alive: Any = (given, scratch)) -> Any:
        return cl_blast.enqueue("CLBlast{l}gemmWithTempBuffer", dtype, here.queue, *arguments, last=last)

    return enqueue


def _batched(here: Stage, problem: Matmul, dtype: DType, given: Given) -> Enqueue:
    cl_blast = library()
    m, n, k = problem.m, problem.n, problem.k
    lda, ldb, ldc = problem.leading
    a, b, c = (cl_blast.handle(array.data) for array in given)
    arguments = (
        COLUMN_MAJOR, *reversed(_transposes(problem)), n, m, k, 1, b, 0, ldb, k * n, a, 0, lda, m * k,
        1, c, 0, ldc, m * n, problem.batch,
    )  # fmt: skip

    def enqueue(_alive: Any = given) -> Any:
        return cl_blast.enqueue("CLBlast{l}gemmStridedBatched", dtype, here.queue, *arguments)

    return enqueue


def _vector(here: Stage, dtype: DType, transpose: int, shape: tuple[int, int], given: Given) -> Enqueue:
    """`y += A x`, or `y += A' x`."""
    cl_blast = library()
    rows, columns = shape
    a, x, y = (cl_blast.handle(array.data) for array in given)
    arguments = (ROW_MAJOR, transpose, rows, columns, 1, a, 0, columns, x, 0, 1, 1, y, 0, 1)

    def enqueue(_alive: Any = given) -> Any:
        return cl_blast.enqueue("CLBlast{l}gemv", dtype, here.queue, *arguments)

    return enqueue


def _convolution(here: Stage, problem: Convolution, dtype: DType, given: Given) -> Enqueue:
    """A convolution without padding, as the image is already padded."""
    cl_blast = library()
    image, weights, output = (cl_blast.handle(array.data) for array in given)
    arguments = (
        CROSS_CORRELATION, problem.c, problem.padded, problem.padded, problem.r, problem.r, 0, 0,
        problem.stride, problem.stride, 1, 1, problem.k, 1, image, 0, weights, 0, output, 0,
    )  # fmt: skip

    def enqueue(_alive: Any = given) -> Any:
        return cl_blast.enqueue("CLBlast{l}convgemm", dtype, here.queue, *arguments)

    return enqueue


def _transposes(problem: Matmul) -> tuple[int, int]:
    first, second = (TRANSPOSE if letter == "T" else NO_TRANSPOSE for letter in problem.transpose)
    return first, second
