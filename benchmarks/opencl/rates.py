"""The peak rates of an OpenCL device: fused multiply-adds in registers, and memory bandwidth.

This is for GPUs; a CPU device has the rates of its CPU's cores, which C programs measure (`benchmarks.probe`).
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from benchmarks.opencl.stage import Enqueue, Stage, launch, scalar, stage
from microkernels.dtypes import DType

CHAINS, STEPS, ITEMS, GROUP = 16, 512, 2048, 64
"""Independent chains per work-item, their length, work-items per compute unit, and work-items per group."""

PEAK = """
__kernel void peak(__global T *sink, T factor)
{{
    T x[{chains}];
    for (int c = 0; c < {chains}; c++) x[c] = c + get_global_id(0);
    for (int step = 0; step < {steps}; step++)
        for (int c = 0; c < {chains}; c++) x[c] = fma(x[c], factor, factor);
    T sum = 0;
    for (int c = 0; c < {chains}; c++) sum += x[c];
    sink[get_global_id(0)] = sum;
}}
"""

STREAM = """
__kernel void stream_read(__global const float4 *a, __global float4 *sink, int count)
{
    float4 sum = 0;
    for (int i = get_global_id(0); i < count; i += get_global_size(0)) sum += a[i];
    sink[get_global_id(0)] = sum;
}

__kernel void triad(__global float4 *a, __global const float4 *b, __global const float4 *c, float s, int count)
{
    for (int i = get_global_id(0); i < count; i += get_global_size(0)) a[i] = b[i] + s * c[i];
}
"""
LARGEST = 256 << 20
"""The bytes of an array to stream: far more than a cache holds."""
SAMPLES = 5


class DevicePeak:
    """A call takes one sample of the peak, in GFLOP/s."""

    def __init__(self, target: str, dtype: DType) -> None:
        self._stage = stage(target)
        items = ITEMS * self._stage.device.isa.units
        self._flop = 2 * CHAINS * STEPS * items
        sink = self._stage.buffer(items * dtype.size)
        program = self._stage.build(scalar(dtype) + PEAK.format(chains=CHAINS, steps=STEPS))
        factor = np.dtype(dtype.numpy_name).type(0.5)
        self._run = self._stage.timed(launch(self._stage.queue, program, "peak", (items,), (GROUP,), sink, factor))
        self._run(1)

    def __call__(self) -> float:
        return self._flop / self._run(1) / 1e9


@functools.cache
def bandwidth(target: str) -> float:
    """The device's memory bandwidth in GB/s: of reads or of the triad, whichever is faster."""
    here = stage(target)
    size = min(LARGEST, here.device.buffer_bytes // 2, here.device.memory_bytes // 8) // 16 * 16
    return max(moved / min(_samples(here, enqueue)) / 1e9 for enqueue, moved in _streams(here, size))


def _streams(here: Stage, size: int) -> list[tuple[Enqueue, int]]:
    """The two streams, with the bytes that each moves."""
    program = here.build(STREAM)
    items, count = (ITEMS * here.device.isa.units,), np.int32(size // 16)
    a, b, c = (here.buffer(size) for _ in range(3))
    sink = here.buffer(16 * items[0])
    kernels: tuple[tuple[str, tuple[Any, ...], int], ...] = (
        ("stream_read", (a, sink, count), size),
        ("triad", (a, b, c, np.float32(0.5), count), 3 * size),
    )
    return [(launch(here.queue, program, name, items, (GROUP,), *given), moved) for name, given, moved in kernels]


def _samples(here: Stage, enqueue: Enqueue) -> list[float]:
    timed = here.timed(enqueue)
    timed(1)
    return [timed(1) for _ in range(SAMPLES)]
