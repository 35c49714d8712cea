"""Our own entrant: the nest compiled by `poly.compile`, called through its C function."""

from __future__ import annotations

from typing import Any

import poly
from benchmarks import process
from benchmarks.case import Case
from benchmarks.clock import CFunction
from benchmarks.contender import Contender, Failed

NAME = "poly"


class Poly:
    """Kernels by the model's schedule, nothing measured."""

    name = NAME

    def __init__(self, cpus: tuple[int, ...], target: str = "c") -> None:
        self.cpus = cpus
        self.target = target

    def enter(self, case: Case, threads: int) -> Contender:
        """Compile and run once. Raises Failed with poly's own words."""
        cpus = process.choose(self.cpus, threads)
        process.release(self.cpus)
        arrays = case.problem.arrays(case.dtype)
        try:
            kernel = poly.compile(case.nest(), sizes=case.sizes, target=self.target, threads=threads)
            kernel(*arrays)
        except (poly.SpecError, poly.ScheduleError, poly.ArgumentError, poly.TargetError, poly.ToolchainError) as error:
            raise Failed(f"{type(error).__name__}: {error}") from error
        result = arrays[case.problem.written[0]].copy()
        process.pin(cpus)
        timed = c_function(kernel, kernel.arguments(*arrays, threads=threads)).timed()
        config = f"default schedule, target {self.target}, workspace {kernel.workspace_bytes} bytes"
        return Contender(self.name, poly.__version__, config, timed, lambda: result)


def c_function(kernel: Any, arguments: tuple[Any, ...]) -> CFunction:
    """The kernel's C function with its types, as cffi knows them."""
    import cffi

    type_ = cffi.FFI().typeof(kernel.function)
    return CFunction(kernel.function, type_.result.cname, tuple(arg.cname for arg in type_.args), arguments, kernel)
