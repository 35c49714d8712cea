"""From loops to kernels and launches: what becomes groups, what the host loops over, where scratch arrays lie."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from opencl_device import device
from shared_nests import matmul

import poly
from codegen.ir.integer import Compare, Linear, quotient
from codegen.opencl.plan import device_program
from codegen.opencl.values import DeviceProgram, HostIf, HostLoop, HostNode, Launch
from codegen.opencl.values_json import from_json, to_json
from microkernels.opencl_isa import OPENCL512, DeviceISA
from poly import f32, f64
from poly.lowering.lower import lower
from poly.opencl_kernel import opencl_kernel
from poly.schedules.schedule import Schedule

M, N, K, T = poly.sizes("M N K T")
TIME = Linear.name("t")
CPU = replace(OPENCL512, units=3, local_bytes=1 << 20)


@poly.nest
def scale(A: f32[M, N], B: f32[M, N]):
    for i in range(M):
        for j in range(N):
            B[i, j] = 2.0 * A[i, j]


@poly.nest
def sweeps(u: f32[T + 1, N]):
    for t in range(T):
        for x in range(1, N - 1):
            u[t + 1, x] = u[t, x - 1] + u[t, x + 1]


@poly.nest
def triangle(L: f64[N, N], x: f64[N]):
    for i in range(N):
        for j in range(i + 1):
            L[i, j] = L[i, j] + x[j]


@poly.nest
def awkward(kernel: f32[N], half: f32[N], item: f32[N], float4: f32[N], group: f32):
    for local in range(N):
        for uint in range(1):
            kernel[local] = half[local] + item[local] * group - float4[local + uint]


def planned(schedule: Schedule, isa: DeviceISA = CPU) -> DeviceProgram:
    return device_program(lower(schedule.nest, schedule.tree, isa))


def launches(plan: Sequence[HostNode]) -> list[Launch]:
    """The launches in order, loops left out."""
    found: list[Launch] = []
    for node in plan:
        match node:
            case Launch():
                found.append(node)
            case HostLoop(body=body):
                found += launches(body)
            case HostIf(then=then, otherwise=otherwise):
                found += [*launches(then), *launches(otherwise)]
    return found


def test_nested_parallel_loops_are_dimensions_of_one_launch():
    made = planned(poly.schedule(scale).parallel("i").parallel("j"))
    assert made.plan == (Launch("scale_j", (N, M)),)
    assert "const int64_t i = (int64_t)get_group_id(1);" in made.source
    assert "const int64_t j = (int64_t)get_group_id(0);" in made.source


def test_groups_are_a_loops_tiles():
    made = planned(poly.schedule(scale).tile(i=6).parallel("i_tile"))
    assert launches(made.plan)[0].groups == (quotient(M + 5, 6),)


def test_loops_around_parallel_ones_are_the_hosts():
    made = planned(poly.schedule(sweeps).parallel("x"))
    steps = HostLoop("t", Linear(), Compare(TIME, "<", T), 1, (Launch("sweeps_x", (N - 2,)),))
    assert made.plan == (HostIf(Compare(N, ">", Linear.of(2)), (steps,)),)
    assert [argument.name for argument in made.kernel("sweeps_x").arguments] == ["N", "u", "t"]


def test_bounds_that_depend_on_a_group_loop_stay_in_the_kernel():
    made = planned(poly.schedule(triangle).parallel("i").parallel("j"))
    assert made.plan == (Launch("triangle_i", (N,)),)
    assert "for (int64_t j = 0; j <= i; j += 1)" in made.source


def test_what_is_not_parallel_is_one_group():
    made = planned(poly.schedule(sweeps))
    assert made.plan == (Launch("sweeps_once", (Linear.of(1),)),)
    assert made.kernels[0].items == (1,)


def test_a_group_loop_that_runs_once_has_a_kernel_of_its_own():
    nest = sweeps.with_sizes({"N": 3})
    made = planned(poly.schedule(nest).parallel("x"))
    assert made.plan == (HostLoop("t", Linear(), Compare(TIME, "<", T), 1, (Launch("sweeps_once", (Linear.of(1),)),)),)


def test_panels_of_a_group_lie_in_local_memory_where_they_fit():
    nest = matmul.with_sizes({"M": 40, "N": 200, "K": 50})
    made = poly.schedule(nest).tile(i=6, j=64).order("j_tile i_tile i j k").parallel("j_tile")
    packed = made.pack("B", at="j_tile").microkernel("gemm_opencl512_6x64")
    small = replace(CPU, local_bytes=1 << 10)
    assert "__local float B_panels[3200] __attribute__((aligned(64)));" in planned(packed).source
    assert not planned(packed).scratch
    spilled = planned(packed, small)
    assert [(scratch.name, scratch.count) for scratch in spilled.scratch] == [("all_B_panels", Linear.of(9600))]
    assert launches(spilled.plan)[0].groups == (Linear.of(3),)


@pytest.mark.parametrize("local_bytes", [1 << 20, 1 << 10])
def test_panels_are_right_wherever_they_lie(local_bytes: int):
    nest = matmul.with_sizes({"M": 40, "N": 200, "K": 50})
    if device().isa.is_gpu:
        pytest.skip("the CPU's microkernels")
    made = poly.schedule(nest).tile(i=6, j=64).order("j_tile i_tile i j k").parallel("j_tile")
    packed = made.pack("B", at="j_tile").pack("A", at="i_tile").microkernel("gemm_opencl512_6x64")
    kernel = opencl_kernel(nest, replace(CPU, local_bytes=local_bytes), 1, packed, device())
    rng = np.random.default_rng(0)
    A, B = rng.random((40, 50), np.float32), rng.random((50, 200), np.float32)
    C = np.zeros((40, 200), np.float32)
    kernel(A, B, C)
    np.testing.assert_allclose(C, A.astype(float) @ B, rtol=50 * np.finfo(np.float32).eps)


def test_names_that_opencl_keeps_for_itself():
    kernel = poly.compile(awkward, target=device().label, records=False)
    rng = np.random.default_rng(0)
    half, item, float4 = (rng.random(9, np.float32) for _ in range(3))
    out = np.full(9, np.nan, np.float32)
    kernel(out, half, item, float4, 0.5)
    np.testing.assert_allclose(out, half + item * np.float32(0.5) - float4, rtol=1e-6)


def test_programs_travel_as_json():
    for schedule in (poly.schedule(scale).parallel("i"), poly.schedule(sweeps).parallel("x")):
        made = planned(schedule)
        assert from_json(to_json(made)) == made


def test_a_device_that_is_not_there():
    device()
    with pytest.raises(poly.TargetError, match="nothing of that name"):
        poly.compile(scale, target="opencl:nothing of that name")


def test_threads_are_for_c():
    with pytest.raises(poly.ArgumentError, match="compute units"):
        poly.compile(scale, target=device().label, threads=77)


def test_the_cache_gives_the_program_back():
    first = poly.compile(scale, target=device().label, records=False)
    assert poly.compile(scale, target=device().label, records=False).program == first.program
