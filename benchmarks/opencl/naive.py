"""Naive OpenCL: the plain loops, optimised only by the device's own compiler and runtime."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from benchmarks.arrays import Array
from benchmarks.case import Case
from benchmarks.contender import Contender
from benchmarks.opencl.naive_text import text
from benchmarks.opencl.stage import launch, scalar, stage

LONGEST = 0.5
"""Seconds per call above which a comparison makes no sense."""


@dataclass(frozen=True)
class Naive:
    """One work-item for each element, in work-groups of the runtime's choice."""

    target: str

    def __call__(self, case: Case, arrays: tuple[Array, ...], threads: int) -> Contender | None:
        """The program's launches on the device's arrays; None if the problem has no such program, or it is too slow."""
        made = text(case.problem)
        if made is None:
            return None
        here = stage(self.target)
        program = here.build(f"{scalar(case.dtype)}{made.source}")
        given = here.upload(arrays)
        launches = [
            launch(here.queue, program, one.kernel, one.items, None, *(given[n].data for n in one.arrays))
            for one in made.launches
        ]

        def enqueue() -> Any:
            return [put() for put in launches][-1]

        enqueue().wait()
        result = given[case.problem.written[0]].get()
        timed = here.timed(enqueue)
        if timed(1) > LONGEST:
            return None
        config = "an item for each element, groups by the runtime"
        return Contender("naive", here.device.driver, config, timed, lambda: result, pinned=False)
