"""The loops in straightforward OpenCL C: a work-item for each element of the result, with the other loops inside.

The runtime chooses the size of the work-groups. `T` is the scalar type.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from benchmarks.arrays import Array
from benchmarks.case import Case, Problem
from benchmarks.contender import Contender
from benchmarks.opencl.stage import launch, scalar, stage
from benchmarks.problems.contraction import ContractionProblem
from benchmarks.problems.convolution import Convolution
from benchmarks.problems.loops import LoopsProblem
from benchmarks.problems.matmul import Matmul
from benchmarks.problems.softmax import Softmax

LONGEST = 0.5
"""Seconds per call above which a comparison makes no sense."""


@dataclass(frozen=True)
class NaiveLaunch:
    """A kernel on these work-items, with these arrays by their positions."""

    kernel: str
    items: tuple[int, ...]
    arrays: tuple[int, ...]


@dataclass(frozen=True)
class NaiveProgram:
    """The source, and the launches of one call."""

    source: str
    launches: tuple[NaiveLaunch, ...]


MATMUL = """
__kernel void run(__global const T *A, __global const T *B, __global T *C)
{{
    const int j = get_global_id(0), i = get_global_id(1), n = get_global_id(2);
    T sum = 0;
    for (int k = 0; k < {k}; k++) sum += A[n * {m} * {k} + {a}] * B[n * {k} * {n} + {b}];
    C[(n * {m} + i) * {n} + j] += sum;
}}
"""

CONVOLUTION = """
__kernel void run(__global const T *X, __global const T *W, __global T *Y)
{{
    const int q = get_global_id({q_dimension}), p = get_global_id(1), k = get_global_id({k_dimension});
    T sum = 0;
    for (int c = 0; c < {c}; c++)
        for (int r = 0; r < {r}; r++)
            for (int s = 0; s < {r}; s++) sum += X[{x}] * W[{w}];
    Y[{y}] += sum;
}}
"""
PLACES = {
    "NCHW": {
        "x": "(c * {padded} + {stride} * p + r) * {padded} + {stride} * q + s",
        "w": "((k * {c} + c) * {r} + r) * {r} + s",
        "y": "(k * {out} + p) * {out} + q",
    },
    "NHWC": {
        "x": "(({stride} * p + r) * {padded} + {stride} * q + s) * {c} + c",
        "w": "((r * {r} + s) * {c} + c) * {k} + k",
        "y": "(p * {out} + q) * {k} + k",
    },
}

SOFTMAX = """
__kernel void run(__global const T *X, __global T *Y)
{{
    const int i = get_global_id(0);
    T most = X[i * {n}], sum = 0;
    for (int j = 1; j < {n}; j++) most = fmax(most, X[i * {n} + j]);
    for (int j = 0; j < {n}; j++) sum += Y[i * {n} + j] = exp(X[i * {n} + j] - most);
    for (int j = 0; j < {n}; j++) Y[i * {n} + j] /= sum;
}}
"""

JACOBI = """
__kernel void run(__global const T *A, __global T *B)
{{
    const int j = get_global_id(0) + 1, i = get_global_id(1) + 1;
    __global const T *a = A + i * {n} + j;
    B[i * {n} + j] = (T)0.2 * (a[0] + a[-1] + a[1] + a[{n}] + a[-{n}]);
}}
"""

HEAT = """
__kernel void run(__global const T *A, __global T *B)
{{
    const int k = get_global_id(0) + 1, j = get_global_id(1) + 1, i = get_global_id(2) + 1;
    __global const T *a = A + (i * {n} + j) * {n} + k;
    B[(i * {n} + j) * {n} + k] = (T)0.125 * (a[{n} * {n}] - 2 * a[0] + a[-{n} * {n}])
        + (T)0.125 * (a[{n}] - 2 * a[0] + a[-{n}]) + (T)0.125 * (a[1] - 2 * a[0] + a[-1]) + a[0];
}}
"""


def text(problem: Problem) -> NaiveProgram | None:
    """The naive program for a problem; None if its elements depend on each other."""
    match problem:
        case Matmul():
            return _matmul(problem)
        case Convolution() if problem.is_textbook:
            return _convolution(problem)
        case ContractionProblem():
            return _contraction(problem)
        case Softmax():
            return NaiveProgram(SOFTMAX.format(n=problem.columns), (NaiveLaunch("run", (problem.rows,), (0, 1)),))
        case LoopsProblem(name="jacobi_2d"):
            return _sweeps(JACOBI, problem, 2)
        case LoopsProblem(name="heat_3d"):
            return _sweeps(HEAT, problem, 3)
    return None


def _matmul(problem: Matmul) -> NaiveProgram:
    m, n, k = problem.m, problem.n, problem.k
    a = f"k * {m} + i" if problem.transpose[0] == "T" else f"i * {k} + k"
    b = f"j * {k} + k" if problem.transpose[1] == "T" else f"k * {n} + j"
    source = MATMUL.format(m=m, n=n, k=k, a=a, b=b)
    return NaiveProgram(source, (NaiveLaunch("run", (n, m, problem.batch), (0, 1, 2)),))


def _convolution(problem: Convolution) -> NaiveProgram:
    """A convolution, whose work-items' fastest dimension is that of the result in memory."""
    numbers = {
        "c": problem.c, "k": problem.k, "r": problem.r,
        "padded": problem.padded, "stride": problem.stride, "out": problem.out,
    }  # fmt: skip
    places = {name: place.format(**numbers) for name, place in PLACES[problem.layout].items()}
    first = problem.layout == "NCHW"
    source = CONVOLUTION.format(
        c=problem.c, r=problem.r, q_dimension=0 if first else 2, k_dimension=2 if first else 0, **places
    )
    items = (problem.out, problem.out, problem.k) if first else (problem.k, problem.out, problem.out)
    return NaiveProgram(source, (NaiveLaunch("run", items, (0, 1, 2)),))


def _contraction(problem: ContractionProblem) -> NaiveProgram:
    """One work-item for each element of the output, whose number is split into indices."""
    extents = dict(problem.extents)
    lines, rest = [], "get_global_id(0)"
    for index in reversed(problem.output):
        lines.append(f"    const int {index} = {rest} % {extents[index]};")
        rest = f"({rest} / {extents[index]})"
    summed = sorted(set(problem.first + problem.second) - set(problem.output))
    loops = " ".join(f"for (int {i} = 0; {i} < {extents[i]}; {i}++)" for i in summed)
    first, second = (_place(indices, extents) for indices in (problem.first, problem.second))
    source = "\n".join([
        "__kernel void run(__global const T *first, __global const T *second, __global T *output)", "{",
        *lines, "    T sum = 0;", f"    {loops} sum += first[{first}] * second[{second}];",
        "    output[get_global_id(0)] += sum;", "}", "",
    ])  # fmt: skip
    elements = 1
    for index in problem.output:
        elements *= extents[index]
    return NaiveProgram(source, (NaiveLaunch("run", (elements,), (0, 1, 2)),))


def _place(indices: str, extents: dict[str, int]) -> str:
    place = "0"
    for index in indices:
        place = f"({place} * {extents[index]} + {index})"
    return place


def _sweeps(source: str, problem: LoopsProblem, dimensions: int) -> NaiveProgram:
    n, steps = problem.size["N"], problem.size["T"]
    there, back = (NaiveLaunch("run", (n - 2,) * dimensions, arrays) for arrays in ((0, 1), (1, 0)))
    return NaiveProgram(source.format(n=n), (there, back) * steps)


@dataclass(frozen=True)
class Naive:
    """One work-item for each element, in work-groups of the runtime's choice."""

    target: str

    def __call__(self, case: Case, arrays: tuple[Array, ...], threads: int) -> Contender | None:
        """The program's launches on the device's arrays; None if the problem has no such program, or it is too slow."""
        made = text(case.problem)
        if made is None:
            return None
        here = stage(self.target)
        program = here.build(f"{scalar(case.dtype)}{made.source}")
        given = here.upload(arrays)
        launches = [
            launch(here.queue, program, one.kernel, one.items, None, *(given[n].data for n in one.arrays))
            for one in made.launches
        ]

        def enqueue() -> Any:
            return [put() for put in launches][-1]

        enqueue().wait()
        result = given[case.problem.written[0]].get()
        timed = here.timed(enqueue)
        if timed(1) > LONGEST:
            return None
        config = "an item for each element, groups by the runtime"
        return Contender("naive", here.device.driver, config, timed, lambda: result, pinned=False)
