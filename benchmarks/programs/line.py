"""A program's result, with the figures by which it is judged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from benchmarks.problems.program import Program
from benchmarks.report import ResultLine
from benchmarks.runner import ContenderTiming

BASELINE = "gcc"
"""The peer to which every program is compared, beside the best one."""

MEGABYTE = 1e6


@dataclass(frozen=True)
class ProgramLine:
    """A program's result, with others of the same run: on one thread if this is on several, and of our plain GEMM.

    `gemm` is the part of the FMA peak that the GEMM reached. It is what a program is judged by if nearly all of its
    operations are a contraction's.
    """

    line: ResultLine
    alone: ResultLine | None
    gemm: float | None

    @property
    def suite(self) -> str:
        return self.line.result.case.workload

    @property
    def name(self) -> str:
        return self.line.result.case.size

    @property
    def threads(self) -> int:
        return self.line.result.threads

    @property
    def timing(self) -> ContenderTiming | None:
        return self.line.result.timing(self.line.ours)

    @property
    def best(self) -> ContenderTiming | None:
        return self.line.result.best_peer(self.line.ours)

    @property
    def ratio(self) -> float | None:
        """The speed relative to the best right peer."""
        return self.line.ratio

    @property
    def baseline_ratio(self) -> float | None:
        """The speed relative to gcc, if its result is right."""
        mine, peer = self.timing, self.line.result.timing(BASELINE)
        return self.line.result.ratio_to(peer, mine).median if mine and peer and peer.right else None

    @property
    def megabytes(self) -> float | None:
        """The workspace."""
        return self.timing.workspace / MEGABYTE if self.timing and self.timing.workspace is not None else None

    @property
    def building(self) -> float | None:
        """The seconds from the loops to a shared library."""
        return self.timing.building if self.timing else None

    @property
    def gemm_fraction(self) -> float | None:
        """Our rate as a part of our plain GEMM's."""
        problem = self.line.result.case.problem
        if self.gemm is None or not isinstance(problem, Program) or problem.operations is None:
            return None
        return None if self.line.peak_fraction is None else self.line.peak_fraction / self.gemm

    @property
    def gain(self) -> float | None:
        """The speed relative to that on one thread."""
        if self.alone is None or not self.line.gflops or not self.alone.gflops:
            return None
        return self.line.gflops / self.alone.gflops

    @property
    def gain_fraction(self) -> float | None:
        """What threads gain, as a part of what the machine gains by them."""
        return self.gain / (self.line.bound / self.alone.bound) if self.gain and self.alone else None


def program_lines(results: Sequence[ResultLine], gemm: Mapping[int, float | None]) -> list[ProgramLine]:
    """The lines of all results, each with that of the same program on one thread. `gemm` is by numbers of threads."""
    alone = {line.result.case.size: line for line in results if line.result.threads == 1}
    return [
        ProgramLine(line, alone.get(line.result.case.size) if threads > 1 else None, gemm[threads])
        for line in results
        for threads in (line.result.threads,)
    ]
