"""Our own entrant: the nest compiled by `poly.compile`, called through its C function."""

from __future__ import annotations

from dataclasses import dataclass

import poly
from benchmarks.arrays import Array
from benchmarks.case import Case
from benchmarks.contender import Contender, Failed
from codegen.clock import CFunction

NAME = "poly"


@dataclass(frozen=True)
class Poly:
    """Kernels with the model's schedule for one target, without tuning."""

    target: str = "c"

    def __call__(self, case: Case, arrays: tuple[Array, ...], threads: int) -> Contender:
        """Compile the case's loops. Raises Failed with poly's message."""
        try:
            kernel = poly.compile(case.nest(), sizes=case.sizes, target=self.target, threads=threads, records=False)
            assert isinstance(kernel, poly.Kernel), "a C target makes kernels in C"
            arguments = kernel.arguments(*arrays, threads=threads)
        except poly.PolyError as error:
            raise Failed(f"{type(error).__name__}: {error}") from error
        config = f"default schedule, target {self.target}, workspace {kernel.workspace_bytes} bytes"
        result = arrays[case.problem.written[0]]
        function = CFunction.of(kernel.function, arguments, kernel)
        return Contender(NAME, poly.__version__, config, function.timed(), lambda: result)
