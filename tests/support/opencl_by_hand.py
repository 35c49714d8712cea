"""Handwritten device programs, for tests of the host side, and arrays with guards around them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from codegen.ir.integer import Affine, Compare, Linear, quotient
from codegen.ir.program import Buffer
from codegen.ir.signature import Signature
from codegen.opencl.devices import Device
from codegen.opencl.runtime import Executable
from codegen.opencl.values import Argument, DeviceKernel, DeviceProgram, HostLoop, HostNode, Launch, Scratch
from microkernels.dtypes import DType, f32, i32

M, N, T = (Affine.name(name) for name in "MNT")
GUARD = 61
"""Elements before and after an array that no kernel may access; an odd number, so that the array is not aligned."""
UNTOUCHED = -77.0


def integer(name: str) -> Argument:
    return Argument(name, "integer")


def array(name: str, dtype: DType = f32) -> Argument:
    return Argument(name, "buffer", dtype)


def program(
    source: str, kernels: Sequence[DeviceKernel], plan: Sequence[HostNode], buffers: Sequence[Buffer], **more: Any
) -> DeviceProgram:
    sizes = more.pop("sizes", ("M", "N"))
    return DeviceProgram("made_by_hand", sizes, tuple(buffers), source, tuple(kernels), tuple(plan), **more)


def executable(made: DeviceProgram, device: Device) -> Executable:
    return Executable(made, Signature(made.name, made.sizes, made.buffers, False), device)


AXPY = program(
    """
__kernel __attribute__((reqd_work_group_size(8, 1, 1)))
void axpy(long M, long N, __global const float *restrict A, __global float *restrict B, float s)
{
    const long i = get_group_id(1), j = get_global_id(0);
    if (j < N) B[i*N + j] += s*A[i*N + j];
}
""",
    [DeviceKernel("axpy", (integer("M"), integer("N"), array("A"), array("B"), Argument("s", "scalar", f32)), (8,))],
    [Launch("axpy", (quotient(N + 7, 8), M))],
    [Buffer("A", f32, (M, N), "in"), Buffer("B", f32, (M, N), "inout"), Buffer("s", f32, (), "scalar")],
)
"""B += s*A, with eight work-items of a group along a row."""

COUNT = program(
    """
__kernel void fill(long N, __global int *restrict all, long t)
{
    const long i = get_global_id(0);
    all[i] = (t == 0 ? 0 : all[i]) + (int)t;
}
__kernel void gather(long N, long t, __global const int *restrict all, __global int *restrict C)
{
    const long i = get_global_id(0);
    C[t*N + i] = all[N - 1 - i];
}
""",
    [
        DeviceKernel("fill", (integer("N"), Argument("all", "scratch", i32), integer("t")), (1,)),
        DeviceKernel("gather", (integer("N"), integer("t"), Argument("all", "scratch", i32), array("C", i32)), (1,)),
    ],
    [HostLoop("t", Linear(), Compare(Linear.name("t"), "<", T), 1, (Launch("fill", (N,)), Launch("gather", (N,))))],
    [Buffer("C", i32, (T, N), "out")],
    sizes=("T", "N"),
    scratch=(Scratch("all", i32, N),),
)
"""C[t] = 0 + 1 + … + t by two kernels in turn that share a scratch array, so that the order of launches matters."""


def counted(steps: int, width: int) -> np.ndarray:
    return np.repeat(np.cumsum(np.arange(steps, dtype=np.int32))[:, None], width, 1)


def guarded(shape: tuple[int, ...], fill: float = np.nan) -> tuple[np.ndarray, np.ndarray]:
    """An array in the middle of a larger one, and the whole: what lies around is UNTOUCHED."""
    count = int(np.prod(shape))
    whole = np.full(count + 2 * GUARD, UNTOUCHED, np.float32)
    inner = whole[GUARD : GUARD + count].reshape(shape)
    inner[...] = fill
    return inner, whole


def untouched(whole: np.ndarray) -> bool:
    return bool((whole[:GUARD] == UNTOUCHED).all() and (whole[-GUARD:] == UNTOUCHED).all())
