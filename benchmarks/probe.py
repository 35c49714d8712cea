"""The peak of fused multiply-adds, probed in short samples between the contenders' turns."""

from __future__ import annotations

from microkernels.dtypes import DType
from microkernels.isa import ISA
from poly.machine import machine
from poly.machine.probes import probes
from poly.measure import process


class PeakProbe:
    """A call takes one sample, in GFLOP/s, by an instruction set: the machine's unless another one is given.

    Its threads are pinned like those of the contenders.
    """

    def __init__(self, cpus: tuple[int, ...], dtype: DType, threads: int, isa: ISA | None = None) -> None:
        self.isa = isa or machine().isa
        self.dtype = dtype
        self.threads = threads
        process.release(cpus)
        self()
        process.pin(process.choose(cpus, threads))

    def __call__(self) -> float:
        return probes(self.isa).peak(self.dtype, self.threads)
