"""The peak of fused multiply-adds, probed in short samples between the contenders' turns."""

from __future__ import annotations

from microkernels.dtypes import DType
from poly.machine import machine
from poly.machine.probes import probes
from poly.measure import process


class PeakProbe:
    """A call takes one sample, in GFLOP/s. Its threads are pinned like those of the contenders."""

    def __init__(self, cpus: tuple[int, ...], dtype: DType, threads: int) -> None:
        self.dtype = dtype
        self.threads = threads
        process.release(cpus)
        self()
        process.pin(process.choose(cpus, threads))

    def __call__(self) -> float:
        return probes(machine().isa).peak(self.dtype, self.threads)
