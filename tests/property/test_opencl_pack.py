"""Copies into local and private memory of OpenCL devices against the loops as written; the text of refusals."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from opencl_device import device
from shared_nests import jacobi, matmul

import poly
from microkernels.opencl_isa import OPENCL512, OPENCLGPU, DeviceISA
from poly import f32
from poly.compiled import translate_device
from poly.opencl_kernel import opencl_kernel

M, N, K = poly.sizes("M N K")
Array = np.ndarray[Any, Any]
Steps = Callable[[poly.Schedule], poly.Schedule]
GPU = replace(OPENCLGPU, local_bytes=48 * 1024, max_items=1024)
SIZES = ({"M": 1, "N": 1, "K": 1}, {"M": 70, "N": 41, "K": 37})


@poly.nest
def transpose(A: f32[M, N], B: f32[N, M]):
    for j in range(N):
        for i in range(M):
            B[j, i] = 2.0 * A[i, j]


@poly.nest
def blur(A: f32[M + 4], w: f32[5], B: f32[M]):
    for i in range(M):
        for r in range(5):
            B[i] += A[i + r] * w[r]


@poly.nest
def cube(A: f32[K, M, N], B: f32[K, M, N]):
    for k in range(1, K - 1):
        for i in range(M):
            for j in range(N):
                B[k, i, j] = A[k - 1, i, j] + A[k, i, j] + A[k + 1, i, j]


def turned(s: poly.Schedule) -> poly.Schedule:
    """Tiles of the transpose, neighbours along what is written."""
    return s.tile(j=32, i=32).groups("j_tile", "i_tile").items(j=8, i=32)


def star(s: poly.Schedule) -> poly.Schedule:
    """Tiles of the stencil."""
    return s.tile(i=8, j=32).groups("i_tile", "j_tile").items(i=8, j=32)


def slabs(s: poly.Schedule) -> poly.Schedule:
    """Tiles of the product in slabs of the reduction; each item has 2 x 2 elements."""
    cut = s.tile(i=16, j=16, k=8).tile(i=2, j=2)
    ordered = cut.order("i_tile j_tile k_tile i_tile2 j_tile2 k i j")
    return ordered.groups("i_tile", "j_tile").items(i_tile2=8, j_tile2=8)


def beams(s: poly.Schedule) -> poly.Schedule:
    """Columns of tiles: a group goes along k."""
    return s.tile(i=4, j=16).order("i_tile j_tile k i j").groups("i_tile", "j_tile").items(i=4, j=16)


SCHEDULES: dict[str, tuple[poly.Nest, Steps]] = {
    "transposed": (transpose, lambda s: turned(s).pack("A", at="i_tile", memory="local", pad=1)),
    "transposed, global": (transpose, lambda s: turned(s).pack("A", at="i_tile")),
    "transposed, above": (transpose, lambda s: turned(s).pack("A")),
    "halo": (jacobi, lambda s: star(s).pack("A", at="j_tile", memory="local")),
    "halo, rows of groups": (
        jacobi,
        lambda s: s.tile(i=8, j=32).groups("i_tile").items(i=8, j=32).pack("A", at="j_tile", memory="local", buffers=2),
    ),
    "halo, one buffer": (
        jacobi,
        lambda s: s.tile(i=8, j=32).groups("i_tile").items(i=8, j=32).pack("A", at="j_tile", memory="local", pad=3),
    ),
    "halo, one group": (jacobi, lambda s: s.tile(i=8, j=32).items(i=4, j=8).pack("A", at="j_tile", memory="local")),
    "product": (
        matmul,
        lambda s: (
            slabs(s).pack("A", at="k_tile", memory="local", pad=1).pack("B", at="k_tile", memory="local", buffers=2)
        ),
    ),
    "product, two boxes each": (
        matmul,
        lambda s: (
            slabs(s).pack("A", at="k_tile", memory="local", buffers=2).pack("B", at="k_tile", memory="local", buffers=2)
        ),
    ),
    "product, registers": (
        matmul,
        lambda s: (
            slabs(s)
            .pack("A", at="k_tile", memory="local", pad=1)
            .pack("B", at="k_tile", memory="local")
            .pack("B", at="k", memory="private")
        ),
    ),
    "window": (blur, lambda s: s.split(i=64).groups("i_tile").items(i=64).pack("A", at="i_tile", memory="local")),
    "taps": (blur, lambda s: s.split(i=64).groups("i_tile").items(i=32).pack("w", at="i", memory="private")),
    "planes": (cube, lambda s: beams(s).pack("A", at="k", memory="local", buffers=2)),
}


def arrays(nest: poly.Nest, sizes: dict[str, int]) -> list[Array]:
    """Random values; NaN in what the nest assigns."""
    rng = np.random.default_rng(1)
    made = []
    for array in nest.arguments:
        assigned = any(s.target.array == array.name and s.op == "=" for s in nest.statements)
        values = rng.random(tuple(extent.evaluate(sizes) for extent in array.shape))
        made.append((values * np.nan if assigned else values).astype(array.dtype.numpy_name))
    return made


def check(schedule: poly.Schedule, isa: DeviceISA, sizes: dict[str, int]) -> None:
    """The device computes what the loops as written compute."""
    kernel = opencl_kernel(schedule.nest, isa, 1, schedule, device())
    ours, theirs = arrays(schedule.nest, sizes), arrays(schedule.nest, sizes)
    schedule.nest.reference(*theirs)
    kernel(*ours)
    for our, their in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(our, their, rtol=1e-5 if our.dtype == np.float32 else 1e-12)


@pytest.mark.parametrize("name", SCHEDULES)
def test_on_a_device(name: str) -> None:
    nest, steps = SCHEDULES[name]
    schedule = steps(poly.schedule(nest))
    for sizes in SIZES:
        check(schedule, GPU, {size: sizes[size] for size in nest.sizes})


@pytest.mark.parametrize("name", ["halo", "product"])
def test_known_sizes(name: str) -> None:
    nest, steps = SCHEDULES[name]
    fixed = nest.with_sizes({size: SIZES[-1][size] for size in nest.sizes})
    check(steps(poly.schedule(fixed)), GPU, {})


def test_a_group_of_one_item_copies_alone() -> None:
    cut = poly.schedule(jacobi).tile(i=8, j=32).parallel("i_tile")
    schedule = cut.pack("A", at="j_tile", memory="local", pad=1, buffers=2).vectorize("j")
    for sizes in SIZES:
        check(schedule, OPENCL512, {"M": sizes["M"], "N": sizes["N"]})


@pytest.mark.parametrize("name", SCHEDULES)
def test_schedules_are_values(name: str) -> None:
    nest, steps = SCHEDULES[name]
    schedule = steps(poly.schedule(nest))
    assert eval(repr(schedule), {"schedule": poly.schedule, nest.name: nest}) == schedule
    assert poly.Schedule.from_json(nest, schedule.to_json()) == schedule
    assert str(schedule).count("# pack") == sum(step.name == "pack" for step in schedule.steps)


def test_what_is_usual_is_not_written() -> None:
    usual = poly.schedule(jacobi).split(i=16).pack("A", at="i_tile", memory="global", pad=0, buffers=1)
    assert repr(usual) == "schedule(jacobi).split(i=16).pack('A', at='i_tile')"
    assert usual == poly.schedule(jacobi).split(i=16).pack("A", at="i_tile")


def test_loops_tell_where_copies_lie() -> None:
    schedule = poly.schedule(jacobi).tile(i=8, j=32).pack("A", at="j_tile", memory="local", pad=1, buffers=2)
    assert "# pack A into local memory, rows 1 further apart, 2 boxes in turn" in str(schedule)


def source(nest: poly.Nest, steps: Steps, isa: DeviceISA = GPU) -> str:
    """The text for a device."""
    return translate_device(steps(poly.schedule(nest)), isa).source


def test_boxes_of_a_group() -> None:
    assert "__local float A_box[1056]" in source(*SCHEDULES["transposed"])
    assert "__local double A_box[340]" in source(*SCHEDULES["halo"])
    assert "__local double A_box[680]" in source(*SCHEDULES["halo, rows of groups"])
    assert "__local double A_box[370]" in source(*SCHEDULES["halo, one buffer"])


def test_a_box_of_an_item() -> None:
    text = source(*SCHEDULES["taps"])
    assert "float w_box[5]" in text and "__local float w_box" not in text


def test_boxes_take_turns() -> None:
    assert "A_box[340*(j_tile % 2) + 34*A_0 + A_1]" in source(*SCHEDULES["halo, rows of groups"])


def test_one_barrier_less_with_two_boxes() -> None:
    single, double = (source(*SCHEDULES[name]) for name in ("halo, one buffer", "halo, rows of groups"))
    assert (single.count("barrier("), double.count("barrier(")) == (2, 1)


def turns(name: str) -> list[str]:
    """By how much the loops that copy A count, outermost first."""
    return re.findall(r"A_\d \+= (\d+)\)", source(*SCHEDULES[name]))


def test_neighbours_copy_neighbours_in_the_fewest_turns() -> None:
    assert turns("halo") == ["4", "64"]  # 10 x 34 elements
    assert turns("transposed") == ["8", "32"]
    assert turns("product") == ["8", "8"]
    assert turns("planes") == ["1", "4", "16"]
    assert turns("window") == ["64"]


def refusal(make: Callable[[], object]) -> str:
    """The text of the error."""
    with pytest.raises(poly.ScheduleError) as caught:
        make()
    return str(caught.value)


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (
            lambda: poly.schedule(jacobi).pack("A", at="i", memory="texture"),
            "pack(A, memory='texture'): the memories are global, local, private.",
        ),
        (
            lambda: poly.schedule(jacobi).pack("A", at="i", pad=-1),
            "the padding of the rows of a copy of A must be an integer from 0 up, not -1.",
        ),
        (
            lambda: poly.schedule(jacobi).pack("A", at="i", buffers=3),
            "pack(A, buffers=3): there are 1 or 2 boxes.",
        ),
        (
            lambda: poly.schedule(jacobi).pack("A", buffers=2),
            "pack(A, buffers=2): the boxes take turns with the passes of a loop. Remedy: name it, at=…",
        ),
        (
            lambda: poly.compile(
                jacobi,
                schedule=poly.schedule(jacobi).split(i=8).pack("A", at="i_tile", memory="local"),
                target="c:portable",
            ),
            "pack(A, memory=local): portable has one memory only. "
            "Remedy: leave memory out, or compile for target='opencl'.",
        ),
        (
            lambda: source(jacobi, lambda s: star(s).pack("A", memory="local")),
            "pack(A, memory=local): the copy is made before the work-groups start. "
            "Remedy: at=i_tile, j_tile, or a loop in it.",
        ),
        (
            lambda: source(jacobi, lambda s: star(s).pack("A", at="i", memory="local")),
            "pack(A, memory=local): the copy belongs to a work-group, but work-items share a loop around it. "
            "Remedy: memory='private', or a loop further out.",
        ),
        (
            lambda: source(jacobi, lambda s: star(s).pack("A", at="i")),
            "pack(A, memory=global): the copy belongs to a work-group, but work-items share a loop around it. "
            "Remedy: memory='private', or a loop further out.",
        ),
        (
            lambda: source(jacobi, lambda s: star(s).pack("A", at="j_tile", memory="private")),
            "pack(A, memory=private): the copy belongs to a work-item, but work-items share a loop inside it. "
            "Remedy: memory='local', or a loop further in.",
        ),
        (
            lambda: source(jacobi, lambda s: s.groups("i").items(j=64).pack("A", at="i", memory="local")),
            "pack(A, memory=local): the copy has 3*N elements, which must be a known number. "
            "Remedy: tile the loops that read A, and copy at a loop over the tiles.",
        ),
        (
            lambda: source(transpose, SCHEDULES["transposed"][1], replace(GPU, local_bytes=4096)),
            "pack(A, memory=local): the copy takes 4224 bytes, and there are 4096. Remedy: smaller tiles.",
        ),
        (
            lambda: source(matmul, SCHEDULES["product"][1], replace(GPU, local_bytes=1500)),
            "pack(B, memory=local): the copy takes 1024 bytes, and there are 1500, 576 of them taken by other copies. "
            "Remedy: smaller tiles.",
        ),
        (
            lambda: source(
                matmul, lambda s: s.split(k=256).groups("i").items(j=64).pack("A", at="k_tile", memory="private")
            ),
            "pack(A, memory=private): the copy takes 1024 bytes, and there are 512. Remedy: smaller tiles.",
        ),
    ],
)
def test_refusals(make: Callable[[], object], text: str) -> None:
    assert refusal(make) == text
