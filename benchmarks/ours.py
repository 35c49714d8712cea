"""Our own entrant: the nest compiled by `poly.compile`, called through its C function."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from time import perf_counter

import poly
from benchmarks.arrays import Array
from benchmarks.case import Case
from benchmarks.contender import Contender, Failed, Tuned
from benchmarks.environment import environment
from codegen.calls.clock import CFunction
from poly.machine.target import parse
from poly.model.host import here

NAME = "poly"


@dataclass(frozen=True)
class Poly:
    """Kernels with the model's schedule for one target, or with `records` the tuned one if there is one.

    If `anew`, nothing comes from the cache, so that the time from the loops to a function is that of a new nest.
    """

    target: str = "c"
    anew: bool = False
    records: bool = False

    def __call__(self, case: Case, arrays: tuple[Array, ...], threads: int) -> Contender:
        """Compile the case's loops. Raises Failed with poly's message."""
        try:
            here(parse(self.target).isa, threads)  # the machine's rates are known before
            nest = case.nest()
            sizes = {name: value for name, value in case.sizes.items() if name in nest.sizes}
            with _empty_cache() if self.anew else nullcontext():
                start = perf_counter()
                kernel = poly.compile(nest, sizes=sizes, target=self.target, threads=threads, records=self.records)
                assert isinstance(kernel, poly.Kernel), "a C target makes kernels in C"
                result = arrays[case.problem.written[0]]
                if case.packed is not None:
                    kernel, arrays = _packed(kernel, case.packed, arrays)
                kernel.build()
                building = perf_counter() - start
            arguments = kernel.arguments(*(a if a.ndim else a.item() for a in arrays), threads=threads)
        except poly.PolyError as error:
            raise Failed(f"{type(error).__name__}: {error}") from error
        workspace = kernel.workspace_bytes
        record = kernel.record
        schedule = "default schedule" if record is None else f"tuned schedule, {record}"
        before = f", {case.packed} packed before the clock starts" if case.packed else ""
        config = f"{schedule}, target {self.target}, workspace {workspace} bytes{before}"
        tuned = None if record is None else Tuned(record.trials, record.tuning_seconds)
        timed = CFunction.of(kernel.function, arguments, kernel).timed()
        return Contender(
            NAME,
            poly.__version__,
            config,
            timed,
            lambda: result,
            building=building,
            workspace=workspace,
            tuned=tuned,
        )


def _packed(kernel: poly.Kernel, array: str, arrays: tuple[Array, ...]) -> tuple[poly.Kernel, tuple[Array, ...]]:
    """The kernel with an array packed, and the arrays that its calls still take."""
    at = [argument.name for argument in kernel.nest.arguments].index(array)
    return kernel.prepack(array, arrays[at]), arrays[:at] + arrays[at + 1 :]


@contextmanager
def _empty_cache() -> Iterator[None]:
    """A cache directory of its own, without a calibration that nobody would ever use."""
    with (
        tempfile.TemporaryDirectory(prefix="poly-cache-") as folder,
        environment({"POLY_CACHE_DIR": folder, "POLY_CALIBRATE": "never"}),
    ):
        yield
