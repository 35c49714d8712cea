"""Our own entrants: the nest compiled for the device and, for comparison, for C on as many threads."""

from __future__ import annotations

from dataclasses import dataclass

import poly
from benchmarks.arrays import Array
from benchmarks.case import Case
from benchmarks.contender import Contender, Failed
from benchmarks.opencl.stage import stage
from benchmarks.ours import NAME, Poly


@dataclass(frozen=True)
class OpenCL:
    """Kernels with the default schedule for the device, without tuning, on arrays in its memory."""

    target: str

    def __call__(self, case: Case, arrays: tuple[Array, ...], threads: int) -> Contender:
        """Compile the case's loops. Raises Failed with poly's message."""
        here = stage(self.target)
        try:
            kernel = poly.compile(case.nest(), sizes=case.sizes, target=self.target, records=False)
            given = here.upload(arrays)
            kernel(*given)
            here.queue.finish()
        except poly.PolyError as error:
            raise Failed(f"{type(error).__name__}: {error}") from error
        result = given[case.problem.written[0]].get()
        config = f"default schedule, {here.device.name}, driver {here.device.driver}"
        return Contender(
            NAME, poly.__version__, config, here.timed(lambda: kernel(*given)), lambda: result, pinned=False
        )


@dataclass(frozen=True)
class C:
    """The same loops by our C target, on as many threads as the device has compute units."""

    def __call__(self, case: Case, arrays: tuple[Array, ...], threads: int) -> Contender:
        """Compile the case's loops. Raises Failed with poly's message."""
        return Poly("c")(case, arrays, threads)
