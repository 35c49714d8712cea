"""CLBlast on the same device, tuned for it."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np

from benchmarks.arrays import Array
from benchmarks.case import Case
from benchmarks.contender import Contender
from benchmarks.opencl.clblast_call import assigns, calls, override
from benchmarks.opencl.clblast_library import library, version
from benchmarks.opencl.clblast_tuning import Tuned, tuned
from benchmarks.opencl.stage import stage
from microkernels.dtypes import DTYPES


@dataclass(frozen=True)
class ClBlast:
    """Products, matrix times vector, and convolutions, by CLBlast's C interface."""

    target: str

    def __call__(self, case: Case, arrays: tuple[Array, ...], threads: int) -> Contender | None:
        """CLBlast's routine for the case. Raises NotInstalled and Failed."""
        library()
        here = stage(self.target)
        given = here.upload(arrays)
        enqueue = calls(here, case.problem, case.dtype, given)
        if enqueue is None:
            return None
        config = str(_parameters(self.target, case.dtype.name))
        enqueue().wait()
        output = given[case.problem.written[0]].get()
        result = np.add(arrays[2], output) if assigns(case.problem) else output
        return Contender("clblast", version(), config, here.timed(enqueue), lambda: result, pinned=False)


@functools.cache
def _parameters(target: str, dtype: str) -> Tuned:
    """The tuned parameters, which are passed to CLBlast once."""
    here = stage(target)
    found = tuned(target, here.device, DTYPES[dtype])
    override(here, DTYPES[dtype], found.parameters)
    return found
