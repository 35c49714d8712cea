"""A program that prints the cost of a call, and of the launch of an empty kernel through pyopencl, as JSON.

Each round makes a number of calls of each in turn; the arrays are on the device, and the work is negligible.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np

import poly
from benchmarks.contender import Failed
from benchmarks.opencl import threads
from benchmarks.opencl.stage import Stage, launch, stage
from benchmarks.workloads import nests
from codegen.system.processes import PYTHON, with_own_path
from microkernels.dtypes import f32
from poly.timing.summary import Summary, summarize

EMPTY = "__kernel void empty(__global float *a) {}"
ROUNDS, CALLS, SIZE = 60, 50, 8


@dataclass(frozen=True)
class Overhead:
    """Microseconds per call: an empty kernel's launch, a call of ours, and the difference round by round."""

    empty: Summary
    ours: Summary
    more: Summary


def overhead(target: str, waiting: bool) -> Overhead:
    """Measure the overhead in a process of its own, waiting for each call or only for the last one. Raises Failed."""
    command = [*PYTHON, "-m", "benchmarks.opencl.overhead", target, "wait" if waiting else "go"]
    with threads.kept():
        done = subprocess.run(command, env=with_own_path(), capture_output=True, text=True, check=False)
    try:
        empty, ours = json.loads(done.stdout)
    except ValueError:
        raise Failed((done.stderr.strip() or "no word").splitlines()[-1]) from None
    return Overhead(*(summarize(x) for x in (empty, ours, np.subtract(ours, empty).tolist())))


def rounds(target: str, waiting: bool) -> tuple[list[float], list[float]]:
    """Microseconds per call in each round: of an empty kernel, and of a small nest."""
    here = stage(target)
    ways = [_empty(here), _ours(here, target)]
    samples: tuple[list[float], list[float]] = ([], [])
    for way in ways:
        way().wait()
    for _ in range(ROUNDS):
        for way, taken in zip(ways, samples, strict=True):
            taken.append(1e6 * _sample(way, waiting))
    return samples


def _sample(way: Callable[[], Any], waiting: bool) -> float:
    start = perf_counter()
    for _ in range(CALLS):
        event = way()
        if waiting:
            event.wait()
    taken = perf_counter() - start
    event.wait()
    return taken / CALLS


def _empty(here: Stage) -> Callable[[], Any]:
    buffer = here.buffer(64)
    return launch(here.queue, here.build(EMPTY), "empty", (1,), (1,), buffer)


def _ours(here: Stage, target: str) -> Callable[[], Any]:
    """A matrix times a vector with few elements."""
    kernel = poly.compile(nests.make("gemv", f32), sizes={"M": SIZE, "K": SIZE}, target=target, records=False)
    given = here.upload([np.ones(shape, np.float32) for shape in ((SIZE, SIZE), SIZE, SIZE)])
    return lambda: kernel(*given)


if __name__ == "__main__":
    print(json.dumps(rounds(sys.argv[1], sys.argv[2] == "wait")), flush=True)
