"""A program that prints the seconds of a 512³ product by the BLIS at a path, configured by the environment."""

from __future__ import annotations

import sys

from benchmarks.peers.cblas import entry_points
from benchmarks.problems.matmul import Matmul
from microkernels.dtypes import f32


def trial(path: str) -> float:
    """The best of a few runs."""
    problem = Matmul(512, 512, 512)
    arrays = problem.arrays(f32)
    run = entry_points(path, "int").product(problem, arrays).timed()
    run(1)
    return min(run(1) for _ in range(20))


if __name__ == "__main__":
    print(trial(sys.argv[1]))
