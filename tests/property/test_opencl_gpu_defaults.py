"""Default schedules on a GPU: which loops are groups and items, and that what comes out is what the loops compute."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import classic_nests
import numpy as np
import pytest
from opencl_device import device

import poly
from benchmarks.workloads import nests
from microkernels.dtypes import f32, i8
from microkernels.opencl_isa import OPENCLGPU
from poly.analysis.legality import illegal_mark, violations
from poly.autoschedule.rules.gpu import gpu_schedule
from poly.autoschedule.rules.gpu.items import GroupShape
from poly.compiled import translate_device
from poly.ir.tree import bands
from poly.ir.work_groups import misfit
from poly.lowering.mapping.legality import conflict
from poly.opencl_kernel import opencl_kernel

Array = np.ndarray[Any, Any]
GPU = replace(OPENCLGPU, local_bytes=48 * 1024, max_items=1024)
M, N, K = poly.sizes("M N K")

OPERANDS = {"gemm_integers": i8}
WORKLOADS = {name: nests.make(name, OPERANDS.get(name, f32)) for name in nests.NESTS}
WORKLOAD_SIZES = {
    "gemm_nn": {"M": 9, "N": 35, "K": 5},
    "gemm_nt": {"M": 3, "N": 7, "K": 300},
    "gemm_tn": {"M": 9, "N": 35, "K": 5},
    "gemm_tt": {"M": 9, "N": 35, "K": 5},
    "gemm_batched": {"B": 2, "M": 5, "N": 7, "K": 3},
    "gemm_integers": {"M": 9, "N": 35, "K": 5},
    "gemm_halves": {"M": 9, "N": 35, "K": 5},
    "gemv": {"M": 5, "K": 301},
    "softmax": {"M": 5, "N": 301},
    "conv2d_nchw_1": {"N": 1, "C": 2, "K": 3, "P": 5, "Q": 7, "R": 3, "S": 3},
    "conv2d_nchw_2": {"N": 1, "C": 2, "K": 3, "P": 5, "Q": 7, "R": 3, "S": 3},
    "conv2d_nhwc_1": {"N": 1, "C": 2, "K": 3, "P": 5, "Q": 7, "R": 3, "S": 3},
    "conv2d_nhwc_2": {"N": 1, "C": 2, "K": 3, "P": 5, "Q": 7, "R": 3, "S": 3},
    "jacobi_2d": {"N": 45, "T": 3},
    "heat_3d": {"N": 37, "T": 2},
    "seidel_2d": {"N": 21, "T": 3},
    "trsv": {"N": 300},
    "trsm": {"N": 19, "M": 70},
}
NESTS: dict[str, tuple[Any, dict[str, int]]] = {
    **{function.name: (function, sizes) for function, sizes in classic_nests.SIZES.items()},
    **{f"workload {name}": (nest, WORKLOAD_SIZES[name]) for name, nest in WORKLOADS.items()},
}

RUN = (
    "covariance",
    "symm",
    "tri_product",
    "trisolve",
    "backsolve",
    "cond",
    "ints",
    "diag",
    "gemv_like",
    "prefix",
    "lu",
    "transpose",
    "strided",
    "workload softmax",
    "workload jacobi_2d",
    "workload trsm",
    "workload conv2d_nchw_2",
    "workload seidel_2d",
)
"""Of each kind of schedule one or two."""


def shared(nest: poly.Nest, shape: GroupShape | None = None) -> tuple[poly.Schedule, dict[str, str]]:
    """The schedule, and for each loop that is shared who shares it."""
    schedule = gpu_schedule(poly.schedule(nest), GPU, *([shape] if shape else []))
    found = {b.name: "groups" if b.group else str(b.items) for b in bands(schedule.tree) if b.group or b.items}
    return schedule, found


@pytest.mark.parametrize("name", NESTS)
def test_legal(name: str) -> None:
    schedule, _ = shared(NESTS[name][0])
    assert misfit(schedule.tree) is None
    for check in (violations, illegal_mark, conflict):
        assert check(schedule.nest, schedule.tree) is None
    assert schedule.on(schedule.nest) == schedule
    assert "__kernel" in translate_device(schedule, GPU).source


def arrays(nest: poly.Nest, sizes: dict[str, int]) -> list[Array]:
    """Random values that keep solves and factorisations well posed."""
    rng = np.random.default_rng(3)
    made = []
    for array in nest.arguments:
        shape = tuple(extent.evaluate(sizes) for extent in array.shape)
        if array.dtype.name.startswith("i"):
            made.append(rng.integers(-9, 9, shape).astype(array.dtype.numpy_name))
            continue
        values = rng.random(shape)
        if len(shape) == 2 and shape[0] == shape[1]:
            values = values / shape[0] + np.eye(shape[0])
            values = (values + values.T) / 2 + np.eye(shape[0]) if nest.name == "cholesky" else values
        made.append(values.astype(array.dtype.numpy_name))
    return made


def check(schedule: poly.Schedule, sizes: dict[str, int]) -> None:
    """The device computes what the loops as written compute."""
    kernel = opencl_kernel(schedule.nest, GPU, 1, schedule, device())
    ours, theirs = arrays(schedule.nest, sizes), arrays(schedule.nest, sizes)
    scalars = {at for at, array in enumerate(schedule.nest.arguments) if not array.shape}
    ours = [value.item() if at in scalars else value for at, value in enumerate(ours)]
    theirs = [value.item() if at in scalars else value for at, value in enumerate(theirs)]
    told = {name: sizes[name] for name in kernel.signature.given}
    schedule.nest.reference(*theirs, **told)
    kernel(*ours, **told)
    for our, their in zip(ours, theirs, strict=True):
        single = isinstance(our, np.ndarray) and our.dtype == np.float32
        np.testing.assert_allclose(our, their, rtol=2e-4 if single else 1e-10, atol=1e-6 if single else 1e-13)


@pytest.mark.parametrize("name", RUN)
def test_on_a_device(name: str) -> None:
    nest, sizes = NESTS[name]
    check(shared(nest)[0], sizes)


@pytest.mark.parametrize("name", ["softmax", "workload heat_3d", "workload gemv", "transpose", "jacobi1d"])
def test_known_sizes(name: str) -> None:
    nest, sizes = NESTS[name]
    check(shared(nest.with_sizes(sizes))[0], {})


@pytest.mark.parametrize(
    ("name", "shape"),
    [("softmax", GroupShape(32, 32, 8)), ("transpose", GroupShape(64, 16, 64)), ("ints", GroupShape(1, 1, 1))],
)
def test_other_shapes_of_groups(name: str, shape: GroupShape) -> None:
    nest, sizes = NESTS[name]
    check(shared(nest, shape)[0], sizes)


@poly.nest
def columns(A: poly.f32[M, N], x: poly.f32[M], s: poly.f32[N], t: poly.f32[1]):
    for j in range(N):
        s[j] = 1.0
        for i in range(M):
            s[j] += A[i, j] * x[i]
    for i in range(M):
        for j in range(N):
            t[0] += A[i, j]


@pytest.mark.parametrize(("sizes", "blocks"), [({"M": 3001, "N": 50}, 2), ({"M": 60, "N": 50}, 0)])
def test_few_results_are_summed_in_blocks(sizes: dict[str, int], blocks: int) -> None:
    schedule, _ = shared(columns.with_sizes(sizes))
    assert [step.name for step in schedule.steps].count("rfactor") == blocks
    check(schedule, {})


def test_a_stencil_is_tiled_below_the_time_loop() -> None:
    schedule, found = shared(WORKLOADS["jacobi_2d"])
    tiles = dict.fromkeys(("i_tile", "j_tile", "i_2_tile", "j_2_tile"), "groups")
    assert found == {**tiles, "j": "128", "j_2": "128"}
    program = translate_device(schedule, GPU)
    assert len(program.plan) == 1 and len(program.kernels) == 2


def test_short_iterations_are_several_an_item() -> None:
    schedule, _ = shared(WORKLOADS["jacobi_2d"])
    assert "for i in range(max(1, 4*i_tile), min(N - 1, 4*i_tile + 4)):\n" in str(schedule)
    small, _ = shared(classic_nests.outer.with_sizes({"M": 20, "N": 50}))
    assert "for i in range(2*i_tile, 2*i_tile + 2):  # 2 items" in str(small)


def test_little_work_in_a_time_loop_is_one_group() -> None:
    _, found = shared(WORKLOADS["jacobi_2d"].with_sizes({"N": 50, "T": 2}))
    assert found == {"i": "8", "j": "64", "i_2": "8", "j_2": "64"}


def test_long_iterations_are_one_an_item() -> None:
    schedule, _ = shared(classic_nests.ints)
    assert "for j in range(32*j_tile, min(N, 32*j_tile + 32)):  # 32 items" in str(schedule)


def test_three_dimensions_of_groups() -> None:
    _, found = shared(WORKLOADS["heat_3d"])
    assert [found[name] for name in ("i", "j_tile", "k_tile", "k")] == ["groups", "groups", "groups", "128"]


def test_a_row_is_a_group() -> None:
    _, found = shared(WORKLOADS["softmax"])
    assert found == {"i": "groups", "j": "256", "j_2": "256", "j_3": "256"}
    _, found = shared(WORKLOADS["gemv"])
    assert found == {"i": "groups", "k": "256"}


def test_a_short_row_has_fewer_items() -> None:
    _, found = shared(WORKLOADS["softmax"].with_sizes({"M": 1000, "N": 50}))
    assert found == {"i": "groups", "j": "32", "j_2": "32", "j_3": "32"}


def test_many_short_rows_are_one_an_item() -> None:
    _, found = shared(WORKLOADS["gemv"].with_sizes({"M": 1 << 20, "K": 50}))
    assert found == {"i_tile": "groups", "i": "32"}


@poly.nest
def broadcast(x: poly.f32[1], y: poly.f32[N]):
    x[0] = y[0]
    for i in range(N):
        y[i] += x[0]


def test_what_other_items_write_is_read_behind_the_barrier() -> None:
    schedule = poly.schedule(broadcast).items(i=3)
    source = translate_device(schedule, GPU).source
    assert "barrier(CLK_GLOBAL_MEM_FENCE)" in source and "restrict" not in source
    check(schedule, {"N": 10})


def test_sums_of_columns_go_down_the_rows() -> None:
    _, found = shared(classic_nests.ints)
    assert found == {"j_tile": "groups", "j": "32"}


def test_one_loop_has_lines_of_items() -> None:
    _, found = shared(axpy)
    assert found == {"i_tile": "groups", "i": "128"}


def test_columns_of_a_solve_are_groups() -> None:
    _, found = shared(WORKLOADS["trsm"])
    assert found == {"k_tile": "groups", "k": "32"}


def test_a_transpose_goes_through_local_memory() -> None:
    schedule, found = shared(classic_nests.transpose)
    assert found == {"j_tile": "groups", "i_tile": "groups", "j": "4", "i": "32"}
    assert "__local float A_box[1056]" in translate_device(schedule, GPU).source


def test_a_transpose_where_local_memory_is_short() -> None:
    short = replace(GPU, local_bytes=1024)
    schedule = gpu_schedule(poly.schedule(classic_nests.transpose), short)
    assert not any(step.name == "pack" for step in schedule.steps)
    assert any(band.group for band in bands(schedule.tree))


def test_more_parallel_loops_than_dimensions() -> None:
    _, found = shared(four)
    assert found == {"a": "groups", "b": "groups", "c": "groups", "d": "128"}


def test_few_loops_in_sequence_are_one_group() -> None:
    _, found = shared(classic_nests.trisolve)
    assert found == {"j": "512"}


def test_waves_of_a_recurrence_in_two_dimensions() -> None:
    schedule, found = shared(WORKLOADS["seidel_2d"])
    assert found == {"i": "256"} and [step.name for step in schedule.steps] == ["skew", "interchange", "items"]


def test_what_cannot_be_shared_is_as_written() -> None:
    schedule, found = shared(classic_nests.prefix)
    assert found == {} and schedule.steps == ()


def test_no_more_items_than_the_device_has() -> None:
    small = replace(GPU, max_items=100)
    schedule = gpu_schedule(poly.schedule(axpy), small)
    assert [band.items for band in bands(schedule.tree) if band.items] == [64]


@poly.nest
def axpy(x: poly.f32[N], y: poly.f32[N], a: poly.f32):
    for i in range(N):
        y[i] += a * x[i]


@poly.nest
def four(X: poly.f32[K, M, M, N], Y: poly.f32[K, M, M, N]):
    for a in range(K):
        for b in range(M):
            for c in range(M):
                for d in range(N):
                    Y[a, b, c, d] = 2 * X[a, b, c, d]
