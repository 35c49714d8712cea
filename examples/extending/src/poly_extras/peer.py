"""A peer of `poly bench`: NumPy's tensordot, for single products of matrices as they are stored."""

from __future__ import annotations

import numpy as np

from benchmarks.clock import python_timed
from benchmarks.contender import Contender
from benchmarks.problems.matmul import Matmul


class Tensordot:
    """`name` is what `--against` takes; `prepare` gives a contender that is ready to run."""

    name = "tensordot"

    def prepare(self, problem: object, arrays: tuple[np.ndarray, ...], threads: int) -> Contender | None:
        """A contender on these arrays, which it owns; None for what this peer does not support."""
        if not isinstance(problem, Matmul) or problem.batch != 1 or problem.transpose != "NN" or threads != 1:
            return None
        a, b, c = arrays
        start, product = c.copy(), []
        run = python_timed(lambda: product.__setitem__(slice(None), [np.tensordot(a, b, 1)]))
        return Contender(self.name, np.__version__, "numpy.tensordot", run, lambda: start + product[0], in_c=False)


PEER = Tensordot()
