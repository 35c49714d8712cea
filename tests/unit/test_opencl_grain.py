"""Blocks of parallel loops as work-groups of an OpenCL device's CPU."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from opencl_device import device

import poly
from benchmarks.workloads import nests
from microkernels.dtypes import f32
from microkernels.opencl_isa import OPENCL512
from poly.autoschedule.default import default_schedule
from poly.model.core import Target
from poly.model.host import caches
from poly.opencl_kernel import opencl_kernel

M, N = poly.sizes("M N")
CPU = replace(OPENCL512, units=2)


@poly.nest
def axpy(x: f32[N], y: f32[N]):
    for i in range(N):
        y[i] += 2 * x[i]


def steps(nest: poly.Nest, units: int = 2) -> str:
    """The default schedule for some compute units."""
    return repr(default_schedule(nest, Target.nominal(replace(CPU, units=units), caches(), units)))


def test_elements_in_blocks() -> None:
    assert steps(axpy) == "schedule(axpy).parallel('i').vectorize('i').split(i=4096)"


def test_short_rows_in_blocks() -> None:
    rows = nests.make("softmax", f32).with_sizes({"M": 40000, "N": 100})
    assert steps(rows).endswith(".split(i=10)")


def test_long_rows_alone() -> None:
    assert "split" not in steps(nests.make("softmax", f32).with_sizes({"M": 400, "N": 10000}))


def test_enough_groups_for_all_units() -> None:
    assert steps(axpy.with_sizes({"N": 80000})).endswith(".split(i=4096)")
    rows = nests.make("softmax", f32).with_sizes({"N": 60})
    assert steps(rows.with_sizes({"M": 400}), units=8).endswith(".split(i=12)")
    assert "parallel" not in steps(rows.with_sizes({"M": 100})), "too little work for threads"


@pytest.mark.parametrize("size", [0, 1, 4095, 4096, 10001])
def test_every_element_once(size: int) -> None:
    kernel = opencl_kernel(axpy, CPU, 2, None, device())
    x = np.arange(size, dtype=np.float32)
    y = np.ones(size, dtype=np.float32)
    kernel(x, y)
    np.testing.assert_array_equal(y, 1 + 2 * x)
