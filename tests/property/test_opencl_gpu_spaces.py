"""The space of a GPU: every point is a legal schedule that fits the device; some of each kind run on one."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest
from opencl_device import device
from shared_nests import matmul

import poly
from microkernels.opencl_isa import OPENCLGPU, DeviceISA
from poly import f32
from poly.autoschedule.default import default_schedule
from poly.autoschedule.derive import derive
from poly.autoschedule.spaces.space import Point, Space
from poly.compiled import translate_device
from poly.ir.nest import Nest
from poly.measure.live import LiveMeasurer
from poly.model.core import Target
from poly.model.host import caches
from poly.schedules.schedule import Schedule
from poly.search.events import Ask

M, N, K, T = poly.sizes("M N K T")
GPU = replace(OPENCLGPU, units=20, max_items=256, local_bytes=16 * 1024)


@poly.nest
def jacobi(A: f32[N, N], B: f32[N, N]):
    for _ in range(T):
        for i in range(1, N - 1):
            for j in range(1, N - 1):
                B[i, j] = 0.25 * (A[i - 1, j] + A[i + 1, j] + A[i, j - 1] + A[i, j + 1])
        for i in range(1, N - 1):
            for j in range(1, N - 1):
                A[i, j] = 0.25 * (B[i - 1, j] + B[i + 1, j] + B[i, j - 1] + B[i, j + 1])


@poly.nest
def sums(A: f32[M, N], s: f32[M]):
    for i in range(M):
        for j in range(N):
            s[i] += A[i, j]


@poly.nest
def layer(A: f32[M, K], B: f32[K, N], b: f32[N], Y: f32[M, N]):
    for i in range(M):
        for j in range(N):
            Y[i, j] = 0.0
            for k in range(K):
                Y[i, j] += A[i, k] * B[k, j]
    for i in range(M):
        for j in range(N):
            Y[i, j] = max(Y[i, j] + b[j], 0.0)


NESTS = [
    (matmul, {"M": 67, "N": 70, "K": 45}),
    (jacobi, {"N": 150, "T": 2}),
    (sums, {"M": 60, "N": 300}),
    (layer, {"M": 40, "N": 50, "K": 30}),
]
"""Nests of several kinds, at sizes that no tile divides."""


def space(nest: Nest, sizes: dict[str, int], isa: DeviceISA = GPU) -> Space:
    return derive(nest.with_sizes(sizes), Target.nominal(isa, caches(), isa.units))


def kinds(made: Space, count: int) -> list[Point]:
    """So many points of each structure."""
    found: dict[int, list[Point]] = {}
    for point in made.sample(len(made), Random(0)):
        found.setdefault(point.structure, []).append(point)
    return [point for points in found.values() for point in points[:count]]


@pytest.mark.parametrize(("nest", "sizes"), NESTS)
def test_schedules_are_legal_and_fit(nest: Nest, sizes: dict[str, int]) -> None:
    made = space(nest, sizes)
    for point in kinds(made, 4):
        schedule = made.schedule(point)
        assert Schedule.from_json(made.nest, schedule.to_json()).steps == schedule.steps  # each step is proven again
        program = translate_device(schedule, GPU)
        assert all(1 <= kernel.items[0] <= GPU.max_items for kernel in program.kernels)
        assert made.predict(point).seconds > 0


@pytest.mark.parametrize(("nest", "sizes"), NESTS)
def test_the_choice_is_the_default_schedule(nest: Nest, sizes: dict[str, int]) -> None:
    made = space(nest, sizes)
    assert made.choice in made
    expected = default_schedule(made.nest, Target.nominal(GPU, caches(), GPU.units))
    assert made.schedule(made.choice).steps == expected.steps


@pytest.mark.parametrize(("nest", "sizes"), NESTS)
def test_schedules_are_right(nest: Nest, sizes: dict[str, int]) -> None:
    here = device()
    isa = GPU if not here.isa.is_gpu else here.isa
    made = replace(space(nest, sizes, isa), device=here)
    with LiveMeasurer(made, samples=1) as measurer:
        trials = measurer.measure(Ask(tuple(kinds(made, 1))))
    assert [trial.failure for trial in trials] == [""] * len(trials)


@pytest.mark.parametrize(("nest", "sizes"), [NESTS[0], NESTS[3]])
def test_contractions_have_microkernels_of_all_shapes_that_fit(nest: Nest, sizes: dict[str, int]) -> None:
    made = space(nest, sizes)
    (structure,) = (one for one in made.structures if one.traits == (("microkernel", "of a group"),))
    points = [structure.values(at) for at in structure.points()]
    assert len(points) > 20
    values = {"rows": 64, "columns": 32, "slab": 16, "item rows": 4, "item columns": 4, "slabs": 2}
    assert values in points
    assert "gemm_openclgpu_64x32x16_4x4_db" in repr(structure.schedule(values))
    large = {"rows": 128, "columns": 128, "slab": 16, "item rows": 8, "item columns": 8, "slabs": 2}
    assert large not in points  # its panels take more than the local memory there is
