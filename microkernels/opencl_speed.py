"""Percent of the FMA peak that each register tile reaches in OpenCL C on one core of a CPU device.

`python -m microkernels.opencl_speed [opencl512 …]` prints the tables of docs/microkernels.md.

As in `microkernels.speed`, each sample runs a loop of independent multiply-adds in registers and then the kernel, on
the first CPU device; times come from the device's profiling events.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from statistics import median
from typing import Any

from microkernels.catalogue import tiles
from microkernels.ctext import specialise
from microkernels.dtypes import DType, f32, f64
from microkernels.kernel import OuterProduct
from microkernels.opencl_isa import OPENCL512, OPENCL_ISAS
from microkernels.speed import flops, heads, jobs

SAMPLES, PEAK_STEPS, WORK = 31, 60_000, 4e7
CHAINS = 12
"""Multiply-adds in flight in the loop that measures the peak."""
ELEMENTS = 1 << 17
"""The elements of each operand."""

PRELUDE = """#pragma OPENCL EXTENSION cl_khr_fp64 : enable
typedef uchar uint8_t;
typedef ushort uint16_t;
typedef int int32_t;
typedef long int64_t;
"""

KERNELS = """
__kernel void peak(GLOBAL T *a, int64_t steps)
{
    vec_T sum[CHAINS], x = broadcast_T(a[0]), y = broadcast_T(a[1]);
    UNROLL
    for (int i = 0; i < CHAINS; i++)
        sum[i] = load_T(a + i * LANES_T);
    for (int64_t k = 0; k < steps; k++) {
        UNROLL
        for (int i = 0; i < CHAINS; i++)
            sum[i] = fma_T(x, y, sum[i]);
    }
    UNROLL
    for (int i = 0; i < CHAINS; i++)
        store_T(a + i * LANES_T, sum[i]);
}
"""

JOB = """
__kernel void run_{job}(GLOBAL const T *a, GLOBAL const T *b, GLOBAL T *c, int64_t k, int64_t times)
{{
    for (int64_t t = 0; t < times; t++)
        {job}_{name}(a, b, c, k);
}}
"""


def program(kernel: OuterProduct) -> str:
    """OpenCL C with the kernels peak, run_packed and run_strided."""
    job_kernels = "".join(JOB.format(job=job, name=kernel.c_name) for job in ("packed", "strided"))
    text = jobs(kernel) + KERNELS.replace("CHAINS", str(CHAINS)) + job_kernels
    return PRELUDE + kernel.source([kernel.rows], [kernel.columns]) + specialise(text, kernel.isa, kernel.dtype)


class CpuQueue:
    """A queue to the first CPU device, with operands."""

    def __init__(self, dtype: DType) -> None:
        import numpy
        import pyopencl

        kind = pyopencl.device_type.CPU
        devices = [device for platform in pyopencl.get_platforms() for device in platform.get_devices(kind)]
        self._context = pyopencl.Context(devices[:1])
        properties = pyopencl.command_queue_properties.PROFILING_ENABLE
        self._queue = pyopencl.CommandQueue(self._context, properties=properties)
        values = (numpy.arange(ELEMENTS) % 7 - 3).astype(dtype.name.replace("f", "float"))
        flags = pyopencl.mem_flags.COPY_HOST_PTR
        self.operands = [pyopencl.Buffer(self._context, flags, hostbuf=values) for _ in range(3)]
        self.zeros = pyopencl.Buffer(self._context, flags, hostbuf=0 * values)
        self._build = pyopencl.Program
        self._integer = numpy.int64

    def kernels(self, source: str) -> dict[str, Any]:
        built = self._build(self._context, source).build(options=["-cl-std=CL1.2"])
        return {kernel.function_name: kernel for kernel in built.all_kernels()}

    def seconds(self, kernel: Any, buffers: Sequence[Any], *numbers: int) -> float:
        """The time that one work-item takes."""
        event = kernel(self._queue, (1,), (1,), *buffers, *map(self._integer, numbers))
        event.wait()
        return float(event.profile.end - event.profile.start) * 1e-9


def line(core: CpuQueue, kernel: OuterProduct) -> str:
    """The kernel's line of the table."""
    found = core.kernels(program(kernel))
    peak_flop = 2 * CHAINS * kernel.isa.lanes(kernel.dtype) * PEAK_STEPS
    cells = [f"{kernel.rows}x{kernel.columns}"]
    for job, depth, flop in flops(kernel):
        times = int(WORK / flop) + 1
        ratios = []
        for _ in range(SAMPLES):
            peak = peak_flop / core.seconds(found["peak"], [core.zeros], PEAK_STEPS)
            ratios.append(flop * times / core.seconds(found[f"run_{job}"], core.operands, depth, times) / peak)
        cells.append(f"{100 * median(ratios):.1f}")
    return f"| {' | '.join(cells)} |"


def main(names: Sequence[str]) -> None:
    for isa in [OPENCL_ISAS[name] for name in names] or [OPENCL512]:
        for dtype in (f32, f64):
            core = CpuQueue(dtype)
            print(f"\n{isa.name} {dtype}\n\n{heads()}")
            for kernel in tiles(isa, dtype):
                print(line(core, kernel), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
