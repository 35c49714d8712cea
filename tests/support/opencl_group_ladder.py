"""Check a GPU microkernel against float64: `python opencl_group_ladder.py DEVICE KERNEL TYPE`.

Prints the number of calls checked. Buffers are NaN outside operands, and must stay so outside the result.
On a CPU device, operands end or start at an unreadable page, so that a read outside kills the program.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import pyopencl as cl
from opencl_ladder import ROOM, Fence

from codegen.opencl.devices import Device, find
from microkernels.catalogue import find as find_kernel
from microkernels.dtypes import DTYPES, DType, f16
from microkernels.group_kernel import GroupKernel

LINES = 384
"""The rows or columns that a call can have, over all its tiles."""


@dataclass(frozen=True)
class Layout:
    """The layout of one operand: its dimensions, outermost first (`r` and `c` rows and columns, `0` to `2` levels of
    the reduction), the stride of the last one, and the elements left out after each of its runs.
    """

    order: str
    apart: int = 1
    gap: int = 0
    table: bool = False
    """Rows or columns are in any order, which needs a table."""


@dataclass(frozen=True)
class Case:
    """One call: m x n results, sums of K x K1 x K2 products in each of two visits."""

    m: int
    n: int
    levels: tuple[int, int, int]
    a: Layout
    b: Layout
    c: Layout
    alpha: float = 1
    accumulate: bool = False


def program(kernel: GroupKernel) -> str:
    """A kernel whose groups call the microkernel twice, with arguments from a table, the second time for more steps."""
    stored, computed = kernel.dtype.c_name, kernel.panel_dtype.c_name
    doubles = "#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n" * (stored == "double")
    return f"""{doubles}{kernel.source()}
__kernel __attribute__((reqd_work_group_size({kernel.items}, 1, 1)))
void check(__global const {stored} *a, __global const {stored} *b, __global {stored} *c, __global const long *p,
           {computed} alpha)
{{
    __local {computed} panels[{kernel.panel_elements}] __attribute__((aligned(64)));
    __local long tables[4][{LINES}];
    const long i = (long)get_group_id(1) * {kernel.rows}, j = (long)get_group_id(0) * {kernel.columns};

    for (int e = (int)get_local_id(0); e < 4 * {LINES}; e += {kernel.items})
        tables[e / {LINES}][e % {LINES}] = p[32 + e];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (long visit = 0; visit < 2; visit++)
        {kernel.c_name}(
            min(p[0] - i, (long){kernel.rows}), min(p[1] - j, (long){kernel.columns}),
            a + p[2] + (p[3] ? 0 : i * p[4]) + visit * p[21], p[3] ? tables[0] + i : 0, p[4],
            b + p[5] + (p[6] ? 0 : j * p[7]) + visit * p[22], p[6] ? tables[1] + j : 0, p[7],
            c + p[8] + (p[9] ? 0 : i * p[10]) + (p[11] ? 0 : j * p[12]), p[9] ? tables[2] + i : 0, p[10],
            p[11] ? tables[3] + j : 0, p[12],
            p[13], p[14], p[15], p[16], p[17], p[18], p[19], p[20], p[23],
            alpha, visit || p[24], panels);
}}
"""


def strides(layout: Layout, extents: dict[str, int]) -> dict[str, int]:
    """The stride of each dimension."""
    found, step = {}, layout.apart
    for dimension in reversed(layout.order):
        found[dimension] = step
        step = step * extents[dimension] + (layout.gap if len(found) == 1 else 0)
    return found


class Ladder:
    def __init__(self, device: Device, kernel: GroupKernel) -> None:
        self.kernel = kernel
        self.context = cl.Context([device.handle])
        self.queue = cl.CommandQueue(self.context)
        built = cl.Program(self.context, program(kernel)).build(options=["-cl-std=CL1.2"])
        self.check = cl.Kernel(built, "check")
        self.type = np.dtype(kernel.dtype.numpy_name)
        self.buffers = [self._buffer(device, kernel.dtype) for _ in range(3)]
        self.random = np.random.default_rng(1)
        self.checks = 0

    def _buffer(self, device: Device, dtype: DType) -> Any:
        return (
            cl.Buffer(self.context, cl.mem_flags.READ_WRITE, ROOM) if device.isa.is_gpu else Fence(self.context, dtype)
        )

    def numbers(self, *shape: int) -> np.ndarray:
        return self.random.uniform(-1, 1, shape).astype(self.type)

    def lines(self, layout: Layout, count: int, stride: int) -> np.ndarray:
        """The places of rows or columns."""
        return (self.random.permutation(count) if layout.table else np.arange(count)) * stride

    def run(self, case: Case) -> None:
        """One call, or an AssertionError if a result differs more from the expected one than rounding explains."""
        K, K1, K2 = case.levels
        extents = {"r": case.m, "c": case.n, "0": K, "1": K1, "2": 2 * K2}
        sa, sb, sc = (strides(layout, extents) for layout in (case.a, case.b, case.c))
        steps = list(product(range(2 * K2), range(K1), range(K)))
        a_steps, b_steps = (
            np.array([k2 * s["2"] + k1 * s["1"] + k * s["0"] for k2, k1, k in steps], "int64") for s in (sa, sb)
        )
        a_rows, c_rows = self.lines(case.a, case.m, sa["r"]), self.lines(case.c, case.m, sc["r"])
        b_columns, c_columns = self.lines(case.b, case.n, sb["c"]), self.lines(case.c, case.n, sc["c"])
        a_at, b_at = a_rows[:, None] + a_steps[None, :], b_steps[:, None] + b_columns[None, :]
        c_at = c_rows[:, None] + c_columns[None, :]
        a, b, c = (np.full(int(at.max(initial=-1)) + 1, np.nan, self.type) for at in (a_at, b_at, c_at))
        a[a_at], b[b_at] = self.numbers(*a_at.shape), self.numbers(*b_at.shape)
        old = self.numbers(case.m, case.n) if case.accumulate else np.zeros((case.m, case.n))
        if case.accumulate:
            c[c_at] = old
        left, right = a[a_at].astype("float64"), b[b_at].astype("float64")
        starts = [self._place(buffer, array) for buffer, array in zip(self.buffers, (a, b, c), strict=True)]
        table = [case.m, case.n]
        table += [starts[0], case.a.table, sa["r"], starts[1], case.b.table, sb["c"]]
        table += [starts[2], case.c.table, sc["r"], case.c.table, sc["c"]]
        table += [K, sa["0"], sb["0"], K1, sa["1"], sb["1"], K2, sa["2"], K2 * sa["2"], K2 * sb["2"], sb["2"]]
        self._launch([*table, case.accumulate], (a_rows, b_columns, c_rows, c_columns), case)
        cl.enqueue_copy(self.queue, c, self._memory(self.buffers[2]), src_offset=starts[2] * self.type.itemsize)
        sums = np.abs(case.alpha) * (np.abs(left) @ np.abs(right)) + np.abs(old)
        depth, fine = len(steps) + 3, float(np.finfo(self.kernel.panel_dtype.numpy_name).eps)
        want = case.alpha * (left @ right) + old
        bound = depth * fine * sums + 2 * (np.finfo(self.type).eps * sums if self.type.itemsize == 2 else 0)
        wrong = ~(np.abs(c[c_at].astype("float64") - want) <= bound)
        assert not wrong.any(), f"{case}: at {np.argwhere(wrong)[:5].tolist()} got {c[c_at][wrong][:5]}"
        c[c_at] = np.nan
        assert np.isnan(c).all(), f"{case}: wrote outside of its rows and columns"
        self.checks += 1

    def _launch(self, table: Sequence[int], lines: Sequence[np.ndarray], case: Case) -> None:
        numbers = np.zeros(32 + 4 * LINES, "int64")
        numbers[: len(table)] = table
        for position, line in enumerate(lines):
            numbers[32 + position * LINES : 32 + position * LINES + len(line)] = line
        flags = cl.mem_flags.READ_ONLY | cl.mem_flags.COPY_HOST_PTR
        told = cl.Buffer(self.context, flags, hostbuf=numbers)
        alpha = np.dtype(self.kernel.panel_dtype.numpy_name).type(case.alpha)
        groups = (-(-case.n // self.kernel.columns), -(-case.m // self.kernel.rows))
        size = (groups[0] * self.kernel.items, groups[1])
        memories = [self._memory(buffer) for buffer in self.buffers]
        self.check(self.queue, size, (self.kernel.items, 1), *memories, told, alpha)

    def _place(self, buffer: Any, array: np.ndarray) -> int:
        """Copy an operand into a buffer, to its end in odd checks, so that it mostly isn't aligned there."""
        count = ROOM // self.type.itemsize
        start = count - len(array) if self.checks % 2 else 0
        assert start >= 0, "an operand is larger than its buffer"
        memory = self._memory(buffer)
        cl.enqueue_copy(self.queue, memory, np.full(count, np.nan, self.type))
        if len(array):
            cl.enqueue_copy(self.queue, memory, array, dst_offset=start * self.type.itemsize)
        return start

    def _memory(self, buffer: Any) -> cl.Buffer:
        return buffer.buffer if isinstance(buffer, Fence) else buffer


A_ORDERS, B_ORDERS = ("21r0", "210r", "r210", "2r10", "102r"), ("210c", "21c0", "c210", "20c1", "c120")


def cases(kernel: GroupKernel) -> Iterator[Case]:
    """Whole aligned tiles in every orientation, then sizes, layouts and depths at random."""
    slab, whole = kernel.slab, Layout("rc")
    size = (2 * kernel.rows, kernel.columns)
    for a, b in product(("21r0", "210r"), ("210c", "21c0")):
        for levels in ((2 * slab, 1, 1), (slab, 2, 1), (4, 3, 2), (3 * slab + 1, 1, 1)):
            yield Case(*size, levels, Layout(a), Layout(b), whole, accumulate=levels[1] > 1)
    for a_layout, b_layout, c in (
        (Layout("21r0", gap=2), Layout("21c0", gap=2), whole),
        (Layout("21r0", table=True), Layout("210c"), whole),
        (Layout("210r"), Layout("210c", table=True), Layout("rc", table=True)),
        (Layout("210r", apart=2), Layout("210c", apart=2), Layout("cr")),
        (Layout("21r0", apart=2), Layout("21c0", apart=2), Layout("rc", gap=1)),
    ):
        yield Case(*size, (6, 3, 2), a_layout, b_layout, c, -0.5, True)
    draw = random.Random(2)

    def drawn(most: int) -> int:
        near = (1, 2, 3, most - 1, most, most + 1, 2 * most + 1)
        return draw.choice(near) if draw.random() < 0.5 else draw.randrange(1, 2 * most + 2)

    def layout(orders: Sequence[str]) -> Layout:
        order, table = draw.choice(orders), draw.random() < 0.25
        return Layout(order, draw.choice((1, 1, 1, 2)), draw.choice((0, 0, 1, 4)), table)

    for _ in range(30):
        levels = (draw.choice((0, 1, 2, 3, 7, 8, 16, 17, 33)), draw.choice((1, 1, 2, 3)), draw.choice((1, 1, 2)))
        operands = (layout(A_ORDERS), layout(B_ORDERS), layout(("rc", "rc", "cr")))
        alpha, accumulate = draw.choice((1, -0.75)), draw.random() < 0.5
        yield Case(drawn(kernel.rows), drawn(kernel.columns), levels, *operands, alpha, accumulate)
    yield Case(3, 5, (4, 0, 1), Layout("21r0"), Layout("210c"), whole, 1, True)


def main(target: str, name: str, type_name: str) -> None:
    dtype = f16 if type_name == "f16" else DTYPES[type_name]
    ladder = Ladder(find(target), find_kernel(name, dtype))
    for case in cases(ladder.kernel):
        ladder.run(case)
    print(ladder.checks)


if __name__ == "__main__":
    main(*sys.argv[1:])
