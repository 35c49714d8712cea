"""The C compiler: `-O3 -march=native` of the loops as written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from benchmarks import toolchain
from benchmarks.arrays import Array
from benchmarks.case import Case, Problem
from benchmarks.contender import Contender
from benchmarks.problems.c_call import as_written
from benchmarks.problems.loops import LoopsProblem
from benchmarks.workloads import nests
from microkernels.dtypes import DTYPES

FLAGS = ("-O3", "-march=native")
NO_WIDER = ("-mno-avx512f",)
"""What keeps a compiler from instructions beyond AVX2."""


@dataclass(frozen=True)
class CompiledLoops:
    """Plain loops, on one thread: a C compiler does not parallelise by itself. `further` flags follow."""

    further: tuple[str, ...] = ()
    name: ClassVar[str] = "gcc"

    def __call__(self, case: Case, arrays: tuple[Array, ...], threads: int) -> Contender | None:
        """The contender for a case, as of a solver in another process."""
        return self.prepare(case.problem, arrays, threads)

    def prepare(self, problem: Problem, arrays: tuple[Array, ...], threads: int) -> Contender | None:
        if not isinstance(problem, LoopsProblem) or threads > 1:
            return None
        (dtype,) = (dtype for dtype in DTYPES.values() if dtype.numpy_name == arrays[0].dtype.name)
        nest = nests.make(problem.name, dtype).with_sizes(problem.size)
        compiler = toolchain.host()
        flags = (*FLAGS, *self.further)
        timed = as_written(nest, arrays, compiler, flags).timed()
        result = arrays[problem.written[0]]
        return Contender(self.name, compiler.version, " ".join(flags), timed, lambda: result)
