"""Loops that work-groups and work-items share, run on an OpenCL device as a GPU would, against the loops as written.

PoCL runs the items of a group one after the other from barrier to barrier, so one that is missing gives wrong results.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from doc_nests import chain, copy, dot, late, matmul, solve
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mapping_nests import elimination, extremes, far, jacobi, mapped, once, parity, same, scaled, steps, sums, three
from opencl_device import device
from random_nests import VALUE_OF_N, nests

from microkernels.opencl_isa import OPENCLGPU
from poly import schedule
from poly.compiled import translate_device
from poly.ir.nest import Nest
from poly.ir.reference import reference
from poly.opencl_kernel import OpenCLKernel
from poly.schedules.schedule import Schedule

GPU = replace(OPENCLGPU, max_items=4096)
Array = np.ndarray[Any, Any]


def kernel(made: Schedule) -> OpenCLKernel:
    """Without the proof that no access leaves its array, which random nests are only known to keep at some sizes."""
    return OpenCLKernel(made.nest, GPU, 1, made, device(), translate_device(made, GPU))


def arguments(nest: Nest, sizes: dict[str, int], seed: int = 0) -> list[Array]:
    """Positive numbers."""
    rng = np.random.default_rng(seed)
    shapes = [(a, tuple(extent.evaluate(sizes) for extent in a.shape)) for a in nest.arguments]
    return [
        (rng.random(shape) + 0.5).astype(a.dtype.numpy_name)
        if a.dtype.is_float
        else rng.integers(-99, 99, shape).astype(a.dtype.numpy_name)
        for a, shape in shapes
    ]


def check(made: Schedule, *all_sizes: dict[str, int]) -> None:
    """The kernel does what the loops as written do, for all of these sizes."""
    run = kernel(made)
    for sizes in all_sizes:
        ours, expected = arguments(made.nest, sizes), arguments(made.nest, sizes)
        run(*ours)
        reference(made.nest, tuple(expected))
        for array, our, their in zip(made.nest.arguments, ours, expected, strict=True):
            bound = 1e-4 if array.dtype.numpy_name == "float32" else 1e-10
            np.testing.assert_allclose(our, their, rtol=bound, err_msg=f"{array.name} for {sizes}")


LINE = ({"N": 1}, {"N": 3}, {"N": 31}, {"N": 100})
PLANE = ({"M": 1, "N": 1}, {"M": 3, "N": 40}, {"M": 17, "N": 5})
SPACE = ({"M": 1, "N": 1, "K": 1}, {"M": 9, "N": 19, "K": 21})
MAPPED: dict[str, tuple[Callable[[], Schedule], tuple[dict[str, int], ...]]] = {
    "groups alone": (lambda: schedule(copy).groups("i", "j"), PLANE),
    "items alone": (lambda: schedule(copy).items(i=3, j=5), PLANE),
    "groups and items": (lambda: schedule(copy).tile(i=4, j=8).groups("i_tile", "j_tile").items(i=2, j=8), PLANE),
    "three dimensions": (
        lambda: schedule(copy).split(i=4).tile(i=2, j=4).groups("i_tile", "i_tile2", "j_tile").items(j=4),
        PLANE,
    ),
    "two loops, one item each": (lambda: schedule(same).items(i=8, j=8), LINE),
    "two loops, a barrier": (lambda: schedule(late).items(i=8, j=8), LINE),
    "three loops, one barrier": (lambda: schedule(three).items(i=8, j=8, k=8), LINE),
    "two kernels": (lambda: schedule(chain).split(i=8, j=8).groups("i_tile").groups("j_tile").items(i=4, j=4), LINE),
    "item 0 alone, then all": (lambda: schedule(same).items(j=8), LINE),
    "time in one group": (lambda: schedule(jacobi).items(i=16, i_2=16), tuple({"T": 3, **size} for size in LINE[1:])),
    "time on the host": (
        lambda: schedule(jacobi).split(i=8, i_2=8).groups("i_tile").groups("i_2_tile").items(i=4, i_2=8),
        tuple({"T": 3, **size} for size in LINE[1:]),
    ),
    "triangles": (lambda: schedule(elimination).items(i=12, i_2=4, j=3), ({"N": 1}, {"N": 2}, {"N": 23})),
    "triangular groups": (
        lambda: schedule(elimination).groups("i").groups("i_2", "j"),
        ({"N": 1}, {"N": 2}, {"N": 23}),
    ),
    "a solve": (lambda: schedule(solve).items(j=5), LINE),
    "steps of three": (lambda: schedule(steps).items(i=4, j=4), LINE),
    "steps of three in groups": (lambda: schedule(steps).split(j=8).groups("j_tile").items(i=4, j=4), LINE),
    "a loop of one iteration": (lambda: schedule(once).items(i=4, j=8, i_2=4, j_2=8), LINE),
    "steps from a start that moves": (lambda: schedule(parity).items(k=4), ({"M": 1}, {"M": 23})),
    "far": (lambda: schedule(far).items(i=4), LINE),
    "a sum": (lambda: schedule(dot).items(i=7), LINE),
    "a sum of sums": (lambda: schedule(dot).split(i=10).items(i=4), LINE),
    "a sum of long sums": (lambda: schedule(dot).split(i=10).items(i_tile=4), LINE),
    "a row a group": (lambda: schedule(sums).groups("i").items(j=16), PLANE),
    "rows in one group": (lambda: schedule(sums).items(j=16), PLANE),
    "least, most, product": (lambda: schedule(extremes).items(i=3, j=2), PLANE),
    "rows, several times": (lambda: schedule(scaled).groups("i").items(j=32, j_2=32, j_3=32), PLANE[1:]),
    "a product in tiles": (lambda: schedule(matmul).tile(i=8, j=8).groups("i_tile", "j_tile").items(i=4, j=8), SPACE),
    "a product over items": (lambda: schedule(matmul).groups("i", "j").items(k=6), SPACE),
    "a product of copies": (lambda: _staged(1), SPACE),
    "a product of copies in turn": (lambda: _staged(2), SPACE),
}


def _staged(buffers: int) -> Schedule:
    tiled = schedule(matmul).tile(i=8, j=8).split(k=5).order("i_tile j_tile k_tile i j k")
    made = tiled.groups("i_tile", "j_tile").items(i=8, j=8)
    for array in "AB":
        made = made.pack(array, at="k_tile", memory="local", buffers=buffers)
    return made


@pytest.mark.parametrize("name", MAPPED)
def test_as_the_loops_are_written(name: str) -> None:
    made, sizes = MAPPED[name]
    check(made(), *sizes)


@pytest.mark.parametrize("name", ["two kernels", "time on the host", "a row a group", "a product in tiles"])
def test_with_known_sizes_and_loops_of_one_iteration(name: str) -> None:
    made, all_sizes = MAPPED[name]
    for sizes in (all_sizes[0], all_sizes[-1]):
        known = made().on(made().nest.with_sizes(sizes))
        check(known, {})


@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
@given(nests(), st.data())
def test_random_nests(nest: Nest, data: st.DataObject) -> None:
    check(data.draw(mapped(nest)), {"N": VALUE_OF_N})
