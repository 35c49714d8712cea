"""A program that prints the seconds of a CLBlast routine with the parameters of its command line; inf if it is wrong.

With parameters that CLBlast does not expect, it may write anywhere, so each choice is tried in a process of its own.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from time import perf_counter

from benchmarks.case import Problem
from benchmarks.contender import Failed
from benchmarks.opencl.clblast_call import calls, override
from benchmarks.opencl.stage import stage
from benchmarks.problems.contraction import ContractionProblem
from benchmarks.problems.matmul import Matmul
from benchmarks.runner import accuracy, relative_error
from microkernels.dtypes import DTYPES, DType

PROBLEMS: Mapping[str, Callable[[int], Problem]] = {
    "product": lambda size: Matmul(size, size, size),
    "rows": lambda size: ContractionProblem("i", "ik", "k", (("i", size), ("k", size))),
    "columns": lambda size: Matmul(1, size, size),
}
"""Square problems: a matrix product, a matrix times a vector, a vector times a matrix."""

ENOUGH = 0.2
"""Seconds of repetition: the fastest call counts, since other load can only slow it down."""

Parameters = Mapping[str, Mapping[str, int]]


def seconds(target: str, problem: Problem, dtype: DType, parameters: Parameters) -> float:
    """The best of some calls, by the device's clock. Raises Failed if CLBlast refuses the parameters."""
    here = stage(target)
    override(here, dtype, parameters)
    arrays = problem.arrays(dtype)
    given = here.upload(arrays)
    enqueue = calls(here, problem, dtype, given)
    assert enqueue is not None, "CLBlast takes every square problem"
    enqueue().wait()
    if not relative_error(given[2].get(), problem.expected(arrays)) <= accuracy(problem, dtype):
        return float("inf")
    timed, end = here.timed(enqueue), perf_counter() + ENOUGH
    samples: list[float] = []
    while len(samples) < 3 or perf_counter() < end:
        samples.append(timed(1))
    return min(samples)


if __name__ == "__main__":
    target, name, size, dtype, text = sys.argv[1:]
    try:
        print(seconds(target, PROBLEMS[name](int(size)), DTYPES[dtype], json.loads(text)), flush=True)
    except Failed:
        print("inf", flush=True)
